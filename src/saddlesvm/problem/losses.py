"""The losses: each one a small NamedTuple with its value, sub-gradient, conjugate, dual step, slopes and curvature.

For a row with margin ``z = x.w + b``, label or target ``y`` and weight ``s`` the primal pays ``s phi(z)``.
The dual variable ``a`` of the row enters as ``-s phi*(-a / s)``; for classification losses ``b = a y`` is in ``[0, s]``
or ``[0, inf)``. The same text is used from Python and, through the functions at the end, inside compiled kernels.

============================  ==============================  ==========================================
loss                          phi(z)                          -phi*(-a), with b = a y
============================  ==============================  ==========================================
hinge                         max(0, 1 - yz)                  b, b in [0, 1]
squared hinge                 max(0, 1 - yz)^2                b - b^2 / 4, b >= 0
smooth hinge, width g         0, (1-yz)^2/(2g), 1 - yz - g/2  b - g b^2 / 2, b in [0, 1]
logistic                      log(1 + exp(-yz))               -b log b - (1-b) log(1-b), b in [0, 1]
squared                       (z - y)^2                       a y - a^2 / 4
absolute                      abs(z - y)                      a y, abs(a) <= 1
epsilon-insensitive           max(0, abs(z - y) - eps)        a y - eps abs(a), abs(a) <= 1
squared epsilon-insensitive   max(0, abs(z - y) - eps)^2      a y - eps abs(a) - a^2 / 4
============================  ==============================  ==========================================

Source: Shalev-Shwartz and Zhang (2013), "Stochastic dual coordinate ascent methods for regularized loss minimization",
tables of section 5; Hsieh and others (2008); Ho and Lin (2012) for the regression losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from numba.core import types

from saddlesvm.problem.logit import logit, logit_step, sigmoid
from saddlesvm.runtime.allowed import NOT_NEGATIVE, POSITIVE, check
from saddlesvm.runtime.compiled import inlined, operation, python_class
from saddlesvm.runtime.exp_log import exp_of_negative, log_of, log_one_plus

INF = math.inf
EDGE = 1.0 + 1e-15  # a + (s - a) may miss s by a rounding error


@inlined
def clip(value: float, low: float, high: float) -> float:
    """`value`, or the nearer end of [low, high]."""
    return min(max(value, low), high)


@inlined
def soft_threshold(value: float, width: float) -> float:
    """`value` brought towards zero by `width`: the proximal step of the absolute value."""
    return math.copysign(max(abs(value) - width, 0.0), value)


@inlined
def box_slopes(b: float, g: float, upper: float) -> tuple[float, float]:
    """One-sided slopes of the negated dual with slope `g` inside [0, upper]."""
    return (-INF if b <= 0.0 else g), (INF if b >= upper else g)


@inlined
def absolute_slopes(a: float, g: float, eps: float, upper: float) -> tuple[float, float]:
    """One-sided slopes of the negated dual with slope ``g`` and ``eps abs(a)`` added, inside [-upper, upper]."""
    left = g + eps if a > 0.0 else g - eps
    right = g - eps if a < 0.0 else g + eps
    return (-INF if a <= -upper else left), (INF if a >= upper else right)


class Hinge(NamedTuple):
    """max(0, 1 - yz): the support vector machine's loss ("L1-loss" in the coordinate descent literature)."""

    def value(self, z: float, y: float) -> float:
        return max(0.0, 1.0 - y * z)

    def subgradient(self, z: float, y: float) -> float:
        return -y if y * z < 1.0 else 0.0

    def conjugate(self, a: float, y: float, s: float) -> float:
        b = a * y
        return -b if 0.0 <= b <= s * EDGE else INF

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        b = a * y
        if q <= 0.0:
            return y * ((s if y * z < 1.0 else 0.0 if y * z > 1.0 else b) - b)
        return y * (clip(b + (1.0 - y * z) / q, 0.0, s) - b)

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        return box_slopes(a * y, y * z - 1.0, s)

    def curvature(self, z: float, y: float) -> float:
        return 0.0


class SquaredHinge(NamedTuple):
    """max(0, 1 - yz)^2: scikit-learn's and LIBLINEAR's default ("L2-loss")."""

    def value(self, z: float, y: float) -> float:
        return max(0.0, 1.0 - y * z) ** 2

    def subgradient(self, z: float, y: float) -> float:
        return -2.0 * y * max(0.0, 1.0 - y * z)

    def conjugate(self, a: float, y: float, s: float) -> float:
        b = a * y
        return b * b / (4.0 * s) - b if b >= 0.0 else INF

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        b = a * y
        return y * (max(0.0, b + (1.0 - y * z - b / (2.0 * s)) / (q + 1.0 / (2.0 * s))) - b)

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        b = a * y
        return box_slopes(b, y * z - 1.0 + b / (2.0 * s), INF)

    def curvature(self, z: float, y: float) -> float:
        return 2.0 if y * z < 1.0 else 0.0


class SmoothHinge(NamedTuple):
    """The hinge with its corner rounded over a stretch of the given width (Shalev-Shwartz and Zhang 2013, eq. 17)."""

    width: float = 1.0

    def value(self, z: float, y: float) -> float:
        r = 1.0 - y * z
        if r >= self.width:
            return r - 0.5 * self.width
        return 0.5 * max(0.0, r) ** 2 / self.width

    def subgradient(self, z: float, y: float) -> float:
        return -y * clip((1.0 - y * z) / self.width, 0.0, 1.0)

    def conjugate(self, a: float, y: float, s: float) -> float:
        b = a * y
        return 0.5 * self.width * b * b / s - b if 0.0 <= b <= s * EDGE else INF

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        b = a * y
        slope = 1.0 - y * z - self.width * b / s
        return y * (clip(b + slope / (q + self.width / s), 0.0, s) - b)

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        b = a * y
        return box_slopes(b, y * z - 1.0 + self.width * b / s, s)

    def curvature(self, z: float, y: float) -> float:
        return 1.0 / self.width if 0.0 < 1.0 - y * z < self.width else 0.0


class Logistic(NamedTuple):
    """log(1 + exp(-yz)): logistic regression, the loss that gives probabilities."""

    def value(self, z: float, y: float) -> float:
        m = y * z
        return log_one_plus(exp_of_negative(-abs(m))) + max(0.0, -m)

    def subgradient(self, z: float, y: float) -> float:
        return -y * sigmoid(-y * z)

    def conjugate(self, a: float, y: float, s: float) -> float:
        p = a * y / s
        less = min(p, 1.0 - p)
        entropy = less * log_of(less) + (1.0 - less) * log_one_plus(-less)
        return s * entropy if 0.0 <= p <= EDGE else INF

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        b = a * y
        return y * (logit_step(b, y * z, q, s) - b)

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        b = a * y
        g = logit(b / s) + y * z
        g = -INF if b <= 0.0 else INF if b >= s else g
        return g, g

    def curvature(self, z: float, y: float) -> float:
        p = sigmoid(-y * z)  # the sign makes no difference, but to the compiler: it is the subgradient's exponential
        return p * (1.0 - p)


class Squared(NamedTuple):
    """(z - y)^2: ridge regression."""

    def value(self, z: float, y: float) -> float:
        return (z - y) ** 2

    def subgradient(self, z: float, y: float) -> float:
        return 2.0 * (z - y)

    def conjugate(self, a: float, y: float, s: float) -> float:
        return a * a / (4.0 * s) - a * y

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        return (y - z - a / (2.0 * s)) / (q + 1.0 / (2.0 * s))

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        g = z - y + a / (2.0 * s)
        return g, g

    def curvature(self, z: float, y: float) -> float:
        return 2.0


class Absolute(NamedTuple):
    """abs(z - y): least absolute deviations."""

    def value(self, z: float, y: float) -> float:
        return abs(z - y)

    def subgradient(self, z: float, y: float) -> float:
        return math.copysign(1.0, z - y) if z != y else 0.0

    def conjugate(self, a: float, y: float, s: float) -> float:
        return -a * y if abs(a) <= s * EDGE else INF

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        if q <= 0.0:
            return clip(math.copysign(INF, y - z), -s, s) - a if y != z else 0.0
        return clip(a + (y - z) / q, -s, s) - a

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        return absolute_slopes(a, z - y, 0.0, s)

    def curvature(self, z: float, y: float) -> float:
        return 0.0


class EpsilonInsensitive(NamedTuple):
    """max(0, abs(z - y) - eps): the support vector regression loss."""

    epsilon: float = 0.0

    def value(self, z: float, y: float) -> float:
        return max(0.0, abs(z - y) - self.epsilon)

    def subgradient(self, z: float, y: float) -> float:
        return math.copysign(1.0, z - y) if abs(z - y) > self.epsilon else 0.0

    def conjugate(self, a: float, y: float, s: float) -> float:
        return self.epsilon * abs(a) - a * y if abs(a) <= s * EDGE else INF

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        if q <= 0.0:
            return (math.copysign(s, y - z) if abs(y - z) > self.epsilon else 0.0) - a
        return clip(soft_threshold(a + (y - z) / q, self.epsilon / q), -s, s) - a

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        return absolute_slopes(a, z - y, self.epsilon, s)

    def curvature(self, z: float, y: float) -> float:
        return 0.0


class SquaredEpsilonInsensitive(NamedTuple):
    """max(0, abs(z - y) - eps)^2: the support vector regression loss, squared."""

    epsilon: float = 0.0

    def value(self, z: float, y: float) -> float:
        return max(0.0, abs(z - y) - self.epsilon) ** 2

    def subgradient(self, z: float, y: float) -> float:
        return 2.0 * soft_threshold(z - y, self.epsilon)

    def conjugate(self, a: float, y: float, s: float) -> float:
        return self.epsilon * abs(a) - a * y + a * a / (4.0 * s)

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        curvature = q + 1.0 / (2.0 * s)
        return soft_threshold(q * a + y - z, self.epsilon) / curvature - a

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        return absolute_slopes(a, z - y + a / (2.0 * s), self.epsilon, INF)

    def curvature(self, z: float, y: float) -> float:
        return 2.0 if abs(z - y) > self.epsilon else 0.0


Loss = (
    Hinge | SquaredHinge | SmoothHinge | Logistic | Squared | Absolute | EpsilonInsensitive | SquaredEpsilonInsensitive
)

CLASSIFICATION: dict[str, type] = {
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "smooth_hinge": SmoothHinge,
    "logistic": Logistic,
}
REGRESSION: dict[str, type] = {
    "squared": Squared,
    "absolute": Absolute,
    "epsilon_insensitive": EpsilonInsensitive,
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive,
}
LOSSES: dict[str, type] = CLASSIFICATION | REGRESSION
LOSS_OPTIONS = {"width": POSITIVE, "epsilon": NOT_NEGATIVE}  # of the losses that have some
ALIASES: dict[str, str] = {
    "l1": "hinge",
    "l2": "squared_hinge",
    "log_loss": "logistic",
    "squared_error": "squared",
    "absolute_error": "absolute",
}


def loss_name(loss: Loss) -> str:
    """The name that :func:`make_loss` knows `loss` by."""
    return next(name for name, kind in LOSSES.items() if type(loss) is kind)


def make_loss(loss: str | Loss, *, width: float = 1.0, epsilon: float = 0.0, among: dict[str, type] = LOSSES) -> Loss:
    """A loss object from its name, or the object itself, its parameter checked.

    Parameters
    ----------
    loss : str or Loss
        A name of :data:`LOSSES`, an alias of :data:`ALIASES`, or a loss object.
    width : float, default=1.0
        Width of the smooth hinge; positive.
    epsilon : float, default=0.0
        Half-width of the insensitive tube of the two epsilon losses; not negative.
    among : dict, default=LOSSES
        The losses that fit the task.

    Raises
    ------
    ValueError
        The name is unknown, the loss does not fit the task, or its parameter is out of range.
    """
    if isinstance(loss, str):
        name = ALIASES.get(loss, loss)
    elif type(loss) in LOSSES.values():
        name = loss_name(loss)
    else:
        raise ValueError(f"loss must be one of {', '.join(among)}, or a loss object; got {loss!r}")
    if name not in LOSSES:
        raise ValueError(f"unknown loss {loss!r}: use one of {', '.join(among)}")
    if name not in among:
        task, estimator = ("regression", "LinearSVR") if name in REGRESSION else ("classification", "LinearSVC")
        raise ValueError(f"loss={name!r} is a {task} loss: use {estimator}, or one of {', '.join(among)}")
    kind: Any = LOSSES[name]
    options = {"width": width, "epsilon": epsilon} if isinstance(loss, str) else loss._asdict()
    for field in kind._fields:
        check(field, options[field], LOSS_OPTIONS[field])
    made: Loss = kind(*(float(options[field]) for field in kind._fields)) if isinstance(loss, str) else loss
    return made


def is_smooth(loss: Loss) -> bool:
    """Whether the loss has a derivative everywhere (its conjugate is strongly convex)."""
    return not isinstance(loss, (Hinge, Absolute, EpsilonInsensitive))


def largest_curvature(loss: Loss) -> float:
    """The largest second derivative (1 / gamma, where the loss is called 1/gamma-smooth); infinite at a corner."""
    if not is_smooth(loss):
        return INF
    if isinstance(loss, SmoothHinge):
        return 1.0 / loss.width
    return 0.25 if isinstance(loss, Logistic) else 2.0


def _of_loss(name: str) -> Callable[..., Any]:
    """Choose the method `name` of the loss that the first argument's type stands for."""

    def pick(loss: types.Type, *_: types.Type) -> Callable[..., Any] | None:
        return getattr(python_class(loss), name, None)

    return pick


@operation(_of_loss("value"))
def value(loss: Loss, z: float, y: float) -> float:
    """phi(z)."""
    return loss.value(z, y)


@operation(_of_loss("subgradient"))
def subgradient(loss: Loss, z: float, y: float) -> float:
    """An element of the sub-differential of phi at z; ``a = -s`` times it is dual feasible."""
    return loss.subgradient(z, y)


@operation(_of_loss("conjugate"))
def conjugate(loss: Loss, a: float, y: float, s: float) -> float:
    """``s phi*(-a / s)``: what a row of weight s subtracts from the dual; infinite where a is not feasible."""
    return loss.conjugate(a, y, s)


@operation(_of_loss("dual_step"))
def dual_step(loss: Loss, a: float, z: float, y: float, q: float, s: float) -> float:
    """The change d of `a` that maximises ``-s phi*(-(a + d) / s) - d z - q d^2 / 2``."""
    return loss.dual_step(a, z, y, q, s)


@operation(_of_loss("slopes"))
def slopes(loss: Loss, a: float, z: float, y: float, s: float) -> tuple[float, float]:
    """Left and right slope of the negated dual along b = a y (classification) or a (regression); optimal around 0."""
    return loss.slopes(a, z, y, s)


@operation(_of_loss("curvature"))
def curvature(loss: Loss, z: float, y: float) -> float:
    """A generalised second derivative of phi at z."""
    return loss.curvature(z, y)
