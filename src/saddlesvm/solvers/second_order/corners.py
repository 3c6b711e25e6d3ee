"""Steps past corners of the loss' derivative: the rows near a corner, taken along in a pass, keep their true losses.

The squared hinge and its relatives are parabolas between corners. Where few rows bend along some directions, a step on
the matrix of the rows that bend ends at the next few corners, and there are dozens of such steps. So a pass takes some
rows along: those that are about to come to a corner, told by how far their margins lie from those at another point near
by. At the point w0 of a pass, with H the matrix of the other rows that bend and v the pull of all rows but those taken
along, the step goes to

    min over w of  1/2 w'Rw - v.w + 1/2 (w - w0)'H (w - w0) + C sum_{i taken} s_i phi_i(x_i.w).

With ``R + H = LL'`` and ``u = L'w`` that is a problem of the usual kind over few rows ``L^-1 x_i``, which the
second-order method for rows in memory solves. Without a row taken along it is Newton's step. A free intercept is
charged a small part of the rows' own curvature, times the square of its move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from saddlesvm.problem.bounds import primal_of
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.intercepts import Absent
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import loss_sums, margins
from saddlesvm.problem.terms import Pointwise, weights_at
from saddlesvm.rows.files import stacked_rows
from saddlesvm.rows.layouts import Rows, as_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.second_order.driver import ROUNDED, Setting
from saddlesvm.solvers.second_order.equations import FREE_PENALTY
from saddlesvm.solvers.second_order.kernels import Answers, SmoothedTerms, answers_at, combine
from saddlesvm.solvers.second_order.linear_algebra import BLAS_SPEED, cholesky, widen
from saddlesvm.solvers.second_order.newton import Newton

MOVES = 2.0 ** np.arange(-4, 5)  # times its last move that a margin may move
REST = 0.3  # of the mean move, that a margin may move at least
LINEAR = 1e-9  # relative distance from a straight line that rounding explains
FEWEST, MOST = 4.0, 16.0  # rows per feature: with less room they are not worth a pass, and more are too much work
WORK_BYTES = 240  # bytes of a row taken along, besides its values
HELD = 1e-3  # share of the rows' own curvature along a free intercept that its move is charged
AT_ONCE = 1024  # rows that are widen and solved for together


class Near(NamedTuple):
    """The rows that a pass collects.

    Attributes
    ----------
    other : ndarray of shape (d + 1,)
        A point near the one looked at.
    share : float
        Of the rows, at most.
    """

    other: np.ndarray
    share: float


class Taken(NamedTuple):
    """Some rows taken along: values, labels, weights (empty when all are 1), squared norms, the multipliers at the
    point of the pass, and the rows' numbers."""

    X: Rows
    y: np.ndarray
    weights: np.ndarray
    norms: np.ndarray
    alpha: np.ndarray
    rows: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return self.X.nbytes + sum(one.nbytes for one in self[1:])


def rows_taken(
    X: Rows, chosen: np.ndarray, points: Pointwise, norms: np.ndarray, alpha: np.ndarray, places: np.ndarray
) -> list[Taken]:
    """Some of the chosen rows, taken along: one piece, or none where there is no such row.

    Parameters
    ----------
    X : Rows
    chosen : ndarray of shape (n,)
        Numbers of rows in X.
    points : Pointwise
    norms, alpha : ndarray of shape (n,)
        Of the chosen rows, as `points` is.
    places : ndarray of shape (k,)
        Of the rows to take, among the chosen ones.
    """
    if not places.size:
        return []
    weights, rows = weights_at(points.weights, places), chosen[places]
    return [Taken(X.taken(rows), points.y[places], weights, norms[places], alpha[places], rows)]


def joined(pieces: Sequence[Taken]) -> Taken:
    """All the rows of some pieces, one at least, with their weights."""
    y, norms, alpha, rows = (np.concatenate([piece[k] for piece in pieces]) for k in (1, 3, 4, 5))
    weights = np.concatenate([piece.weights if piece.weights.size else np.ones(piece.y.size) for piece in pieces])
    return Taken(stacked_rows([piece.X for piece in pieces]), y, weights, norms, alpha, rows)


def first_to_cross(
    smoothed: SmoothedTerms, z: np.ndarray, moves: np.ndarray, answers: Answers, room: int
) -> np.ndarray:
    """The places of the rows that come to a corner first, as many as there is room for, ascending.

    Parameters
    ----------
    smoothed : SmoothedTerms
    z : ndarray of shape (n,)
        Margins.
    moves : ndarray of shape (n,)
        How far each lies from the margin at the other point.
    answers : Answers
        At these margins.
    room : int
    """
    moves, first = moves + REST * float(moves.mean()), np.full(z.size, len(MOVES))
    for k in reversed(range(len(MOVES))):
        first[crosses(smoothed, z, MOVES[k] * moves, answers)] = k
    order = np.argsort(first, kind="stable")[: max(room, 0)]
    return np.sort(order[first[order] < len(MOVES)])


def crosses(smoothed: SmoothedTerms, z: np.ndarray, ways: np.ndarray, answers: Answers) -> np.ndarray:
    """Whether a change of each margin by its way, upwards or downwards, leads past a corner, shape (n,).

    Between corners the multipliers are linear in the margins.
    """
    turned, slope = np.zeros(z.size, dtype=bool), -answers.bend / smoothed.C
    for way in (-ways, ways):
        there = answers_at(smoothed, z + way)
        straight = answers.alpha + slope * way
        turned |= np.abs(there.alpha - straight) > LINEAR * (np.abs(answers.alpha) + np.abs(slope * way))
    return turned


def share_of(rows: int, features: int, room: float) -> float:
    """The share of the rows to be taken along, with room for so many; 0 where it is too little to be of use."""
    if room < FEWEST * features:
        return 0.0
    return min(room, MOST * features, rows) / max(rows, 1)


class Model(NamedTuple):
    """The model of a step past corners, besides what a pass has found.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
        The point of the pass.
    pull : ndarray of shape (d + 1,)
        ``C sum_i a_i x_i`` over all rows.
    primal : float
        The objective there, in the C form.
    setting : Setting
    """

    w: np.ndarray
    pull: np.ndarray
    primal: float
    setting: Setting

    def solve(self, found: Any) -> Step:
        """The step to the model's minimum, by the sums of the pass and the rows that it took along."""
        return self.step(found.matrix, float(found.bent[1]), found.pieces)

    def step(self, matrix: np.ndarray, curvature: float = 0.0, pieces: Sequence[Taken] = ()) -> Step:
        """The step to the model's minimum; Newton's step without rows taken along.

        Parameters
        ----------
        matrix : ndarray of shape (d + 1, d + 1)
            That of the other rows, its lower triangle, in Fortran order.
        curvature : float
            ``C sum_i s_i phi_i'' ||x_i||^2`` over all rows.
        pieces : sequence of Taken
            The rows taken along.
        """
        w, pull, C, regularizer = self.w, self.pull, self.setting.C, self.setting.regularizer
        bent, diagonal = regularizer.curvature(w), np.arange(w.size)
        lift = np.maximum(bent, FREE_PENALTY)
        if pieces and regularizer.intercept.constrained:
            lift[-1] = max(FREE_PENALTY, HELD * curvature / w.size)
        kept = matrix[diagonal, diagonal]
        matrix[diagonal, diagonal] = lifted = kept + lift
        taken = joined(pieces) if pieces else None
        count = 0 if taken is None else taken.alpha.size
        with blas_for(w.size**2 * (w.size / 3.0 + count) / BLAS_SPEED):
            try:
                factor = cholesky(matrix)
            except np.linalg.LinAlgError:
                gradient = bent * w - pull
                return Step(-gradient / lifted, 0.5 * float(gradient @ (gradient / lifted)), 0.0)
            finally:
                matrix[diagonal, diagonal] = kept
            if taken is not None:
                pull = pull.copy()
                combine(taken.X, np.arange(count), -C * taken.alpha, pull)
            ahead = -solve_triangular(factor, bent * w - pull, lower=True, check_finite=False)
            fall = 0.5 * float(ahead @ ahead)
            if taken is not None:
                known = np.tril(factor).T @ w  # L'w0
                X = as_rows(_shortened(taken.X, factor))
                fixed = np.append(known + ahead, 0.0)  # the last place, that of a virtual feature, is zero
                problem = self.setting.problem_over(X, taken.y, taken.weights, squared_norms(X), fixed, Absent())
                found, fall = self._solved(problem, known, taken.alpha)
                ahead = found - known
            step = solve_triangular(factor, ahead, lower=True, trans="T", check_finite=False)
        return Step(step, fall, float((factor.diagonal() ** 2 / lifted).min()))

    def _solved(self, problem: Problem, start: np.ndarray, alpha: np.ndarray) -> tuple[np.ndarray, float]:
        """The model's minimum, and by how much it is lower than the start."""
        begin = np.append(start, 0.0)
        paid = loss_sums(problem.pointwise, problem.members, margins(problem, begin), 0.0, alpha)[0]
        begun = primal_of(problem.C, float(paid), problem.regularizer.value(begin))
        solver = Newton(warm_up=0, memory=self.setting.memory)
        best = solver.best_from(problem, Point(begin, alpha), ROUNDED * abs(self.primal), begun=begun)
        return best.w[:-1], begun - best.primal


class Step(NamedTuple):
    """A step, by how much the model falls, and the least share of a diagonal entry that is left to its pivot."""

    step: np.ndarray
    fall: float
    alike: float

    def without_rows(self) -> Step:
        """Itself: nothing of a row is in it."""
        return self


def _shortened(X: Rows, factor: np.ndarray) -> np.ndarray:
    """``L^-1 x_i`` of all rows, shape (n, d + 1)."""
    count = X.n_rows
    found = np.empty((count, factor.shape[0]))
    for start in range(0, count, AT_ONCE):
        some = np.arange(start, min(start + AT_ONCE, count))
        found[some] = solve_triangular(factor, widen(X, some, np.ones(some.size)).T, lower=True).T
    return found
