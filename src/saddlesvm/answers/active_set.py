"""Where the optimum of a hinge lies, by a verified active set: as narrow as rounding leaves it, not its square root.

At the optimum of ``||w||^2 / 2 + C sum_i s_i max(0, 1 - y_i x_i . w)`` some rows F are on the margin, ``y_i x_i . w =
1``, with multipliers inside their box; all others have multipliers on its bounds, ``a_i = s_i y_i`` inside the margin
and ``a_i = 0`` beyond it. For a given F, the multipliers that put its rows onto the margin solve

    C G a_F = y_F - C X_F sum_inside s_j y_j x_j,      G = X_F X_F'.

Where their solution a°, with ``w° = C sum_i a°_i x_i``, is inside the box, and all other rows are on their side of the
margin, w° is the optimum: these are the conditions of Karush, Kuhn and Tucker, which are sufficient here.

From any multipliers a with the same bounds and ``v = C sum_i a_i x_i``, whose rows F miss the margin by ``e_i = y_i -
x_i . v``, the solution is ``a° = a + G^-1 e / C`` and ``w° = v + X_F' G^-1 e``, so that with a number `floor` below the
smallest eigenvalue of G

    ||w° - v||  =  ||e|| in the norm of G^-1  <=  ||e|| / sqrt(floor),      |a°_i - a_i|  <=  ||e|| / (C floor).

A Cholesky factor of ``G - shift`` that the machine can compute proves ``floor = shift`` but for its rounding, whose
norm is below ``gamma(m + 1) trace(G)`` (Rump 2006). Where rows on the margin depend on each other, G has no such floor,
and nothing is verified.

Source: Rump (2006), "Verification of positive definiteness"; Mangasarian (1969), "Nonlinear programming", for the
conditions.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from saddlesvm.answers.gradient import close_margins, margin_slips
from saddlesvm.answers.neighbourhood import Neighbourhood, plain_curvature
from saddlesvm.problem.bounds import SLACK, UNIT, gamma, radii
from saddlesvm.problem.loss import loss_name
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.short_sums import expanded
from saddlesvm.problem.sums import dual_weights, margins
from saddlesvm.solvers.second_order.linear_algebra import gram_block

INSIDE = 1e-6  # share of its box that a multiplier keeps from the bounds, to be taken for one on the margin
MOST = 3_000  # rows on the margin: beyond them the factor is more than a fit
ROUNDS = 12  # times that rows are moved between the margin and the bounds
POWERS = 8  # steps of inverse iteration, for the smallest eigenvalue
SHARE = 0.5  # of that estimate, that is tried as the floor
WORTH = 1e-3  # movement of a training row's score in the ball of the gap, from which on a label needs a verified set
REFINED = 2  # times that the equations are solved again, for the multipliers' rounding


def has_margin(problem: Problem) -> bool:
    """Whether the text of this module is about the problem."""
    plain = problem.penalty.identity() and not problem.intercept.constrained and not problem.fixed.size
    return bool(loss_name(problem.loss) == "hinge" and plain and problem.holds_rows)


def verified(problem: Problem, alpha: np.ndarray) -> Neighbourhood | None:
    """The ball around the optimum by the active set that multipliers near it have; None where it is not verified.

    Parameters
    ----------
    problem : Problem
        See :func:`has_margin`.
    alpha : ndarray of shape (n_all,)
        Dual variables near the optimum's.
    """
    members, y, s = problem.members, problem.gathered(problem.y), problem.gathered(problem.row_weights)
    share = np.clip(problem.gathered(alpha) * y / s, 0.0, 1.0)
    on_margin = (share > INSIDE) & (share < 1.0 - INSIDE)
    share = np.where(on_margin, share, np.round(share))
    before = members.size
    for _ in range(ROUNDS):
        F = np.flatnonzero(on_margin)
        if not 0 < F.size <= MOST:
            return None
        G = np.asfortranarray(gram_block(problem.X, members[F], members[F]))
        factor, failed = dpotrf(G, lower=1, clean=0)
        if failed:
            return None
        for _ in range(REFINED):
            w = dual_weights(problem, problem.spread(share * s * y))
            missed = (y - margins(problem, w))[F]
            share[F] += _shares(problem, factor, missed, on_margin)
        z = margins(problem, dual_weights(problem, problem.spread(np.clip(share, 0.0, 1.0) * s * y)))
        out = on_margin & ((share < 0.0) | (share > 1.0))
        wrong = ~on_margin & ((y * z < 1.0) != (share == 1.0))
        if not out.any() and not wrong.any():
            floor = _least_eigenvalue(problem, G, factor)
            return _bounded(problem, share, on_margin, factor, floor) if floor > 0.0 else None
        if (moved := int((out | wrong).sum())) >= before:
            return None
        before = moved
        share = np.where(out, np.clip(np.round(share), 0.0, 1.0), np.clip(share, 0.0, 1.0))
        on_margin = (on_margin & ~out) | wrong
    return None


def _bounded(
    problem: Problem, share: np.ndarray, on_margin: np.ndarray, factor: np.ndarray, floor: float
) -> Neighbourhood | None:
    """The ball around the solution for an active set; None where it is not known that all rows keep their side."""
    y, s = problem.gathered(problem.y), problem.gathered(problem.row_weights)
    for last in (False, True):
        v, off = _weights(problem, share * s * y)
        z, terms = close_margins(problem, v)
        if not last:
            share[on_margin] += _shares(problem, factor, (y - z)[on_margin], on_margin)
    norms = radii(problem.gathered(problem.norms))
    slips = margin_slips(problem, v, terms) + SLACK * off * norms
    missed = SLACK * float(np.linalg.norm((np.abs(y - z) + slips)[on_margin]))
    radius = SLACK * (missed / math.sqrt(floor) + off)
    away = SLACK * missed / (problem.C * floor) / s + 8.0 * UNIT
    inside = (share - away > 0.0) & (share + away < 1.0)
    reach = slips + SLACK * radius * norms
    kept = np.where(on_margin, inside, np.where(share == 1.0, y * z + reach < 1.0, y * z - reach > 1.0))
    return Neighbourhood(v, radius, plain_curvature(problem), problem.scale, way="active set") if kept.all() else None


def _shares(problem: Problem, factor: np.ndarray, missed: np.ndarray, on_margin: np.ndarray) -> np.ndarray:
    """By how much the shares of the rows on the margin must grow for these to be on it."""
    y, s = problem.gathered(problem.y)[on_margin], problem.gathered(problem.row_weights)[on_margin]
    return np.asarray(dpotrs(factor, missed, lower=1)[0] * y / (problem.C * s))


def _weights(problem: Problem, alpha: np.ndarray) -> tuple[np.ndarray, float]:
    """``v = C sum_i a_i x_i`` of the members' multipliers, and how far the exact one is from it, at most."""
    spread = problem.spread(alpha)
    v, off = expanded(problem, spread)
    v[-1] = problem.scale * math.fsum((problem.C * alpha).tolist())
    rounded = problem.C * float(np.einsum("i,i", np.abs(alpha), radii(problem.gathered(problem.norms))))
    return v, off + 4.0 * UNIT * abs(float(v[-1])) + (SLACK * UNIT * rounded if problem.weights.size else 0.0)


def _least_eigenvalue(problem: Problem, G: np.ndarray, factor: np.ndarray) -> float:
    """A number below the smallest eigenvalue of the rows' exact products, not positive where none is found; G is
    overwritten."""
    m, trace = len(G), float(np.trace(G))
    v = np.random.default_rng(0).normal(size=m)
    for _ in range(POWERS):
        v = dpotrs(factor, v / np.linalg.norm(v), lower=1)[0]
    shift = SHARE / float(np.linalg.norm(v))
    G[np.arange(m), np.arange(m)] -= shift
    failed = dpotrf(G, lower=1, clean=0, overwrite_a=1)[1]
    rounded = 2.0 * (gamma(problem.row_sizes.terms + 2.0) + gamma(m + 2.0)) * trace + 4.0 * UNIT * shift
    return -1.0 if failed else shift - SLACK * rounded
