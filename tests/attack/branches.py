"""Branches of plain Python that the tests take: each room of the package by its own folder of tests.

    python -m tests.attack.branches [ROOM ...] [--minutes M] [--record]

A branch is a step from one line to the next where two are possible, as coverage.py counts them (``pip install
coverage``). The text of kernels is not counted: Numba compiles it, and coverage.py does not see compiled code. No test
of a room begins after so many minutes; what they took until then counts, in processes that they started, too.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .kernels import DECORATORS
from .page import RECORDS, keep, record_of
from .some import LATE
from .tally import Tally

TESTS = Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent / "src" / "saddlesvm"
ROOMS = (
    "runtime",
    "rows",
    "problem",
    "data",
    "solvers",
    "fit",
    "multiclass",
    "cluster",
    "answers",
    "estimators",
    "cli",
    "lab",
)
LONGEST = 120  # seconds for a test, after which it fails
BESIDE = {  # tests of other rooms that are about a room
    "cluster": ("estimators/test_dask_estimators.py", "estimators/test_dask_options.py"),
    "problem": ("solvers/test_kernel_solvers.py", "estimators/test_path_bounds.py", "fit/test_checkpoint.py"),
}
GRACE = 2.0 * LONGEST  # seconds for the last test to end, and for coverage to write what it has seen
OPTIONS = """[run]
branch = True
source = {source}
data_file = {data}
parallel = True
patch = subprocess
"""
WORST = 12  # files that are named, in the order of their branches not taken


def compiled_lines(text: str) -> set[int]:
    """The lines of a text that Numba compiles: of kernels, and of the bodies that operations pick by type."""
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    picks = {
        argument.id
        for function in functions
        for given in function.decorator_list
        if isinstance(given, ast.Call) and getattr(given.func, "id", "") == "operation"
        for argument in given.args
        if isinstance(argument, ast.Name)
    }
    inner = [node for one in functions if one.name in picks for node in one.body if isinstance(node, ast.FunctionDef)]
    kernels = [one for one in functions if DECORATORS & {getattr(given, "id", "") for given in one.decorator_list}]
    return {line for one in (*kernels, *inner) for line in range(one.lineno, (one.end_lineno or one.lineno) + 1)}


def run(room: str, data: Path, minutes: float) -> bool:
    """Run the tests of a room, and keep which branches they took; False where they were not over in time."""
    options = data.with_name("options")
    options.write_text(OPTIONS.format(source=SOURCE / room, data=data), "utf-8")
    coverage = [sys.executable, "-m", "coverage"]
    tests = [str(TESTS / one) for one in (room, *BESIDE.get(room, ()))]
    words = ["-q", "-n", "0", "-p", "no:cacheprovider", "--tb=short", f"--timeout={LONGEST}", *tests]
    code = 0
    try:
        code = subprocess.run(
            [*coverage, "run", f"--rcfile={options}", "-m", "tests.attack.some", str(60.0 * minutes), *words],
            env=os.environ | {"PYTHONPATH": str(SOURCE.parent)},
            cwd=TESTS.parent,
            timeout=60.0 * minutes + GRACE,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        code = LATE
    subprocess.run([*coverage, "combine", "-q", f"--rcfile={options}"], check=False, cwd=data.parent)
    return code < LATE


def branches(data: Path, room: str) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    """Of each file of a room, the number of its branches, and those that were not taken; empty without data."""
    if not data.exists():
        return {}
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.json"
        words = ["json", "-q", "-i", f"--data-file={data}", "-o", str(told), f"--include={SOURCE / room}/*"]
        subprocess.run([sys.executable, "-m", "coverage", *words], check=True)
        files = json.loads(told.read_text())["files"]
    found = {}
    for name, seen in files.items():
        path = Path(name).resolve()
        compiled = compiled_lines(path.read_text("utf-8"))
        missed, taken = ([(a, b) for a, b in seen[f"{end}_branches"] if a not in compiled] for end in MISSED_TAKEN)
        found[str(path.relative_to(SOURCE))] = len(missed) + len(taken), missed
    return found


MISSED_TAKEN = ("missing", "executed")


def tally_of(room: str, found: dict[str, tuple[int, list[tuple[int, int]]]], whole: bool) -> Tally:
    """What came of a room."""
    tally = Tally("branches", cases=sum(count for count, _ in found.values()))
    missed = sum(len(branches) for _, branches in found.values())
    tally.outcomes.update({f"{room} taken": tally.cases - missed, f"{room} not taken": missed})
    tally.outcomes[f"{room} tests not over in time"] += not whole
    return tally


def main() -> int:
    """Measure rooms, and print the branches that were not taken; 1 where nothing was kept of a room."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.branches", description=__doc__)
    parser.add_argument("rooms", nargs="*", choices=[*ROOMS, []], help="all by default")
    parser.add_argument("--minutes", type=float, default=10.0, help="for the tests of a room")
    parser.add_argument("--record", action="store_true", help="keep what came out, for docs/what-held.md")
    given, failed = parser.parse_args(), 0
    for room in given.rooms or ROOMS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "coverage"
            whole = run(room, data, given.minutes)
            found: dict[str, Any] = branches(data, room)
        if not found:
            print(f"{room}: coverage kept nothing")
            failed = 1
            continue
        tally = tally_of(room, found, whole)
        worst = sorted(found, key=lambda file: -len(found[file][1]))[:WORST]
        print(tally, flush=True)
        for file in found:
            lines = ", ".join(f"{a}->{b}" for a, b in found[file][1])
            print(f"  {file}: {len(found[file][1])} of {found[file][0]}: {lines}" if lines else f"  {file}: all taken")
        if given.record:
            record = record_of(tally, 0, 0, time.monotonic() - began)
            keep(record | {"room": room, "worst": {file: len(found[file][1]) for file in worst}}, RECORDS)
    return failed


if __name__ == "__main__":
    sys.exit(main())
