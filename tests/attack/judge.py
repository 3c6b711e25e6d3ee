"""An independent judge of claims: both objectives of a problem in 120 decimal digits, sharing no code with the package.

A problem is posed over a space of models (:class:`LinearSpace`, :class:`KernelSpace`). With the weights w of the
features, or the function f of a kernel's space, an offset b, and a pull ``v = sum_i beta_i x_i``, ``beta = C a``:

    P = R(w) + C sum_i s_i phi_i(x_i . w + b)         D(a) = -C sum_i s_i phi_i*(-a_i / s_i) - R*(v)

``R(w) = square / 2 ||w||^2 + l1 ||w||_1``; a regularised intercept is charged half a square, times `square`, or like
the weights where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from .exact import ONE, ZERO, Numbers, combined, exact, inner, matrix, numbers
from .textbook import Joint, Textbook

ULPS = Decimal(2) ** -50  # eight units in the last place: how far a dual variable may have moved as it was published


class Space(Protocol):
    """A space of models. Coefficients are those of a model, betas the multipliers of the rows."""

    def scores(self, coef: Numbers) -> list[Decimal]:
        """The scores of all rows, without the intercept."""

    def charge(self, coef: Numbers) -> Decimal:
        """``R`` of a model."""

    def conjugate(self, beta: Numbers) -> tuple[Decimal, list[Decimal]]:
        """``R*`` of the pull of these multipliers, and the scores of the model that they lead to."""

    def domain(self, beta: Numbers) -> Decimal:
        """The largest factor, at most 1, with which the pull of these multipliers has a finite ``R*``."""


@dataclass(frozen=True)
class LinearSpace:
    """Weights of features."""

    rows: Sequence[Numbers]
    square: Decimal = ONE
    l1: Decimal = ZERO

    def scores(self, coef: Numbers) -> list[Decimal]:
        return [inner(row, coef) for row in self.rows]

    def charge(self, coef: Numbers) -> Decimal:
        return self.square * inner(coef, coef) / 2 + self.l1 * sum(map(abs, coef), ZERO)

    def conjugate(self, beta: Numbers) -> tuple[Decimal, list[Decimal]]:
        if not self.square:
            return ZERO, [ZERO] * len(self.rows)
        w = [max(ZERO, abs(v) - self.l1).copy_sign(v) / self.square for v in combined(beta, self.rows)]
        return self.square * inner(w, w) / 2, self.scores(w)

    def domain(self, beta: Numbers) -> Decimal:
        most = max(map(abs, combined(beta, self.rows)), default=ZERO)
        return ONE if self.square or most <= self.l1 else self.l1 / most


@dataclass(frozen=True)
class KernelSpace:
    """Functions ``sum_j c_j k(z_j, .)`` of some centres z.

    Attributes
    ----------
    across : kernel values of the rows and the centres
    among : those of the centres
    own : those of the rows
    """

    across: Sequence[Numbers]
    among: Sequence[Numbers]
    own: Sequence[Numbers]

    def scores(self, coef: Numbers) -> list[Decimal]:
        return [inner(row, coef) for row in self.across]

    def charge(self, coef: Numbers) -> Decimal:
        return inner(coef, [inner(row, coef) for row in self.among]) / 2

    def conjugate(self, beta: Numbers) -> tuple[Decimal, list[Decimal]]:
        scores = [inner(row, beta) for row in self.own]
        return inner(beta, scores) / 2, scores

    def domain(self, beta: Numbers) -> Decimal:
        return ONE


@dataclass(frozen=True)
class Case:
    """A problem as numbers.

    `intercept` is "none", "regularized" (a constant feature of value `scale`, charged with `square` and `l1` as in R)
    or "free".
    """

    space: Space
    y: Numbers
    weights: Numbers
    C: Decimal
    loss: Textbook
    intercept: str
    scale: Decimal = ONE
    square: Decimal = ONE
    l1: Decimal = ZERO

    def charge_of(self, b: Decimal) -> Decimal:
        """What the intercept is charged."""
        if self.intercept != "regularized":
            return ZERO
        return self.square * (b / self.scale) ** 2 / 2 if self.square else self.l1 * abs(b / self.scale)


def make_case(
    X: Any, y: Any, weights: Any, C: float, loss: Textbook, intercept: str, scale: float = 1.0
) -> Case:  # fmt: skip
    """A case from arrays of floats; rows of weight zero are left out."""
    s = [1.0] * len(y) if weights is None else list(weights)
    kept = [i for i in range(len(y)) if s[i] > 0.0]
    labels, chosen = numbers(y[i] for i in kept), numbers(s[i] for i in kept)
    return Case(LinearSpace(matrix([X[i] for i in kept])), labels, chosen, Decimal(C), loss, intercept, Decimal(scale))


@exact
def primal(case: Case, coef: Any, intercept: float) -> Decimal:
    """P of a model as it is stored."""
    w, b = numbers(coef), Decimal(float(intercept))
    paid = ZERO
    for z, y, s in zip(case.space.scores(w), case.y, case.weights, strict=True):
        paid += s * case.loss.value(z + b, y)
    return case.space.charge(w) + case.charge_of(b) + case.C * paid


@exact
def dual(case: Case, alpha: Any) -> Decimal:
    """D of the nearest feasible point."""
    return _dual(case, feasible(case, numbers(alpha)))[0]


@exact
def dual_at_most(case: Case, alpha: Numbers) -> Decimal:
    """More than D of any feasible point that is the nearest feasible one but for roundings of each variable."""
    a = feasible(case, alpha)
    value, beta, scores = _dual(case, a)
    moved = abs(value)
    for one, z, pull, (y, s) in zip(a, scores, beta, zip(case.y, case.weights, strict=True), strict=True):
        own = case.loss.conjugate(one / s, y)
        ends = (_within(one * (1 + k * ULPS), case.loss.bounds(y), s) / s for k in (1, -1))
        moved += case.C * s * max(abs(case.loss.conjugate(end, y) - own) for end in ends) / ULPS + abs(pull * z)
    return value + ULPS * moved


def _dual(case: Case, a: Numbers) -> tuple[Decimal, list[Decimal], list[Decimal]]:
    """D of a feasible point, its multipliers, and the scores of the model that they lead to."""
    beta = [case.C * one for one in a]
    value, scores = case.space.conjugate(beta)
    if case.intercept == "regularized" and case.square:
        last = case.scale * sum(beta, ZERO) / case.square
        value += case.square * last**2 / 2
        scores = [z + case.scale * last for z in scores]
    conjugates = sum((s * case.loss.conjugate(one / s, y) for one, y, s in _zip(case, a)), ZERO)
    return -case.C * conjugates - value, beta, scores


def feasible(case: Case, alpha: Numbers) -> list[Decimal]:
    """The nearest feasible point.

    A variable that missed its bound by a rounding is put there; where the intercept is free, the variables of the
    heavier sign are shortened until the sum is zero; all are, where ``R*`` would be infinite.
    """
    a = [_within(one, case.loss.bounds(y), s) for one, y, s in _zip(case, alpha)]
    if case.intercept == "free":
        excess = sum(a, ZERO)
        heavy = sum((one for one in a if one * excess > 0), ZERO)
        factor = ONE - excess / heavy if heavy else ONE
        a = [one * factor if one * excess > 0 else one for one in a]
    beta = [case.C * one for one in a]
    factor = case.space.domain(beta)
    if case.intercept == "regularized" and not case.square:
        last = abs(case.scale * sum(beta, ZERO))
        factor = min(factor, case.l1 / last if last else ONE)
    return [factor * one for one in a] if factor < 1 else a


def _zip(case: Case, alpha: Any) -> Any:
    return zip(alpha, case.y, case.weights, strict=True)


def _within(a: Decimal, bounds: tuple[Decimal | None, Decimal | None], s: Decimal) -> Decimal:
    low, high = bounds
    if low is not None:
        a = max(a, low * s)
    return a if high is None else min(a, high * s)


@dataclass(frozen=True)
class JointCase:
    """A problem of all classes together; `y` holds class numbers."""

    rows: Sequence[Numbers]
    y: Sequence[int]
    weights: Numbers
    C: Decimal
    loss: Joint
    intercept: str
    scale: Decimal = ONE


@exact
def joint_primal(case: JointCase, coef: Any, intercept: Any) -> Decimal:
    """``1/2 sum_k ||w_k||^2 + C sum_i s_i Phi(z_i)``."""
    W, b = matrix(coef), numbers(intercept)
    charged = sum((inner(w, w) for w in W), ZERO)
    if case.intercept == "regularized":
        charged += inner(b, b) / case.scale**2
    paid = ZERO
    for x, y, s in zip(case.rows, case.y, case.weights, strict=True):
        paid += s * case.loss.value([inner(x, w) + offset for w, offset in zip(W, b, strict=True)], y)
    return charged / 2 + case.C * paid


@exact
def joint_dual_at_most(case: JointCase, alpha: Sequence[Numbers]) -> Decimal:
    """More than the dual of a hinge at any feasible point that is the nearest feasible one but for roundings.

    Rivals are at most zero, no further below it than the loss allows, and together no less than minus the row's weight.
    """
    most = case.loss.most
    assert most is not None
    points = []
    for y, s, given in zip(case.y, case.weights, alpha, strict=True):
        a = [max(-most * s, min(ZERO, one)) for one in given]
        a[y] = ZERO
        taken = -sum(a, ZERO)
        a = [one * s / taken for one in a] if taken > s else a
        a[y] = -sum(a, ZERO)
        points.append(a)
    seen = [[*x, case.scale if case.intercept == "regularized" else ZERO] for x in case.rows]
    W = [combined([case.C * one for one in column], seen) for column in zip(*points, strict=True)]
    value = case.C * sum((a[y] for a, y in zip(points, case.y, strict=True)), ZERO)
    value -= sum((inner(w, w) for w in W), ZERO) / 2
    moved = abs(value)
    for x, a in zip(seen, points, strict=True):
        moved += case.C * sum((abs(one) * (1 + abs(inner(x, w))) for one, w in zip(a, W, strict=True)), ZERO)
    return value + ULPS * moved
