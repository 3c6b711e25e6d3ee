"""Arithmetic that losses share.

Clipping, the proximal step of the absolute value, one-sided slopes at bounds; and, of the logistic
loss, the sigmoid, its inverse, and the step of a dual coordinate.

Each function is written once, for numbers in kernels and for arrays in Python. The logistic part is
written so that a visit to a row takes few logarithms and exponentials, and the compiler sees which
of them the value, the slopes and the step of a row share.
"""

from __future__ import annotations

import math

import numpy as np

from saddlesvm.runtime.compiled import arithmetic, select
from saddlesvm.runtime.exp_log import exp_of_negative, log_of

INF = math.inf
EDGE = 1.0 + 1e-15  # relative slack at a bound: a + (s - a) may miss s by a rounding error
LEAST = 1e-307  # keeps a quotient finite whose divisor may be zero
# The step of a logistic loss's dual variable: steps at most, the relative length at which bisection
# ends, and the length of Halley's last step, whose error is of the order of its cube; guessed.
LOGIT_STEPS = 100
LOGIT_ROUNDING = 1e-11
LOGIT_TOLERANCE = 0.3


@arithmetic
def clip(value: float, low: float, high: float) -> float:
    """`value`, or the nearer end of [low, high]."""
    return np.minimum(np.maximum(value, low), high)


@arithmetic
def soft_threshold(value: float, width: float) -> float:
    """`value` brought towards zero by `width`: the proximal step of the absolute value."""
    return np.copysign(np.maximum(abs(value) - width, 0.0), value)


@arithmetic
def box_slopes(b: float, g: float, upper: float) -> tuple[float, float]:
    """One-sided slopes of the negated dual with slope `g` inside [0, upper]."""
    return select(b <= 0.0, -INF, g), select(b >= upper, INF, g)


@arithmetic
def absolute_slopes(a: float, g: float, eps: float, upper: float) -> tuple[float, float]:
    """Return one-sided slopes of the negated dual inside [-upper, upper].

    Its slope is `g`, with ``eps abs(a)`` added.
    """
    left = select(a > 0.0, g + eps, g - eps)
    right = select(a < 0.0, g - eps, g + eps)
    return select(a <= -upper, -INF, left), select(a >= upper, INF, right)


@arithmetic
def interval_slopes(a: float, g: float, low: float, high: float) -> tuple[float, float]:
    """One-sided slopes of the negated dual with slope `g` inside [low, high]."""
    return select(a <= low, -INF, g), select(a >= high, INF, g)


@arithmetic
def logit(p: float) -> float:
    """``log(p / (1 - p))``, finite at zero and one."""
    return log_of(p / np.maximum(1.0 - p, LEAST))


@arithmetic
def sigmoid(t: float) -> float:
    """``1 / (1 + exp(-t))`` without overflow."""
    e = exp_of_negative(-abs(t))
    return select(t >= 0.0, 1.0, e) / (1.0 + e)


@arithmetic
def moved_sigmoid(p: float, move: float) -> float:
    """``sigmoid(t + move)`` from ``p = sigmoid(t)``, to the third power of a small move."""
    v = p * (1.0 - p)
    return p + v * move * (1.0 + move * ((0.5 - p) + move * (1.0 / 6.0 - v)))


@arithmetic
def halley_step(residual: float, p: float, qs: float) -> float:
    """Halley's step for ``t + m + qs sigmoid(t)``, ``p = sigmoid(t)``: Newton's with curvature."""
    bend = qs * p * (1.0 - p)
    slope = 1.0 + bend
    return -residual * slope / (slope * slope - residual * bend * (0.5 - p))


@arithmetic
def logit_step(b: float, m: float, q: float, s: float) -> float:
    """The b in [0, s] with ``log(b / (s - b)) + m + q (b' - b) = 0``.

    It is solved for ``t = log(b / (s - b))``, in which the equation ``t + m + q (s sigmoid(t) - b)
    = 0`` is increasing with a slope between 1 and ``1 + q s / 4`` (compare Yu, Huang and Lin 2011,
    section 3). Mostly b is near already, and a step of Halley's method is enough. (A small one
    never misleads: if the derivative's change is not small beside itself, Halley's steps are
    longer than 2.)
    """
    p = b / s
    t = logit(p)
    move = halley_step(t + m, p, q * s)
    if abs(move) <= LOGIT_TOLERANCE:
        return s * moved_sigmoid(p, move)
    return guarded_logit_step(b, t if 0.0 < b < s else -m, m, q, s)


@arithmetic
def guarded_logit_step(b: float, t: float, m: float, q: float, s: float) -> float:
    """Solve the same equation from farther away, by Halley's method guarded by a bracket.

    A step that is not half as long as the last step is a bisection: for large q the method may
    cycle.
    """
    # At the root t = -m - q (s sigmoid(t) - b), and the sigmoid is between 0 and 1.
    low = -m - q * (s - b)
    high = -m + q * b
    t = min(max(t, low), high)
    p = sigmoid(t)
    moved = 2.0 * (high - low)
    for _ in range(LOGIT_STEPS):
        residual = t + m + q * (s * p - b)
        # The equation increases in t: its root is on the other side of the sign.
        if residual > 0.0:
            high = t
        else:
            low = t
        move = halley_step(residual, p, q * s)
        halved = not low <= t + move <= high or abs(move) > 0.5 * moved
        if halved:
            move = 0.5 * (low + high) - t
        moved = abs(move)
        # The error of Halley's step is of the order of its cube; a bisection's is its own length.
        if moved <= (LOGIT_ROUNDING if halved else LOGIT_TOLERANCE):
            return s * moved_sigmoid(p, move)
        t += move
        p = sigmoid(t)
    return s * p
