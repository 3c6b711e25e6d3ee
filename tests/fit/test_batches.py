"""The loop over batches: every fit ends once, in the order of the problems, and what is shared is told once."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from saddlesvm.fit.loop import InTurn, drive
from saddlesvm.fit.outcome import Limits, Outcome, StallWatch
from saddlesvm.fit.run import Fit, Stopwatches
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD
from support import labels, matrix


class Counted:
    """A problem that ends after so many turns."""

    def __init__(self, index: int, turns: int) -> None:
        self.index, self.left = index, turns

    def finish_step(self, stopped: bool) -> bool:
        self.left -= 1
        return stopped or self.left <= 0


class SideBySide:
    """A batch of problems that all move on at once."""

    def __init__(self, turns: Sequence[int]) -> None:
        self.problems = range(len(turns))
        self.all = [Counted(k, turn) for k, turn in enumerate(turns)]
        self.seen: list[list[int]] = []

    def advance(self, live: list[int], stop: threading.Event) -> Sequence[Counted]:
        self.seen.append(live)
        return [self.all[k] for k in live]

    def result_of(self, index: int) -> int:
        return index


def test_a_batch_goes_on_until_each_problem_has_ended() -> None:
    batch = SideBySide([2, 1, 3])
    assert drive(batch) == [0, 1, 2]
    assert batch.seen == [[0, 1, 2], [0, 2], [2]]


def test_an_interrupt_ends_all_problems_of_a_batch() -> None:
    stop = threading.Event()
    stop.set()
    batch = SideBySide([5, 5])
    assert drive(batch, stop) == [0, 1]
    assert batch.seen == [[0, 1]]


def test_problems_in_turn_are_those_of_fits_alone() -> None:
    X = matrix(60, 4)
    y = labels(X, Hinge())
    problems = [make_problem(as_rows(X), sign * y, Hinge(), C=0.1) for sign in (1.0, -1.0)]

    def begin(index: int, stop: threading.Event) -> Fit:
        return Fit(problems[index], DCD(), Limits(tol=1e-6), seed=index, index=index)

    both = drive(InTurn([0, 1], begin))
    for k, result in enumerate(both):
        [alone] = drive(InTurn([k], begin))
        assert result.outcome is Outcome.CERTIFIED
        assert (result.coef == alone.coef).all()
        assert (result.alpha == alone.alpha).all()


def test_limits_name_the_first_that_is_reached() -> None:
    limits = Limits(max_epochs=3.0, max_time=2.0)
    assert limits.reached_limit(2.0, 1.0) is None
    assert limits.reached_limit(3.0, 5.0) == (Outcome.EPOCH_LIMIT, "3 epochs")
    assert limits.reached_limit(2.0, 2.0, "rounds") == (Outcome.TIME_LIMIT, "2 s")


@pytest.mark.parametrize("better", ["gap", "primal", "dual"])
def test_a_stall_is_no_move_of_gap_and_objectives_while_the_epochs_double(better: str) -> None:
    def verdicts(moves: bool) -> list[bool]:
        watch = StallWatch(least=8)
        found = []
        for epoch in range(1, 33):
            share = 0.9**epoch if moves else 1.0
            primal = 2.0 + share if better != "dual" else 3.0
            dual = 1.0 if better == "primal" else 2.0 - share
            found.append(watch.is_stalled(epoch, Certificate(primal, dual)))
        return found

    still = verdicts(moves=False)
    assert not any(still[:7])
    assert all(still[7:])
    assert not any(verdicts(moves=True)[:16])


def test_the_time_of_a_shared_step_is_divided_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 14.0, 15.0, 17.0])
    monkeypatch.setattr("saddlesvm.fit.run.clock", lambda: next(clock))
    watches = Stopwatches()
    watches.lap("solving", 4)
    watches.wait()
    watches.lap("certifying")
    assert (watches.solving, watches.waiting, watches.certifying) == (1.0, 4.0, 2.0)
    assert watches.total == 7.0
