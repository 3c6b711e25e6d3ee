"""The margin of each row under a model trained without it: an estimate, and proven bounds.

Estimate. With ``beta_i = C a_i`` and ``h_i = C s_i phi''_i``, one Newton step from the trained
model to the one without row i moves its margin from ``z_i`` to

    z_i - beta_i t_i / (1 - h_i t_i),      t_i = x_i' H^-1 x_i,      H = R'' + sum_i h_i x_i x_i'

A loss with corners has no second derivative where it matters. Its corners are rounded over a
stretch of margins as wide as the moves that leaving a row out makes: the difference quotient of the
sub-gradient over that stretch takes the place of the second derivative. (The limit of a stretch of
length zero counts only the rows exactly at a corner. It is the formula of Wang and others, and is
worse: as soon as one row moves, the set of rows at the corner is another.)

Bounds. Without row i, ``beta`` with a zero in its place is a feasible dual point, whose weights are
``w' = w(beta) - beta_i x_i``, and w is still a model. With the gap of w and ``beta``, theirs is at
most ``G = gap + beta_i (z_i - f_i) + beta_i^2 ||x_i||^2 / 2``, ``f_i = x_i . w(beta)``. By strong
convexity the optimum without the row lies in a ball around ``(w + w') / 2`` of squared radius ``G -
||w - w'||^2 / 4``, which bounds the row's margin. For an exact fit the bounds are ``z_i - beta_i
||x_i||^2`` and ``z_i``. A free intercept has no such bounds: the zero breaks its constraint.

Source: Wang, Zhou, Lu, Maleki and Mirrokni (2018), "Approximate leave-one-out for fast parameter
tuning in high dimensions"; Rad and Maleki (2020) for smooth losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotri

from saddlesvm.problem.bounds import SLACK, gamma, norm_of, radii
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.sums import dual_of_margins, dual_weights, margins
from saddlesvm.rows.layouts import CSR, Rows, U
from saddlesvm.rows.places import all_in_float64
from saddlesvm.runtime.compiled import kernel
from saddlesvm.solvers.linear_algebra import cholesky
from saddlesvm.solvers.task import FREE_RIDGE

FACTORED = 2_500  # features up to which H is factored: the estimates need its inverse
STRETCH = 0.5  # width of rounded corners, as a share of the margins' typical distance from them
SLACK_OF_SUMS = 1.0 + 2.0**-40  # what some roundings multiply a bound by, at most
NEXT_TO_NOTHING = 1e-4  # the same share for losses without corners, a plain difference quotient


def penalty_diagonal(problem: Problem) -> np.ndarray:
    """Return the diagonal of R, positive, shape (d + 1,)."""
    penalty = problem.regularizer.curvature(np.zeros(problem.n_features + 1))
    if problem.intercept.constrained:
        penalty[-1] = FREE_RIDGE
    return penalty


@dataclass(frozen=True)
class RowEstimates:
    """Estimates for the rows of one problem, each of shape (n,).

    Attributes
    ----------
    margins : ndarray
        Estimated margins without the row.
    low, high : ndarray
        Proven bounds on them; infinite for a free intercept.
    inside : int
        Rows that bend the objective.
    taken : float
        Mean of ``h_i t_i`` over the rows that bend: the share of their freedom that the model takes
        up, from 0 to 1.
    """

    margins: np.ndarray
    low: np.ndarray
    high: np.ndarray
    inside: int
    taken: float


def row_estimates(
    problem: Problem, w: np.ndarray, beta: np.ndarray, *, bounded: bool = True
) -> RowEstimates:
    """Estimate every row's margin without it.

    Parameters
    ----------
    problem : Problem
        All rows are members; with at most `FACTORED` features.
    w : ndarray of shape (d + 1,)
        The model; the last place is the virtual feature's.
    beta : ndarray of shape (n,)
        Dual variables in the C form.
    bounded : bool, default=True
        Compute the bounds, too; without them they are infinite.
    """
    z = margins(problem, w)
    width = _stretch(problem, z)
    bend = _bending(problem, z, width)
    pulls = beta
    if is_smooth(
        problem.loss
    ):  # the margins' own: the multipliers of an approximate fit differ from them
        pulls = np.zeros(z.size)
        dual_of_margins(problem.pointwise, problem.members, z, 0.0, pulls)
        pulls *= problem.C
    # The leverages t_i = x_i' H^-1 x_i of the rows that pull, by the inverse of H.
    wanted = np.flatnonzero(pulls)
    H = curvature_matrix(problem, bend, np.flatnonzero(bend), penalty_diagonal(problem))
    t = np.zeros(z.size)
    t[wanted] = quadratic_forms(problem.X, wanted, invert(H))
    # One Newton step without row i: z_i - beta_i t_i / (1 - h_i t_i).
    moved = z - pulls * t / np.maximum(1.0 - bend * t, 1e-12)
    if bounded:
        low, high = bounds_of_dual_point(problem, z, w, beta)
    else:
        low = np.full(z.size, -np.inf)
        high = np.full(z.size, np.inf)
    inside = np.flatnonzero(bend * t)
    taken = float(np.mean((bend * t)[inside])) if inside.size else 0.0
    return RowEstimates(moved, low, high, int(np.count_nonzero(bend)), taken)


def _stretch(problem: Problem, z: np.ndarray) -> float:
    """The stretch of margins over which the sub-gradient's difference is taken."""
    typical = (
        1.0 if is_classification(problem.loss) else float(np.median(np.abs(z - problem.y))) or 1.0
    )
    return typical * (NEXT_TO_NOTHING if problem.is_cornerless else STRETCH)


def _bending(problem: Problem, z: np.ndarray, width: float) -> np.ndarray:
    """Return ``h_i``: C times the sub-gradient's difference quotient around each margin."""
    left = np.zeros(z.size)
    right = np.zeros(z.size)
    dual_of_margins(problem.pointwise, problem.members, z, -0.5 * width, left)
    dual_of_margins(problem.pointwise, problem.members, z, 0.5 * width, right)
    return np.maximum(problem.C * (left - right) / width, 0.0)


def curvature_matrix(
    problem: Problem, bend: np.ndarray, inside: np.ndarray, ridge: np.ndarray
) -> np.ndarray:
    """``H`` in its lower triangle, shape (d + 1, d + 1), Fortran-ordered."""
    place = all_in_float64(problem.X)
    H = place.gram(problem.members[inside], bend[inside], np.float64)
    H[np.arange(ridge.size), np.arange(ridge.size)] += ridge
    return H


def invert(H: np.ndarray) -> np.ndarray:
    """The inverse of a positive definite matrix, given by its lower triangle."""
    inverse, _ = dpotri(cholesky(H), lower=1, overwrite_c=1)
    return np.ascontiguousarray(np.tril(inverse) + np.tril(inverse, -1).T)


def quadratic_forms(X: Rows, chosen: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """``x_i' H^-1 x_i`` of the chosen rows, the virtual feature included."""
    found = np.empty(chosen.size)
    if X.sparse:
        quadratic_sparse(X, chosen, inverse, found)
        return found
    for part, block in all_in_float64(X).some_blocks(chosen):
        # x' M x of a block of rows by one matrix product.
        rows = np.column_stack([block, np.full(len(block), X.bias)])
        found[part] = np.einsum("ij,ij->i", rows, rows @ inverse)
    return found


@kernel
def quadratic_sparse(X: CSR, chosen: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    """``out[k] = x' M x`` for the chosen rows and a symmetric matrix, intercept included."""
    last = matrix.shape[0] - 1
    for k in range(chosen.size):
        start = U(X.indptr[chosen[k]])
        stop = U(X.indptr[chosen[k] + 1])
        total = X.bias * X.bias * matrix[last, last]
        for p in range(start, stop):
            row = matrix[U(X.indices[p])]
            x = np.float64(X.data[p])
            # Each pair of different places counts twice; the virtual feature is the last place.
            both = 2.0 * X.bias * row[last] + x * row[U(X.indices[p])]
            for r in range(start, p):
                both += 2.0 * np.float64(X.data[r]) * row[U(X.indices[r])]
            total += x * both
        out[k] = total


def bounds_of_dual_point(
    problem: Problem, z: np.ndarray, w: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on each margin without its row, for weights, their margins and a dual point.

    Infinite if the intercept is free of charge.
    """
    if problem.intercept.constrained:
        return np.full(z.size, -np.inf), np.full(z.size, np.inf)
    # A row of weight zero has no part in the objective: its share of the dual would be 0 / 0.
    weights = problem.pointwise.weights
    counted = problem
    if weights.size and not weights.all():
        counted = replace(problem, members=np.flatnonzero(weights))
    judged = evaluate(counted, Point(w, beta / problem.C), given_offset=True)
    certificate = judged.certificate
    alpha = judged.alpha
    if certificate.dual == 0.0 and certificate.dual_rounding == 0.0:
        alpha = np.zeros(z.size)  # the dual point zero took the place of a worse one
    gap = max(certificate.gap, 0.0) / problem.strength.unit
    beta = problem.C * alpha
    norms = problem.norms
    lengths = radii(problem.norms)
    # The pull of the dual point, and how far the exact one is from it.
    reached = dual_weights(problem, alpha)
    missed = SLACK * gamma(z.size + 8.0) * float(np.abs(beta) @ lengths)
    f = margins(problem, reached)
    # With v the pull: the centre is (w + v - beta x) / 2; of the squared radius, the terms of G
    # and of the distance of w from that point are taken together.
    apart = float(np.sum((w - reached) ** 2))
    squared = gap - 0.25 * apart + 0.5 * beta * (z - f) + 0.25 * beta * beta * norms
    unit = gamma(problem.row_sizes.terms + 16.0)
    slips = unit * lengths * (norm_of(w) + norm_of(reached)) + lengths * missed
    rounding = unit * (gap + apart + np.abs(beta) * (np.abs(z) + np.abs(f)) + beta * beta * norms)
    rounding += np.abs(beta) * slips + (math.sqrt(apart) + missed) * missed
    radius = np.sqrt(np.maximum(squared, 0.0) + SLACK * rounding)
    middle = 0.5 * (z + f - beta * norms)
    around = radius * lengths + slips + unit * (np.abs(z) + np.abs(f) + np.abs(beta) * norms)
    return middle - SLACK_OF_SUMS * around, middle + SLACK_OF_SUMS * around
