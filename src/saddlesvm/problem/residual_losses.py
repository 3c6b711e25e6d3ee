"""The regression losses: functions of ``z - y``; their table is in the file `losses`."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from saddlesvm.problem.arithmetic import (
    EDGE,
    INF,
    absolute_slopes,
    clip,
    interval_slopes,
    soft_threshold,
)
from saddlesvm.problem.loss import Shape, register
from saddlesvm.runtime.allowed import NOT_NEGATIVE, POSITIVE, SHARE
from saddlesvm.runtime.compiled import select

# The names of the losses below, and their other names, for editors and type checkers.
RegressionLoss: TypeAlias = Literal[
    "squared", "absolute", "epsilon_insensitive", "squared_epsilon_insensitive", "huber", "pinball",
    "squared_error", "absolute_error",
]  # fmt: skip


@register("squared", task="regression", shape=Shape.SMOOTH, parabolic=True, exponentials=False)
class Squared(NamedTuple):
    """(z - y)^2: ridge regression."""

    def value(self, z: float, y: float) -> float:
        return (z - y) ** 2

    def subgradient(self, z: float, y: float) -> float:
        return 2.0 * (z - y)

    def conjugate(self, a: float, y: float, s: float) -> float:
        return a * a / (4.0 * s) - a * y

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        # y - z - a' / (2 s) - q (a' - a) = 0, solved for a' - a.
        return (y - z - a / (2.0 * s)) / (q + 1.0 / (2.0 * s))

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        g = z - y + a / (2.0 * s)
        return g, g

    def curvature(self, z: float, y: float) -> float:
        return 2.0

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return -INF, INF

    def largest_curvature(self) -> float:
        return 2.0

    def corners(self) -> tuple[float, ...]:
        return ()


@register("absolute", task="regression", shape=Shape.KINKED, parabolic=True, exponentials=False)
class Absolute(NamedTuple):
    """abs(z - y): least absolute deviations."""

    def value(self, z: float, y: float) -> float:
        return abs(z - y)

    def subgradient(self, z: float, y: float) -> float:
        return np.sign(z - y)

    def conjugate(self, a: float, y: float, s: float) -> float:
        return select(abs(a) <= s * EDGE, -a * y, INF)

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        if q <= 0.0:
            # Without a quadratic term the dual is linear: the step ends at a bound.
            return select(y != z, np.copysign(s, y - z) - a, 0.0)
        # y - z - q (a' - a) = 0, cut to [-s, s].
        return clip(a + (y - z) / q, -s, s) - a

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        return absolute_slopes(a, z - y, 0.0, s)

    def curvature(self, z: float, y: float) -> float:
        return 0.0

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return -s, s

    def largest_curvature(self) -> float:
        return INF


@register(
    "epsilon_insensitive",
    task="regression",
    shape=Shape.KINKED,
    parabolic=True,
    exponentials=False,
    options={"epsilon": NOT_NEGATIVE},
)
class EpsilonInsensitive(NamedTuple):
    """max(0, abs(z - y) - eps): the support vector regression loss."""

    epsilon: float = 0.0

    def value(self, z: float, y: float) -> float:
        return np.maximum(0.0, abs(z - y) - self.epsilon)

    def subgradient(self, z: float, y: float) -> float:
        return select(abs(z - y) > self.epsilon, np.sign(z - y), 0.0)

    def conjugate(self, a: float, y: float, s: float) -> float:
        return select(abs(a) <= s * EDGE, self.epsilon * abs(a) - a * y, INF)

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        if q <= 0.0:
            return select(abs(y - z) > self.epsilon, np.copysign(s, y - z), 0.0) - a
        # The conjugate's eps |a'| makes the step a soft threshold, cut to [-s, s].
        return clip(soft_threshold(a + (y - z) / q, self.epsilon / q), -s, s) - a

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        return absolute_slopes(a, z - y, self.epsilon, s)

    def curvature(self, z: float, y: float) -> float:
        return 0.0

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return -s, s

    def largest_curvature(self) -> float:
        return INF

    def tube(self) -> float:
        return self.epsilon


@register(
    "squared_epsilon_insensitive",
    task="regression",
    shape=Shape.CORNERED,
    parabolic=True,
    exponentials=False,
    options={"epsilon": NOT_NEGATIVE},
)
class SquaredEpsilonInsensitive(NamedTuple):
    """max(0, abs(z - y) - eps)^2: the support vector regression loss, squared."""

    epsilon: float = 0.0

    def value(self, z: float, y: float) -> float:
        return np.maximum(0.0, abs(z - y) - self.epsilon) ** 2

    def subgradient(self, z: float, y: float) -> float:
        return 2.0 * soft_threshold(z - y, self.epsilon)

    def conjugate(self, a: float, y: float, s: float) -> float:
        return self.epsilon * abs(a) - a * y + a * a / (4.0 * s)

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        # (q + 1 / (2 s)) a' + eps sign(a') = q a + y - z.
        curvature = q + 1.0 / (2.0 * s)
        return soft_threshold(q * a + y - z, self.epsilon) / curvature - a

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        return absolute_slopes(a, z - y + a / (2.0 * s), self.epsilon, INF)

    def curvature(self, z: float, y: float) -> float:
        return select(abs(z - y) > self.epsilon, 2.0, 0.0)

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return -INF, INF

    def largest_curvature(self) -> float:
        return 2.0

    def corners(self) -> tuple[float, ...]:
        return -self.epsilon, self.epsilon


@register(
    "huber",
    task="regression",
    shape=Shape.CORNERED,
    parabolic=True,
    exponentials=False,
    options={"delta": POSITIVE},
)
class Huber(NamedTuple):
    """(z - y)^2 / 2, continued by straight lines beyond `delta`: outliers pull no harder than that.

    Source: Huber (1964), "Robust estimation of a location parameter".
    """

    delta: float = 1.0

    def value(self, z: float, y: float) -> float:
        r = abs(z - y)
        # Value and slope of the line and the parabola agree at delta.
        return select(r <= self.delta, 0.5 * r * r, self.delta * (r - 0.5 * self.delta))

    def subgradient(self, z: float, y: float) -> float:
        return clip(z - y, -self.delta, self.delta)

    def conjugate(self, a: float, y: float, s: float) -> float:
        return select(abs(a) <= self.delta * s * EDGE, 0.5 * a * a / s - a * y, INF)

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        # y - z - a' / s - q (a' - a) = 0, cut to the bounds.
        reach = self.delta * s
        return clip(a + (y - z - a / s) / (q + 1.0 / s), -reach, reach) - a

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        return interval_slopes(a, z - y + a / s, -self.delta * s, self.delta * s)

    def curvature(self, z: float, y: float) -> float:
        return select(abs(z - y) < self.delta, 1.0, 0.0)

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return -self.delta * s, self.delta * s

    def largest_curvature(self) -> float:
        return 1.0

    def corners(self) -> tuple[float, ...]:
        return -self.delta, self.delta


@register(
    "pinball",
    task="regression",
    shape=Shape.KINKED,
    parabolic=True,
    exponentials=False,
    options={"tau": SHARE},
)
class Pinball(NamedTuple):
    """tau (y - z) below the target, (1 - tau) (z - y) above it: regression of a quantile.

    Source: Koenker and Bassett (1978), "Regression quantiles".
    """

    tau: float = 0.5

    def value(self, z: float, y: float) -> float:
        return np.maximum(self.tau * (y - z), (1.0 - self.tau) * (z - y))

    def subgradient(self, z: float, y: float) -> float:
        return select(z < y, -self.tau, select(z > y, 1.0 - self.tau, 0.0))

    def conjugate(self, a: float, y: float, s: float) -> float:
        # s phi*(-a / s) = -a y where -a / s is a slope of the loss, from -tau to 1 - tau.
        low = (self.tau - 1.0) * s * EDGE
        high = self.tau * s * EDGE
        return select((a >= low) & (a <= high), -a * y, INF)

    def dual_step(self, a: float, z: float, y: float, q: float, s: float) -> float:
        low = (self.tau - 1.0) * s
        high = self.tau * s
        if q <= 0.0:
            return select(z < y, high, select(z > y, low, a)) - a
        # y - z - q (a' - a) = 0, cut to the bounds.
        return clip(a + (y - z) / q, low, high) - a

    def slopes(self, a: float, z: float, y: float, s: float) -> tuple[float, float]:
        return interval_slopes(a, z - y, (self.tau - 1.0) * s, self.tau * s)

    def curvature(self, z: float, y: float) -> float:
        return 0.0

    def bounds(self, y: float, s: float) -> tuple[float, float]:
        return (self.tau - 1.0) * s, self.tau * s

    def largest_curvature(self) -> float:
        return INF

    def tube(self) -> float:
        return 0.0
