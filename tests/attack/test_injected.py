"""The short form of the injected faults; ``python -m tests.attack --only injected`` has all works and calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from .injected import injected, library

WORKS = ("model saved over another", "store made over another", "run with a checkpoint", "table.parquet read")


def test_whatever_call_fails_nothing_is_lost_and_one_line_is_said(tmp_path: Path) -> None:
    if library(tmp_path) is None:
        pytest.skip("needs a C compiler, and a system that preloads libraries")
    found = injected(tmp_path, seed=0, first=0, count=len(WORKS), only=WORKS, most=6)
    assert not found.failures, "\n".join(found.failures)
    assert found.cases > 100
