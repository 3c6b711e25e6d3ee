"""The machines with nu, as kernel problems: their dual variables lie in a box, and their sums are given.

Every row pays ``max(0, y - z)``, the pinball loss at its end; Schoelkopf and others (2000), "New support vector
algorithms", and (2001), "Estimating the support of a high-dimensional distribution":

    novelty          z = f + b,  y = 0                        sum a = nu sum s                     rho = -b
    classification   z = y_i f + b_g,  g the class, y = 0     sum a = nu sum s / 2 in each class   b_g = y_i b - rho
    regression       z = +-f + b_g,  y = +-t, two rows        sum a = nu sum s / 2 on each side    b_g = +-b + epsilon

A classification divided by rho is the solution of the C form for ``C = 1 / rho`` (Chang and Lin 2001).
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Protocol

import numpy as np

from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.intercepts import Free
from saddlesvm.problem.kernel import Group, KernelProblem, Views
from saddlesvm.problem.losses import Pinball
from saddlesvm.problem.rounding import UNIT

NO_MARGIN = 1e-14  # rho, relative to what it could be, that counts as zero where no certificate proves a margin
DIVIDING = 8.0 * UNIT  # of the offsets: what a quotient by rho, which is a difference of these, can be off
SHORTFALL = Pinball(1.0)  # max(0, y - z)


class Model(NamedTuple):
    """What is published: coefficients of the points, shape (points,), the intercept, and the certificate of both."""

    coef: np.ndarray
    intercept: float
    certificate: Certificate


class Machine(Protocol):
    """How the problem of a kernel machine is posed over its rows, and what model its solution is."""

    def posed(self, problem: KernelProblem) -> KernelProblem:
        """The problem, whose rows are labelled and weighed as those of a plain one."""

    def model(self, problem: KernelProblem, beta: np.ndarray, offsets: Any, proven: Certificate) -> Model:
        """The model that coefficients of the rows and their offsets, and their certificate, are."""

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """Coefficients of the rows of a model's points, shape (n,); feasible up to their bounds and sums."""


class Plain:
    """A loss of its own, as it is."""

    def posed(self, problem: KernelProblem) -> KernelProblem:
        """The problem itself."""
        return problem

    def model(self, problem: KernelProblem, beta: np.ndarray, offsets: Any, proven: Certificate) -> Model:
        """The given value, unchanged."""
        return Model(beta, float(offsets), proven)

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """The given value, unchanged."""
        return beta


PLAIN = Plain()


@dataclasses.dataclass(frozen=True)
class Novelty:
    """The one-class machine: a share `nu` of the rows, at most, is on the wrong side of the surface."""

    nu: float

    def posed(self, problem: KernelProblem) -> KernelProblem:
        """One group with the sum nu."""
        total = self.nu * float(problem.row_weights.sum())
        return dataclasses.replace(problem, y=np.zeros(problem.n), loss=SHORTFALL, intercept=Free(1.0, total))

    def model(self, problem: KernelProblem, beta: np.ndarray, offsets: Any, proven: Certificate) -> Model:
        """As they are."""
        return Model(beta, float(offsets), proven)

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """As they are."""
        return beta


@dataclasses.dataclass(frozen=True)
class NuClassification:
    """Two classes, a share `nu` of the rows at most inside the margin."""

    nu: float

    def posed(self, problem: KernelProblem) -> KernelProblem:
        """A group for each class.

        Raises
        ------
        ValueError
            A class is too small for this nu.
        """
        s = problem.row_weights
        half = 0.5 * self.nu * float(s.sum())
        sides = [np.flatnonzero(problem.y == sign).astype(np.int32) for sign in (1.0, -1.0)]
        least = min(float(s[side].sum()) for side in sides)
        if half > least * (1.0 + 1e-12):
            most = 2.0 * least / float(s.sum())
            raise ValueError(f"nu={self.nu:g} is infeasible: the smaller class allows at most {most:.6g}")
        groups = tuple(Group(side, Free(1.0, min(half, least))) for side in sides)
        views = Views(np.arange(problem.n), problem.y, problem.n)
        return dataclasses.replace(
            problem, y=np.zeros(problem.n), loss=SHORTFALL, intercept=Free(1.0), views=views, groups=groups
        )

    def model(self, problem: KernelProblem, beta: np.ndarray, offsets: Any, proven: Certificate) -> Model:
        """Divided by rho, so that the margin is 1, as in the C form; as they are where there is no margin.

        The best multiple of the quotient is certified, since rho is not published. No coefficient of the quotient is
        off by more than half a unit of its last place, which moves its values less than the rounding of a certificate
        allows for: that is counted twice. The multiple zero has the objective zero.
        """
        ahead, behind = map(float, offsets)
        rho = -0.5 * (ahead + behind)
        size = float(beta.sum())  # an optimum that is zero may be met by a multiple below zero
        largest = size * float(problem.errors.lengths.max(initial=0.0)) ** 2
        moved = DIVIDING * (abs(ahead) + abs(behind)) * problem.C * float(problem.row_weights.sum()) * problem.unit
        once_more = proven.primal_rounding + moved
        margin = proven.primal + once_more < 0.0 < rho
        unit = rho if size > 0.0 and (margin or rho > NO_MARGIN * largest) else 1.0
        if proven.primal < 0.0:
            primal = min(proven.primal + once_more, 0.0)
            above = proven.primal_rounding + primal - proven.primal
            proven = dataclasses.replace(proven, primal=primal, primal_rounding=above)
        return Model(problem.of_points(beta) / unit, 0.5 * (ahead - behind) / unit, proven)

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """With their signs, multiplied by rho again: what they sum to is given."""
        assert problem.views is not None
        signed = beta * problem.views.signs
        asked, size = sum(getattr(side.intercept, "total", 0.0) for side in problem.sides), float(signed.sum())
        return np.asarray(signed * (asked / size) if size > 0.0 else signed)


@dataclasses.dataclass(frozen=True)
class NuRegression:
    """A regression whose tube leaves a share `nu` of the rows outside, at most."""

    nu: float

    def posed(self, problem: KernelProblem) -> KernelProblem:
        """Two rows for each point: one for targets above the tube, one for those below."""
        n = problem.n
        half = 0.5 * self.nu * float(problem.row_weights.sum())
        sides = np.arange(2 * n, dtype=np.int32).reshape(2, n)
        return dataclasses.replace(
            problem,
            y=np.concatenate([problem.y, -problem.y]),
            weights=np.tile(problem.weights, 2),
            loss=SHORTFALL,
            intercept=Free(1.0),
            views=Views(np.tile(np.arange(n), 2), np.repeat([1.0, -1.0], n), n),
            groups=tuple(Group(side, Free(1.0, half)) for side in sides),
        )

    def model(self, problem: KernelProblem, beta: np.ndarray, offsets: Any, proven: Certificate) -> Model:
        """The tube is in the middle between both offsets."""
        ahead, behind = offsets
        return Model(problem.of_points(beta), 0.5 * (ahead - behind), proven)

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """Each on the side of its sign."""
        return np.concatenate([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])
