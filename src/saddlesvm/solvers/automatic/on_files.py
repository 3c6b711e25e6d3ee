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

from saddlesvm.problem.certificate import Evaluation, Point
from saddlesvm.problem.loss import is_cornerless, is_smooth
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import CSR
from saddlesvm.rows.memory_plan import matrix_bytes
from saddlesvm.runtime.durable import demand
from saddlesvm.runtime.randomness import SEEDS, draw
from saddlesvm.solvers.automatic.auto import Auto
from saddlesvm.solvers.automatic.choosing import BEND, Course, fall_rate, in_words, left_at
from saddlesvm.solvers.base import Budget, SolverBase
from saddlesvm.solvers.blocks import MOST_VISITS, Blocks, BlocksState
from saddlesvm.solvers.costs import epoch_cost
from saddlesvm.solvers.second_order.equations import FIRST_ITERATIONS, PER_ROOT, TYPICAL_ITERATIONS
from saddlesvm.solvers.second_order.linear_algebra import LOOP_SPEED, SYRK_SPEED
from saddlesvm.solvers.second_order.newton import SPANNING, Newton
from saddlesvm.solvers.second_order.over_files import ActiveSetOnFiles, NewtonOnFiles, PassesState, room_for
from saddlesvm.solvers.second_order.over_passes import is_wide
from saddlesvm.solvers.sweeps import OverFiles, SweepWork, at_sweep_start

DISK_SPEED = 1.5e9  # bytes per second that a sweep reads
SWEEPS, EACH_POWER = 3.0, 0.35  # sweeps of Newton's method: the least, and per power of ten that the gap falls by
ACTIVE_SET_SWEEPS = 4.0  # the same of the active-set method, the least
MOST_SWEEPS = 40  # sweeps of the active-set method, at most: coordinate descent then goes on
FEWEST = 2  # sweeps of coordinate descent before the first comparison
PASSES = 3.0  # visits to the values in a sweep of Newton's method, besides the matrix
SHARE = 0.25  # of the memory, that the matrices of Newton's method may take
INSIDE = 4  # rows per feature that must fit into the memory for the active set: about one is strictly inside its bounds
DESCENT, NEWTON = "blocks", "Newton"


@dataclass
class OnFilesState(BlocksState, PassesState):
    """The state of a run: the states of all solvers over one dual point.

    Attributes
    ----------
    phase : str
        The solver at work.
    course : Course
        Its gaps are those of coordinate descent, sweep by sweep.
    """

    phase: str = DESCENT
    course: Course = field(default_factory=Course, metadata={"prefix": "course_"})

    def check_restored(self, problem: Any) -> None:
        super().check_restored(problem)
        demand(self.phase in (DESCENT, NEWTON), f"its phase is {self.phase[:40]!r}")


@dataclass(frozen=True)
class AutoOnFiles(OverFiles):
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

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> OnFilesState:
        """Begin with coordinate descent; at weights alone with Newton's method, where that is to be had."""
        state = Blocks().begun(OnFilesState, problem, seed, start)
        state.method = self._finish([problem]).begun(problem, np.zeros(problem.n_features + 1))
        if start is not None and start.w is not None and start.alpha is None and self.begins_at_weights(problem):
            self._begin(problem, state, np.array(start.w, dtype=np.float64))
        return state

    def begins_at_weights(self, problem: Problem) -> bool:
        """Whether Newton's method is to be had, which takes the weights of a start, and nothing else of it."""
        return self.may_change([problem]) and not self._is_wide([problem])

    def resumed(self, problem: Problem, state: OnFilesState) -> OnFilesState:
        """Begin the sweep again where it is one of Newton's method."""
        return at_sweep_start(state) if state.phase == NEWTON else state

    def step_together(
        self, problems: Sequence[Problem], states: Sequence[OnFilesState], budgets: Sequence[Budget]
    ) -> list[OnFilesState]:
        """Read one block for several problems over the same files, all in the same phase."""
        if states[0].phase == NEWTON:
            self._finish(problems).step_together(problems, states, budgets)
            if states[0].work.block == 0 and any(one.method.gives_up(MOST_SWEEPS) for one in states):
                for problem, state in zip(problems, states, strict=True):
                    self._return(problem, state)
        else:
            Blocks().step_together(problems, states, budgets)
            if states[0].position == 0:
                self._end_of_sweep(problems, states, [budget.relative_gap for budget in budgets])
        return list(states)

    def _end_of_sweep(
        self, problems: Sequence[Problem], states: Sequence[OnFilesState], targets: Sequence[float]
    ) -> None:
        """Note the gaps, and change over where the sweeps that are left take longer than those of Newton's method."""
        for state in states:
            state.course.add(state.sweeps, max(state.estimate, np.finfo(float).tiny))
        again = any(state.method.ended for state in states)
        if again or states[0].sweeps < FEWEST or min(targets) <= 0.0 or not self.may_change(problems):
            return
        open_ones = [(state, target) for state, target in zip(states, targets, strict=True) if state.estimate > target]
        here = max((sweeps_left(state.course.gaps, target) for state, target in open_ones), default=0.0)
        powers = max((math.log10(state.estimate / target) for state, target in open_ones), default=0.0)
        there = (SWEEPS if is_smooth(problems[0].loss) else ACTIVE_SET_SWEEPS) + EACH_POWER * powers
        wide = self._is_wide(problems)
        if wide:
            there *= 1.0 + max(products_expected(problem) for problem in problems)
            if any(not _spans(problem, state) for problem, state in zip(problems, states, strict=True)):
                there = math.inf
        reading, descent, newton = sweep_costs(problems, wide)
        change = here * max(reading, descent) > there * max(reading, newton)
        verdict = "changing over" if change else "staying"
        ratio = max(reading, newton) / max(reading, descent)
        for problem, state in zip(problems, states, strict=True):
            left = f"{in_words(here, 'sweeps')}, or about {there:.0f} of Newton's method"
            progress = f"sweep {state.sweeps}: gap {state.estimate:.1e}; {left}"
            state.remark = f"{progress}, {ratio:.2g} times as long each: {verdict}"
            if change:
                self._change(problem, state)

    def may_change(self, problems: Sequence[Problem]) -> bool:
        """Whether Newton's method takes the loss, or the active set has room for enough rows."""
        problem, width = problems[0], problems[0].n_features + 1
        if not problem.penalty.identity():
            return False
        if not is_smooth(problem.loss):
            return room_for(problem) >= INSIDE * width and problem.intercept.homogeneous
        return True

    def _is_wide(self, problems: Sequence[Problem]) -> bool:
        """Whether the loss is smooth, and the matrices of Newton's method do not fit into the memory."""
        smooth, width = is_smooth(problems[0].loss), problems[0].n_features + 1
        return smooth and is_wide(width, self._finish(problems).memory)

    def _finish(self, problems: Sequence[Problem]) -> NewtonOnFiles | ActiveSetOnFiles:
        """The solver that takes over."""
        memory = SHARE * self.memory
        if is_smooth(problems[0].loss):
            return NewtonOnFiles(memory / max(len(problems), self.problems))
        return ActiveSetOnFiles(memory)

    @staticmethod
    def _return(problem: Problem, state: OnFilesState) -> None:
        """Go back to coordinate descent for good, where more rows are free than there is room for."""
        begun = Blocks().init(problem, draw(state.random, SEEDS), Point(state.w, state.alpha.copy()))
        for name in ("w", "alpha", "edges", "order", "following", "offset", "judged", "position", "last"):
            setattr(state, name, getattr(begun, name))
        state.paid = state.conjugates = 0.0
        state.phase, state.satisfied, state.proves_itself, state.method.ended = DESCENT, False, False, True
        state.remark = "too many rows are free: back to blocks"

    def _change(self, problem: Problem, state: OnFilesState) -> None:
        """Begin Newton's method at the present weights, or at zero where no weights judged were better."""
        far = not state.last.model.any()
        self._begin(problem, state, np.zeros(state.w.size) if far else state.w.astype(np.float64))

    def _begin(self, problem: Problem, state: OnFilesState, w: np.ndarray) -> None:
        """Begin Newton's method at these weights."""
        state.method = self._finish([problem]).begun(problem, w)
        state.phase, state.w, state.epochs, state.work = NEWTON, w, float(state.sweeps), SweepWork()

    def solution(self, problem: Problem, state: OnFilesState) -> Point:
        """The point of the solver at work."""
        if state.phase == NEWTON and state.method.passes:
            return self._finish([problem]).solution(problem, state)
        return Blocks().solution(problem, state)

    def last_point(self, problem: Problem, state: OnFilesState) -> Point:
        """The last point of the solver at work."""
        if state.phase == NEWTON:
            return self.solution(problem, state)
        return Blocks().last_point(problem, state)

    def certified(self, problem: Problem, state: OnFilesState, evaluation: Evaluation) -> Any:
        """Pass the certificate on to the solver at work."""
        return state if state.phase == NEWTON else Blocks().certified(problem, state, evaluation)

    def on_stall(self, problem: Problem, state: OnFilesState) -> OnFilesState | None:
        """Change over to Newton's method where coordinate descent stalls first."""
        if state.phase == NEWTON or not self.may_change([problem]):
            return None
        self._change(problem, state)
        return state


def solver_on_files(solver: SolverBase, memory: float, problems: int = 1) -> SolverBase:
    """The solver over rows in files that is meant by a solver over rows in memory; others as they are.

    `memory` is what training may take, in bytes, for so many problems side by side.
    """
    if isinstance(solver, Auto):
        return AutoOnFiles(memory, problems)
    return NewtonOnFiles(SHARE * memory / problems) if isinstance(solver, Newton) else solver


def sweeps_left(gaps: np.ndarray, target: float) -> float:
    """Sweeps of coordinate descent from the last gap to `target`, at the present rate."""
    rate = fall_rate(gaps)
    return math.inf if rate is None else left_at(rate, float(gaps[-1, 1]), target)


def products_expected(problem: Problem) -> float:
    """Sweeps of conjugate gradients for a step of Newton's method, roughly."""
    steep = problem.C * problem.loss.largest_curvature() * float(np.median(problem.norms[problem.members]))
    return min(FIRST_ITERATIONS + PER_ROOT * math.sqrt(steep), TYPICAL_ITERATIONS)


def _spans(problem: Problem, state: OnFilesState) -> bool:
    """Whether Newton's method needs no proximal term: else it would flounder where the rows are nearly separable."""
    return is_cornerless(problem.loss) or bool(np.count_nonzero(state.alpha) >= SPANNING * problem.n_features)


def sweep_costs(problems: Sequence[Problem], wide: bool = False) -> tuple[float, float, float]:
    """Rough seconds of reading all rows, and of the work on them in a sweep of either solver, for all problems."""
    problem, reading = problems[0], matrix_bytes(problems[0].X) / DISK_SPEED
    visits = sum(epoch_cost(one) for one in problems)
    if wide or not is_smooth(problem.loss):
        return reading, MOST_VISITS * visits, PASSES * visits
    rows, width, per_row = sum(one.members.size for one in problems), problem.n_features + 1, problem.values_per_row
    a_row = 0.5 * per_row**2 / LOOP_SPEED if isinstance(problem.X, CSR) else width**2 / SYRK_SPEED
    return reading, MOST_VISITS * visits, PASSES * visits + BEND[is_cornerless(problem.loss)] * rows * a_row
