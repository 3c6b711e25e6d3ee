"""Newton's method over rows in files: one sweep is one step, for any number of problems over the same rows.

A sweep reads every row once. It gives the gradient, both objectives and the matrix of the rows that bend at the point
that it looks at (:mod:`saddlesvm.solvers.second_order.row_statistics`); the matrix is factored in memory, and the next
sweep looks one step further (:mod:`saddlesvm.solvers.second_order.over_passes`). Nothing but the dual variables is kept
of a row, and a sweep's certificate reads nothing. The method begins at zero: from there it takes some six to nine
sweeps, whatever C is, and at its end a sweep squares the gap.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from saddlesvm.problem.certificate import Certificate, Point
from saddlesvm.problem.loss import Loss, is_cornerless, is_smooth, loss_name
from saddlesvm.problem.on_files import CarriedDuals, StreamedProblem
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.proven_sums import STILL, Sums, summed
from saddlesvm.problem.rounding import shortened
from saddlesvm.rows.layouts import Dense
from saddlesvm.rows.memory_plan import matrix_bytes
from saddlesvm.rows.passes import Part
from saddlesvm.runtime.durable import demand, growing
from saddlesvm.solvers.base import nothing, start_alpha
from saddlesvm.solvers.second_order import corners as near_corners
from saddlesvm.solvers.second_order.corners import Corners
from saddlesvm.solvers.second_order.over_kinks import step_over_kinks
from saddlesvm.solvers.second_order.over_passes import NewtonOverPasses, is_wide
from saddlesvm.solvers.second_order.row_statistics import RowStatistics, add_statistics
from saddlesvm.solvers.sweeps import Sweeps, SweepState, SweepWork, proven


@dataclass
class FilesState(SweepState):
    """The state of a run: at the end of its last sweep, from which a resumed run goes on.

    Attributes
    ----------
    alpha : ndarray of shape (n_all,)
        The best dual point so far.
    dual_bound : ndarray of shape (2,) or (0,)
        Its proven objective and the rounding in that; empty before there is a proof.
    newton : NewtonOverPasses
    proving : bool
        This sweep balances the multipliers of the last point, whose intercept is free, and proves it.
    proof : ndarray of shape (7,) or (0,)
        The sums of its certificate, where the last sweep did that.
    """

    alpha: np.ndarray = field(default_factory=lambda: np.empty(0))
    newton: NewtonOverPasses = field(
        default_factory=lambda: NewtonOverPasses(np.empty(0)), metadata={"prefix": "newton_"}
    )
    proving: bool = False
    proof: np.ndarray = growing()
    dual_bound: np.ndarray = growing()

    def check_restored(self, problem: Any) -> None:
        super().check_restored(problem)
        demand(self.proof.shape in ((0,), (7,)), "its proof has another size")
        demand(self.dual_bound.shape in ((0,), (2,)), "its dual_bound has another size")
        self.newton.check_restored(self.w.size)


@dataclass(frozen=True)
class NewtonOnFiles(Sweeps):
    """Newton's method over rows that are read block by block, for smooth losses.

    Estimators choose this solver for such rows where it is predicted to take less time than
    :class:`~saddlesvm.solvers.blocks.Blocks`, and with ``solver="newton"``. One epoch is one sweep.

    Parameters
    ----------
    memory : float, default=inf
        Bytes that the matrices of a problem may take. Where they take more, a sweep is a product with the matrix.
    """

    name: ClassVar[str] = "newton"
    memory: float = field(default=np.inf, repr=False)

    def init(self, problem: Problem, seed: int, start: Point | None = None) -> FilesState:
        """Begin at the weights of the given point, or at zero; no row is read."""
        streamed = self.suited(problem)
        check_losses(problem.loss)
        streamed.duals[:] = start_alpha(problem, start)
        given = None if start is None else start.w
        w = np.zeros(problem.n_features + 1) if given is None else np.array(given, dtype=np.float64)
        wide = is_wide(w.size, self.memory)
        newton = NewtonOverPasses.begin(w, problem.loss, wide, 0.0 if wide else room_for(streamed))
        return FilesState(w=w, alpha=streamed.duals, active=problem.members.size, newton=newton)

    def begins_at_weights(self, problem: Problem) -> bool:
        """Whether the weights of a start are all that a run takes: yes."""
        return True

    def visit(self, problem: StreamedProblem, state: FilesState, part: Part) -> None:
        """Look at the rows of a block."""
        newton, work = state.newton, state.work
        if not newton.passes and work.found is None and isinstance(problem.X, Dense):
            newton.draw(problem.members.size)
        ask = newton.ask_balanced() if state.proving else newton.ask()
        if work.found is None:
            work.begin((RowStatistics.nothing(ask), Corners()), problem, None if newton.passes else state.alpha)
        if work.carried is not None:
            work.carried.visit(part)
        statistics, corners = work.found
        add_statistics(problem.terms_of(part), part.rows, ask, statistics, part.of(work.alpha), corners)

    def end_of_sweep(self, problem: StreamedProblem, state: FilesState, work: SweepWork, target: float) -> None:
        """Take a step, or the proof of the point of the last one."""
        newton, free, (statistics, corners) = state.newton, problem.intercept.constrained, work.found
        renewed = not newton.inner.under_way
        state.proves_itself = not free or state.proving
        if state.proving:
            sums = newton.balanced(problem.facts, statistics)
            state.proving, state.proof = False, np.array(sums)
            state.estimate = max(Certificate.of(problem.strength, sums).relative_gap, 0.0)
            state.satisfied = newton.ended
            _keep_better(problem, state, sums, work.alpha)
            return
        state.estimate, state.proof = newton.take(problem.C, problem.regularizer, statistics), nothing()
        if work.carried is not None:
            _keep_better(problem, state, _carried(problem, newton.model, work.carried), None)
        if renewed and not free:
            _keep_better(problem, state, newton.proven(problem.facts), work.alpha)
        if newton.due:
            state.estimate = _past_corners(problem, newton, corners, float(statistics.bent[1]))
        state.w, state.active = newton.at, newton.bent
        state.remark = f"Newton step {newton.steps}: {state.active} rows bend"
        if newton.inner.under_way:
            state.remark += f", product {newton.inner.iterations + 1} for the next one"
        state.proving = free and (state.estimate <= target or newton.ended)
        state.satisfied = newton.ended and not state.proving
        if state.proving:
            state.estimate = np.inf  # no certificate is asked for meanwhile

    def solution(self, problem: Problem, state: FilesState) -> Point:
        """The point of the last whole sweep, with its certificate (with a free intercept only where it was proven)."""
        if not state.newton.passes:
            return Point(state.w, state.alpha)
        w, balanced = state.newton.model, state.proof.size > 0
        sums = Sums(*state.proof.tolist()) if balanced else state.newton.proven(problem.facts)
        certificate = Certificate.of(problem.strength, sums)
        if state.dual_bound.size:
            dual, rounding = state.dual_bound.tolist()
            certificate = replace(certificate, dual=dual, dual_rounding=rounding)
        point = proven(problem, w, state.alpha, certificate)
        if problem.intercept.constrained and not balanced:
            return Point(w, known=(point.proven,) if point.proven and state.dual_bound.size else ())
        return point


def _keep_better(problem: StreamedProblem, state: FilesState, sums: Sums, alpha: np.ndarray | None) -> None:
    """Keep a dual point, with its proof, where none is better; None for the one that is kept already."""
    certificate = Certificate.of(problem.strength, sums)
    if state.dual_bound.size and certificate.dual < state.dual_bound[0]:
        return
    state.dual_bound = np.array([certificate.dual, certificate.dual_rounding])
    if alpha is not None:
        state.alpha[:] = alpha


def _carried(problem: StreamedProblem, w: np.ndarray, carried: CarriedDuals) -> Sums:
    """The sums whose dual objective is that of a dual point that was carried through the first sweep."""
    pull, conjugates, charged, sizes = carried.found()
    move = shortened(sizes, problem.row_sizes, charged) if problem.intercept.constrained else STILL
    return summed(problem.facts, (0.0, conjugates, np.inf, charged, np.inf), sizes, w, pull, move=move)


def room_for(problem: StreamedProblem) -> float:
    """The share of the rows that may be taken along where the loss' derivative has corners."""
    if is_cornerless(problem.loss):
        return 0.0
    count, width = problem.members.size, problem.n_features + 1
    a_row = matrix_bytes(problem.X) / problem.y.size + 2 * 8 * width + near_corners.WORK_BYTES
    return near_corners.share_of(count, width, problem.kept_bytes / a_row)


def _past_corners(problem: StreamedProblem, newton: NewtonOverPasses, corners: Corners, curvature: float) -> float:
    """Step past the corners of the rows taken along; returns an estimate of the relative gap."""
    model = newton.model_of(problem.loss, problem.C, problem.regularizer, curvature, float(problem.kept_bytes))
    return newton.go(step_over_kinks(newton.matrix, corners, model), problem.regularizer)


def check_losses(loss: Loss) -> None:
    """Raise ValueError for a loss that Newton's method over passes does not take."""
    if not is_smooth(loss):
        raise ValueError(
            f"Newton's method over rows in files takes smooth losses only, not {loss_name(loss)}: use solver='auto', "
            "'blocks', or loss='squared_hinge'"
        )
