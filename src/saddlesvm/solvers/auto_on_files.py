"""The automatic solver for rows in files: blocks of the dual first, Newton's method where that needs less time.

The active-set method takes the place of Newton's method for piecewise linear losses, and is meant by the name below.
Both read every row once a sweep, and so the choice is one between numbers of sweeps. Blocks of coordinate descent have
the first sweeps: they certify easy problems in three. From the fall of their certificates' gap follows how many sweeps
they have left; Newton's method needs a handful whatever C is, but each sweep then adds up a matrix, too. All problems
that share the readings change over together, at the end of a sweep. Only the active-set method gives way again, where
too many rows are free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import is_cornerless, is_smooth
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.auto import Auto
from saddlesvm.solvers.base import Budget, SolverBase, nothing
from saddlesvm.solvers.blocks import MOST_VISITS, Blocks
from saddlesvm.solvers.costs import epoch_cost
from saddlesvm.solvers.linear_algebra import LOOP_SPEED, SYRK_SPEED
from saddlesvm.solvers.memory_equations import FIRST_PRODUCTS, SPANNING, TYPICAL_PRODUCTS
from saddlesvm.solvers.newton import Newton
from saddlesvm.solvers.newton_on_files import ActiveSetOnFiles, NewtonOnFiles, room_for
from saddlesvm.solvers.newton_over_passes import is_wide
from saddlesvm.solvers.phases import Choosing, ChosenState, epochs_left, in_words
from saddlesvm.solvers.sweeps import OverFiles

PASS_READINGS = 3.0  # a pass takes about so many times as long as reading the rows
DISK_SPEED = 1.5e9  # bytes per second that a sweep reads
SWEEPS, EACH_POWER = 3.0, 0.35  # sweeps of Newton's method: the least, and per power of ten that the gap falls by
ACTIVE_SET_SWEEPS = 4.0  # the same of the active-set method, the least
MOST_SWEEPS = 40  # sweeps of the active-set method, at most: coordinate descent then goes on
FEWEST = 2  # sweeps of coordinate descent before the first comparison
SHARE = 0.25  # of the memory, that the matrices of Newton's method may take
INSIDE = 4  # rows per feature that must fit into the memory for the active set: about one is strictly inside its bounds
BEND = {True: 1.0, False: 0.5}  # rough share of the rows that bend; True: the loss' derivative has no corner; a guess
DESCENT, NEWTON = "blocks", "Newton"


@dataclass
class OnFilesState(ChosenState):
    """The state of a run; the gaps of its course are those of coordinate descent, sweep by sweep.

    Attributes
    ----------
    proves_itself : bool
        Each sweep proves its point: a certificate reads nothing.
    due : str
        Why the next step changes over to Newton's method; empty where it does not. Until then the point is the one that
        the last sweep has judged.
    """

    phase: str = DESCENT
    proves_itself: bool = False
    due: str = ""

    @property
    def point(self) -> Point:
        """The present point; weights of zero where no weights judged were better."""
        far = self.phase == DESCENT and not self.inner.last.model.any()
        return Point(np.zeros(self.w.size) if far else self.w.astype(np.float64), self.alpha)

    def update(self) -> None:
        """Copy the progress of the solver at work."""
        super().update()
        self.satisfied, self.proves_itself = self.inner.satisfied, self.inner.proves_itself


@dataclass(frozen=True)
class AutoOnFiles(OverFiles, Choosing):
    """Blocks of coordinate descent, then Newton's method over sweeps where that is predicted to be quicker.

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
        """Begin with coordinate descent; at weights alone with Newton's method, where that is to be had."""
        state = OnFilesState(w=nothing(), seed=seed)
        if start is not None and start.w is not None and start.alpha is None and self.begins_at_weights(problem):
            state.phase = NEWTON
        state.inner = self.at_work(problem, state).init(problem, seed, start)
        state.update()
        return state

    def at_work(self, problem: Problem, state: OnFilesState) -> Any:
        """The solver at work."""
        if state.phase == DESCENT:
            return Blocks()
        memory = SHARE * self.memory
        return NewtonOnFiles(memory / self.problems) if is_smooth(problem.loss) else ActiveSetOnFiles(memory)

    def begins_at_weights(self, problem: Problem) -> bool:
        """Whether Newton's method is to be had, which takes the weights of a start, and nothing else of it."""
        return self.may_change(problem) and not self._is_wide(problem)

    def step_together(
        self, problems: Sequence[Problem], states: Sequence[OnFilesState], budgets: Sequence[Budget]
    ) -> list[OnFilesState]:
        """Read one block for several problems over the same files, all in the same phase."""
        for problem, state in zip(problems, states, strict=True):
            if state.due:
                self.change(problem, state, NEWTON, state.due)
                state.due = ""
        inner = self.at_work(problems[0], states[0]).step_together(problems, [one.inner for one in states], budgets)
        for state, own in zip(states, inner, strict=True):
            state.inner = own
            state.update()
        if states[0].phase == DESCENT:
            if inner[0].position == 0:
                self._end_of_sweep(problems, states, [budget.relative_gap for budget in budgets])
        elif inner[0].work.block == 0 and any(one.method.gives_up(MOST_SWEEPS) for one in inner):
            for problem, state in zip(problems, states, strict=True):
                state.course.rest(state.epochs)
                self.change(problem, state, DESCENT, "too many rows are free: back to blocks")
        return list(states)

    def _end_of_sweep(
        self, problems: Sequence[Problem], states: Sequence[OnFilesState], targets: Sequence[float]
    ) -> None:
        """Note the gaps, and change over where the sweeps that are left take longer than those of Newton's method."""
        for state in states:
            state.course.add(state.epochs, max(state.estimate, np.finfo(float).tiny))
        again = any(state.course.patience > 1.0 for state in states)
        if again or states[0].epochs < FEWEST or min(targets) <= 0.0 or not self.may_change(problems[0]):
            return
        runs = zip(problems, states, targets, strict=True)
        open_ones = [(problem, state, target) for problem, state, target in runs if state.estimate > target]
        each = [epochs_left(problem, state.course.gaps, target) for problem, state, target in open_ones]
        here = max((math.inf if sweeps is None else sweeps for sweeps in each), default=0.0)
        powers = max((math.log10(state.estimate / target) for _, state, target in open_ones), default=0.0)
        there = (SWEEPS if is_smooth(problems[0].loss) else ACTIVE_SET_SWEEPS) + EACH_POWER * powers
        wide = self._is_wide(problems[0])
        if wide:
            there *= 1.0 + max(products_expected(problem) for problem in problems)
            if any(not _spans(problem, state) for problem, state in zip(problems, states, strict=True)):
                there = math.inf
        reading, descent, newton = sweep_costs(problems, wide)
        change = here * max(reading, descent) > there * max(reading, newton)
        verdict = "changing over" if change else "staying"
        ratio = max(reading, newton) / max(reading, descent)
        for state in states:
            left = f"{in_words(here, 'sweeps')}, or about {there:.0f} of Newton's method"
            why = f"gap {state.estimate:.1e}; {left}, {ratio:.2g} times as long each: {verdict}"
            state.due = why if change else ""
            state.decision = state.remark = f"epoch {state.epochs:.0f}: {why}"

    def may_change(self, problem: Problem) -> bool:
        """Whether Newton's method takes the loss, or the active set has room for enough rows."""
        if not problem.penalty.identity() or is_smooth(problem.loss):
            return bool(problem.penalty.identity())
        return room_for(problem) >= INSIDE * (problem.n_features + 1) and problem.intercept.homogeneous

    def _is_wide(self, problem: Problem) -> bool:
        """Whether the loss is smooth, and the matrices of Newton's method do not fit into the memory."""
        return is_smooth(problem.loss) and is_wide(problem.n_features + 1, SHARE * self.memory / self.problems)

    def on_stall(self, problem: Problem, state: OnFilesState) -> OnFilesState | None:
        """Change over to Newton's method where coordinate descent stalls first."""
        if state.phase == NEWTON or not self.may_change(problem):
            return None
        self.change(problem, state, NEWTON, "no progress: changing over")
        return state


def solver_on_files(solver: SolverBase, memory: float, problems: int = 1) -> SolverBase:
    """The solver over rows in files that is meant by a solver over rows in memory; others as they are.

    `memory` is what training may take, in bytes, for so many problems side by side.
    """
    if isinstance(solver, Auto):
        return AutoOnFiles(memory, problems)
    return NewtonOnFiles(SHARE * memory / problems) if isinstance(solver, Newton) else solver


def products_expected(problem: Problem) -> float:
    """Sweeps of conjugate gradients for a step of Newton's method, roughly."""
    steep = problem.C * problem.loss.largest_curvature() * float(np.median(problem.norms[problem.members]))
    return min(FIRST_PRODUCTS + math.sqrt(steep), TYPICAL_PRODUCTS)


def _spans(problem: Problem, state: OnFilesState) -> bool:
    """Whether Newton's method needs no proximal term: else it would flounder where the rows are nearly separable."""
    return is_cornerless(problem.loss) or bool(np.count_nonzero(state.alpha) >= SPANNING * problem.n_features)


def sweep_costs(problems: Sequence[Problem], wide: bool = False) -> tuple[float, float, float]:
    """Rough seconds of reading all rows, and of the work on them in a sweep of either solver, for all problems."""
    problem, reading = problems[0], problems[0].X.nbytes / DISK_SPEED
    visits = sum(epoch_cost(one) for one in problems)
    passes = PASS_READINGS * visits  # visits to the values in a sweep of Newton's method, besides the matrix
    if wide or not is_smooth(problem.loss):
        return reading, MOST_VISITS * visits, passes
    rows, width, per_row = sum(one.members.size for one in problems), problem.n_features + 1, problem.values_per_row
    a_row = 0.5 * per_row**2 / LOOP_SPEED if problem.sparse else width**2 / SYRK_SPEED
    return reading, MOST_VISITS * visits, passes + BEND[is_cornerless(problem.loss)] * rows * a_row
