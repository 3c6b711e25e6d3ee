"""The machines with nu, as kernel problems: their dual variables lie in a box, and their sums are
given.

Every row pays ``max(0, y - z)``, the pinball loss at its end; Schoelkopf and others (2000), "New
support vector algorithms", and (2001), "Estimating the support of a high-dimensional distribution":

    novelty         z = f + b,  y = 0                     sum a = nu sum s        rho = -b
    classification  z = y_i f + b_g,  g the class, y = 0  sum_g a = nu sum s / 2  b_g = y_i b - rho
    regression      z = +-f + b_g,  y = +-t, two rows     sum_g a = nu sum s / 2  b_g = +-b + eps

A classification divided by rho is the solution of the C form for ``C = 1 / rho`` (Chang and Lin
2001).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.kernel.kernel_problem import KernelProblem, Views
from saddlesvm.problem.bounds import UNIT
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.intercepts import Free, Group
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.losses import Pinball

# Rho, relative to its largest value, that counts as zero if no certificate proves a margin
NO_MARGIN = 1e-14
# Bounds the error of a quotient by rho, relative to the offsets whose difference it is
DIVIDING = 8.0 * UNIT
SHORTFALL = Pinball(1.0)  # max(0, y - z)


class PublishedModel(NamedTuple):
    """A model as users get it: coefficients of the points, intercept, certificate."""

    coef: np.ndarray
    intercept: float
    certificate: Certificate


class ModelFacts(NamedTuple):
    """The facts of a problem that its model needs.

    Attributes
    ----------
    sum_at_points : callable
        Turns coefficients of the rows into coefficients of the points.
    longest : float
        The largest ``sqrt(k(x, x))`` of the points, or more.
    charge : float
        C times the sum of the weights of the rows, in the units of the objectives.
    """

    sum_at_points: Callable[[np.ndarray], np.ndarray]
    longest: float
    charge: float

    @classmethod
    def from_problem(cls, problem: KernelProblem) -> ModelFacts:
        """Return the facts of a problem."""
        longest = float(problem.errors.lengths.max(initial=0.0))
        return cls(
            problem.sum_at_points,
            longest,
            problem.C * float(problem.row_weights.sum()) * problem.unit,
        )


class Layout(NamedTuple):
    """How the rows of a machine stand in :class:`~saddlesvm.kernel.small_pairs.Programs`.

    Attributes
    ----------
    signs : tuple of float
        Of the parts.
    groups : tuple of int
        The first part of each group, and the number of parts.
    loss : Loss
    labels : tuple of float, optional
        The label of the rows of each part; by default each row has a target of its own, times the
        sign of its part.
    """

    signs: tuple[float, ...]
    groups: tuple[int, ...]
    loss: Loss
    labels: tuple[float, ...] | None = None


class Machine:
    """How a kernel machine poses its problem over the rows, and makes a model of the solution.

    This one has a loss of its own, and nothing given.
    """

    def layout(self, loss: Loss, classes: int) -> Layout:
        """Return how the rows of a problem stand: of two classes of points (the later one is +1),
        or with targets. Here all rows share an offset.
        """
        if classes == 2:
            return Layout((1.0, 1.0), (0, 2), loss, (-1.0, 1.0))
        return Layout((1.0,), (0, 1), loss)

    def totals(self, weight_sums: np.ndarray) -> np.ndarray:
        """Return the sums of the dual variables of each group, divided by C.

        `weight_sums` has the sums of the weights in each part, shape (problems, parts). Here no sum
        is given but that of a free intercept, which is zero.
        """
        return np.zeros((len(weight_sums), 1))

    def pose(self, problem: KernelProblem) -> KernelProblem:
        """Return the machine's problem, from a plain problem over the same rows."""
        return problem

    def model(
        self, facts: ModelFacts, beta: np.ndarray, offsets: Any, proven: Certificate
    ) -> PublishedModel:
        """Return the model of a certified solution: coefficients of the rows, and offsets of the
        groups.
        """
        return PublishedModel(beta, float(offsets), proven)

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """Return coefficients of the rows, shape (n,), from coefficients of the points.

        Bounds and sums need not hold.
        """
        return beta


PLAIN = Machine()


@dataclasses.dataclass(frozen=True)
class Novelty(Machine):
    """The one-class machine: at most a share `nu` of the rows is outside the surface."""

    nu: float

    def layout(self, loss: Loss, classes: int) -> Layout:
        """Return a single part of all rows."""
        return Layout((1.0,), (0, 1), SHORTFALL, (0.0,))

    def totals(self, weight_sums: np.ndarray) -> np.ndarray:
        """Return nu times the weights."""
        return self.nu * weight_sums

    def pose(self, problem: KernelProblem) -> KernelProblem:
        """Return the problem with a single group, whose sum is nu times the weights."""
        total = self.nu * float(problem.row_weights.sum())
        return dataclasses.replace(
            problem, y=np.zeros(problem.n), loss=SHORTFALL, intercept=Free(1.0, total)
        )


@dataclasses.dataclass(frozen=True)
class NuClassification(Machine):
    """Two classes, a share `nu` of the rows at most inside the margin."""

    nu: float

    def layout(self, loss: Loss, classes: int) -> Layout:
        """Return a group for each class; the later class is +1, and comes first."""
        return Layout((1.0, -1.0), (0, 1, 2), SHORTFALL, (0.0, 0.0))

    def totals(self, weight_sums: np.ndarray) -> np.ndarray:
        """Return half of nu times the weights, for each class.

        Raises
        ------
        ValueError
            A class is too small for this nu.
        """
        half = 0.5 * self.nu * weight_sums.sum(axis=1)
        least = weight_sums.min(axis=1)
        small = np.flatnonzero(half > least * (1.0 + 1e-12))
        if small.size:
            most = 2.0 * least[small[0]] / weight_sums[small[0]].sum()
            raise ValueError(
                f"nu={self.nu:g} is infeasible: the smaller class allows at most {most:.6g}"
            )
        return np.repeat(np.minimum(half, least)[:, None], 2, axis=1)

    def pose(self, problem: KernelProblem) -> KernelProblem:
        """Return the problem with a group for each class.

        Raises
        ------
        ValueError
            A class is too small for this nu.
        """
        s = problem.row_weights
        sides = [np.flatnonzero(problem.y == sign).astype(np.int32) for sign in (1.0, -1.0)]
        # nu fixes the sum of the multipliers of each class.
        [totals] = self.totals(np.array([[s[side].sum() for side in sides]])).tolist()
        groups = tuple(
            Group(side, Free(1.0, total)) for side, total in zip(sides, totals, strict=True)
        )
        # The sign of a row is its label, so that the loss is the same for both classes.
        views = Views(np.arange(problem.n), problem.y, problem.n)
        return dataclasses.replace(
            problem,
            y=np.zeros(problem.n),
            loss=SHORTFALL,
            intercept=Free(1.0),
            views=views,
            groups=groups,
        )

    def model(
        self, facts: ModelFacts, beta: np.ndarray, offsets: Any, proven: Certificate
    ) -> PublishedModel:
        """Return the model divided by rho, so that the margin is 1 as in the C form; as it is if
        there is no margin.

        The best multiple of the quotient is certified, because rho is not published. Rounding moves
        each coefficient of the quotient by at most half a unit of its last place, and the values by
        less than a certificate allows for: that is counted twice. The multiple zero has the
        objective zero.
        """
        # b_g = y_i b - rho: rho and b are half the sum and half the difference of the offsets.
        ahead, behind = map(float, offsets)
        rho = -0.5 * (ahead + behind)
        size = float(beta.sum())  # an optimum that is zero may be met by a multiple below zero
        largest = size * facts.longest**2
        moved = DIVIDING * (abs(ahead) + abs(behind)) * facts.charge
        once_more = proven.primal_rounding + moved
        # There is a margin if the certificate proves a negative optimum, or if rho is more than
        # rounding.
        is_proven_margin = proven.primal + once_more < 0.0 < rho
        unit = 1.0
        if size > 0.0 and (is_proven_margin or rho > NO_MARGIN * largest):
            unit = rho
        # The objective of the quotient is at most that of the solution, and the rounding once more;
        # or zero.
        if proven.primal < 0.0:
            primal = min(proven.primal + once_more, 0.0)
            above = proven.primal_rounding + primal - proven.primal
            proven = dataclasses.replace(proven, primal=primal, primal_rounding=above)
        return PublishedModel(
            facts.sum_at_points(beta) / unit, 0.5 * (ahead - behind) / unit, proven
        )

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """Return the coefficients with their signs, times rho, so that they have the given sum."""
        assert problem.views is not None
        signed = beta * problem.views.signs
        given_sum = sum(group.intercept.total for group in problem.all_groups)
        size = float(signed.sum())
        if size > 0.0:
            signed = signed * (given_sum / size)
        return np.asarray(signed)


@dataclasses.dataclass(frozen=True)
class NuRegression(Machine):
    """A regression whose tube leaves a share `nu` of the rows outside, at most."""

    nu: float

    def layout(self, loss: Loss, classes: int) -> Layout:
        """Return all points twice, with both signs."""
        return Layout((1.0, -1.0), (0, 1, 2), SHORTFALL)

    def totals(self, weight_sums: np.ndarray) -> np.ndarray:
        """Return half of nu times the weights, for each side of the tube."""
        return 0.5 * self.nu * weight_sums

    def pose(self, problem: KernelProblem) -> KernelProblem:
        """Return two rows for each point, for targets above the tube and for targets below it."""
        n = problem.n
        # sum_g a = nu sum s / 2 for each side of the tube, see the module.
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

    def model(
        self, facts: ModelFacts, beta: np.ndarray, offsets: Any, proven: Certificate
    ) -> PublishedModel:
        """Return the model whose tube is in the middle between both offsets."""
        ahead, behind = offsets
        return PublishedModel(facts.sum_at_points(beta), 0.5 * (ahead - behind), proven)

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """Return each coefficient on the side of its sign."""
        return np.concatenate([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])
