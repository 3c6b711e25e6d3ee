"""The automatic solver for rows in files: Newton's method, or blocks of the dual before it.

Smooth losses over few features take Newton's method from the first sweep: 48 fits of 20,000 x 20
(two smooth losses, four values of C, three data sets, to 1e-3 and 1e-5) take 0.6 times the sweeps
that they take with blocks before it, and none takes more. A loss of labels that does not bend at
zero scores, such as the smooth hinge, is left to blocks at first: the first step would be far too
long.

Otherwise blocks of coordinate descent have the first sweeps: they certify easy problems in three.
The fall of their gap tells how many sweeps they have left. For piecewise linear losses the
active-set method takes the place of Newton's method, and is meant by that name below. Both read
every row once a sweep, and so the choice is one between numbers of sweeps. Newton's method needs a
handful, whatever C is, but each of its sweeps adds up a matrix, too. All problems that share the
readings change over together, at the end of a sweep. Only the active-set method gives way again, if
too many rows are free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.solvers.active_set import INSIDE
from saddlesvm.solvers.auto import Auto
from saddlesvm.solvers.base import Budget, SolverBase, empty_array
from saddlesvm.solvers.blocks import Blocks
from saddlesvm.solvers.memory_equations import FIRST_PRODUCTS, SPANNING, TYPICAL_PRODUCTS
from saddlesvm.solvers.newton import Newton
from saddlesvm.solvers.newton_on_files import NewtonOnFiles, count_room
from saddlesvm.solvers.newton_over_passes import is_wide
from saddlesvm.solvers.phases import Choosing, ChosenState, epochs_left, in_words
from saddlesvm.solvers.sweeps import OverFiles

NEWTON_SWEEPS = 3.0  # sweeps of Newton's method at least; measured
ACTIVE_SET_SWEEPS = 4.0  # the same of the active-set method; measured
EACH_POWER = 0.35  # sweeps more for each power of ten that the gap falls by; measured
ACTIVE_SET_TIME = 1.5  # of a pass of the active-set method, in sweeps of blocks; a guess
MOST_SWEEPS = 40  # sweeps of the active-set method, at most: coordinate descent then goes on
FEWEST = 2  # sweeps of coordinate descent before the first comparison; a guess
# Features up to which smooth losses take Newton's method at once, and values of a sparse row up to
# which the sum of its matrices takes no longer than a sweep of blocks; derived.
AT_ONCE = 300
FEW_VALUES = 20
SHARE = 0.25  # of the memory, that the matrices of Newton's method may take; a guess
DESCENT = "blocks"
NEWTON = "Newton"


@dataclass
class OnFilesState(ChosenState):
    """The state of a run; the gaps of its course are those of coordinate descent, by sweeps.

    Attributes
    ----------
    proves_itself : bool
        True if each sweep proves its point: a certificate then reads nothing.
    due : str
        Why the next step changes over to Newton's method; empty if it does not. Until then the
        point is the one that the last sweep has judged.
    """

    phase: str = DESCENT
    proves_itself: bool = False
    due: str = ""

    @property
    def point(self) -> Point:
        """The present point; weights of zero if no weights judged were better."""
        if self.phase == DESCENT and not self.inner.last.model.any():
            return Point(np.zeros(self.w.size), self.alpha)
        return Point(self.w.astype(np.float64), self.alpha)

    def update(self) -> None:
        """Copy the progress of the solver at work."""
        super().update()
        self.satisfied = self.inner.satisfied
        self.proves_itself = self.inner.proves_itself


@dataclass(frozen=True)
class AutoOnFiles(OverFiles, Choosing):
    """Blocks of coordinate descent, then Newton's method if it is predicted to be quicker.

    Estimators choose this solver for rows in files with ``solver="auto"``.

    Parameters
    ----------
    memory : float, default=1e9
        Bytes that training may take; a quarter of it is for the matrices of Newton's method.
    problems : int, default=1
        How many problems share the readings, and the memory.
    """

    name: ClassVar[str] = "auto"
    any_penalty: ClassVar[bool] = True
    memory: float = field(default=1e9, repr=False)
    problems: int = field(default=1, repr=False)

    phases: ClassVar[tuple[str, ...]] = (DESCENT, NEWTON)

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> OnFilesState:
        """Begin with Newton's method if it suits, or if a start has weights alone."""
        state = OnFilesState(w=empty_array(), seed=seed)
        has_weights_alone = start is not None and start.w is not None and start.alpha is None
        is_small = problem.is_smooth and problem.n_features <= AT_ONCE
        is_small = is_small and bends_at_zero(problem.loss)
        if self.begins_at_weights(problem) and (is_small or has_weights_alone):
            state.phase = NEWTON
        state.inner = self.at_work(problem, state).init(problem, seed, start)
        state.update()
        return state

    def at_work(self, problem: Problem, state: OnFilesState) -> OverFiles:
        """Return the solver at work."""
        if state.phase == DESCENT:
            return Blocks()
        # Every problem keeps matrices; rows taken along are factored for one problem at a time.
        memory = SHARE * self.memory
        return NewtonOnFiles(memory=memory / self.problems, factors=memory)

    def begins_at_weights(self, problem: Problem) -> bool:
        """Return True if Newton's method is allowed, which takes nothing but weights of a start."""
        return self.may_change(problem) and not self._is_wide(problem)

    def step_together(
        self,
        problems: Sequence[Problem],
        states: Sequence[OnFilesState],
        budgets: Sequence[Budget],
    ) -> list[OnFilesState]:
        """Read one block for several problems over the same files, all in the same phase."""
        for problem, state in zip(problems, states, strict=True):
            if state.due:
                self.change(problem, state, NEWTON, state.due)
                state.due = ""
        solver = self.at_work(problems[0], states[0])
        inner = solver.step_together(problems, [state.inner for state in states], budgets)
        for state, own in zip(states, inner, strict=True):
            state.inner = own
            state.update()

        # At the end of a sweep all may change over.
        if states[0].phase == DESCENT:
            if inner[0].position == 0:
                self._compare(problems, states, [budget.relative_gap for budget in budgets])
        elif inner[0].work.block == 0 and any(own.method.gives_up(MOST_SWEEPS) for own in inner):
            for problem, state in zip(problems, states, strict=True):
                state.course.rest(state.epochs)
                self.change(problem, state, DESCENT, "too many rows are free: back to blocks")
        return list(states)

    def _compare(
        self,
        problems: Sequence[Problem],
        states: Sequence[OnFilesState],
        targets: Sequence[float],
    ) -> None:
        """Note the gaps; change over if the sweeps that are left take longer than Newton's."""
        for state in states:
            state.course.add(state.epochs, max(state.estimate, np.finfo(float).tiny))
        rests = any(state.course.patience > 1.0 for state in states)
        is_early = states[0].epochs < FEWEST
        if rests or is_early or min(targets) <= 0.0 or not self.may_change(problems[0]):
            return

        # The sweeps that the slowest problem still needs, with descent and with Newton's method:
        # a few, and EACH_POWER for each power of ten that its gap must fall by.
        descent_sweeps = 0.0
        powers = 0.0
        for problem, state, target in zip(problems, states, targets, strict=True):
            if state.estimate > target:
                left = epochs_left(problem, state.course.gaps, target)
                if left is None:
                    left = math.inf
                descent_sweeps = max(descent_sweeps, left)
                powers = max(powers, math.log10(state.estimate / target))
        newton_sweeps = self._count_newton_sweeps(problems, states, powers)
        changes = descent_sweeps > newton_sweeps
        verdict = "staying"
        if changes:
            verdict = "changing over"
        for state in states:
            why = (
                f"gap {state.estimate:.1e}; {in_words(descent_sweeps, 'sweeps')}, or the time of "
                f"about {newton_sweeps:.0f} with Newton's method: {verdict}"
            )
            state.due = why if changes else ""
            state.remark = f"epoch {state.epochs:.0f}: {why}"
            state.decision = state.remark

    def _count_newton_sweeps(
        self, problems: Sequence[Problem], states: Sequence[OnFilesState], powers: float
    ) -> float:
        """Predict Newton's sweeps for a fall of the gap by powers of ten, in sweeps of blocks."""
        problem = problems[0]
        if not problem.is_smooth:
            return ACTIVE_SET_TIME * (ACTIVE_SET_SWEEPS + EACH_POWER * powers)
        sweeps = NEWTON_SWEEPS + EACH_POWER * powers
        if not self._is_wide(problem):
            # The matrix of a row takes the square of its values, a visit of blocks its values.
            few = FEW_VALUES if problem.sparse else AT_ONCE
            return sweeps * max(1.0, problem.values_per_row / few)
        # A step takes a sweep for each product with a matrix that has no room.
        if not all(map(_spans, problems, states)):
            return math.inf
        return sweeps * (1.0 + max(map(expect_products, problems)))

    def may_change(self, problem: Problem) -> bool:
        """Return True if Newton's method takes the loss, or the active set has room."""
        if not problem.is_plain:
            return False
        if problem.is_smooth:
            return True
        has_room = count_room(problem) >= INSIDE * (problem.n_features + 1)
        return has_room and problem.intercept.homogeneous

    def _is_wide(self, problem: Problem) -> bool:
        """Return True if the matrices of Newton's method do not fit into the memory."""
        memory = SHARE * self.memory / self.problems
        return problem.is_smooth and is_wide(problem.n_features + 1, memory)

    def on_stall(self, problem: Problem, state: OnFilesState) -> OnFilesState | None:
        """Change over to Newton's method if coordinate descent stalls first."""
        if state.phase == NEWTON or not self.may_change(problem):
            return None
        self.change(problem, state, NEWTON, "no progress: changing over")
        return state


def solver_on_files(solver: SolverBase, memory: float, problems: int = 1) -> SolverBase:
    """Return the solver over rows in files for one over rows in memory; others as they are.

    `memory` is what training may take, in bytes, for so many problems side by side.
    """
    if isinstance(solver, Auto):
        return AutoOnFiles(memory, problems)
    if isinstance(solver, Newton):
        return NewtonOnFiles(SHARE * memory / problems)
    return solver


def bends_at_zero(loss: Loss) -> bool:
    """Return False for a loss of labels that is linear around zero scores."""
    return not is_classification(loss) or loss.curvature(0.0, 1.0) > 0.0


def expect_products(problem: Problem) -> float:
    """Estimate the products of conjugate gradients for a step of Newton's method."""
    # They grow with the root of the condition number, about C max phi'' ||x||^2 of a usual row.
    squared_norm = float(np.median(problem.norms[problem.members]))
    condition = problem.C * problem.loss.largest_curvature() * squared_norm
    return min(FIRST_PRODUCTS + math.sqrt(condition), TYPICAL_PRODUCTS)


def _spans(problem: Problem, state: OnFilesState) -> bool:
    """Return True if Newton's method needs no proximal term: for enough support vectors."""
    n_support = np.count_nonzero(state.alpha)
    return problem.is_cornerless or bool(n_support >= SPANNING * problem.n_features)
