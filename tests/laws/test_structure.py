"""How the source is built: few arguments, short functions, private names that stay at home, imports at the top; and
budgets of its size and of the trip of one small fit, which only go down.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import saddlesvm

ROOT, TESTS = Path(saddlesvm.__file__).parent, Path(__file__).parents[1]
TEXTS = {file.relative_to(ROOT).as_posix(): file.read_text() for file in sorted(ROOT.rglob("*.py"))}
FILES = {name: ast.parse(text) for name, text in TEXTS.items()}
MOST_ARGUMENTS, MOST_LINES = 8, 60
# What the source may measure at most. Who makes it smaller lowers a number; nobody raises one.
BUDGET = {"lines of code": 41_927, "files": 272, "lines of imports": 4_183, "numbers in constants of solvers": 343}
TRIP = {"functions": 192, "files": 28, "depth": 15}  # of one warm LinearSVC().fit of 200 x 5
# What may be imported inside a function: heavy or optional packages, and what only some systems have.
LATE = {
    "contourpy", "cyanure", "dask", "distributed", "fcntl", "liblinear", "lightning", "matplotlib", "pandas", "plotly",
    "pyarrow", "rich", "scipy", "sklearn", "urllib",
}  # fmt: skip
# Files that import others of this package inside functions, so that what they do not need is not loaded.
DOORS = {
    "cli/__init__.py", "cli/answers.py", "cli/asked.py", "cli/train.py",
    "cluster/sources.py", "estimators/on_cluster.py",
}  # fmt: skip

Function = ast.FunctionDef | ast.AsyncFunctionDef
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
    tokenize.ENCODING,
}  # fmt: skip
CONSTANT = re.compile(r"^[A-Z][A-Z0-9_]*(, [A-Z][A-Z0-9_]*)* = ")


def functions(tree: ast.Module) -> list[Function]:
    """The functions of a file, those inside others too."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def lines_of(function: Function) -> int:
    """Lines of the body, the docstring not counted."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def lines_between(nodes: Iterator[ast.stmt]) -> set[int]:
    """The numbers of the lines that statements take."""
    return {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def docstrings(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that are docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(
            node, clean=False
        ):
            yield node.body[0]


def lines_of_code(name: str) -> int:
    """Lines with a token that is no comment, and no part of a docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(TEXTS[name]).readline)
    found = {line for one in tokens if one.type not in SILENT for line in range(one.start[0], one.end[0] + 1)}
    return len(found - lines_between(docstrings(FILES[name])))


def lines_of_imports(name: str) -> int:
    """Lines of import statements."""
    imports = (node for node in ast.walk(FILES[name]) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return sum((node.end_lineno or 0) - node.lineno + 1 for node in imports)


def numbers_in_constants(name: str) -> int:
    """Numbers in the constants of a module."""
    rows = TEXTS[name].splitlines()
    found = [
        node for node in FILES[name].body if isinstance(node, ast.Assign) and CONSTANT.match(rows[node.lineno - 1])
    ]
    values = [one.value for node in found for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
    return sum(isinstance(one, (int, float)) and not isinstance(one, bool) for one in values)


def test_no_function_has_more_than_eight_positional_parameters() -> None:
    many = {
        f"{name}: {one.name}": count
        for name, tree in FILES.items()
        for one in functions(tree)
        if (count := len(one.args.posonlyargs) + len(one.args.args)) > MOST_ARGUMENTS
    }
    assert many == {}


def test_no_function_is_longer_than_sixty_lines() -> None:
    every = ((name, one) for name, tree in FILES.items() for one in functions(tree))
    assert {f"{name}: {one.name}": lines_of(one) for name, one in every if lines_of(one) > MOST_LINES} == {}


def test_no_file_takes_a_private_name_of_another() -> None:
    taken = [
        f"{name}: {node.module}.{one.name}"
        for name, tree in FILES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("saddlesvm")
        for one in node.names
        if one.name.startswith("_") and not one.name.endswith("__")
    ]
    assert taken == []


def last_name(node: ast.expr) -> str:
    """The last word of a name or an attribute, or of what is called or indexed."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def factors(node: ast.expr) -> set[str]:
    """The last names of a product's factors."""
    if isinstance(node, ast.UnaryOp):
        return factors(node.operand)
    if isinstance(node, ast.Call) and last_name(node) == "float":
        return factors(node.args[0])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return factors(node.left) | factors(node.right)
    return {last_name(node)}


def test_objectives_are_computed_in_one_place() -> None:
    """C times losses, or times conjugates, plus or minus anything is an objective. The checker of proofs computes its
    own: it relies on nothing of this package.
    """
    losses = {"paid", "conjugates", "conjugate", "gained", "entropy", "losses", "loss_sums", "conjugate_sum"}
    elsewhere = [
        f"{name}: {ast.unparse(node)}"
        for name, tree in FILES.items()
        if name not in ("problem/proven_sums.py", "checker.py")
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub))
        if any("C" in found and found & losses for found in map(factors, (node.left, node.right)))
    ]
    assert elsewhere == []


def test_imports_stand_at_the_top() -> None:
    for name, tree in FILES.items():
        late = set()
        for function in functions(tree):
            for node in ast.walk(function):
                if isinstance(node, ast.Import):
                    late |= {one.name.split(".")[0] for one in node.names}
                elif isinstance(node, ast.ImportFrom):
                    late.add((node.module or "").split(".")[0])
        assert late <= LATE | ({"saddlesvm"} if name in DOORS else set()), name


def test_the_source_is_no_larger_than_its_budget() -> None:
    solvers = [name for name in FILES if name.startswith("solvers/")]
    found = {
        "lines of code": sum(map(lines_of_code, FILES)),
        "files": len(FILES),
        "lines of imports": sum(map(lines_of_imports, FILES)),
        "numbers in constants of solvers": sum(map(numbers_in_constants, solvers)),
    }
    assert {name: count for name, count in found.items() if count > BUDGET[name]} == {}, found


MEASURE = """
import os, sys
import numpy as np
import saddlesvm
root = os.path.dirname(saddlesvm.__file__)
X = np.random.default_rng(0).standard_normal((200, 5))
y = (X[:, 0] > 0).astype(int)
saddlesvm.LinearSVC().fit(X, y)
functions, depths = set(), [0]

def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root):
        functions.add((code.co_filename, code.co_name, code.co_firstlineno))
        depth, up = 0, frame
        while up:
            depth, up = depth + up.f_code.co_filename.startswith(root), up.f_back
        depths.append(depth)

sys.setprofile(profile)
saddlesvm.LinearSVC().fit(X, y)
sys.setprofile(None)
print(len(functions), len({file for file, _, _ in functions}), max(depths))
"""


def test_the_trip_of_one_small_fit_is_no_longer_than_its_budget() -> None:
    told = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True).stdout
    found = dict(zip(TRIP, map(int, told.split()), strict=True))
    assert {name: count for name, count in found.items() if count > TRIP[name]} == {}, found


def test_no_two_files_of_tests_share_a_name() -> None:
    """Pytest imports them by their names alone; those of a package, `tests/attack`, have its name before theirs."""
    names = [file.name for file in TESTS.rglob("test_*.py") if not (file.parent / "__init__.py").exists()]
    assert sorted(names) == sorted({*names})
