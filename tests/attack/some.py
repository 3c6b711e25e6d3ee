"""Tests in pytest, none of which begins when some seconds are over: a few cases of each test first, then the others.

    python -m tests.attack.some SECONDS [pytest's words ...]

A signal in the place of this would end a fit that is on, as Ctrl-C does, and the tests would go on.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

CASES = 3  # of each test, in the first turn
LATE = 64  # added to pytest's exit code where not all tests have begun


def test_of(case: str) -> str:
    """The test that a case is of."""
    return case.partition("[")[0]


def by_test(cases: list[Any]) -> list[list[Any]]:
    """The cases of each test."""
    found: dict[str, list[Any]] = {}
    for case in cases:
        found.setdefault(test_of(case.nodeid), []).append(case)
    return [*found.values()]


def evenly(cases: list[Any], count: int = CASES) -> list[Any]:
    """The first case, the last, and some between them."""
    last = len(cases) - 1
    return [cases[k] for k in sorted({round(last * part / (count - 1)) for part in range(count)})]


class Some:
    """A plugin of pytest that ends the session after some seconds."""

    def __init__(self, seconds: float) -> None:
        self.end, self.over = time.monotonic() + seconds, False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Some cases of each test first."""
        first = {case.nodeid for cases in by_test(items) for case in evenly(cases)}
        items.sort(key=lambda item: item.nodeid not in first)

    def pytest_runtest_logfinish(self) -> None:
        """Begin no further test when the time is over."""
        self.over = time.monotonic() > self.end
        if self.over:
            self.session.shouldstop = "the time is over"

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session, to end it in time."""
        self.session = session


def main() -> int:
    """Pytest's exit code, and :data:`LATE` more where the time was over before the tests."""
    some = Some(float(sys.argv[1]))
    code = int(pytest.main(sys.argv[2:], plugins=[some]))
    sys.stdout.flush()
    return code + LATE * some.over


if __name__ == "__main__":
    sys.exit(main())
