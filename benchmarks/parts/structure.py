"""How a source tree is built: depth of its import graph, rooms, circles, the longest function, the most arguments.

    python benchmarks/parts/structure.py src/saddlesvm [another tree ...]

Only imports that run when a file is imported make the graph: those inside functions are counted apart.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Found(NamedTuple):
    """A function, where it stands, its positional parameters, and the lines of its body without the docstring."""

    file: str
    name: str
    positional: int
    lines: int


def trees(root: Path) -> dict[str, ast.Module]:
    """The syntax tree of each file, by its dotted name."""
    found = {}
    for file in sorted(root.rglob("*.py")):
        parts = [root.name, *file.relative_to(root).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(file.read_text(encoding="utf-8"))
    return found


def functions(root: Path) -> list[Found]:
    """All functions of a tree."""
    return [measure(name, node) for name, tree in trees(root).items() for node in ast.walk(tree) if is_function(node)]


def is_function(node: ast.AST) -> bool:
    """Whether the node defines a function."""
    return isinstance(node, Function)


def measure(file: str, node: ast.AST) -> Found:
    """The figures of one function."""
    assert isinstance(node, Function)
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
    return Found(file, node.name, len(node.args.posonlyargs) + len(node.args.args), lines)


def own_imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run with the file."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node


def graph(root: Path) -> dict[str, set[str]]:
    """Which file of a tree imports which others."""
    files = trees(root)
    edges: dict[str, set[str]] = {name: set() for name in files}
    for name, tree in files.items():
        for node in own_imports(tree):
            if isinstance(node, ast.Import):
                edges[name] |= {alias.name for alias in node.names if alias.name in files}
            elif node.module:
                for alias in node.names:
                    inside = f"{node.module}.{alias.name}"
                    edges[name] |= {
                        target for target in (inside if inside in files else node.module,) if target in files
                    }
        edges[name].discard(name)
    return edges


def components(edges: dict[str, set[str]]) -> list[list[str]]:
    """Files that import one another, together; all others alone (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    answer: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in number:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == number[node]:
            cut = stack.index(node)
            answer.append(stack[cut:])
            del stack[cut:]

    for node in sorted(edges):
        if node not in number:
            visit(node)
    return answer


def depth(edges: dict[str, set[str]]) -> int:
    """Files on the longest way down the import graph, a circle being one."""
    of_file = {file: k for k, files in enumerate(components(edges)) for file in files}

    @cache
    def below(component: int) -> int:
        others = {
            of_file[target] for file, targets in edges.items() if of_file[file] == component for target in targets
        }
        return 1 + max((below(other) for other in others - {component}), default=0)

    return max(below(component) for component in set(of_file.values()))


def room_of(file: str) -> str:
    """The room a file stands in: the second part of its name."""
    return file.split(".")[1] if "." in file else file


def rooms_graph(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Which room imports which others; the package's own first file is left out."""
    top = {file: room_of(file) for file in edges if "." in file}
    answer: dict[str, set[str]] = {room: set() for room in top.values()}
    for file, targets in edges.items():
        if file in top:
            answer[top[file]] |= {top[target] for target in targets if target in top} - {top[file]}
    return answer


def late_imports(tree: ast.Module) -> list[str]:
    """The modules that are imported inside functions."""
    found = []
    for function in ast.walk(tree):
        if is_function(function):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    found += [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    found.append(node.module or "")
    return found


def report(root: Path) -> str:
    """The figures of a tree, a line each."""
    edges = graph(root)
    found = functions(root)
    late = sum(name.startswith(root.name) for tree in trees(root).values() for name in late_imports(tree))
    circles = [files for files in components(edges) if len(files) > 1]
    rooms = [entry for entry in root.iterdir() if (entry / "__init__.py").exists() or entry.suffix == ".py"]
    longest = max(found, key=lambda one: one.lines)
    widest = max(found, key=lambda one: one.positional)
    return "\n".join(
        [
            f"{root}: {len(edges)} files, {len(found)} functions",
            f"depth of the import graph: {depth(edges)} files, {depth(rooms_graph(edges))} rooms",
            f"names at the top level: {len([entry for entry in rooms if not entry.name.startswith('__')])}",
            f"circles: {len(circles)}" + "".join(f"\n  {', '.join(files)}" for files in circles),
            f"imports of own files inside functions: {late}",
            f"longest function: {longest.lines} lines ({longest.file}.{longest.name})",
            f"most positional parameters: {widest.positional} ({widest.file}.{widest.name})",
            f"functions with more than 8: {sum(one.positional > 8 for one in found)}",
        ]
    )


if __name__ == "__main__":
    print("\n\n".join(report(Path(given)) for given in sys.argv[1:] or ["src/saddlesvm"]))
