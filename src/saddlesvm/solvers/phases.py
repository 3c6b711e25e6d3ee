"""Solvers that leave each step to another solver: which is at work, and when to change.

Estimates of the gap say how fast it falls, and so how much work the solver at work has left. A
finish that has done far more work than was predicted, and shows no progress, hands back.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.base import EPOCH_ROUNDING, Budget, SolverBase, State

if TYPE_CHECKING:
    from saddlesvm.problem.certificate import KernelPoint

# The finish must show progress after so many times its predicted work; a guess.
OVERDUE = 4.0
# Progress: the gap, or the objective, which falls first, is at most this share of what it was at
# the change-over or at the last progress; guesses.
GAP_PROGRESS = 0.3
PRIMAL_PROGRESS = 0.95
# Factor on `patience` when the finish hands back; it then waits until the epochs double; a guess.
MORE_PATIENCE = 4.0
# Factor from one prediction to the next, in epochs: three while the epochs double; a guess.
NEXT_PREDICTION = 2.0 ** (1 / 3)
# The present rate of the fall is that of the gaps after this share of the epochs; a guess.
LATER = 0.6
# The least D / P = 1 - (P - D) / P that a relative gap shows; from rounding.
TINY = 1e-12


@dataclass
class Course:
    """The course of a run: the gaps so far, the prediction for the finish, and what came of it.

    Attributes
    ----------
    gaps : ndarray of shape (k, 2)
        Epochs and relative gaps of the first solver, over all rows, which say its rate.
    next_prediction : float
        Epoch of the next prediction.
    predicted_work, work_done : float
        The work predicted for the finish, and its work since the change-over or its last progress.
    gap_then, primal_then : float
        The gap and the objective at that time.
    patience : float
        Factor on the work of the finish before it must show progress; it grows with every change
        back.
    rests_until : float
        Epoch before which no prediction changes over to the finish again.
    """

    gaps: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    next_prediction: float = 0.0
    predicted_work: float = 0.0
    work_done: float = 0.0
    gap_then: float = np.inf
    primal_then: float = np.inf
    patience: float = 1.0
    rests_until: float = 0.0

    def add(self, epochs: float, gap: float) -> None:
        """Remember the gap at an epoch."""
        if 0.0 < gap < np.inf and (not self.gaps.size or epochs > self.gaps[-1, 0]):
            self.gaps = np.vstack([self.gaps, [epochs, gap]])

    def begin(self, work: float, gap: float) -> None:
        """Note that the finish begins at this gap, and is predicted to take so much work."""
        self.predicted_work = work
        self.work_done = 0.0
        self.gap_then = gap
        self.primal_then = np.inf

    def is_overdue(self, cost: float, gap: float, primal: float = np.nan) -> bool:
        """Return True if the finish has done far more work than predicted, without progress.

        `cost` is the work of its last step.
        """
        self.work_done += cost
        if self.work_done <= OVERDUE * self.patience * self.predicted_work:
            return False
        is_gap_left = gap > GAP_PROGRESS * self.gap_then
        has_fallen = primal <= PRIMAL_PROGRESS * self.primal_then
        if is_gap_left and not has_fallen:
            return True
        self.work_done = 0.0
        self.gap_then = min(gap, self.gap_then)
        self.primal_then = primal
        return False

    def rest(self, epochs: float) -> None:
        """Note that the finish hands back at this epoch: it gets more patience the next time."""
        self.patience *= MORE_PATIENCE
        self.rests_until = 2.0 * epochs


@dataclass
class ChosenState(State):
    """The state of a run in which another solver is at work.

    Attributes
    ----------
    alpha : ndarray of shape (n_all,) or (n_all, K)
        Dual point of the solver at work.
    phase : str
        The solver at work.
    inner : State
        Its state.
    course : Course
        The figures that the predictions are made from.
    decision : str
        The last decision, in words.
    base_epochs, base_rows : float, int
        Epochs and row visits before the solver at work began.
    """

    alpha: np.ndarray = field(default_factory=lambda: np.empty(0))
    phase: str = ""
    inner: Any = field(default=None, repr=False)
    course: Course = field(default_factory=Course)
    decision: str = ""
    seed: int = 0
    base_epochs: float = 0.0
    base_rows: int = 0

    @property
    def point(self) -> Point:
        """Return the start of the next solver."""
        start = self.inner.handover
        return Point(start.w.astype(np.float64), start.alpha)

    @property
    def is_stuck(self) -> bool:
        """True if the solver at work is stuck."""
        return bool(self.inner.is_stuck)

    def update(self) -> None:
        """Copy the progress of the solver at work."""
        inner = self.inner
        self.w = inner.w
        self.alpha = inner.handover.alpha
        self.rows_touched = self.base_rows + inner.rows_touched
        self.epochs = self.base_epochs + inner.epochs
        self.estimate = inner.estimate
        self.estimate_is_gap = inner.estimate_is_gap
        self.proves_itself = inner.proves_itself
        self.active = inner.active
        self.change = inner.change
        self.remark = " | ".join(filter(None, (self.decision, inner.remark)))

    def add_estimate(self) -> None:
        """Remember a new estimate over all rows.

        Estimates over the active rows alone rise when the others come back. An estimate of zero is
        left out: with a free intercept the dual variables may not sum to zero yet.
        """
        known_at = getattr(self.inner, "known_at", 0.0)
        if known_at > 0.0:
            self.course.add(self.base_epochs + known_at, self.inner.known)


@dataclass(frozen=True)
class Choosing(SolverBase):
    """The base class of solvers that leave each step to another solver.

    A derived class has the methods ``at_work`` and ``init``; ``predict`` and ``check_progress``
    change nothing unless it has them.
    """

    # The names of the solvers; predictions are made while the first of them is at work.
    phases: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def at_work(self, problem: Any, state: Any) -> SolverBase:
        """Return the solver at work."""

    def predict(self, problem: Any, state: Any, target: float) -> None:
        """Compare the work that the first solver and a finish have left; change if that pays."""

    def check_progress(self, problem: Any, state: Any, target: float) -> None:
        """Change back after a step of a finish that makes too little progress."""

    def next_prediction(self, problem: Any, epochs: float) -> float:
        """Return the epoch of the prediction that follows `epochs`."""
        return NEXT_PREDICTION * epochs

    def step(self, problem: Problem, state: Any, budget: Budget) -> Any:
        """Do a step of the solver at work, and make a prediction when it is due."""
        course = state.course
        target = budget.relative_gap
        if state.phase != self.phases[0]:
            self.work(problem, state, budget)
            self.check_progress(problem, state, target)
            return state

        # The first solver works until the next prediction at most.
        epochs = course.next_prediction - state.epochs
        rows = max(1, round(epochs * problem.members.size))
        self.work(problem, state, Budget(min(budget.rows, rows), target, budget.seconds))
        state.add_estimate()
        if state.epochs >= course.next_prediction - EPOCH_ROUNDING:
            course.next_prediction = self.next_prediction(problem, state.epochs)
            if target > 0.0:
                self.predict(problem, state, target)
        return state

    def work(self, problem: Any, state: Any, budget: Budget) -> None:
        """Do a step of the solver at work."""
        state.inner = self.at_work(problem, state).step(problem, state.inner, budget)
        state.update()

    def change(self, problem: Problem, state: Any, phase: str, why: str) -> None:
        """Let another solver go on from the present point."""
        point = state.point
        state.base_epochs = state.epochs
        state.base_rows = state.rows_touched
        state.phase = phase
        state.decision = f"epoch {state.epochs:.0f}: {why}"
        state.course.gaps = np.empty((0, 2))
        state.inner = self.at_work(problem, state).init(problem, state.seed, point)
        state.update()

    def change_back(
        self, problem: Problem, state: ChosenState, phase: str, cost: float, primal: float = np.nan
    ) -> None:
        """Return to a solver if the finish, after a step of this cost, has done far too much.

        `primal` is the objective that the finish has reached; if it is given, its fall counts as
        progress, too.
        """
        course = state.course
        if course.is_overdue(cost, state.estimate, primal):
            fall = f"from {course.gap_then:.1e} to {state.estimate:.1e} only"
            why = f"{state.inner.steps} Newton steps brought the gap {fall}: changing back"
            course.rest(state.epochs)
            self.change(problem, state, phase, why)

    def back_once(self, problem: Problem, state: ChosenState, phase: str) -> Any:
        """Return to a solver if the finish stalls; None if it has handed back before.

        It stalls if no row bends, and it has no curvature to use; or if the rows are separable, and
        its proximal terms, which C scales, are out of proportion to dual variables far below C.
        """
        if state.course.patience > 1.0:
            return None
        state.course.rest(state.epochs)
        self.change(problem, state, phase, "no progress: changing back")
        return state

    def solution(self, problem: Problem, state: ChosenState) -> Point | KernelPoint:
        """Return the point of the solver at work."""
        return self.at_work(problem, state).solution(problem, state.inner)

    def last_point(self, problem: Problem, state: ChosenState) -> Point | KernelPoint:
        """Return the last point of the solver at work."""
        return self.at_work(problem, state).last_point(problem, state.inner)

    def learn_from_certificate(
        self, problem: Problem, state: ChosenState, evaluation: Evaluation
    ) -> Any:
        """Pass the certificate on to the solver at work."""
        state.inner = self.at_work(problem, state).learn_from_certificate(
            problem, state.inner, evaluation
        )
        state.update()
        state.add_estimate()
        return state


def followed_gaps(problem: Problem, gaps: np.ndarray) -> np.ndarray:
    """Return the gaps whose fall the predictions follow.

    They are the relative gaps, (P - D) / P. If rows are no more than features, they are most likely
    separable, and with a large C the relative gap stays near 1 while C times the losses falls to
    the size of the optimum: then they are (P - D) / D. Near the optimum both are equal.
    """
    if problem.members.size > problem.n_features:
        return gaps
    return gaps / np.maximum(1.0 - gaps, TINY)


def fall_rate(gaps: np.ndarray) -> float | None:
    """Return the fall of log(gap) per epoch in the later part of a run; None without two estimates.

    `gaps` has a row (epoch, gap) for each estimate.
    """
    if gaps.shape[0] < 2:
        return None
    # Compare the last estimate with the last one before 0.6 of the epochs; or with the estimate
    # before the last one.
    epochs = gaps[:, 0]
    last_epoch, last_gap = gaps[-1]
    earlier = max(0, np.searchsorted(epochs, LATER * last_epoch) - 1)
    if last_epoch <= epochs[earlier]:
        earlier = -2
    earlier_epoch, earlier_gap = gaps[earlier]
    if not last_gap > 0.0:
        return math.inf
    return float(math.log(earlier_gap / last_gap) / (last_epoch - earlier_epoch))


def epochs_to_target(rate: float, gap: float, target: float) -> float:
    """Return the epochs until a gap that falls at a rate comes to `target`; maybe infinite."""
    if not rate > 0.0:
        return math.inf
    # gap e^(-rate k) = target.
    return math.log(gap / target) / rate


def epochs_left(problem: Problem, gaps: np.ndarray, target: float) -> float | None:
    """Return the epochs, or sweeps, until the gap comes to `target`; None without a rate.

    Parameters
    ----------
    problem : Problem
    gaps : ndarray of shape (k, 2)
        Epochs and relative gaps.
    target : float
    """
    followed = followed_gaps(problem, gaps[:, 1])
    rate = fall_rate(np.column_stack([gaps[:, 0], followed]))
    if rate is None:
        return None
    return epochs_to_target(rate, float(followed[-1]), target)


def in_words(left: float) -> str:
    """Return in words how many epochs are left."""
    if math.isfinite(left):
        return f"about {left:.0f} epochs left"
    return "no end in sight"
