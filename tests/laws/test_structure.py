"""How the source is built: few arguments, short functions, private names that stay at home, imports at the top."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import saddlesvm

ROOT = Path(saddlesvm.__file__).parent
FILES = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_bytes()) for file in sorted(ROOT.rglob("*.py"))}
MOST_ARGUMENTS, MOST_LINES = 8, 60
# What may be imported inside a function: heavy or optional packages, and what only some systems have.
LATE = {
    "contourpy", "cyanure", "dask", "distributed", "fcntl", "liblinear", "lightning", "matplotlib", "pandas", "plotly",
    "pyarrow", "rich", "scipy", "sklearn", "urllib",
}  # fmt: skip
# Files that import others of this package inside functions, so that what they do not need is not loaded.
DOORS = {
    "cli/__init__.py", "cli/compare.py", "cli/dask.py", "cli/path.py", "cli/report.py", "cli/watch.py",
    "cluster/sources.py", "estimators/on_cluster.py",
}  # fmt: skip

every_file = pytest.mark.parametrize("name", FILES)
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(name: str) -> list[Function]:
    """The functions of a file, those inside others too."""
    return [node for node in ast.walk(FILES[name]) if isinstance(node, Function)]


def lines_of(function: Function) -> int:
    """Lines of the body, the docstring not counted."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@every_file
def test_no_function_has_more_than_eight_positional_parameters(name: str) -> None:
    many = {one.name: len(one.args.posonlyargs) + len(one.args.args) for one in functions(name)}
    assert {function: count for function, count in many.items() if count > MOST_ARGUMENTS} == {}


@every_file
def test_no_function_is_longer_than_sixty_lines(name: str) -> None:
    assert {one.name: lines_of(one) for one in functions(name) if lines_of(one) > MOST_LINES} == {}


@every_file
def test_no_file_takes_a_private_name_of_another(name: str) -> None:
    for node in ast.walk(FILES[name]):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("saddlesvm"):
            private = [one.name for one in node.names if one.name.startswith("_") and not one.name.endswith("__")]
            assert private == [], node.module


@every_file
def test_imports_stand_at_the_top(name: str) -> None:
    late = set()
    for function in functions(name):
        for node in ast.walk(function):
            if isinstance(node, ast.Import):
                late |= {one.name.split(".")[0] for one in node.names}
            elif isinstance(node, ast.ImportFrom):
                late.add((node.module or "").split(".")[0])
    assert late <= LATE | ({"saddlesvm"} if name in DOORS else set())
