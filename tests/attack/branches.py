"""Branches of plain Python that the tests take: each room of the package by its own folder of tests.

    python -m tests.attack.branches [ROOM ...] [--minutes M] [--record]

A branch is a step from one line to the next where two are possible, as coverage.py counts them (``pip install
coverage``). The text of kernels is not counted: Numba compiles it, and coverage.py does not see compiled code. The
tests of a room end after so many minutes; what they took until then counts.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .kernels import DECORATORS
from .page import RECORDS, keep, record_of
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
GRACE = 240.0  # seconds for pytest to end, after the compilation that may be on, and write what it has seen
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
    words = ["run", "--branch", f"--source={SOURCE}", f"--data-file={data}", "-m", "pytest", str(TESTS / room)]
    child = subprocess.Popen(
        [sys.executable, "-m", "coverage", *words, "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=short"],
        env=os.environ | {"PYTHONPATH": str(SOURCE.parent)},
    )
    try:
        child.wait(60.0 * minutes)
        return True
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)  # pytest ends, and coverage writes
    try:
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    return False


def branches(data: Path, room: str) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    """Of each file of a room, the number of its branches, and those that were not taken."""
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
    """Measure rooms, and print the branches that were not taken."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.branches", description=__doc__)
    parser.add_argument("rooms", nargs="*", choices=[*ROOMS, []], help="all by default")
    parser.add_argument("--minutes", type=float, default=10.0, help="for the tests of a room")
    parser.add_argument("--record", action="store_true", help="keep what came out, for docs/what-held.md")
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it, and so would tests
    for room in given.rooms or ROOMS:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "coverage"
            whole = run(room, data, given.minutes)
            found: dict[str, Any] = branches(data, room)
        tally = tally_of(room, found, whole)
        worst = sorted(found, key=lambda file: -len(found[file][1]))[:WORST]
        print(tally, flush=True)
        for file in found:
            lines = ", ".join(f"{a}->{b}" for a, b in found[file][1])
            print(f"  {file}: {len(found[file][1])} of {found[file][0]}: {lines}" if lines else f"  {file}: all taken")
        if given.record:
            record = record_of(tally, 0, 0, time.monotonic() - began)
            keep(record | {"room": room, "worst": {file: len(found[file][1]) for file in worst}}, RECORDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
