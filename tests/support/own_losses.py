"""Losses that the package does not know: what a user's file would hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddlesvm import register_loss
from saddlesvm.losses import (
    EDGE,
    POSITIVE,
    SHARE,
    exp_of_negative,
    log_of,
    log_one_plus,
    logit,
    logit_step,
    select,
    sigmoid,
)

INF = float("inf")


@register_loss(
    "expectile", task="regression", shape="cornered", parabolic=True, exponentials=False, options={"tau": SHARE}
)
class Expectile(NamedTuple):
    """tau (z - y)^2 below the target, (1 - tau) (z - y)^2 above it."""

    tau: float = 0.5

    def value(self, z: float, y: float) -> float:
        return select(z < y, self.tau, 1.0 - self.tau) * (z - y) ** 2

    def subgradient(self, z: float, y: float) -> float:
        return 2.0 * select(z < y, self.tau, 1.0 - self.tau) * (z - y)

    def conjugate(self, a: float, y: float, s: float) -> float:
        return a * a / (4.0 * s * select(a > 0.0, self.tau, 1.0 - self.tau)) - a * y

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        t = q * a + y - z
        return t / (q + 1.0 / (2.0 * s * select(t > 0.0, self.tau, 1.0 - self.tau))) - a

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        g = z - y + a / (2.0 * s * select(a > 0.0, self.tau, 1.0 - self.tau))
        return g, g

    def curvature(self, z: float, y: float) -> float:
        return 2.0 * select(z < y, self.tau, 1.0 - self.tau)

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return -INF, INF

    def largest_curvature(self) -> float:
        return 2.0 * max(self.tau, 1.0 - self.tau)

    def corners(self) -> tuple[float, ...]:
        return (0.0,)


@register_loss(
    "steep_logistic",
    task="classification",
    shape="smooth",
    parabolic=False,
    exponentials=True,
    options={"k": POSITIVE},
)
class SteepLogistic(NamedTuple):
    """log(1 + exp(-k y z)) / k: between the logistic loss (k = 1) and the perceptron's (k without limit)."""

    k: float = 2.0

    def value(self, z: float, y: float) -> float:
        m = self.k * y * z
        return (log_one_plus(exp_of_negative(-abs(m))) + np.maximum(0.0, -m)) / self.k

    def subgradient(self, z: float, y: float) -> float:
        return -y * sigmoid(-self.k * y * z)

    def conjugate(self, a: float, y: float, s: float) -> float:
        p = a * y / s
        less = np.minimum(p, 1.0 - p)
        entropy = less * log_of(less) + (1.0 - less) * log_one_plus(-less)
        return select((p >= 0.0) & (p <= EDGE), s * entropy / self.k, INF)

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        return y * (logit_step(a * y, self.k * y * z, self.k * q, s) - a * y)

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        b = a * y
        g = logit(b / s) / self.k + y * z
        g = select(b <= 0.0, -INF, select(b >= s, INF, g))
        return g, g

    def curvature(self, z: float, y: float) -> float:
        p = sigmoid(-self.k * y * z)
        return self.k * p * (1.0 - p)

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return np.minimum(0.0, y * s), np.maximum(0.0, y * s)

    def largest_curvature(self) -> float:
        return 0.25 * self.k

    def steepening(self) -> float:
        return self.k
