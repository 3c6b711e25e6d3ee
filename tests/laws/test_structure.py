"""How the source is built: few arguments, short functions, private names that stay at home, imports at the top."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import saddlesvm
from saddlesvm.cli import program

ROOT, TESTS = Path(saddlesvm.__file__).parent, Path(__file__).parents[1]
FILES = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text()) for file in sorted(ROOT.rglob("*.py"))}
MOST_ARGUMENTS, MOST_LINES = 8, 60
# What may be imported inside a function: heavy or optional packages, and what only some systems have.
LATE = {
    "dask", "distributed", "fcntl", "liblinear", "matplotlib", "pandas",
    "pyarrow", "rich", "scipy", "skops", "sklearn", "urllib",
}  # fmt: skip
# Files that import others of this package inside functions, so that what they do not need is not loaded: help comes
# before NumPy, and each command imports what it needs as it runs.
COMMANDS = {f"cli/{name}.py" for name in ("command", *program.COMMANDS)}
DOORS = {"cluster/sources.py", "estimators/on_cluster.py", *COMMANDS}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> list[Function]:
    """The functions of a file, those inside others too."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def lines_of(function: Function) -> int:
    """Lines of the body, the docstring not counted."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


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
        if name not in ("problem/bounds.py", "checker.py")
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
        assert late <= LATE | ({"saddlesvm", "numpy"} if name in DOORS else set()), name


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


def test_print_the_trip_of_one_small_fit(capsys: pytest.CaptureFixture[str]) -> None:
    """A figure, no limit: how many functions and files of the package one warm fit of 200 x 5 enters."""
    told = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True).stdout
    functions, files, depth = map(int, told.split())
    with capsys.disabled():
        print(f"\none warm LinearSVC().fit of 200 x 5: {functions} functions in {files} files, {depth} deep")
    assert 0 < files <= functions


def test_no_two_files_of_tests_share_a_name() -> None:
    """Pytest imports them by their names alone; those of a package, `tests/attack`, have its name before theirs."""
    names = [file.name for file in TESTS.rglob("test_*.py") if not (file.parent / "__init__.py").exists()]
    assert sorted(names) == sorted({*names})
