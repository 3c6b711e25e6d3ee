"""Tests on little data with every kernel as plain Python, or with checked bounds; and which kernels these tests met.

    NUMBA_DISABLE_JIT=1 python -m tests.attack.kernels [--record]
    NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(mktemp -d) python -m tests.attack.kernels [--record]

A kernel is a function with one of the decorators of :mod:`saddlesvm.runtime.compiled`. As plain Python it is met where
it is called; compiled, where Numba has compiled it, for itself or into another kernel (so the cache must be empty).
A test that needs compiled code is marked with the reason, and is skipped as plain Python.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from saddlesvm.runtime.compiled import INTERPRETED, Compiled

from .page import RECORDS, keep, record_of
from .some import by_test, evenly, test_of
from .tally import Tally

TESTS = Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent / "src" / "saddlesvm"
DECORATORS = {"kernel", "allocating_kernel", "searching_kernel", "allocating_search", "inlined", "inlined_search"}
CHOSEN = ("data/test_libsvm_text.py", "rows", "problem", "multiclass", "solvers", "laws/test_certified.py")
SECONDS = 2.0  # of processor time for each test as plain Python
Place = tuple[str, int]  # a file, and the line of a function's first decorator
SEEN: set[CodeType] = set()


def mode() -> str:
    """How kernels run in this process."""
    if INTERPRETED:
        return "plain Python"
    if os.environ.get("NUMBA_BOUNDSCHECK") == "1":
        return "checked bounds"
    return "code for any processor" if os.environ.get("NUMBA_CPU_NAME") == "generic" else "compiled"


MODE = mode()


def kernels() -> dict[Place, str]:
    """The name of each kernel, by its place."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and DECORATORS & {
                getattr(one, "id", "") for one in node.decorator_list
            }:
                home = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
                found[str(file), node.decorator_list[0].lineno] = f"{home}.{node.name}"
    return found


def called(frame: Any, event: str, argument: Any) -> None:
    """Note the code that a thread calls; its lines are not traced."""
    SEEN.add(frame.f_code)


def met() -> set[Place]:
    """The places of the functions that were called, or compiled."""
    compiled = [
        one for one in gc.get_objects() if type(one) is Compiled and one.made is not None and one.made.overloads
    ]
    codes = SEEN | {one.py_func.__code__ for one in compiled}
    return {(code.co_filename, code.co_firstlineno) for code in codes}


class Late(BaseException):
    """A test has taken too long."""


class Counted:
    """A plugin of pytest that counts the ends of the tests, and begins none after some seconds.

    Parameters
    ----------
    tally : Tally
        Takes the counts and the failures.
    seconds : float
    """

    OVER, LATE = "it would take too long", "stopped"

    def __init__(self, tally: Tally, seconds: float) -> None:
        self.tally, self.end = tally, time.monotonic() + seconds
        self.long: set[str] = set()
        self.over = False

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session, to end it in time."""
        self.session = session

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave some cases of each test, evenly chosen: the first of all tests, then the others."""
        chosen = [*map(evenly, by_test(items))]
        kept = [case for turn in zip_longest(*chosen) for case in turn if case is not None]
        self.tally.outcomes["cases left out"] = len(items) - len(kept)
        self.tally.outcomes["cases not begun"] = len(kept)
        items[:] = kept

    def pytest_runtest_logstart(self) -> None:
        """Begin no further test when the time is over."""
        self.over = time.monotonic() > self.end
        if self.over:
            self.session.shouldstop = "the time is over"

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Skip what would begin too late, and the other cases of a test that took too long."""
        if self.over or test_of(item.nodeid) in self.long:
            pytest.skip(self.OVER)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Iterator[None]:
        """Stop a test of plain Python that takes long, without the alarm's traceback, which pytest cannot always read.

        Compiled, no test is stopped: Numba would go on with half of the state of a compilation.
        """
        if not INTERPRETED:
            return (yield)
        sys.settrace(called)  # anew: Python forgets it where the alarm strikes in it
        late: list[bool] = []

        def stop(number: int, frame: Any) -> None:
            late.append(True)
            raise Late

        before = signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            return (yield)
        except BaseException:
            if not late:
                raise
            self.long.add(test_of(pyfuncitem.nodeid))  # whatever the test makes of the alarm: hypothesis calls it flaky
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, before)
        pytest.skip(self.LATE)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once, by what became of it."""
        if report.when != "call" and report.passed:
            return
        said = str(report.longrepr)
        end = report.outcome
        if report.skipped:
            end = "not begun" if self.OVER in said else "stopped" if said.endswith(f"{self.LATE}')") else "skipped"
        if end == "failed":
            self.tally.failures.append(f"kernels as {MODE}, {report.nodeid}: {said.splitlines()[-1]}")
        if end == "not begun":
            return
        self.tally.cases += 1
        self.tally.outcomes.update({f"cases {end}": 1})
        self.tally.outcomes["cases not begun"] -= 1
        if end != "passed":
            print(f"\n{end}: {report.nodeid}", flush=True)


def main() -> int:
    """Run the tests; 1 where one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.kernels", description=__doc__)
    parser.add_argument("--record", action="store_true", help="keep what came out, for docs/what-held.md")
    parser.add_argument("--seconds", type=float, default=480.0, help="begin no test after that")
    parser.add_argument("tests", nargs="*", help="these only, instead of the rooms'")
    given = parser.parse_args()
    tally, known, began = Tally("kernels"), kernels(), time.monotonic()
    options = ["-p", "no:cacheprovider", "--tb", "native"]
    if INTERPRETED:
        threading.settrace(called)
    counted = Counted(tally, given.seconds)
    code = pytest.main([*options, *(given.tests or [str(TESTS / room) for room in CHOSEN])], plugins=[counted])
    sys.settrace(None)
    threading.settrace(None)  # type: ignore[arg-type]
    reached = met()
    missing = sorted(name for place, name in known.items() if place not in reached)
    tally.outcomes["kernels met"] = len(known) - len(missing)
    tally.outcomes["kernels not met"] = len(missing)
    print(MODE, tally, *tally.failures, f"not met: {', '.join(missing) or 'none'}", sep="\n")
    if given.record and tally.cases:
        keep(record_of(tally, 0, 0, time.monotonic() - began) | {"mode": MODE, "not met": missing}, RECORDS)
    sound = code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or counted.over
    return int(bool(tally.failures) or not sound)


if __name__ == "__main__":
    sys.exit(main())
