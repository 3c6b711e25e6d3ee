"""Newton's method and the active-set method over rows in files: one sweep is one pass.

A sweep reads every row once, for any number of problems. It evaluates a point and tells what the
next step needs: the matrix of the rows that bend (:mod:`saddlesvm.solvers.newton_over_passes`), or
the pull of the decided rows and the values of the free ones
(:mod:`saddlesvm.solvers.active_set`). The step is found in memory. Nothing but the
dual variables is kept of a row, and a sweep's certificate reads nothing. Both methods begin at the
solution of a sample, chunks from all over the files; Newton's method then takes some three to eight
sweeps, whatever C is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.bounds import dual_of
from saddlesvm.problem.certificate import Certificate, Evaluation, Point
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import margins, sums_at_zero
from saddlesvm.rows.layouts import add_rows
from saddlesvm.rows.passes import FromFiles, Part
from saddlesvm.solvers.active_set import CROWDED, FILLED, ActiveSet
from saddlesvm.solvers.base import Budget, empty_array, start_alpha
from saddlesvm.solvers.curvature import bends_at_zero
from saddlesvm.solvers.free_rows import width_of
from saddlesvm.solvers.machines import Binary, SoftmaxMachine
from saddlesvm.solvers.newton import SHARE_ROWS, descend_first
from saddlesvm.solvers.newton_over_passes import NewtonOverPasses
from saddlesvm.solvers.over_passes import OverPasses, Setting
from saddlesvm.solvers.sweeps import (
    FEWEST_BLOCKS,
    OverFiles,
    SweepState,
    SweepWork,
    read_sample,
    reader_of,
    solve_sample,
)
from saddlesvm.solvers.taken_rows import WORK_BYTES

FACTORS = 2.5e8  # bytes that factored matrices of the active set may take; a guess
# Sweeps of an active set that follows Newton's method in which its gap should halve if it is above
# this share of the objective; otherwise Newton's method goes on. Guesses.
VAIN_SWEEPS = 12
LARGE_GAP = 0.1
DESCENT = 10  # epochs of descent over a sample, if Newton's method cannot leave zero; a guess


class CarriedDuals:
    """A dual point of an earlier solver, whose bound the first sweep of another one proves.

    Parameters
    ----------
    problem : Problem
    alpha : ndarray of shape (n_all,)
        It is balanced in place if the intercept is free.
    """

    def __init__(self, problem: Problem, alpha: np.ndarray) -> None:
        if problem.intercept.constrained:
            alpha[:] = problem.balance(alpha)
        self.problem = problem
        self.alpha = alpha
        self.pull = np.zeros(problem.n_features + 1)

    def visit(self, part: Part) -> None:
        """Add the pull of a part's rows."""
        add_rows(part.X, part.rows, part.pick(self.alpha), self.pull)

    def hand_over(self, method: OverPasses) -> None:
        """Let a method keep the bound, by the pull of all rows."""
        problem = self.problem
        signs = problem.intercept.constrained
        at_zero = sums_at_zero(problem, self.alpha)
        sums = at_zero._replace(paid=np.inf, products=np.inf, product_sizes=np.inf)
        sizes = problem.point_sizes(self.alpha, signs=signs)
        pull = problem.scale_pull(self.pull)
        dual = dual_of(problem.C, sums.conjugates, problem.regularizer.conjugate(pull))
        method.keep_bound(dual, pull, sums, np.array(sizes))


@dataclass
class PassesState(SweepState):
    """The state of a run: at the end of its last sweep, from which a resumed run goes on.

    Attributes
    ----------
    alpha : ndarray of shape (n_all,)
        The best dual point so far.
    method : OverPasses
    slow_sweeps : int
        Sweeps since the gap of the method's best points has halved, or been small.
    halved_gap : float
        The gap at that time.
    """

    alpha: np.ndarray = field(default_factory=empty_array)
    method: Any = None
    slow_sweeps: int = 0
    halved_gap: float = np.inf

    def count_sweep(self) -> None:
        """Count a sweep that is whole, unless the gap has halved or is small."""
        self.slow_sweeps += 1
        # Dual variables of zero have a bound of zero.
        gap = self.method.primal - max(self.method.dual, 0.0)
        if gap <= 0.5 * self.halved_gap or gap <= LARGE_GAP * self.method.primal:
            self.slow_sweeps = 0
            self.halved_gap = gap

    @property
    def is_stuck(self) -> bool:
        """True if the method can gain no more."""
        method = self.method
        is_crowded = isinstance(method, ActiveSet) and method.crowded >= CROWDED
        return bool(is_crowded or method.ended)

    @property
    def obstacle(self) -> str:
        """What stops a run that is stuck."""
        if isinstance(self.method, ActiveSet):
            return (
                "a step over as many rows as memory has room for gains no more: give more memory, "
                "or take a smooth loss"
            )
        return super().obstacle


@dataclass(frozen=True)
class NewtonOnFiles(OverFiles):
    """Newton's method over rows that are read block by block; an epoch is a sweep.

    Losses with kinks take the active-set method in its place. So do losses with corners if steps of
    Newton's method overshoot, as those of separable rows do at a large C.

    Parameters
    ----------
    factors : float, default=2.5e8
        Bytes that factored matrices of the active set may take.
    """

    name: ClassVar[str] = "newton"
    factors: float = field(default=FACTORS, repr=False)

    def begin_method(self, problem: Problem, w: np.ndarray) -> OverPasses:
        """Begin the method of the loss at these weights."""
        n = problem.members.size
        if not problem.is_smooth:
            return ActiveSet.begin(w, count_room(problem), n)
        return NewtonOverPasses.begin(w, n, free=free_feature(problem))

    def begins_at_weights(self, problem: Problem) -> bool:
        """Return True: the weights of a start are all that a run takes."""
        return True

    def setting(self, problem: Problem, target: float) -> Setting:
        """Return the problem as the method has it, to be solved to a relative gap."""
        return Setting(problem.loss, problem.C, problem.regularizer, target, self.factors)

    def step_together(
        self, problems: Sequence[Problem], states: Sequence[Any], budgets: Sequence[Budget]
    ) -> list[Any]:
        """Read one block for several problems, whose sweeps are at the same block."""
        streamed = [self.check_problem(problem) for problem in problems]
        self.prepare(streamed, states)
        passes = streamed[0].passes
        assert isinstance(passes, FromFiles)
        # One reading of the block serves all problems.
        part = passes.part(states[0].work.block, again=True)
        for problem, state, budget in zip(streamed, states, budgets, strict=True):
            own = part.move_to(problem.members)
            work = state.work
            self.visit(problem, state, own)
            state.rows_touched += own.rows.size
            work.block += 1
            if work.block < passes.reader.n_blocks:
                state.epochs += (part.last - part.first) / problem.y.size
                continue
            # The sweep is whole.
            state.sweeps += 1
            state.epochs = float(state.sweeps)
            state.work = SweepWork()
            self.end_sweep(problem, state, work, budget.relative_gap)
        return list(states)

    def prepare(self, problems: Sequence[Problem], states: Sequence[Any]) -> None:
        """Begin at the solution of a block, of chunks from all over the files."""
        pairs = zip(problems, states, strict=True)
        due = [(problem, state) for problem, state in pairs if self.needs_sample(problem, state)]
        if not due:
            return
        block = read_sample(problems[0])
        for problem, state in due:
            local = problem.restrict_to_rows(block.X, block.numbers)
            state.rows_touched += local.members.size
            if not local.members.size:
                continue
            if isinstance(state.method, ActiveSet):
                self.begin_active_set(problem, state.method, local)
                continue
            machine = self.machine_of(local)
            w = first_of_sample(problem, state.method, local)
            state.method.start_at(solve_sample(local, machine, problem.members.size, w))

    def machine_of(self, local: Problem) -> Binary | SoftmaxMachine:
        """Return the machine of the rows of a sample."""
        return Binary.from_problem(local)

    def least_rows(self, method: OverPasses) -> int:
        """Return the least rows of a block whose solution is worth beginning at."""
        return SHARE_ROWS * method.at.size

    def needs_sample(self, problem: Problem, state: PassesState) -> bool:
        """Return True if a run begins now, and should begin at the solution of a sample."""
        method = state.method
        if state.work.block:
            return False
        if isinstance(method, ActiveSet):
            return method.width == 0.0
        if method.passes or method.at.any():
            return False
        # A block must be a small part of the files, and have some rows for each weight.
        n_blocks = reader_of(problem).n_blocks
        rows_of_block = problem.members.size / n_blocks
        return n_blocks >= FEWEST_BLOCKS and rows_of_block >= self.least_rows(method)

    def begin_active_set(self, problem: Problem, method: ActiveSet, local: Problem) -> None:
        """Begin at the solution of a sample, or with the free rows of a sample at a given point."""
        if method.at.any():
            # The width at which about half the room is filled, by the margins of the sample.
            z = margins(local, method.at)
            method.width = width_of(local.member_terms, z, 0.5 * FILLED * method.room)
            return
        question = method.sample_question(method.most / max(local.members.size, 1))
        found = question.empty()
        question.add_to(found, local.terms, local.members)
        setting = self.setting(problem, 0.0)
        sample = method.sample_problem(setting, problem.members.size)
        method.learn_from_solution(setting, sample.solve(found))

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> PassesState:
        """Begin; no row is read."""
        streamed = self.check_problem(problem)
        duals = streamed.rooms.duals
        # The softmax keeps no dual variables.
        if duals.size and (start is None or start.alpha is not duals):
            duals[:] = start_alpha(problem, start)
        w = self.first_weights(streamed, start)
        method = self.begin_method(streamed, w)
        n = problem.members.size
        return PassesState(w=w, alpha=duals, active=n, method=method)

    def first_weights(self, problem: Problem, start: Point | None) -> np.ndarray:
        """Return the weights of a start, or zero."""
        if start is None or start.w is None:
            return np.zeros(problem.n_features + 1)
        return np.array(start.w, dtype=np.float64)

    def visit(self, problem: Problem, state: PassesState, part: Part) -> None:
        """Add what the rows of a block answer."""
        method = state.method
        work = state.work
        question = method.question()
        if work.found is None:
            spare = problem.rooms.spare
            work.found = question.empty()
            work.alpha = np.zeros_like(state.alpha) if spare is None else spare
            # The first sweep proves the dual point that the run was given, beside its own.
            if not method.passes and not method.is_proven and state.alpha.any():
                work.carried = CarriedDuals(problem, state.alpha)
        if work.carried is not None:
            work.carried.visit(part)
        alpha = part.pick(work.alpha)
        question.add_to(work.found, problem.terms_of(part), part.rows, alpha, part.first)

    def end_sweep(
        self, problem: Problem, state: PassesState, work: SweepWork, target: float
    ) -> None:
        """Take a step, or the proof of the last step's point."""
        method = state.method
        found = work.found
        setting = self.setting(problem, target)
        if work.carried is not None:
            work.carried.hand_over(method)
        before = method.dual
        model = method.learn_from_pass(setting, found)
        if method.dual > before:
            state.alpha[:] = work.alpha
        if model is not None:
            # The rows taken along tell the next point.
            solved = model.solve(found)
            work.alpha[solved.rows] = solved.alpha
            if method.learn_from_solution(setting, solved):
                state.alpha[:] = work.alpha
        state.count_sweep()
        state.w = method.model
        state.active = method.active
        state.remark = method.remark
        state.estimate = method.estimate
        state.proves_itself = method.is_proven
        if state.estimate > target:
            self.change_method(problem, state)

    def change_method(self, problem: Problem, state: PassesState) -> None:
        """Go on with the active set if steps of Newton's method overshoot, and back once."""
        former = state.method
        if isinstance(former, ActiveSet):
            is_vain = state.slow_sweeps >= VAIN_SWEEPS or state.is_stuck
            if problem.is_smooth and is_vain:
                n = problem.members.size
                state.method = NewtonOverPasses.go_on_from(former, n, free_feature(problem))
                state.remark = f"{state.remark}: no progress, and Newton's method goes on"
            return
        method = ActiveSet.follow(former, problem.loss, count_room(problem))
        if method is None:
            return
        state.method = method
        state.slow_sweeps = 0
        state.remark = f"{state.remark}: it went too far, and the active set goes on"

    def solution(self, problem: Problem, state: PassesState) -> Point:
        """Return the point of the last sweep, with its certificate if that was proven."""
        method = state.method
        if not method.is_proven:
            # The certificate takes the dual variables that belong to the weights.
            alpha = state.alpha if state.alpha.any() else None
            return Point(state.w, alpha)
        certificate = Certificate.from_sums(problem.strength, method.bound_sums(problem.facts))
        evaluation = Evaluation.from_weights(problem, method.model, state.alpha, certificate)
        return Point(method.model, state.alpha, evaluation=evaluation)


def first_of_sample(problem: Problem, method: OverPasses, local: Problem) -> np.ndarray:
    """Return the weights at which Newton's method begins on a sample."""
    if method.at.ndim > 1 or bends_at_zero(problem.loss):
        return np.zeros_like(method.at)
    # From zero weights Newton's method cannot leave: descent can. Each row of the sample stands for
    # so many.
    weight = problem.members.size / local.members.size
    begun, _ = descend_first(replace(local, C=weight * local.C), 0, DESCENT)
    return np.zeros_like(method.at) if begun.w is None else begun.w


def free_feature(problem: Problem) -> float:
    """Return the value of a free intercept's feature; 0 for other intercepts."""
    return problem.scale if problem.intercept.constrained else 0.0


def count_room(problem: Problem) -> int:
    """Count the rows that the active-set method may take along."""
    return max(int(problem.rooms.kept_bytes / (problem.row_bytes + WORK_BYTES)), 1)
