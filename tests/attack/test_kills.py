"""A short run of the kills: processes that are killed and resumed, and processes at one path."""

from __future__ import annotations

from pathlib import Path

from .resuming import MOMENTS, resuming
from .sharing import KINDS, sharing


def test_a_run_that_is_killed_at_any_moment_ends_with_the_same_bits(tmp_path: Path) -> None:
    tally = resuming(tmp_path, 0, 1, 1)
    assert not tally.failures, "\n".join(tally.failures)
    assert tally.outcomes["kills of runs at random moments"] == MOMENTS
    assert tally.outcomes["kills of runs at a write"] > 3


def test_processes_at_one_path_end_as_if_each_were_alone(tmp_path: Path) -> None:
    tally = sharing(tmp_path, 0, 0, len(KINDS))
    assert not tally.failures, "\n".join(tally.failures)
