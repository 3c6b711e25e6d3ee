"""A ball around the optimum of a hinge, by a verified active set: its radius is that of rounding.

At the optimum of ``||w||^2 / 2 + C sum_i s_i max(0, 1 - y_i x_i . w)`` some rows F are on the
margin, ``y_i x_i . w = 1``, with multipliers inside their box; all others have multipliers on its
bounds, ``a_i = s_i y_i`` inside the margin and ``a_i = 0`` beyond it. For a given F, the
multipliers that put its rows onto the margin solve

    C G a_F = y_F - C X_F sum_inside s_j y_j x_j,      G = X_F X_F'.

If their solution a°, with ``w° = C sum_i a°_i x_i``, is inside the box, and all other rows are
on their side of the margin, w° is the optimum: these are the conditions of Karush, Kuhn and Tucker,
which are sufficient here.

From any multipliers a with the same bounds and ``v = C sum_i a_i x_i``, whose rows F miss the
margin by ``e_i = y_i - x_i . v``, the solution is ``a° = a + G^-1 e / C`` and ``w° = v + X_F' G^-1
e``, so that with a number `floor` below the smallest eigenvalue of G

    ||w° - v||  =  ||e|| in the norm of G^-1  <=  ||e|| / sqrt(floor),
    |a°_i - a_i|  <=  ||e|| / (C floor).

A Cholesky factor of ``G - shift`` that the machine can compute proves ``floor = shift`` but for its
rounding, whose norm is below ``gamma(m + 1) trace(G)`` (Rump 2006). If rows on the margin depend
on each other, G has no such floor, and nothing is verified.

Source: Rump (2006), "Verification of positive definiteness"; Mangasarian (1969), "Nonlinear
programming", for the conditions.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from saddlesvm.answers.curvature_bound import plain_curvature
from saddlesvm.answers.gradient import close_margins, margin_slips
from saddlesvm.answers.neighbourhood import Neighbourhood
from saddlesvm.problem.bounds import SLACK, UNIT, gamma, radii
from saddlesvm.problem.loss import loss_name
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.short_sums import weights_by_short_sums
from saddlesvm.problem.sums import dual_weights, margins
from saddlesvm.rows.places import Memory

# Distance of a multiplier from its bounds, as a share of its box, for its row to be on the margin.
INSIDE = 1e-6
MOST = 3_000  # rows on the margin; with more, the factor takes longer than a fit
ROUNDS = 12  # rounds of moving rows between the margin and the bounds at most
POWERS = 8  # steps of inverse iteration, for the smallest eigenvalue
SHARE = 0.5  # of this estimate that is tried as the floor
# Movement of a training row's score in the ball of the gap from which on a label needs a verified
# set.
WORTH = 1e-3
REFINED = 2  # solutions of the equations, so that the multipliers are exact to rounding


def has_margin(problem: Problem) -> bool:
    """Return True for a hinge with half a square as the penalty, and rows in memory."""
    plain = problem.is_plain and not problem.intercept.constrained and not problem.fixed.size
    return bool(loss_name(problem.loss) == "hinge" and plain and problem.holds_rows)


def verify_active_set(problem: Problem, alpha: np.ndarray) -> Neighbourhood | None:
    """Return a ball around the optimum by the active set of given multipliers; None if unverified.

    Parameters
    ----------
    problem : Problem
        See :func:`has_margin`.
    alpha : ndarray of shape (n_all,)
        Dual variables near the optimum's.
    """
    members = problem.members
    y = problem.gather(problem.y)
    s = problem.gather(problem.row_weights)
    # Multipliers as shares of their boxes: rows inside the box are on the margin.
    share = np.clip(problem.gather(alpha) * y / s, 0.0, 1.0)
    on_margin = (share > INSIDE) & (share < 1.0 - INSIDE)
    share = np.where(on_margin, share, np.round(share))
    before = members.size
    for _ in range(ROUNDS):
        # Solve for the multipliers that put the rows F onto the margin.
        F = np.flatnonzero(on_margin)
        if not 0 < F.size <= MOST:
            return None
        products = Memory(problem.X, members[F]).inner_products() + problem.X.bias**2
        G = np.asfortranarray(products)
        factor, failed = dpotrf(G, lower=1, clean=0)
        if failed:
            return None
        for _ in range(REFINED):
            w = dual_weights(problem, problem.scatter(share * s * y))
            missed = (y - margins(problem, w))[F]
            share[F] += _missing_shares(problem, factor, missed, on_margin)
        z = margins(
            problem, dual_weights(problem, problem.scatter(np.clip(share, 0.0, 1.0) * s * y))
        )
        # The conditions of Karush, Kuhn and Tucker: multipliers inside the box, rows on their side.
        out = on_margin & ((share < 0.0) | (share > 1.0))
        wrong = ~on_margin & ((y * z < 1.0) != (share == 1.0))
        if not out.any() and not wrong.any():
            floor = _least_eigenvalue(problem, G, factor)
            if floor <= 0.0:
                return None
            return _ball_around(problem, share, on_margin, factor, floor)
        # Move the rows that violate them, as long as they become fewer.
        moved = int((out | wrong).sum())
        if moved >= before:
            return None
        before = moved
        share = np.where(out, np.clip(np.round(share), 0.0, 1.0), np.clip(share, 0.0, 1.0))
        on_margin = (on_margin & ~out) | wrong
    return None


def _ball_around(
    problem: Problem, share: np.ndarray, on_margin: np.ndarray, factor: np.ndarray, floor: float
) -> Neighbourhood | None:
    """Return the ball around the solution for an active set; None if a row may change its side."""
    y = problem.gather(problem.y)
    s = problem.gather(problem.row_weights)
    # A last correction of the multipliers, then the weights and the margins that count.
    for last in (False, True):
        v, off = _weights(problem, share * s * y)
        z, terms = close_margins(problem, v)
        if not last:
            share[on_margin] += _missing_shares(problem, factor, (y - z)[on_margin], on_margin)
    norms = radii(problem.gather(problem.norms))
    slips = margin_slips(problem, v, terms) + SLACK * off * norms
    # e, the distance from the margin, bounds the distances of weights and multipliers.
    missed = SLACK * float(np.linalg.norm((np.abs(y - z) + slips)[on_margin]))
    radius = SLACK * (missed / math.sqrt(floor) + off)
    away = SLACK * missed / (problem.C * floor) / s + 8.0 * UNIT
    # All rows keep their side: multipliers inside the box, or margins beyond the ball's reach.
    inside = (share - away > 0.0) & (share + away < 1.0)
    reach = slips + SLACK * radius * norms
    kept = np.where(
        on_margin, inside, np.where(share == 1.0, y * z + reach < 1.0, y * z - reach > 1.0)
    )
    return (
        Neighbourhood(v, radius, plain_curvature(problem), problem.scale, way="active set")
        if kept.all()
        else None
    )


def _missing_shares(
    problem: Problem, factor: np.ndarray, missed: np.ndarray, on_margin: np.ndarray
) -> np.ndarray:
    """Return how much the shares of the rows on the margin must grow to put them there."""
    y = problem.gather(problem.y)[on_margin]
    s = problem.gather(problem.row_weights)[on_margin]
    # G (change of C a) = missing margins; a share is a y / s.
    return np.asarray(dpotrs(factor, missed, lower=1)[0] * y / (problem.C * s))


def _weights(problem: Problem, alpha: np.ndarray) -> tuple[np.ndarray, float]:
    """Return ``v = C sum_i a_i x_i`` of the members, and a bound on its rounding."""
    spread = problem.scatter(alpha)
    v, off = weights_by_short_sums(problem, spread)
    # The virtual feature is constant: its sum is exact.
    v[-1] = problem.scale * math.fsum((problem.C * alpha).tolist())
    rounded = problem.C * float(
        np.einsum("i,i", np.abs(alpha), radii(problem.gather(problem.norms)))
    )
    return v, off + 4.0 * UNIT * abs(float(v[-1])) + (
        SLACK * UNIT * rounded if problem.weights.size else 0.0
    )


def _least_eigenvalue(problem: Problem, G: np.ndarray, factor: np.ndarray) -> float:
    """Return a number below the smallest eigenvalue of the exact G, or -1; G is overwritten."""
    m = len(G)
    trace = float(np.trace(G))
    # An estimate by inverse iteration.
    v = np.random.default_rng(0).normal(size=m)
    for _ in range(POWERS):
        v = dpotrs(factor, v / np.linalg.norm(v), lower=1)[0]
    # A Cholesky factor of G - shift proves that shift is below, but for rounding.
    shift = SHARE / float(np.linalg.norm(v))
    G[np.arange(m), np.arange(m)] -= shift
    failed = dpotrf(G, lower=1, clean=0, overwrite_a=1)[1]
    rounded = (
        2.0 * (gamma(problem.row_sizes.terms + 2.0) + gamma(m + 2.0)) * trace + 4.0 * UNIT * shift
    )
    return -1.0 if failed else shift - SLACK * rounded
