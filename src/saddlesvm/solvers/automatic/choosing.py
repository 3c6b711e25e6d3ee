"""One solver at work among several: the state of such a run, and the change from one solver to another.

The automatic solver and the solver of joint machines name their solvers, and predict when one of them takes over. What
they share stands here: the state of the solver at work, the progress that is copied from it, and the change back where
the second-order finish has done far more work than predicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.runtime.durable import demand, growing, part_of
from saddlesvm.solvers.automatic.predictions import Course
from saddlesvm.solvers.base import Budget, SolverBase, State


@dataclass
class ChosenState(State):
    """The state of a run in which one of several solvers is at work.

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

    alpha: np.ndarray = growing()
    phase: str = ""
    inner: Any = field(default=None, repr=False, metadata={"prefix": "inner_"})
    course: Course = field(default_factory=Course, metadata={"prefix": "course_"})
    decision: str = ""
    seed: int = 0
    base_epochs: float = 0.0
    base_rows: int = 0

    def check_restored(self, problem: Any) -> None:
        super().check_restored(problem)
        self.inner.check_restored(problem)

    @property
    def point(self) -> Point:
        """The point that another solver goes on from: the best one where the solver at work keeps it, else the last."""
        kept = getattr(self.inner, "best", self.inner)
        return Point(kept.w.astype(np.float64), kept.alpha)

    def update(self) -> None:
        """Copy the progress of the solver at work."""
        inner = self.inner
        self.w, self.alpha = inner.w, getattr(inner, "best", inner).alpha
        self.rows_touched = self.base_rows + inner.rows_touched
        self.epochs = self.base_epochs + inner.epochs
        self.estimate, self.proven = inner.estimate, inner.proven
        self.active, self.change = inner.active, inner.change
        self.remark = " | ".join(filter(None, (self.decision, inner.remark)))

    def add_estimate(self) -> None:
        """Remember a new estimate over all rows; estimates over the active rows alone rise when the others come back.

        An estimate of zero is left out: with a free intercept the dual variables may not sum to zero yet.
        """
        known_at = getattr(self.inner, "known_at", 0.0)
        if known_at > 0.0:
            self.course.add(self.base_epochs + known_at, self.inner.known)


@dataclass(frozen=True)
class Choosing(SolverBase):
    """The base class of solvers that leave each step to one of several.

    A derived class has the methods ``at_work``, ``init`` and ``step``.
    """

    phases: ClassVar[tuple[str, ...]] = ()

    def at_work(self, problem: Any, state: Any) -> Any:
        """The solver at work."""
        raise NotImplementedError

    def work(self, problem: Any, state: Any, budget: Budget) -> None:
        """Do a step of the solver at work."""
        state.inner = self.at_work(problem, state).step(problem, state.inner, budget)
        state.update()

    def change(self, problem: Any, state: Any, phase: str, why: str) -> None:
        """Let another solver go on from the present point."""
        point = state.point
        state.base_epochs, state.base_rows = state.epochs, state.rows_touched
        state.phase, state.decision = phase, f"epoch {state.epochs:.0f}: {why}"
        state.course.gaps = np.empty((0, 2))
        state.inner = self.at_work(problem, state).init(problem, state.seed, point)
        state.update()

    def change_back(self, problem: Any, state: Any, phase: str, cost: float, primal: float = np.nan) -> None:
        """Return to a solver where the finish, after a step of this cost, has done far more work than predicted.

        `primal` is the objective that the finish has reached; where it is given, its fall counts as progress, too.
        """
        course = state.course
        if course.broken(cost, state.estimate, primal):
            fall = f"from {course.gap_then:.1e} to {state.estimate:.1e} only"
            course.rest(state.epochs)
            self.change(
                problem, state, phase, f"{state.inner.steps} Newton steps brought the gap {fall}: changing back"
            )

    def like(self, problem: Any, state: Any, stored: Mapping[str, Any]) -> Any:
        """A state whose solver at work is that of the stored one."""
        phase, zeros = stored.get("phase"), Point(np.zeros(problem.n_features + 1), np.zeros_like(state.alpha))
        demand(phase in self.phases, f"its phase is {str(phase)[:40]!r}")
        state.phase = str(phase)
        solver = self.at_work(problem, state)
        state.inner = solver.like(problem, solver.init(problem, state.seed, zeros), part_of(stored, "inner_"))
        state.w = state.inner.w
        return state

    def resumed(self, problem: Any, state: Any) -> Any:
        """Let the solver at work make anew what it needs."""
        state.inner = self.at_work(problem, state).resumed(problem, state.inner)
        return state

    def solution(self, problem: Any, state: Any) -> Any:
        """The point of the solver at work."""
        return self.at_work(problem, state).solution(problem, state.inner)

    def last_point(self, problem: Any, state: Any) -> Any:
        """The last point of the solver at work."""
        return self.at_work(problem, state).last_point(problem, state.inner)

    def certified(self, problem: Any, state: Any, evaluation: Evaluation) -> Any:
        """Pass the certificate on to the solver at work."""
        state.inner = self.at_work(problem, state).certified(problem, state.inner, evaluation)
        state.update()
        state.add_estimate()
        return state
