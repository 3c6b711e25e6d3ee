"""Margins, pulls and gradients in the machine's long floats, for the last bits of a neighbourhood.

A long float has 64 bits or more in its fraction on most machines. Where it has no more than float64, less is proven.

Where the optimum of a hinge lies, by a verified active set: as narrow as rounding leaves it, not its square root.

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

Correctly rounded weights: those of the exact optimum, to a grid, where what is proven of them leaves no choice.

The grid has `bits` bits below the power of two that the largest weight, or intercept, is below. A weight of the optimum
lies between two proven bounds; where no boundary of the grid is between these, its rounding is known, whichever solver,
order of the rows or number of threads led there.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.linalg.lapack import dpotrf, dpotrs

from saddlesvm.answers.gradient import close_margins, gradient_at, margin_slips, slope_at
from saddlesvm.answers.neighbourhood import Neighbourhood, gap_in_C_form, neighbourhood_of, plain_curvature
from saddlesvm.answers.steps import FACTORS, can_come_nearer
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.loss import loss_name
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.proven_sums import norm_of
from saddlesvm.problem.rounding import SLACK, UNIT, gamma, loss_units, radii
from saddlesvm.problem.short_sums import expanded
from saddlesvm.problem.sums import dual_of_margins, dual_weights, margins
from saddlesvm.rows.layouts import CSR
from saddlesvm.solvers.second_order.equations import NewtonEquations
from saddlesvm.solvers.second_order.linear_algebra import blocks, gram_block, widened

LONG = np.longdouble
FINE = float(np.finfo(LONG).eps)
ENOUGH = 2.0**-60  # a unit beyond which long floats gain too little
LONGER = FINE <= ENOUGH
FAN = 8  # terms of a sum over sparse rows, at a level
SUMMED = 16.0  # roundings of a term beside those of its sum
# -phi'(z) in long floats; other losses take theirs of margins in float64.
SLOPES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "squared_hinge": lambda z, y: 2.0 * y * np.maximum(1.0 - y * z, 0.0),
    "logistic": lambda z, y: y / (1.0 + np.exp(y * z)),
    "squared": lambda z, y: 2.0 * (y - z),
}
NEAR = 1e-6  # how far from a computed margin the curvature of BENDS holds
BENDS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {  # phi'' that near a margin, at most
    "squared_hinge": lambda z, y: np.where(y * z < 1.0 + 2.0 * NEAR, 2.0, 0.0),
    "logistic": lambda z, y: np.minimum(SLACK * np.exp(-np.abs(z.astype(np.float64))), 0.25),
}


def long_margins(problem: Problem, w: np.ndarray) -> np.ndarray:
    """``x_i . w`` of the members, shape (n,), for weights in long floats, shape (d + 1,)."""
    X, members = problem.X, problem.members
    if X.sparse:
        rows = _sparse(problem, X)
        return _sums(rows.data.astype(LONG) * w[rows.indices], rows.indptr)[0] + LONG(X.bias) * w[-1]
    parts = [widened(X, rows, np.ones(rows.size)).astype(LONG) @ w for rows in blocks(members, w.size)]
    return np.concatenate([*parts, np.empty(0, dtype=LONG)])


def long_pull(problem: Problem, a: np.ndarray) -> tuple[np.ndarray, float]:
    """``C sum_i a_i x_i`` over the members, shape (d + 1,), for multipliers in long floats, shape (n,), and how far the
    exact one is from it, at most."""
    X, members, sizes = problem.X, problem.members, np.abs(a).astype(np.float64)
    if X.sparse:
        columns = _sparse(problem, X).tocsc()
        features, added = _sums(columns.data.astype(LONG) * a[columns.indices], columns.indptr)
        total, summed = _sums(a, np.array([0, a.size]))
        pull, terms = np.append(features, LONG(X.bias) * total[0]), max(added, summed)
        absolute = sparse.csc_array((np.abs(columns.data), columns.indices, columns.indptr), shape=columns.shape)
        charged = np.append(sizes @ absolute, abs(X.bias) * sizes.sum())
    else:
        pull, charged, done = np.zeros(problem.n_features + 1, dtype=LONG), np.zeros(problem.n_features + 1), 0
        terms = a.size
        for rows in blocks(members, pull.size):
            values, part = widened(X, rows, np.ones(rows.size)), slice(done, done + rows.size)
            pull += a[part] @ values.astype(LONG)
            charged += sizes[part] @ np.abs(values)
            done += rows.size
    return LONG(problem.C) * pull, SLACK * problem.C * FINE * (terms + SUMMED) * float(np.linalg.norm(charged))


def long_gradient(problem: Problem, w: np.ndarray) -> tuple[np.ndarray, float] | None:
    """The gradient at w, shape (d + 1,), and how far, at most, the exact one is from it; None without long floats.

    Margins, sums and the slopes of some losses are in long floats. Those of other losses are taken of margins that are
    off by a unit of float64, and no longer by many units of the product of the weights' and the row's lengths.

    Parameters
    ----------
    problem : Problem
        Its penalty is half a square, its loss has a largest curvature.
    w : ndarray of shape (d + 1,)
    """
    if not LONGER or not problem.penalty.identity():
        return None
    plain, offset = problem.intercept.split(w)
    z = long_margins(problem, plain.astype(LONG)) + LONG(offset)
    s, y, norms = (problem.gathered(one) for one in (problem.row_weights, problem.y, radii(problem.norms)))
    slopes, bends = SLOPES.get(loss_name(problem.loss)), BENDS.get(loss_name(problem.loss))
    unit, length = UNIT if slopes is None else FINE, float(np.linalg.norm(w))
    if slopes is None:
        alpha = np.zeros(problem.y.size)
        dual_of_margins(problem.pointwise, problem.members, z.astype(np.float64), 0.0, alpha)
        a = alpha[problem.members].astype(LONG)
    else:
        a = s * slopes(z, y)
    slips = unit * np.abs(z).astype(np.float64) + margin_error(problem, length) * norms + SUMMED * FINE * abs(offset)
    slips += 0.0 if is_classification(problem.loss) else unit * np.abs(y)
    steepest = problem.loss.largest_curvature()
    bent = np.where(slips < NEAR, bends(z, y), steepest) if bends else steepest
    each = s * bent * slips + unit * max(SUMMED, 2.0 * loss_units(problem.loss)) * np.abs(a).astype(np.float64)
    pull, summed = long_pull(problem, a)
    found = w - pull
    if problem.intercept.constrained:
        found[-1] = -pull[-1]
    elif not problem.intercept.present:
        found[-1] = 0.0
    value = found.astype(np.float64)
    narrowed = float(np.abs(found - value).sum()) + SUMMED * FINE * length
    return value, SLACK * (problem.C * float(each @ norms) + summed + narrowed)


def margin_error(problem: Problem, length: float) -> float:
    """How far, at most, a margin is from the exact one, divided by the length of its row, for weights of a length."""
    terms, left = float(problem.row_sizes.terms), math.ceil(problem.row_sizes.terms)
    if problem.sparse:
        terms = 0.0
        while left > 1:
            terms, left = terms + FAN, -(-left // FAN)
    return (terms + SUMMED) * FINE * length


def _sparse(problem: Problem, X: CSR) -> sparse.csr_array:
    """The members' rows."""
    rows = X.matrix
    return rows if problem.members.size == rows.shape[0] else rows[problem.members]


def _sums(values: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, int]:
    """The sums of consecutive parts of some values, which may be empty, and the additions that a term went through, at
    most: FAN terms are summed at a time, then FAN of these sums."""
    counts, added = np.diff(ends), 0
    while counts.max(initial=0) > 1:
        parts = -(-counts // FAN)
        starts = np.repeat(ends[:-1] - FAN * (np.cumsum(parts) - parts), parts) + FAN * np.arange(parts.sum())
        values = np.add.reduceat(values, starts)
        ends, counts, added = np.append(0, np.cumsum(parts)), parts, added + FAN
    found, some = np.zeros(counts.size, dtype=LONG), counts > 0
    found[some] = values[ends[:-1][some]]
    return found, added


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


def verified(problem: Problem, alpha: np.ndarray, fine: bool = False) -> Neighbourhood | None:
    """The ball around the optimum by the active set that multipliers near it have; None where it is not verified.

    Parameters
    ----------
    problem : Problem
        See :func:`has_margin`.
    alpha : ndarray of shape (n_all,)
        Dual variables near the optimum's.
    fine : bool, default=False
        Solve the equations of the verified set in long floats, for a ball that is some hundred times smaller.
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
            found = _bounded(problem, share, on_margin, factor, floor) if floor > 0.0 else None
            if found is None or not (fine and LONGER):
                return found
            return _finer(problem, found, share * s * y, on_margin, factor, floor)
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


def _finer(
    problem: Problem, found: Neighbourhood, alpha: np.ndarray, on_margin: np.ndarray, factor: np.ndarray, floor: float
) -> Neighbourhood:
    """The ball around the solution for a verified active set, from multipliers and weights in long floats."""
    y, a = problem.gathered(problem.y), alpha.astype(LONG)
    for _ in range(REFINED):
        missed = (y - long_margins(problem, long_pull(problem, a)[0]))[on_margin]
        a[on_margin] += dpotrs(factor, missed.astype(np.float64), lower=1)[0] / problem.C
    v, off = long_pull(problem, a)
    center = v.astype(np.float64)
    error = margin_error(problem, norm_of(center)) + off
    missed = np.abs(y - long_margins(problem, v)).astype(np.float64) + error * radii(problem.gathered(problem.norms))
    radius = float(np.linalg.norm(missed[on_margin])) / math.sqrt(floor) + off + float(np.linalg.norm(v - center))
    return replace(found, center=center, radius=SLACK * radius) if SLACK * radius < found.radius else found


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


CLOSE = 1e-3  # share of a gradient in long floats that a step leaves
STEPS = 3  # of Newton's method: each squares the distance from the optimum, until rounding ends it
MOST_STEPS, GAIN = 10, 0.5  # of those by conjugate gradients; share of the distance that one leaves at most
ROUNDED = 1e-14  # what the few operations of a radius may round
FORMAT = "saddlesvm canonical weights 1"


@dataclass(frozen=True, eq=False)
class Rounded:
    """Weights on a grid.

    Attributes
    ----------
    places : ndarray of shape (k, d + 1), float64
        Whole multiples of the grid's steps, the intercepts' last.
    exponents : ndarray of shape (k,), int64
        The step of each row is two to this power.
    ambiguous : int
        How many weights have a boundary of the grid between their bounds.
    """

    places: np.ndarray
    exponents: np.ndarray
    ambiguous: int

    @property
    def values(self) -> np.ndarray:
        """The rounded weights, shape (k, d + 1)."""
        return np.ldexp(self.places, self.exponents[:, None])


def rounded(low: np.ndarray, high: np.ndarray, bits: int) -> Rounded:
    """The rounded weights of the optimum, from bounds on each weight.

    Parameters
    ----------
    low, high : ndarray of shape (k, d + 1)
    bits : int
    """
    largest = np.maximum(np.abs(low), np.abs(high)).max(axis=1)
    surely = np.where(np.sign(low) * np.sign(high) > 0.0, np.minimum(np.abs(low), np.abs(high)), 0.0).max(axis=1)
    powers = np.frexp(largest)[1]
    known = np.isfinite(largest) & ((np.frexp(surely)[1] == powers) | (largest == 0.0))
    exponents = np.where(np.isfinite(largest), powers - bits, 0).astype(np.int64)
    places, above = (_nearest(np.ldexp(np.nan_to_num(one), -exponents[:, None])) for one in (low, high))
    ambiguous = int(np.where(known, (places != above).sum(axis=1), places.shape[1]).sum())
    return Rounded(places, exponents, ambiguous)


def _nearest(x: np.ndarray) -> np.ndarray:
    """The nearest whole numbers, halves up; ``x + 0.5`` itself would be rounded."""
    below = np.floor(x)
    return np.asarray(below + (x - below >= 0.5))


def digest(found: Rounded, classes: Sequence[str], names: Sequence[str]) -> str:
    """The SHA-256 of rounded weights, as hexadecimal text.

    Hashed is a text: the format, a line a class, and for each row of weights its exponent and its intercept, and a line
    "name place" for each weight that is not zero, sorted by the features' names. With names of the features it is
    the same for every order of the columns.
    """
    lines = [FORMAT, *(f"class {one}" for one in classes)]
    for places, exponent in zip(found.places, found.exponents.tolist(), strict=True):
        lines.append(f"weights {exponent} {int(places[-1])}")
        chosen = np.flatnonzero(places[:-1]).tolist()
        lines += sorted(f"{names[j]} {int(places[j])}" for j in chosen)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def polished(problem: Problem, found: Neighbourhood, w: np.ndarray, alpha: np.ndarray | None = None) -> Neighbourhood:
    """A narrower neighbourhood of the optimum, after steps of Newton's method from w, or by its active set in long
    floats; the same where none is narrower.

    Parameters
    ----------
    problem : Problem
    found : Neighbourhood
        Where the optimum is known to lie.
    w : ndarray of shape (d + 1,)
        Its center, the last place that of a free intercept, too.
    alpha : ndarray of shape (n_all,), optional
        Dual variables near the optimum's, of a neighbourhood by an active set.
    """
    if found.way == "active set" and alpha is not None:
        return verified(problem, alpha, fine=True) or found
    if found.curvature.factor is None:
        return _by_gradient(problem, found, w) if can_come_nearer(problem) else found
    center = w
    for _ in range(STEPS):
        w = w - found.curvature.solved(gradient_at(problem, w).value)
        gap = evaluate(problem, Point(w), given_offset=True).certificate.gap
        closer = neighbourhood_of(problem, w, gap_in_C_form(problem, max(gap, 0.0)))
        if not closer.radius < found.radius or not math.isfinite(closer.radius):
            break
        found, center = closer, w
    return _long(problem, found, center)


def _long(problem: Problem, found: Neighbourhood, w: np.ndarray) -> Neighbourhood:
    """The neighbourhood with the radius of a gradient in long floats.

    Rows on a parabola keep their curvature. That of others falls by no more than ``e^-t`` on the way to the optimum,
    with t at most M times the longest row times the radius known so far, and ``t / (1 - e^-t) <= 1 / (1 - t / 2)``.
    """
    steep = getattr(problem.loss, "steepening", None)
    exact = long_gradient(problem, w) if found.way == "curvature" else None
    if exact is None:
        return found
    longest = SLACK * problem.row_sizes.longest / math.sqrt(found.curvature.floor)
    t = 0.0 if steep is None else steep() * longest * found.radius
    if not t < 1.0:
        return found
    away = found.curvature.dual_norm(*exact) / (1.0 - 0.5 * t) * (1.0 + ROUNDED)
    return replace(found, radius=min(found.radius, away))


def _by_gradient(problem: Problem, found: Neighbourhood, w: np.ndarray) -> Neighbourhood:
    """A narrower plain ball, by steps whose gradients are in long floats: for more features than a factor may have."""
    equations, plain = NewtonEquations(problem, FACTORS), plain_curvature(problem)
    for _ in range(MOST_STEPS):
        exact = long_gradient(problem, w)
        if exact is None:
            break
        radius = plain.dual_norm(*exact)
        if not radius < GAIN * found.radius:
            break
        found = Neighbourhood(w, radius, plain, problem.scale, way="gradient")
        bends = slope_at(problem, w, margins(problem, w)).answers.bend
        w = w - equations.solve(problem.spread(bends), exact[0], CLOSE)
    return found
