"""The intercept: none, the weight of a constant feature that is penalised like the others, or one free of penalty.

    Absent         w has no intercept
    Regularized    b = scale w_last: the last weight is that of a virtual feature of value `scale`, and is penalised
    Free           the last weight is not penalised; in return the dual variables have a given sum, sum_i a_i = total

The total is zero where only the losses depend on the intercept. Another total belongs to an objective with the term ``C
total b``, such as that of a one-class machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from saddlesvm.problem import terms as in_numpy
from saddlesvm.problem.loss import bounds, curvature, slopes, subgradient
from saddlesvm.problem.terms import Pointwise, is_small, weight_of
from saddlesvm.runtime.compiled import inlined, kernel
from saddlesvm.runtime.small import beside, with_other

SEARCH_STEPS = 200  # places that a search along a line looks at, at most: it ends by itself long before
OFFSET_ROUNDING = 1e-15  # of an offset, relative to 1 or to itself
SQUARED_AWAY = 1e-8  # relative size of a Newton step whose square is rounding
SUM_ROUNDING = 1e-9  # relative error of a sum of dual variables that rounding explains
InterceptName = Literal["none", "regularized", "free"]


@dataclass(frozen=True)
class Intercept:
    """The base class of the kinds of intercept; each subclass overrides what differs.

    Attributes
    ----------
    name : str
        The name in options, model files and checkpoints.
    present : bool
        The model has one.
    constrained : bool
        The dual variables have a given sum; the intercept is then found apart from w, by :meth:`best`.
    total : float
        The sum that the dual variables must have; zero where none is asked for, too.
    scale : float
        Value of the virtual feature whose weight is the last of w.
    """

    name: ClassVar[InterceptName]
    present: ClassVar[bool] = True
    constrained: ClassVar[bool] = False
    total = 0.0
    scale: float = 1.0

    def __str__(self) -> str:
        return self.name

    @classmethod
    def value(cls, scaling: float, norms: Callable[[], np.ndarray]) -> float:
        """The value of the virtual feature: `scaling`, where the user's choice counts.

        Parameters
        ----------
        scaling : float
        norms : callable
            The squared norms of (some) rows.
        """
        return scaling

    @property
    def homogeneous(self) -> bool:
        """Whether multiples of feasible dual variables satisfy the constraint on their sum too: where it is zero."""
        return self.total == 0.0

    @property
    def asked(self) -> float:
        """The sum asked for, times the virtual feature."""
        return self.total * self.scale

    @property
    def lift(self) -> float:
        """The virtual feature's part of a row's squared norm that no penalty sees."""
        return 0.0

    @property
    def in_kernel(self) -> float:
        """The amount that the intercept adds to every kernel value."""
        return 0.0

    @property
    def of_block(self) -> Intercept:
        """The intercept of a block's problem, in which the dual variables of all other rows are fixed."""
        return self

    def penalised(self, w: np.ndarray) -> np.ndarray:
        """The part of w, shape (d + 1,) or (K, d + 1), that the regulariser sees."""
        return w

    def split(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """The weights whose margins count, and the offset to add to these margins."""
        return w, 0.0

    def best(self, terms: Pointwise, members: np.ndarray, z: np.ndarray, start: float) -> float:
        """The offset of the margins z that is best for the objective; the search begins at `start`."""
        return 0.0

    def paid(self, offset: float) -> float:
        """The cost of an offset beside the losses, divided by C."""
        return self.total * offset

    def balanced(self, terms: Pointwise, members: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Dual variables with the required sum; the array itself where no sum is required."""
        return alpha

    def multiplier(self, w: np.ndarray | None) -> np.ndarray:
        """The multiplier that a dual solver begins with at the weights w, for :func:`move_offset`; empty for none."""
        return np.zeros(0)

    def last(self, intercept: float, offset: np.ndarray, strength: float, alpha: np.ndarray) -> float:
        """The last weight of a dual solver whose model has this intercept; updates the multiplier in place.

        Parameters
        ----------
        intercept : float
        offset : ndarray of shape (1,) or (0,)
            The multiplier.
        strength : float
            C.
        alpha : ndarray of shape (n,)
            The dual variables of the rows that take part.
        """
        return intercept / self.scale if self.scale else 0.0


@dataclass(frozen=True)
class Absent(Intercept):
    """No intercept: the virtual feature is zero."""

    name: ClassVar[InterceptName] = "none"
    present: ClassVar[bool] = False
    scale: float = 0.0

    @classmethod
    def value(cls, scaling: float, norms: Callable[[], np.ndarray]) -> float:
        """Zero."""
        return 0.0

    def penalised(self, w: np.ndarray) -> np.ndarray:
        """All but the last weight, which belongs to no feature."""
        return w[..., :-1]


@dataclass(frozen=True)
class Regularized(Intercept):
    """The weight of a virtual feature of value `scale`, penalised like the others (as LIBLINEAR does)."""

    name: ClassVar[InterceptName] = "regularized"

    @property
    def in_kernel(self) -> float:
        """The square of the virtual feature."""
        return self.scale**2


@dataclass(frozen=True)
class Free(Intercept):
    """An intercept free of penalty: the dual variables have the sum `total`.

    Dual solvers keep its multiplier in the last weight, see :func:`move_offset`; `scale` changes how fast they find it,
    not what they find.
    """

    name: ClassVar[InterceptName] = "free"
    constrained: ClassVar[bool] = True
    total: float = 0.0

    @classmethod
    def value(cls, scaling: float, norms: Callable[[], np.ndarray]) -> float:
        """The size of a typical row."""
        return float(np.sqrt(norms().mean())) or 1.0

    @property
    def lift(self) -> float:
        """The square of the virtual feature."""
        return self.scale**2

    @property
    def of_block(self) -> Intercept:
        """A regularised intercept: :func:`move_offset` penalises the distance from the present multiplier."""
        return Regularized(self.scale)

    def penalised(self, w: np.ndarray) -> np.ndarray:
        """All but the last weight."""
        return w[..., :-1]

    def split(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """The weights without the last one, and what that one stands for."""
        return np.append(w[:-1], 0.0), float(w[-1] * self.scale)

    def best(self, terms: Pointwise, members: np.ndarray, z: np.ndarray, start: float) -> float:
        """The minimiser of the losses plus the total times the offset."""
        return best_offset(terms, members, z, start, self.total)

    def balanced(self, terms: Pointwise, members: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """A copy with the sum `total`, see :func:`balance`; where that does not reach it, :func:`lengthen` does.

        Raises
        ------
        ValueError
            The bounds of the variables exclude the total.
        """
        alpha = alpha.copy()
        balance(terms, members, alpha, self.total)
        if not self.homogeneous:
            lengthen(terms, members, alpha, self.total)
        if not self.homogeneous and abs(alpha[members].sum() - self.total) > SUM_ROUNDING * abs(self.total):
            raise ValueError(f"the dual variables have the sum {alpha[members].sum():g}; it must be {self.total:g}")
        return alpha

    def multiplier(self, w: np.ndarray | None) -> np.ndarray:
        """That of w, or zero; shape (1,)."""
        return np.array([0.0 if w is None else float(w[-1])])

    def last(self, intercept: float, offset: np.ndarray, strength: float, alpha: np.ndarray) -> float:
        """The multiplier, moved to the intercept, plus the contribution of the dual variables."""
        offset[0] = intercept / self.scale
        return float(offset[0] + strength * self.scale * (float(alpha.sum()) - self.total))


INTERCEPTS: dict[str, type[Intercept]] = {"none": Absent, "regularized": Regularized, "free": Free}


def intercept_kind(name: str) -> type[Intercept]:
    """The kind of intercept that an option names.

    Raises
    ------
    ValueError
        There is none of this name.
    """
    if name not in INTERCEPTS:
        raise ValueError(f"intercept must be one of {', '.join(INTERCEPTS)}; got {name!r}")
    return INTERCEPTS[name]


class Group(NamedTuple):
    """Rows that share an intercept: all, in a linear problem.

    Attributes
    ----------
    rows : int32 ndarray
        Their numbers, ascending.
    intercept : Intercept
        With the sum that their dual variables have.
    """

    rows: np.ndarray
    intercept: Intercept


def make_intercept(given: str | Intercept, scale: float) -> Intercept:
    """The intercept that a name stands for, its virtual feature of value `scale`; an intercept itself as it is.

    Raises
    ------
    ValueError
        The name is unknown.
    """
    if isinstance(given, Intercept):
        return given
    kind = intercept_kind(given)
    return kind(scale) if kind.present else kind()


@inlined
def move_offset(w: np.ndarray, offset: np.ndarray) -> None:
    """A step of the method of multipliers for the constraint ``sum_i a_i = 0`` of a free intercept.

    The virtual weight is ``offset + C scale sum_i a_i``: a proximal term draws it towards the offset, and after each
    pass the offset takes its value. When both stop moving, the sum is zero, and the intercept is not penalised.
    """
    if offset.size:
        last = w.size - 1
        moved = w[last] - offset[0]
        offset[0] = w[last]
        w[last] += moved


@kernel
def offset_slope(terms: Pointwise, members: np.ndarray, z: np.ndarray, offset: float) -> Any:
    """First and second derivative of ``sum_i s_i phi_i(z_i + offset)`` by the offset."""
    slope = bend = 0.0
    for k in range(members.size):
        i = members[k]
        s = weight_of(terms.weights, i)
        slope += s * subgradient(terms.loss, z[k] + offset, terms.y[i])
        bend += s * curvature(terms.loss, z[k] + offset, terms.y[i])
    return slope, bend


@with_other(is_small, offset_slope=in_numpy.offset_slope)
@kernel
def best_offset(terms: Pointwise, members: np.ndarray, z: np.ndarray, start: float, total: float = 0.0) -> float:
    """The offset that minimises ``sum_i s_i phi_i(z_i + offset) + total offset``: guarded Newton on the derivative.

    The first interval is twice as wide as Newton's step from the start, so that its middle is where that step leads.
    """
    slope, bend = offset_slope(terms, members, z, start)
    slope += total
    if slope == 0.0:
        return start
    width, low, high = min(1.0, 2.0 * abs(slope) / bend) if bend > 0.0 else 1.0, start, start
    if width <= OFFSET_ROUNDING * (1.0 + abs(start)):
        return start
    while width < 1e18:
        other = start - width if slope > 0.0 else start + width
        there, _ = offset_slope(terms, members, z, other)
        if (there + total) * slope <= 0.0:
            low, high = min(start, other), max(start, other)
            break
        start, width = other, 2.0 * width
    t = 0.5 * (low + high)
    for _ in range(SEARCH_STEPS):
        slope, bend = offset_slope(terms, members, z, t)
        slope += total
        if slope == 0.0:
            break
        if slope > 0.0:
            high = t
        else:
            low = t
        newton = t - slope / bend if bend > 0.0 else low
        within = low < newton < high
        t_next = newton if within else 0.5 * (low + high)
        if within and abs(t_next - t) <= SQUARED_AWAY * (1.0 + abs(t)):
            return t_next
        if abs(t_next - t) <= OFFSET_ROUNDING * (1.0 + abs(t)):
            break
        t = t_next
    return t


@kernel
def signed_sums(terms: Pointwise, members: np.ndarray, alpha: np.ndarray) -> Any:
    """Sums of the sizes of the positive and the negative variables, and of those strictly inside their bounds."""
    positive = negative = inner_positive = inner_negative = 0.0
    for i in members:
        a = alpha[i]
        left, right = slopes(terms.loss, a, 0.0, terms.y[i], weight_of(terms.weights, i))
        inner = left > -np.inf and right < np.inf
        if a > 0.0:
            positive += a
            inner_positive += a if inner else 0.0
        else:
            negative -= a
            inner_negative -= a if inner else 0.0
    return positive, negative, inner_positive, inner_negative


def shortening(sums: Sequence[float], total: float) -> tuple[float, float, bool]:
    """How variables with such sums are brought to the sum `total`: the sign of those that become shorter, their factor,
    and whether only those strictly inside their bounds do."""
    positive, negative, inner_positive, inner_negative = sums
    excess = positive - negative - total
    heavy, inner_heavy = (positive, inner_positive) if excess > 0.0 else (negative, inner_negative)
    inner_only = inner_heavy >= abs(excess)
    divisor = inner_heavy if inner_only else heavy
    factor = max(1.0 - abs(excess) / divisor, 0.0) if divisor > 0.0 else 1.0
    return (1.0 if excess > 0.0 else -1.0), factor, inner_only


@kernel
def shorten(
    terms: Pointwise, members: np.ndarray, alpha: np.ndarray, sign: float, factor: float, inner_only: bool
) -> None:
    """Multiply the variables of one sign by a factor: all, or those strictly inside their bounds."""
    for i in members:
        if alpha[i] * sign > 0.0:
            left, right = slopes(terms.loss, alpha[i], 0.0, terms.y[i], weight_of(terms.weights, i))
            if not inner_only or (left > -np.inf and right < np.inf):
                alpha[i] *= factor


@beside(in_numpy.balance, is_small)
def balance(terms: Pointwise, members: np.ndarray, alpha: np.ndarray, total: float = 0.0) -> None:
    """Bring ``sum_i alpha_i`` to `total` by shortening variables of the heavier sign, inner ones first.

    The variables stay feasible. Shortening always reaches a total of zero; for another total it comes as near as it
    can.
    """
    shorten(terms, members, alpha, *shortening(signed_sums(terms, members, alpha), total))


@inlined
def way_up(terms: Pointwise, i: int, a: float, upwards: bool) -> Any:
    """How far a variable may go towards its bound on one side, zero without a bound; and whether it is inside both."""
    s = weight_of(terms.weights, i)
    low, high = bounds(terms.loss, terms.y[i], s)
    left, right = slopes(terms.loss, a, 0.0, terms.y[i], s)
    end = high if upwards else low
    return (end - a if abs(end) < np.inf else 0.0), left > -np.inf and right < np.inf


@kernel
def lengthen(terms: Pointwise, members: np.ndarray, alpha: np.ndarray, total: float) -> None:
    """Bring ``sum_i alpha_i`` nearer to `total` by moving variables towards their bounds on that side, by the same
    share of the way: those strictly inside their bounds where that suffices, else all. Variables without a bound there
    stay.
    """
    missing, room, inner_room = total, 0.0, 0.0
    for i in members:
        missing -= alpha[i]
    upwards = missing > 0.0
    for i in members:
        way, inner = way_up(terms, i, alpha[i], upwards)
        room += way
        inner_room += way if inner else 0.0
    inner_only = abs(inner_room) >= abs(missing)
    whole = inner_room if inner_only else room
    share = missing / whole if whole != 0.0 else 0.0
    share = min(max(share, 0.0), 1.0)
    for i in members:
        way, inner = way_up(terms, i, alpha[i], upwards)
        if inner or not inner_only:
            alpha[i] += share * way
