"""Losses and kernels from the textbooks, in decimal digits: they share no code with the package.

Sources: Shalev-Shwartz and Zhang (2013), Hsieh and others (2008), Ho and Lin (2012), Huber (1964), Koenker and Bassett
(1978), Crammer and Singer (2001), Lapin, Hein and Schiele (2015).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from .exact import ONE, ZERO, Numbers, inner

TINY = Decimal("1e-50")  # whose cube, relative to it, is 1e-100


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
class Joint:
    """A loss of all classes' scores: its value for a row of class y, and its dual.

    Attributes
    ----------
    value : callable
        Of scores and the row's class.
    most : Decimal or None
        How far below zero a rival's dual variable may be, for a row of weight 1; None where the judge has no dual.
    """

    value: Callable[[Numbers, int], Decimal]
    most: Decimal | None


def joint_textbook(name: str) -> Joint:
    """The joint loss of a way to train many classes: Crammer and Singer's, the softmax."""
    return Joint(_softmax, None) if name == "multinomial" else Joint(_best_rival, ONE)


def _best_rival(z: Numbers, y: int) -> Decimal:
    return max(ZERO, *(1 + one - z[y] for k, one in enumerate(z) if k != y))


def _softmax(z: Numbers, y: int) -> Decimal:
    top = z.index(max(z))
    others = sum(((one - z[top]).exp() for k, one in enumerate(z) if k != top), ZERO)
    return _ln_beside_one(others) + (z[top] - z[y])


DEFINITE = ("linear", "rbf", "poly")  # the last with coef0 >= 0


def kernel_value(name: str, x: Numbers, t: Numbers, gamma: Decimal, coef0: Decimal, degree: int) -> Decimal:
    """A kernel function of two rows."""
    match name:
        case "linear":
            return inner(x, t)
        case "rbf":
            return (-gamma * sum(((a - b) ** 2 for a, b in zip(x, t, strict=True)), ZERO)).exp()
        case "poly":
            return (gamma * inner(x, t) + coef0) ** degree
        case "sigmoid":
            away = (-2 * abs(gamma * inner(x, t) + coef0)).exp()
            return ((1 - away) / (1 + away)).copy_sign(gamma * inner(x, t) + coef0)
    raise ValueError(f"the judge does not know the kernel {name!r}")
