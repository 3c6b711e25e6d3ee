"""The intercept: none, the penalised weight of a constant feature, or a weight without penalty.

    Absent         w has no intercept.
    Regularized    b = scale w_last: the last weight is that of a virtual feature of value `scale`,
                   and is penalised.
    Free           The last weight is not penalised; in return the dual variables must have a given
                   sum, sum_i a_i = total.

The total is zero if only the losses depend on the intercept, as in all linear problems. Another
total belongs to an objective with the term ``C total b``, as in a one-class kernel machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from saddlesvm.problem.loss import is_smooth, methods_of
from saddlesvm.problem.terms import (
    BLOCK,
    Pointwise,
    in_blocks,
    silent,
    weights_or_one,
)
from saddlesvm.runtime.compiled import inlined

FARTHEST = 1e18  # from the start, that an offset is looked for; a guess: beyond all data
SEARCH_STEPS = 200  # passes of a search along a line, at most: it ends by itself long before
# Places that a pass looks at, at most, if few rows bend. Measured: one place takes 5 times as long
# for 570 rows.
MOST_PLACES = 255
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
        True if the model has an intercept.
    constrained : bool
        The dual variables have a given sum; the intercept is then found apart from w, by
        :meth:`best`.
    total : float
        The sum that the dual variables must have; also zero if no sum is required.
    homogeneous : bool
        True if that sum is zero: multiples of feasible dual variables are feasible.
    scale : float
        Value of the virtual feature whose weight is the last of w.
    """

    name: ClassVar[InterceptName]
    present: ClassVar[bool] = True
    constrained: ClassVar[bool] = False
    total = 0.0
    homogeneous = True
    scale: float = 1.0

    def __str__(self) -> str:
        return self.name

    @classmethod
    def value(cls, scaling: float, norms: Callable[[], np.ndarray]) -> float:
        """The value of the virtual feature: `scaling`, if the user's choice counts.

        Parameters
        ----------
        scaling : float
        norms : callable
            The squared norms of (some) rows.
        """
        return scaling

    @property
    def lift(self) -> float:
        """The virtual feature's part of a row's squared norm that no penalty sees."""
        return 0.0

    @property
    def block_intercept(self) -> Intercept:
        """The intercept of a block's problem, with the dual variables of other rows fixed."""
        return self

    def split(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """The weights whose margins count, and the offset to add to these margins."""
        return w, 0.0

    def best(self, terms: Pointwise, members: np.ndarray, z: np.ndarray, start: float) -> float:
        """Return the best offset of the margins z for the objective; a search begins at `start`."""
        return 0.0

    def paid(self, offset: float) -> float:
        """The cost of an offset beside the losses, divided by C; 0 if the required sum is zero."""
        return self.total * offset

    def balance(self, terms: Pointwise, members: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Dual variables with the required sum; the array itself if no sum is required."""
        return alpha

    def multiplier(self, w: np.ndarray | None) -> np.ndarray:
        """The multiplier that a dual solver begins with at w, for :func:`move_offset`, or none."""
        return np.zeros(0)

    def last(
        self, intercept: float, offset: np.ndarray, strength: float, alpha: np.ndarray
    ) -> float:
        """The last weight of a dual solver with this intercept; updates the multiplier in place.

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


@dataclass(frozen=True)
class Regularized(Intercept):
    """The weight of a virtual feature of value `scale`, penalised as LIBLINEAR does."""

    name: ClassVar[InterceptName] = "regularized"


@dataclass(frozen=True)
class Free(Intercept):
    """An intercept free of penalty: the dual variables have the sum `total`.

    Dual solvers keep its multiplier in the last weight, see :func:`move_offset`; `scale` changes
    how fast they find it, not what they find.
    """

    name: ClassVar[InterceptName] = "free"
    constrained: ClassVar[bool] = True
    total: float = 0.0

    def __post_init__(self) -> None:
        vars(self)["homogeneous"] = self.total == 0.0

    @classmethod
    def value(cls, scaling: float, norms: Callable[[], np.ndarray]) -> float:
        """The size of a typical row."""
        return float(np.sqrt(norms().mean())) or 1.0

    @property
    def lift(self) -> float:
        """The square of the virtual feature."""
        return self.scale**2

    @property
    def block_intercept(self) -> Intercept:
        """A regularised intercept: :func:`move_offset` penalises the way from the multiplier."""
        return Regularized(self.scale)

    def split(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """The weights but for the last, and the offset that the last weight stands for."""
        return np.append(w[:-1], 0.0), float(w[-1] * self.scale)

    def best(self, terms: Pointwise, members: np.ndarray, z: np.ndarray, start: float) -> float:
        """The minimiser of the losses plus the total times the offset."""
        return best_offset(terms, members, z, start, self.total)

    def balance(self, terms: Pointwise, members: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """A copy with the sum `total`, by :func:`balance`, and by :func:`lengthen` if it is needed.

        Raises
        ------
        ValueError
            The bounds of the variables exclude the total.
        """
        alpha = alpha.copy()
        balance(terms, members, alpha, self.total)
        if not self.homogeneous:
            lengthen(terms, members, alpha, self.total)
        # No move within the bounds has this sum: the problem itself has no feasible point.
        found = alpha[members].sum()
        if not self.homogeneous and abs(found - self.total) > SUM_ROUNDING * abs(self.total):
            raise ValueError(
                f"the dual variables have the sum {found:g}; it must be {self.total:g}"
            )
        return alpha

    def multiplier(self, w: np.ndarray | None) -> np.ndarray:
        """That of w, or zero; shape (1,)."""
        return np.array([0.0 if w is None else float(w[-1])])

    def last(
        self, intercept: float, offset: np.ndarray, strength: float, alpha: np.ndarray
    ) -> float:
        """The multiplier, moved to the intercept, plus the contribution of the dual variables."""
        offset[0] = intercept / self.scale
        return float(offset[0] + strength * self.scale * float(alpha.sum()))


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
    """Return the intercept of a name, with its virtual feature's value; or the given intercept.

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

    The virtual weight is ``offset + C scale sum_i a_i``: a proximal term draws it towards the
    offset, and after each pass the offset takes its value. When both stop moving, the sum is zero,
    and the intercept is not penalised.
    """
    if offset.size:
        last = w.size - 1
        moved = w[last] - offset[0]
        offset[0] = w[last]
        w[last] += moved


@silent
def offset_slope(
    terms: Pointwise, members: np.ndarray, z: np.ndarray, offset: float
) -> tuple[float, float]:
    """First and second derivative of ``sum_i s_i phi_i(z_i + offset)`` by the offset."""
    loss = terms.loss
    methods = methods_of(terms.loss)
    kinked = not is_smooth(loss)
    slope = bend = 0.0
    for places, rows in in_blocks(members, terms.y.size):
        y = terms.y[rows]
        moved = z[places] + offset
        s = weights_or_one(terms.weights, rows)
        slope += float((s * methods.subgradient(loss, moved, y)).sum())
        if not kinked:
            # The curvature of some losses is the same for all rows, and then a number.
            curvature = s * methods.curvature(loss, moved, y)
            bend += float(np.broadcast_to(curvature, moved.shape).sum())
    return slope, bend


def best_offset(
    terms: Pointwise, members: np.ndarray, z: np.ndarray, start: float, total: float = 0.0
) -> float:
    """The offset that minimises ``sum_i s_i phi_i(z_i + offset) + total offset``."""
    slope, bend = offset_slope(terms, members, z, start)
    slope += total
    if slope == 0.0:
        return start
    # The first interval is twice as wide as Newton's step: its middle is where that step leads.
    width = min(1.0, 2.0 * abs(slope) / bend) if bend > 0.0 else 1.0
    if width <= OFFSET_ROUNDING * (1.0 + abs(start)):
        return start - slope / bend if bend > 0.0 else start
    low = high = start
    # The interval doubles, downhill, until the slope has changed its sign.
    while width < FARTHEST:
        other = start - width if slope > 0.0 else start + width
        there, _ = offset_slope(terms, members, z, other)
        if (there + total) * slope <= 0.0:
            low = min(start, other)
            high = max(start, other)
            break
        start = other
        width = 2.0 * width
    if is_smooth(terms.loss):
        return _newton_root(terms, members, z, low, high, total)
    return _kinked_root(terms, members, z, low, high, total)


def _newton_root(
    terms: Pointwise, members: np.ndarray, z: np.ndarray, low: float, high: float, total: float
) -> float:
    """The best offset of a smooth loss in an interval: Newton's steps, else halves of it."""
    t = 0.5 * (low + high)
    for _ in range(SEARCH_STEPS):
        slope, bend = offset_slope(terms, members, z, t)
        slope += total
        if slope == 0.0:
            break
        # The slope rises with the offset: the root stays between `low` and `high`.
        if slope > 0.0:
            high = t
        else:
            low = t
        newton = t - slope / bend if bend > 0.0 else low
        within = low < newton < high
        t_next = newton if within else 0.5 * (low + high)
        # Newton's steps square the error: what is left after a step this short is rounding.
        if within and abs(t_next - t) <= SQUARED_AWAY * (1.0 + abs(t)):
            return t_next
        if abs(t_next - t) <= OFFSET_ROUNDING * (1.0 + abs(t)):
            break
        t = t_next
    return t


@silent
def _kinked_root(
    terms: Pointwise, members: np.ndarray, z: np.ndarray, low: float, high: float, total: float
) -> float:
    """Return the best offset of a loss with kinks in an interval, cut into parts again and again.

    A loss is convex, so that a row with the same slope at both ends has it everywhere between: such
    rows are added up once, and about as many stay as have a kink in the interval.
    """
    loss = terms.loss
    subgradient = methods_of(terms.loss).subgradient
    known = total
    pieces = []
    for places, rows in in_blocks(members, terms.y.size):
        own = z[places]
        y = terms.y[rows]
        s = np.broadcast_to(weights_or_one(terms.weights, rows), own.shape)
        below = s * subgradient(loss, own + low, y)
        above = s * subgradient(loss, own + high, y)
        # Rows with the same slope at both ends add a constant.
        bent = np.flatnonzero(below != above)
        known += float(below.sum() - below[bent].sum())
        pieces.append(np.stack([values[bent] for values in (own, y, s, below, above)]))
    own, y, s, below, above = np.concatenate(pieces, axis=1)
    for _ in range(SEARCH_STEPS):
        if high - low <= OFFSET_ROUNDING * (1.0 + abs(high)):
            break
        # The slopes at as many places at once as make one block of rows: they rise.
        count = min(MOST_PLACES, max(1, BLOCK // max(1, own.size)))
        offsets = low + (high - low) * (np.arange(1, count + 1) / (count + 1))
        moved = own + offsets[:, None]
        here = s * subgradient(loss, moved, y)
        slopes = known + here.sum(axis=1)
        first = int(np.count_nonzero(slopes < 0.0))
        if first < count and slopes[first] == 0.0:
            return float(offsets[first])

        # The interval in which the sign changes stays, and the rows that bend in it.
        if first > 0:
            low = float(offsets[first - 1])
            below = here[first - 1]
        if first < count:
            high = float(offsets[first])
            above = here[first]
        is_bent = below != above
        known += float(below[~is_bent].sum())
        own, y, s, below, above = (values[is_bent] for values in (own, y, s, below, above))
    return 0.5 * (low + high)


def is_inside(terms: Pointwise, rows: np.ndarray | slice, a: np.ndarray) -> np.ndarray:
    """Return which dual variables of some rows lie strictly inside their bounds."""
    s = weights_or_one(terms.weights, rows)
    left, right = methods_of(terms.loss).slopes(terms.loss, a, 0.0, terms.y[rows], s)
    inside: np.ndarray = (left > -np.inf) & (right < np.inf)
    return inside


@silent
def signed_sums(terms: Pointwise, members: np.ndarray, alpha: np.ndarray) -> tuple[float, ...]:
    """Sums of positive and of negative sizes, of all variables and of those inside their bounds."""
    totals = np.zeros(4)
    for _, rows in in_blocks(members, terms.y.size):
        a = alpha[rows]
        # Variables inside their bounds may be shortened without becoming worse at once.
        inside = is_inside(terms, rows, a)
        positive = np.maximum(a, 0.0)
        negative = np.maximum(-a, 0.0)
        totals += (
            positive.sum(),
            negative.sum(),
            (positive * inside).sum(),
            (negative * inside).sum(),
        )
    return tuple(totals.tolist())


def shortening(sums: Sequence[float], total: float) -> tuple[float, float, bool]:
    """Return how variables with such sums are brought to the sum `total`.

    Returns the sign of the variables that become shorter, their factor, and whether only variables
    strictly inside their bounds do.
    """
    positive, negative, inner_positive, inner_negative = sums
    # The heavier sign is shortened, so that no variable leaves its bounds.
    excess = positive - negative - total
    sign = 1.0
    heavy = positive
    inner_heavy = inner_positive
    if not excess > 0.0:
        sign = -1.0
        heavy = negative
        inner_heavy = inner_negative
    # Variables at a bound stay there if those inside suffice: most of them are optimal.
    inner_only = inner_heavy >= abs(excess)
    divisor = inner_heavy if inner_only else heavy
    factor = 1.0
    if divisor > 0.0:
        factor = max(1.0 - abs(excess) / divisor, 0.0)
    return sign, factor, inner_only


@silent
def shorten(
    terms: Pointwise,
    members: np.ndarray,
    alpha: np.ndarray,
    sign: float,
    factor: float,
    inner_only: bool,
) -> None:
    """Multiply variables of one sign by a factor: all, or variables strictly inside bounds."""
    for _, rows in in_blocks(members, terms.y.size):
        a = alpha[rows]
        shorter = a * sign > 0.0
        if inner_only:
            shorter &= is_inside(terms, rows, a)
        alpha[rows] = np.where(shorter, factor * a, a)


def balance(terms: Pointwise, members: np.ndarray, alpha: np.ndarray, total: float = 0.0) -> None:
    """Bring ``sum_i alpha_i`` to `total` by shortening variables of the heavier sign.

    The variables stay feasible. Shortening always reaches a total of zero; for another total it
    comes as near as it can.
    """
    shorten(terms, members, alpha, *shortening(signed_sums(terms, members, alpha), total))


@silent
def ways_to_bounds(
    terms: Pointwise, rows: np.ndarray | slice, a: np.ndarray, upwards: bool
) -> np.ndarray:
    """Return how far variables are from their bounds on one side; zero without a bound there."""
    low, high = methods_of(terms.loss).bounds(
        terms.loss, terms.y[rows], weights_or_one(terms.weights, rows)
    )
    way = (high if upwards else low) - a
    return np.where(np.isfinite(way), way, 0.0)


@silent
def lengthen(terms: Pointwise, members: np.ndarray, alpha: np.ndarray, total: float) -> None:
    """Bring ``sum_i alpha_i`` nearer to `total` by moving variables towards their bounds.

    All go the same share of the way, on the side of the total: variables strictly inside their
    bounds if that suffices, else all. Variables without a bound there stay.
    """
    missing = total - sum(float(alpha[rows].sum()) for _, rows in in_blocks(members, terms.y.size))
    upwards = missing > 0.0
    # The way to the bounds, of all variables and of those inside.
    room = inner_room = 0.0
    for _, rows in in_blocks(members, terms.y.size):
        way = ways_to_bounds(terms, rows, alpha[rows], upwards)
        room += float(way.sum())
        inner_room += float((way * is_inside(terms, rows, alpha[rows])).sum())
    inner_only = abs(inner_room) >= abs(missing)
    whole = inner_room if inner_only else room
    # The same share of its way for each, and never beyond the bound.
    share = 0.0
    if whole != 0.0:
        share = min(max(missing / whole, 0.0), 1.0)
    for _, rows in in_blocks(members, terms.y.size):
        a = alpha[rows]
        way = ways_to_bounds(terms, rows, a, upwards)
        if inner_only:
            way *= is_inside(terms, rows, a)
        alpha[rows] = a + share * way
