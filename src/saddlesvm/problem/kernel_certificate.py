"""The certificate of a point of a kernel problem, with what rounding can have done to it.

Primal and dual are those of :mod:`saddlesvm.problem.kernel`. ``f = K beta`` is rebuilt in float64 from the support
vectors, and each group of rows gets the offset that is best for it. How far kernel values and sums of them can be off
is bounded in :mod:`saddlesvm.rows.kernel_errors`, the rest in :mod:`saddlesvm.problem.rounding`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.array_losses import has_array_methods, methods_of
from saddlesvm.problem.certificate import Certificate, Evaluation, evaluate
from saddlesvm.problem.intercepts import Intercept, offset_slope
from saddlesvm.problem.kernel import Group, KernelProblem
from saddlesvm.problem.loss import Loss, Shape, traits_of
from saddlesvm.problem.proven_sums import Sums
from saddlesvm.problem.rounding import (
    SLACK,
    UNIT,
    Around,
    MarginErrors,
    PointSizes,
    RowSizes,
    conjugate_rounding,
    gamma,
    paid_rounding,
    stretching,
    unbalance,
)
from saddlesvm.problem.sums import loss_sums
from saddlesvm.rows.kernels import expand


@dataclass(frozen=True)
class KernelPoint:
    """The result of a kernel solver.

    Attributes
    ----------
    beta : ndarray of shape (n,)
        Coefficients of the model ``sum_i beta_i k(x_i, .)``.
    dual : ndarray of shape (n,), optional
        A feasible point of the dual; left out: beta is one.
    offsets : ndarray of shape (groups,), optional
        The offsets to judge; the best ones when left out.
    """

    beta: np.ndarray
    dual: np.ndarray | None = None
    offsets: np.ndarray | None = None
    known: ClassVar[tuple[Evaluation, ...]] = ()

    @property
    def tracks(self) -> bool:
        """False: a solver's running values come from float32 kernel values, which prove nothing."""
        return False


@dataclass(frozen=True)
class KernelEvaluation(Evaluation):
    """A certified model: `coef` holds beta, `margins` ``K beta`` (virtual feature included, free intercept not).

    `intercept` is an array of shape (groups,) where the problem has groups.
    """

    margins: np.ndarray


def evaluate_kernel(problem: KernelProblem, point: KernelPoint, *, exact: bool = True) -> KernelEvaluation:
    """Certify a point.

    Parameters
    ----------
    problem : KernelProblem
    point : KernelPoint
    exact : bool, default=True
        Makes no difference: there is no cheaper certificate than the exact one.
    """
    beta = point.beta
    if point.dual is None or np.array_equal(point.dual, beta):
        f = problem.margins(beta)
        return certified_values(problem, (beta, f), (beta, f), point.offsets)
    f, dual_f = problem.margins(np.column_stack([beta, point.dual])).T
    return certified_values(problem, (beta, np.ascontiguousarray(f)), (point.dual, dual_f), point.offsets)


def evaluate_apart(problem: KernelProblem, point: KernelPoint) -> KernelEvaluation:
    """Certify a model and a dual point that have other support vectors: no kernel value between the two is needed.

    Parameters
    ----------
    problem : KernelProblem
    point : KernelPoint
        With a feasible dual point.
    """
    beta, dual = point.beta, point.dual
    assert dual is not None
    support = np.flatnonzero(dual)
    dual_f = np.zeros_like(dual)
    if problem.views is None and not problem.kernel.precomputed:
        centres = problem.X[support]
        dual_f[support] = expand(problem.kernel, centres, centres, dual[support]) + problem.offset * dual.sum()
    else:
        dual_f = problem.margins(dual)
    return certified_values(problem, (beta, problem.margins(beta)), (dual, dual_f), point.offsets)


Values = tuple[np.ndarray, np.ndarray]  # beta, and K beta


def certified_values(
    problem: KernelProblem, model: Values, dual: Values, given: np.ndarray | None = None
) -> KernelEvaluation:
    """The certificate of a model and a feasible dual point whose values at the rows are known.

    Parameters
    ----------
    problem : KernelProblem
    model, dual : pair of ndarrays of shape (n,)
        Coefficients, and ``K`` times these in float64.
    given : ndarray of shape (groups,), optional
        Offsets to judge; the best ones when left out.
    """
    (beta, f), (feasible, dual_f), terms = model, dual, problem.terms
    alpha = alpha_of(problem, feasible)
    offsets, sums, asked = np.zeros(len(problem.sides)), np.zeros(3), 0.0
    for k, (rows, intercept) in enumerate(problem.sides):
        margins = f if rows.size == problem.n else f[rows]
        offsets[k] = best_midway(problem, problem.sides[k], margins) if given is None else given[k]
        paid, conjugates, _, charged, _ = loss_sums(terms, rows, margins, offsets[k], alpha)
        sums += (paid, conjugates, charged)
        asked += _asked(problem, intercept, beta, float(offsets[k])).cost
    found = Sums(float(sums[0]) + asked, float(sums[1]), half_norm(beta, f), half_norm(feasible, dual_f))
    own = Expansion(beta, f, offsets)
    other = own if feasible is beta else Expansion(feasible, dual_f, offsets)
    rounded = _rounded(problem, found, own, other, alpha, (float(sums[0]), float(sums[2])))
    if any(getattr(side.intercept, "total", 0.0) for side in problem.sides):
        rounded = rounded._replace(at_zero=-math.inf)
    certificate = Certificate.of(problem.strength, rounded)
    intercepts: Any = offsets if problem.groups else float(offsets[0]) + problem.offset * float(beta.sum())
    return KernelEvaluation(beta, intercepts, alpha, certificate, f)


def best_midway(problem: KernelProblem, side: Group, f: np.ndarray) -> float:
    """The best offset of a group with these values; the middle where all of an interval is best, as in LIBSVM.

    A loss with kinks has them at ``y - f``, a tube apart on either side where it has one.
    """
    rows, intercept = side
    best = intercept.best(problem.terms, rows, f, 0.0)
    if not intercept.constrained or traits_of(problem.loss).shape is not Shape.KINKED:
        return best
    kinks = problem.y[rows] - f
    if problem.tube > 0.0:
        kinks = np.concatenate([kinks - problem.tube, kinks + problem.tube])
    at, near = 1e-12 * (1.0 + abs(best)), getattr(intercept, "total", 0.0)
    below, above = kinks[kinks < best - at].max(initial=-np.inf), kinks[kinks > best + at].min(initial=np.inf)
    inside = np.abs(kinks - best) <= at
    ends = [(below, best), (best, above)] if inside.any() else [(below, above)]
    for low, high in ends:
        middle = 0.5 * (low + high)
        if math.isfinite(middle):
            slope, _ = offset_slope(problem.terms, rows, f, middle)
            if abs(slope + near) <= 1e-12 * (rows.size + abs(near)):
                return float(middle)
    return best


class Asked(NamedTuple):
    """What an offset costs beside the losses, divided by C, and how far that can be off."""

    cost: float
    error: float


def _asked(problem: KernelProblem, intercept: Intercept, beta: np.ndarray, offset: float) -> Asked:
    """The cost of an offset of the values that the model of `beta` has; where the kernel holds a regularised intercept,
    b, of the squared size c: ``(b + offset)^2 / (2 c)`` takes the place of ``b^2 / (2 c)``.
    """
    if not (offset and problem.offset):
        paid = intercept.paid(offset)
        return Asked(paid, gamma(8.0) * abs(paid))
    square, size = 0.5 * offset * offset / problem.offset, abs(offset) * float(np.abs(beta).sum())
    cost = square + offset * float(beta.sum())
    return Asked(cost / problem.C, gamma(problem.n + 8.0) * (square + size) / problem.C)


class Expansion(NamedTuple):
    """``sum_i beta_i k(x_i, .)``, its values f at the rows, and the offset of each group."""

    beta: np.ndarray
    f: np.ndarray
    offsets: np.ndarray


def _rounded(
    problem: KernelProblem,
    found: Sums,
    model: Expansion,
    dual: Expansion,
    alpha: np.ndarray,
    parts: tuple[float, float],
) -> Sums:
    """The sums with bounds on their rounding.

    Parameters
    ----------
    parts : tuple of float
        What the losses alone amount to, and the sum of the sizes of the conjugates of `alpha`.
    """
    paid, charged = parts
    loss, C, n = problem.loss, problem.C, problem.n
    lengths = np.sqrt(problem.at_rows(problem.errors.lengths) ** 2 + problem.offset)
    slips = [_expansion_error(problem, model)]
    slips.append(slips[0] if dual is model else _expansion_error(problem, dual))
    away, label = np.abs(model.offsets)[problem.side_of], np.abs(problem.y) if problem.is_regression else 0.0
    s, e = problem.row_weights, slips[0] + 4.0 * UNIT * (away + np.abs(model.f) + label)
    e = np.where(may_pay(problem, model, e), e, 0.0)
    rows = RowSizes(float(n), 0.0, 0.0, float(s @ e), float(s @ (e * e)), float(e.max(initial=0.0)))
    sizes = np.abs(alpha)
    paired = float((sizes * label).sum()) if problem.is_regression else float(sizes.sum())
    point = PointSizes(0.0, 0.0, 0.0, paired, *_signs(alpha))
    own = _norm_error(model, slips[0], n)
    reached = own if dual is model else _norm_error(dual, slips[1], n)
    moved, recharged = np.zeros(n), 0.0
    for side in problem.sides:
        if side.intercept.constrained:
            move, cost = _to_the_sum(problem, side, alpha, charged)
            moved[side.rows] += move
            recharged += cost
    shift = float((C * moved + np.abs(dual.beta - C * alpha) + UNIT * np.abs(dual.beta)) @ lengths)

    def around(move: float) -> float:
        terms, nothing = problem.terms, np.zeros(n)
        return sum(
            float(loss_sums(terms, side.rows, model.f[side.rows], offset + move, nothing)[0])
            for side, offset in zip(problem.sides, model.offsets, strict=True)
        )

    asked = sum(
        _asked(problem, side.intercept, model.beta, offset).error
        for side, offset in zip(problem.sides, model.offsets.tolist(), strict=True)
    )
    errors = PointErrors(rows, point, own, reached, shift, recharged, asked)
    return with_rounding(loss, C, found._replace(paid=paid), charged, errors, around)._replace(paid=found.paid)


def may_pay(problem: KernelProblem, model: Expansion, errors: np.ndarray) -> np.ndarray:
    """Which rows may pay anything where their values are off by so much: losses are convex, so that nothing is paid
    between two values where nothing is. The errors are doubled, as the ends are rounded.
    """
    if not has_array_methods(problem.loss):
        return np.ones(problem.n, dtype=bool)
    value, z = methods_of(problem.loss).value, model.f + model.offsets[problem.side_of]
    with np.errstate(all="ignore"):
        ends = [value(problem.loss, z + way * errors, problem.y) for way in (-2.0, 2.0)]
    return np.asarray((ends[0] != 0.0) | (ends[1] != 0.0))


class PointErrors(NamedTuple):
    """What the rounding of a point's objectives is bounded with.

    Attributes
    ----------
    rows : RowSizes
        With sums of the errors of the values at the rows in the place of their lengths.
    point : PointSizes
    own, reached : float
        How far half the squared norms of the model and of the dual point can be off.
    shift : float
        How far the dual point must move, in the feature space, to be feasible exactly.
    recharged : float
        By how much that can raise the sum of the conjugates.
    asked : float
        How far what the offsets cost beside the losses can be off, divided by C.
    """

    rows: RowSizes
    point: PointSizes
    own: float
    reached: float
    shift: float
    recharged: float
    asked: float = 0.0


def with_rounding(
    loss: Loss, C: float, found: Sums, charged: float, errors: PointErrors, around: Around | None = None
) -> Sums:
    """The sums with bounds on their rounding.

    Parameters
    ----------
    found : Sums
        What the losses alone amount to in the place of what is paid.
    charged : float
        Sum of the sizes of the conjugates.
    around : callable, optional
        See :func:`~saddlesvm.problem.rounding.paid_rounding`.
    """
    rows, point, own, reached, shift, recharged, asked = errors
    above = own + C * (paid_rounding(loss, found.paid, rows, point, MarginErrors(1.0, 0.0, 0.0), around) + asked)
    norm = math.sqrt(2.0 * max(found.regularizer_conjugate + reached, 0.0))
    below = reached + shift * (norm + shift)
    below += C * (conjugate_rounding(loss, rows, charged, point) + recharged)
    return found._replace(primal_rounding=SLACK * above, dual_rounding=SLACK * below)


def _to_the_sum(problem: KernelProblem, side: Group, alpha: np.ndarray, charged: float) -> tuple[np.ndarray, float]:
    """How far the dual variables of a group must move for their sum to be what it must be, and by how much the sum of
    the conjugates can grow thereby: the heavier sign is shortened, or all are moved towards their upper bounds.
    """
    own, total = alpha[side.rows], getattr(side.intercept, "total", 0.0)
    point, size = PointSizes(0.0, 0.0, 0.0, 0.0, *_signs(own)), RowSizes(float(own.size), 0.0, 0.0, 0.0, 0.0, 0.0)
    if total == 0.0 or point.positive - point.negative > total:
        share = unbalance(point, size, total)
        return share * np.abs(own), share * charged
    high = problem.bounds[1]
    room = high[side.rows] - own
    share = stretching(point, own.size, float(room.sum()), total)
    at_top = loss_sums(problem.terms, side.rows, np.zeros(own.size), 0.0, high)[3]
    return share * room, share * (charged + float(at_top))


def _expansion_error(problem: KernelProblem, one: Expansion) -> np.ndarray:
    """How far the values of an expansion can be off, what a regularised intercept adds to them included."""
    size = float(np.abs(one.beta).sum())
    slip = problem.at_rows(problem.errors.of_expansion(problem.of_points(one.beta), UNIT))
    return slip + gamma(problem.n + 4.0) * problem.offset * size


def _norm_error(one: Expansion, slip: np.ndarray, n: int) -> float:
    """How far half the squared norm of an expansion can be off, whose values can be off by `slip`."""
    size = np.abs(one.beta)
    return 0.5 * (float(size @ slip) + gamma(n + 4.0) * float(size @ np.abs(one.f)))


def _signs(alpha: np.ndarray) -> tuple[float, float]:
    return float(np.maximum(alpha, 0.0).sum()), float(np.maximum(-alpha, 0.0).sum())


def half_norm(beta: np.ndarray, f: np.ndarray) -> float:
    """``R(w) = R*(w) = 1/2 ||w||^2`` in the feature space, of ``w = sum_i beta_i k(x_i, .)`` with ``f = K beta``."""
    return 0.5 * float(beta @ f)


def alpha_of(problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
    """``a = beta / C``, kept inside the bounds that rounding may have crossed."""
    return np.clip(beta / problem.C, *problem.bounds)


def nearest_feasible(problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
    """`beta` brought into its box and, in each group with a free intercept, to the required sum."""
    low, high = problem.box()
    clipped = np.clip(beta, low, high)
    for rows, intercept in problem.sides:
        if intercept.constrained:
            alpha = intercept.balanced(problem.terms, rows, clipped / problem.C)
            clipped = np.clip(alpha * problem.C, low, high)
    return clipped


evaluate.register(KernelProblem, evaluate_kernel)
