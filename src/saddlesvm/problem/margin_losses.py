"""The classification losses: functions of ``y z``; their table is in the file `losses`."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit

from saddlesvm.problem.arithmetic import EDGE, INF, box_slopes, clip, logit, logit_step, sigmoid
from saddlesvm.problem.loss import Shape, register
from saddlesvm.runtime.allowed import POSITIVE
from saddlesvm.runtime.compiled import select
from saddlesvm.runtime.exp_log import exp_of_negative, log_of, log_one_plus

# The names of the losses below, and their other names, for editors and type checkers.
ClassificationLoss: TypeAlias = Literal[
    "hinge", "squared_hinge", "smooth_hinge", "logistic", "l1", "l2", "log_loss"
]


@register(
    "hinge",
    task="classification",
    shape=Shape.KINKED,
    parabolic=True,
    exponentials=False,
    joint=True,
)
class Hinge(NamedTuple):
    """max(0, 1 - yz): the support vector machine's loss ("L1-loss" in LIBLINEAR's papers)."""

    def value(self, z: float, y: float) -> float:
        return np.maximum(0.0, 1.0 - y * z)

    def subgradient(self, z: float, y: float) -> float:
        return select(y * z < 1.0, -y, 0.0)

    def conjugate(self, a: float, y: float, s: float) -> float:
        b = a * y
        # s phi*(-a / s) = -b for b = a y in [0, s].
        return select((b >= 0.0) & (b <= s * EDGE), -b, INF)

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        b = a * y
        # Without a quadratic term the step ends at a bound, by the sign of the slope; at a slope of
        # zero it stays.
        if q <= 0.0:
            return y * (select(y * z < 1.0, s, select(y * z > 1.0, 0.0, b)) - b)
        # 1 - y z - q (b' - b) = 0, cut to [0, s].
        return y * (clip(b + (1.0 - y * z) / q, 0.0, s) - b)

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        # The derivative of the conjugate is -1, that of the quadratic term y z.
        return box_slopes(a * y, y * z - 1.0, s)

    def curvature(self, z: float, y: float) -> float:
        return 0.0

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return np.minimum(0.0, y * s), np.maximum(0.0, y * s)

    def largest_curvature(self) -> float:
        return INF

    def tube(self) -> float:
        return 0.0


@register(
    "squared_hinge",
    task="classification",
    shape=Shape.CORNERED,
    parabolic=True,
    exponentials=False,
    joint=True,
)
class SquaredHinge(NamedTuple):
    """max(0, 1 - yz)^2: scikit-learn's and LIBLINEAR's default ("L2-loss")."""

    def value(self, z: float, y: float) -> float:
        return np.maximum(0.0, 1.0 - y * z) ** 2

    def subgradient(self, z: float, y: float) -> float:
        return -2.0 * y * np.maximum(0.0, 1.0 - y * z)

    def conjugate(self, a: float, y: float, s: float) -> float:
        b = a * y
        # s phi*(-a / s) = b^2 / (4 s) - b for b = a y >= 0.
        return select(b >= 0.0, b * b / (4.0 * s) - b, INF)

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        b = a * y
        # 1 - y z - b' / (2 s) - q (b' - b) = 0, solved for b'.
        moved = b + (1.0 - y * z - b / (2.0 * s)) / (q + 1.0 / (2.0 * s))
        return y * (np.maximum(0.0, moved) - b)

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        b = a * y
        return box_slopes(b, y * z - 1.0 + b / (2.0 * s), INF)

    def curvature(self, z: float, y: float) -> float:
        return 2.0 * (y * z < 1.0)

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return np.minimum(0.0, y * INF), np.maximum(0.0, y * INF)

    def largest_curvature(self) -> float:
        return 2.0

    def corners(self) -> tuple[float, ...]:
        return (1.0,)


@register(
    "smooth_hinge",
    task="classification",
    shape=Shape.CORNERED,
    parabolic=True,
    exponentials=False,
    options={"width": POSITIVE},
)
class SmoothHinge(NamedTuple):
    """The hinge with its corner rounded over a stretch of the given width.

    Source: Shalev-Shwartz and Zhang (2013), equation 17.
    """

    width: float = 1.0

    def value(self, z: float, y: float) -> float:
        r = 1.0 - y * z
        # A parabola on a stretch of the given width, then the hinge, lowered by half the width.
        rounded = 0.5 * np.maximum(0.0, r) ** 2 / self.width
        return select(r >= self.width, r - 0.5 * self.width, rounded)

    def subgradient(self, z: float, y: float) -> float:
        return -y * clip((1.0 - y * z) / self.width, 0.0, 1.0)

    def conjugate(self, a: float, y: float, s: float) -> float:
        b = a * y
        # The hinge's conjugate with width b^2 / (2 s) added.
        return select((b >= 0.0) & (b <= s * EDGE), 0.5 * self.width * b * b / s - b, INF)

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        b = a * y
        # 1 - y z - width b' / s - q (b' - b) = 0, cut to [0, s].
        slope = 1.0 - y * z - self.width * b / s
        return y * (clip(b + slope / (q + self.width / s), 0.0, s) - b)

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        b = a * y
        return box_slopes(b, y * z - 1.0 + self.width * b / s, s)

    def curvature(self, z: float, y: float) -> float:
        r = 1.0 - y * z
        return select((r > 0.0) & (r < self.width), 1.0 / self.width, 0.0)

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return np.minimum(0.0, y * s), np.maximum(0.0, y * s)

    def largest_curvature(self) -> float:
        return 1.0 / self.width

    def corners(self) -> tuple[float, ...]:
        return 1.0 - self.width, 1.0


@register("logistic", task="classification", shape=Shape.SMOOTH, parabolic=False, exponentials=True)
class Logistic(NamedTuple):
    """log(1 + exp(-yz)): logistic regression, the loss that gives probabilities."""

    def value(self, z: float, y: float) -> float:
        m = y * z
        # log(1 + exp(-m)) without overflow: the exponent is never positive.
        return log_one_plus(exp_of_negative(-abs(m))) + np.maximum(0.0, -m)

    def subgradient(self, z: float, y: float) -> float:
        return -y * sigmoid(-y * z)

    def conjugate(self, a: float, y: float, s: float) -> float:
        p = a * y / s
        # s (p log p + (1 - p) log(1 - p)), by the smaller of p and 1 - p, which keeps its digits.
        less = np.minimum(p, 1.0 - p)
        entropy = less * log_of(less) + (1.0 - less) * log_one_plus(-less)
        return select((p >= 0.0) & (p <= EDGE), s * entropy, INF)

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        b = a * y
        # log(b' / (s - b')) + y z + q (b' - b) = 0 has no closed form.
        return y * (logit_step(b, y * z, q, s) - b)

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        b = a * y
        # The slope is infinite at both bounds: they are never optimal.
        g = logit(b / s) + y * z
        g = select(b <= 0.0, -INF, select(b >= s, INF, g))
        return g, g

    def curvature(self, z: float, y: float) -> float:
        # With this sign the compiler sees that the subgradient takes the same exponential.
        p = sigmoid(-y * z)
        return p * (1.0 - p)

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return np.minimum(0.0, y * s), np.maximum(0.0, y * s)

    def largest_curvature(self) -> float:
        return 0.25

    def growth(self) -> float:
        return 1.0

    def steepening(self) -> float:
        return 1.0

    def probability(self, scores: np.ndarray) -> np.ndarray:
        positive: np.ndarray = expit(scores)
        return positive
