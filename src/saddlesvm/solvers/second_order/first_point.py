"""Where Newton's method begins: at the solution of random samples of the rows, or with dual variables of a given sum.

Each sample is contained in the next; with many rows they are close to the whole.

The dual variables of a one-class machine have a given sum. Zero has another sum, so the first dual variables all go the
same share of the way to their upper bounds: w is then the mean of the rows, times the sum. The objective of such a
machine is ``R(w)`` plus a term of the first degree in w and the intercept: multiply C by a number, and the solution is
multiplied by it. So C says nothing about the size of the margins, nor does the length of the rows alone. The first
proximity is measured by the first margins themselves.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from saddlesvm.problem.certificate import Point
from saddlesvm.problem.loss import is_cornerless, is_smooth, loss_name
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import dual_weights, margins
from saddlesvm.solvers.second_order.driver import FIRST_PROXIMITY
from saddlesvm.solvers.second_order.kernels import bending_rows

TYPICAL_ROWS = 10_000  # rows, roughly, from which a median is taken
NOTHING = 1e-10  # squared norm of w, relative to what its terms could add up to, that counts as zero
NOTHING_TO_FIND = "the optimum is w = 0: nu is too small, or the rows lie around the origin"
# Rows of the first sample, at least: rows per feature (the last steps can then correct its factor), and share of all.
PER_FEATURE, LEAST_SHARE = 16, 1 / 32
GROWTH, ENOUGH = 3.0, 40  # rows of a sample per row of the one before; rows per feature at which no larger one follows
MOST = 0.25  # share of the rows above which a sample saves too little
RUN = 4  # neighbouring rows drawn together, so that memory is read in longer pieces
SMALL = 0.01  # proximity, in units of the median ``C ||x_i||^2``, for losses with corners in their derivative
STEEPEST = 30.0  # curvature ``C phi'' ||x_i||^2`` of the median row up to which a sample's C is raised
TINY = np.finfo(float).tiny


def evenly(problem: Problem) -> Point:
    """The first point: dual variables the same share of the way to their bounds, w of these, and its best intercept."""
    alpha = problem.balanced(np.zeros(problem.y.size))
    w = dual_weights(problem, alpha)
    w[-1] = 0.0
    offset = problem.intercept.best(problem.pointwise, problem.members, margins(problem, w), 0.0)
    w[-1] = offset / problem.scale
    return Point(w, alpha)


def some_of(members: np.ndarray) -> np.ndarray:
    """Evenly spaced members, enough for a median."""
    return members[:: max(1, members.size // TYPICAL_ROWS)]


def needs_no_proximity(problem: Problem, alpha: np.ndarray, per_feature: float = 1.0) -> bool:
    """Whether Newton's method needs no proximal term: for smooth losses whose bending rows span the features.

    Where the derivative has corners, the number of bending rows changes from step to step: there must be more than
    `per_feature` of them per feature.
    """
    if not is_smooth(problem.loss) or is_cornerless(problem.loss):
        return is_smooth(problem.loss)
    return float(bending(problem, alpha).sum()) > per_feature * problem.n_features


def learns_from_steps(problem: Problem) -> bool:
    """Whether the last steps may correct the factor of a sample: where the Hessian changes smoothly, and a product with
    it takes as long as an evaluation. Sparse rows have cheap exact factors."""
    return is_cornerless(problem.loss) and not problem.sparse


def bending(problem: Problem, alpha: np.ndarray) -> np.ndarray:
    """1 for the members that bend at a dual point, else 0, shape (n_all,).

    At the dual point zero all members count as bending, as they do there if the loss is smooth.
    """
    mask = np.zeros(problem.y.size)
    if alpha.any():
        bending_rows(problem.pointwise, problem.members, alpha, mask)
    else:
        mask[problem.members] = 1.0
    return mask


def coordinate_curvature(problem: Problem) -> float:
    """The median curvature of a coordinate step, ``C ||x_i||^2``; of many rows it takes evenly spaced ones."""
    norms = problem.norms[some_of(problem.members)]
    norms = norms[norms > 0.0]
    return problem.C * float(np.median(norms)) if norms.size else problem.C


def first_proximity(problem: Problem, alpha: np.ndarray, w: np.ndarray, share: float | None) -> float:
    """The proximity to begin with at a point, with the option `proximity` of Newton's method as the `share`.

    Raises
    ------
    ValueError
        The share is zero, and the loss piecewise linear.
    """
    kinked = not is_smooth(problem.loss)
    if share is None:
        share = 1.0 if kinked else 0.0 if needs_no_proximity(problem, alpha) else SMALL
    if share == 0.0 and kinked:
        raise ValueError(f"proximity must be positive for the piecewise linear loss {loss_name(problem.loss)}")
    if share == 0.0:
        return 0.0
    return share * (coordinate_curvature(problem) if problem.intercept.homogeneous else reach(problem, w))


def reach(problem: Problem, w: np.ndarray) -> float:
    """The first proximity: a share of the median size of the margins of w; positive."""
    few = problem.passes.among(some_of(problem.members)).margins(w)
    return FIRST_PROXIMITY * float(np.median(np.abs(few))) or problem.C


def is_nothing(problem: Problem, half_norm: float) -> bool:
    """Whether a feasible dual point of a given sum other than zero has a w that is as good as zero.

    Objectives and gap go to zero together there, and the relative gap does not fall.
    """
    size = problem.C * problem.intercept.asked
    return not problem.intercept.homogeneous and 2.0 * half_norm <= NOTHING * size * size


def sample_shares(problem: Problem) -> tuple[float, ...]:
    """The shares of the rows that a problem's samples have, from the smallest to the largest sample.

    There are none where the problem has too few rows for a sample, or is small.
    """
    n, features = problem.members.size, problem.n_features + 1
    if problem.is_small:
        return ()
    shares: list[float] = []
    share = max(PER_FEATURE * features / n, LEAST_SHARE)
    while share <= MOST and not (shares and shares[-1] * n >= ENOUGH * features):
        shares.append(share)
        share *= GROWTH
    return tuple(shares)


def ranks(count: int, seed: int) -> np.ndarray:
    """A random number for each row, the same for a few neighbours: the rows below a share are a sample of that share.

    Returns
    -------
    ndarray of shape (count,), float32
    """
    drawn = np.random.default_rng(seed).random(count // RUN + 1, dtype=np.float32)
    return np.repeat(drawn, RUN)[:count]


def sample_of(problem: Problem, rank: np.ndarray, share: float) -> Problem:
    """The same problem over a share of its rows; C is raised in proportion, up to a limit.

    Without the limit the sample would be fitted too closely: a few rows would give rare features large weights, and
    Newton's method returns slowly from far out on the flat side of the logistic loss.
    """
    members = problem.members[rank[problem.members] < share]
    steepest = STEEPEST / (problem.loss.largest_curvature() * max(float(np.median(problem.norms[members])), TINY))
    C = min(problem.C * problem.members.size / members.size, max(problem.C, steepest))
    return dataclasses.replace(problem, members=members, C=C)
