"""An independent judge of certificates: textbook formulas in 120 decimal digits, sharing no code with the package.

Every float is taken for the number that it is. Products and sums of a few hundred of them, scaled over 1e12 and more,
lose nothing that matters in 120 digits; ``exp`` and ``log`` are those of :mod:`decimal`, correctly rounded.

Sources of the formulas: Shalev-Shwartz and Zhang (2013), Hsieh and others (2008), Ho and Lin (2012), Huber (1964),
Koenker and Bassett (1978), Crammer and Singer (2001).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Any

DIGITS = 120
ZERO, ONE, TWO, HALF = Decimal(0), Decimal(1), Decimal(2), Decimal("0.5")
TINY = Decimal("1e-50")  # whose cube, relative to it, is 1e-100
Numbers = Sequence[Decimal]


@dataclass(frozen=True)
class Textbook:
    """A loss: its value at a margin z, its conjugate at -a for a row of weight 1, the interval of the feasible a."""

    value: Callable[[Decimal, Decimal], Decimal]
    conjugate: Callable[[Decimal, Decimal], Decimal]
    bounds: Callable[[Decimal], tuple[Decimal | None, Decimal | None]]


def textbook(name: str, option: float = 0.0) -> Textbook:
    """The loss of a name, with its width, epsilon, delta or tau."""
    o = Decimal(option)
    match name:
        case "hinge":
            return Textbook(lambda z, y: max(ZERO, 1 - y * z), lambda a, y: -a * y, _signed(ONE))
        case "squared_hinge":
            return Textbook(
                lambda z, y: max(ZERO, 1 - y * z) ** 2, lambda a, y: a * a / 4 - a * y, _signed(None)
            )  # fmt: skip
        case "smooth_hinge":
            return Textbook(lambda z, y: _smooth(1 - y * z, o), lambda a, y: o * a * a / 2 - a * y, _signed(ONE))
        case "logistic":
            return Textbook(lambda z, y: _softplus(-y * z), lambda a, y: -_entropy(a * y), _signed(ONE))
        case "squared":
            return Textbook(lambda z, y: (z - y) ** 2, lambda a, y: a * a / 4 - a * y, lambda y: (None, None))
        case "absolute":
            return Textbook(lambda z, y: abs(z - y), lambda a, y: -a * y, lambda y: (-ONE, ONE))
        case "epsilon_insensitive":
            return Textbook(
                lambda z, y: max(ZERO, abs(z - y) - o), lambda a, y: o * abs(a) - a * y, lambda y: (-ONE, ONE)
            )
        case "squared_epsilon_insensitive":
            return Textbook(
                lambda z, y: max(ZERO, abs(z - y) - o) ** 2,
                lambda a, y: o * abs(a) - a * y + a * a / 4,
                lambda y: (None, None),
            )
        case "huber":
            return Textbook(lambda z, y: _huber(abs(z - y), o), lambda a, y: a * a / 2 - a * y, lambda y: (-o, o))
        case "pinball":
            return Textbook(lambda z, y: max(o * (y - z), (1 - o) * (z - y)), lambda a, y: -a * y, lambda y: (o - 1, o))
    raise ValueError(f"the judge does not know the loss {name!r}")


def _signed(most: Decimal | None) -> Callable[[Decimal], tuple[Decimal | None, Decimal | None]]:
    return lambda y: (ZERO, most) if y > 0 else (None if most is None else -most, ZERO)


def _smooth(r: Decimal, width: Decimal) -> Decimal:
    return r - width / 2 if r >= width else max(ZERO, r) ** 2 / (2 * width)


def _huber(r: Decimal, delta: Decimal) -> Decimal:
    return r * r / 2 if r <= delta else delta * (r - delta / 2)


def _softplus(t: Decimal) -> Decimal:
    return max(t, ZERO) + _ln_beside_one((-abs(t)).exp())


def _entropy(p: Decimal) -> Decimal:
    p = min(p, 1 - p)
    return -p * p.ln() - (1 - p) * _ln_beside_one(-p) if p > 0 else ZERO


def _ln_beside_one(x: Decimal) -> Decimal:
    """``ln(1 + x)``; of a tiny x by its series, as 1 + x would lose the last of it in any number of digits."""
    return (ONE + x).ln() if abs(x) > TINY else x - x * x / 2


@dataclass(frozen=True)
class Case:
    """A problem as numbers: rows, labels or targets, row weights, C, and the intercept.

    `intercept` is "none", "regularized" (a constant feature of value `scale`) or "free".
    """

    X: list[list[Decimal]]
    y: list[Decimal]
    weights: list[Decimal]
    C: Decimal
    loss: Textbook
    intercept: str
    scale: Decimal = ONE


def make_case(
    X: Any, y: Any, weights: Any, C: float, loss: Textbook, intercept: str, scale: float = 1.0
) -> Case:  # fmt: skip
    """A case from arrays of floats; rows of weight zero are left out."""
    s = [1.0] * len(y) if weights is None else list(weights)
    kept = [i for i in range(len(y)) if s[i] > 0.0]
    rows = [[Decimal(float(value)) for value in X[i]] for i in kept]
    labels, chosen = [Decimal(float(y[i])) for i in kept], [Decimal(float(s[i])) for i in kept]
    return Case(rows, labels, chosen, Decimal(C), loss, intercept, Decimal(scale))


def exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a function in the judge's arithmetic."""

    def run(*arguments: Any) -> Any:
        with localcontext(Context(prec=DIGITS, Emax=999_999, Emin=-999_999)):
            return function(*arguments)

    return run


def inner(one: Numbers, other: Numbers) -> Decimal:
    """The inner product."""
    return sum((a * b for a, b in zip(one, other, strict=True)), ZERO)


@exact
def primal(case: Case, coef: Any, intercept: float) -> Decimal:
    """``1/2 ||w||^2 + C sum_i s_i phi_i(x_i . w + b)`` of a model as it is stored."""
    w, b = [Decimal(float(one)) for one in coef], Decimal(float(intercept))
    charged = inner(w, w) + ((b / case.scale) ** 2 if case.intercept == "regularized" else ZERO)
    paid = ZERO
    for x, y, s in zip(case.X, case.y, case.weights, strict=True):
        paid += s * case.loss.value(inner(x, w) + b, y)
    return charged / 2 + case.C * paid


@exact
def dual(case: Case, alpha: Any) -> Decimal:
    """``-C sum_i s_i phi_i*(-a_i / s_i) - 1/2 ||C sum_i a_i x_i||^2`` of the nearest feasible point.

    A variable that missed its bound by a rounding is put there; where the intercept is free, the variables of the
    heavier sign are shortened until the sum is zero.
    """
    a = [_within(Decimal(float(one)), case.loss.bounds(y), s) for one, y, s in _zip(case, alpha)]
    if case.intercept == "free":
        excess = sum(a, ZERO)
        heavy = sum((one for one in a if one * excess > 0), ZERO)
        factor = ONE - excess / heavy if heavy else ONE
        a = [one * factor if one * excess > 0 else one for one in a]
    conjugates = sum((s * case.loss.conjugate(one / s, y) for one, y, s in _zip(case, a)), ZERO)
    v = [case.C * inner(a, column) for column in zip(*case.X, strict=True)]
    reached = inner(v, v) + ((case.C * case.scale * sum(a, ZERO)) ** 2 if case.intercept == "regularized" else ZERO)
    return -case.C * conjugates - reached / 2


def _zip(case: Case, alpha: Any) -> Any:
    return zip(alpha, case.y, case.weights, strict=True)


def _within(a: Decimal, bounds: tuple[Decimal | None, Decimal | None], s: Decimal) -> Decimal:
    low, high = bounds
    if low is not None:
        a = max(a, low * s)
    return a if high is None else min(a, high * s)


@exact
def joint_primal(case: Case, coef: Any, intercept: Any) -> Decimal:
    """Crammer and Singer's objective; `y` holds class numbers."""
    W = [[Decimal(float(one)) for one in row] for row in coef]
    b = [Decimal(float(one)) for one in intercept]
    charged = sum((inner(w, w) for w in W), ZERO)
    if case.intercept == "regularized":
        charged += inner(b, b) / case.scale**2
    paid = ZERO
    for x, y, s in zip(case.X, case.y, case.weights, strict=True):
        z = [inner(x, w) + offset for w, offset in zip(W, b, strict=True)]
        paid += s * max(one - z[int(y)] + (0 if k == int(y) else 1) for k, one in enumerate(z))
    return charged / 2 + case.C * paid


@exact
def joint_dual(case: Case, alpha: Any) -> Decimal:
    """Its dual at the nearest feasible point: rivals at most zero, together no less than minus the row's weight."""
    count = len(alpha[0])
    total, pulls = ZERO, [[ZERO] * (len(case.X[0]) + 1) for _ in range(count)]
    for x, y, s, given in zip(case.X, case.y, case.weights, alpha, strict=True):
        a = [min(ZERO, Decimal(float(one))) for one in given]
        a[int(y)] = ZERO
        taken = -sum(a, ZERO)
        if taken > s:
            a, taken = [one * s / taken for one in a], s
        a[int(y)] = taken
        total += taken
        seen = [*x, case.scale if case.intercept == "regularized" else ZERO]
        pulls = [
            [v + case.C * one * value for v, value in zip(p, seen, strict=True)]
            for p, one in zip(pulls, a, strict=True)
        ]
    return case.C * total - sum((inner(v, v) for v in pulls), ZERO) / 2


@exact
def kernel_value(name: str, x: Numbers, t: Numbers, gamma: Decimal, coef0: Decimal, degree: int) -> Decimal:
    """A Mercer kernel of two rows."""
    match name:
        case "linear":
            return inner(x, t)
        case "rbf":
            return (-gamma * sum(((a - b) ** 2 for a, b in zip(x, t, strict=True)), ZERO)).exp()
        case "laplacian":
            return (-gamma * sum((abs(a - b) for a, b in zip(x, t, strict=True)), ZERO)).exp()
        case "poly":
            return (gamma * inner(x, t) + coef0) ** degree
        case "cosine":
            sizes = (inner(x, x) * inner(t, t)).sqrt()
            return inner(x, t) / sizes if sizes else ZERO
    raise ValueError(f"the judge does not know the kernel {name!r}")


@exact
def kernel_objectives(
    case: Case, K: list[list[Decimal]], beta: Any, offset: float, alpha: Any
) -> tuple[Decimal, Decimal]:
    """Primal of ``sum_i beta_i k(x_i, .) + offset``, and the dual of the nearest feasible point of alpha.

    K holds what a regularised intercept adds.
    """
    b = [Decimal(float(one)) for one in beta]
    f = [inner(row, b) for row in K]
    paid = sum((s * case.loss.value(z + Decimal(offset), y) for z, y, s in _zip(case, f)), ZERO)
    a = [_within(Decimal(float(one)), case.loss.bounds(y), s) for one, y, s in _zip(case, alpha)]
    if case.intercept == "free":
        excess = sum(a, ZERO)
        heavy = sum((one for one in a if one * excess > 0), ZERO)
        a = [one * (ONE - excess / heavy) if one * excess > 0 else one for one in a]
    conjugates = sum((s * case.loss.conjugate(one / s, y) for one, y, s in _zip(case, a)), ZERO)
    scaled = [case.C * one for one in a]
    reached = inner(scaled, [inner(row, scaled) for row in K])
    return inner(b, f) / 2 + case.C * paid, -case.C * conjugates - reached / 2
