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
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from saddlesvm.kernel.kernel_problem import KernelProblem, Views
from saddlesvm.problem.bounds import UNIT
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.intercepts import Free, Group
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.losses import Pinball

NO_MARGIN = 1e-14  # rho, relative to what it could be, that counts as zero where no certificate proves a margin
DIVIDING = 8.0 * UNIT  # of the offsets: what a quotient by rho, which is a difference of these, can be off
SHORTFALL = Pinball(1.0)  # max(0, y - z)


class PublishedModel(NamedTuple):
    """What is published: coefficients of the points, shape (points,), the intercept, and the certificate of both."""

    coef: np.ndarray
    intercept: float
    certificate: Certificate


class ModelFacts(NamedTuple):
    """What a model needs to know of its problem.

    Attributes
    ----------
    of_points : callable
        Turns coefficients of the rows into those of the points.
    longest : float
        The largest ``sqrt(k(x, x))`` of the points, or more.
    charge : float
        C times the sum of the weights of the rows, in the units of the objectives.
    """

    of_points: Callable[[np.ndarray], np.ndarray]
    longest: float
    charge: float

    @classmethod
    def of(cls, problem: KernelProblem) -> ModelFacts:
        """Those of a problem."""
        longest = float(problem.errors.lengths.max(initial=0.0))
        return cls(problem.of_points, longest, problem.C * float(problem.row_weights.sum()) * problem.unit)


class Layout(NamedTuple):
    """How the rows of a machine stand where many small problems are laid out
    (:class:`~saddlesvm.kernel.kernel_sums.Programs`).

    Attributes
    ----------
    signs : tuple of float
        Of the parts.
    groups : tuple of int
        The first part of each group, and the number of parts.
    loss : Loss
    labels : tuple of float, optional
        The label of the rows of each part; left out: each row has a target of its own, times the sign of its part.
    """

    signs: tuple[float, ...]
    groups: tuple[int, ...]
    loss: Loss
    labels: tuple[float, ...] | None = None


class Machine(Protocol):
    """How the problem of a kernel machine is posed over its rows, and what model its solution is."""

    def layout(self, loss: Loss, classes: int) -> Layout:
        """How the rows of a problem stand, of two classes of points (the later one is +1) or of one with targets."""

    def totals(self, heavy: np.ndarray) -> np.ndarray:
        """The sums of the dual variables of each group, divided by C, shape (problems, groups), for the sums of the
        weights in each part, shape (problems, parts)."""

    def posed(self, problem: KernelProblem) -> KernelProblem:
        """The problem, whose rows are labelled and weighed as those of a plain one."""

    def model(self, facts: ModelFacts, beta: np.ndarray, offsets: Any, proven: Certificate) -> PublishedModel:
        """The model that coefficients of the rows and their offsets, and their certificate, are."""

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """Coefficients of the rows of a model's points, shape (n,); feasible up to their bounds and sums."""


class Plain:
    """A loss of its own, as it is."""

    def layout(self, loss: Loss, classes: int) -> Layout:
        """Two classes share an offset."""
        return Layout((1.0, 1.0), (0, 2), loss, (-1.0, 1.0)) if classes == 2 else Layout((1.0,), (0, 1), loss)

    def totals(self, heavy: np.ndarray) -> np.ndarray:
        """Zeros."""
        return np.zeros((len(heavy), 1))

    def posed(self, problem: KernelProblem) -> KernelProblem:
        """The problem itself."""
        return problem

    def model(self, facts: ModelFacts, beta: np.ndarray, offsets: Any, proven: Certificate) -> PublishedModel:
        """The given value, unchanged."""
        return PublishedModel(beta, float(offsets), proven)

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """The given value, unchanged."""
        return beta


PLAIN = Plain()


@dataclasses.dataclass(frozen=True)
class Novelty:
    """The one-class machine: a share `nu` of the rows, at most, is on the wrong side of the surface."""

    nu: float

    def layout(self, loss: Loss, classes: int) -> Layout:
        """One part."""
        return Layout((1.0,), (0, 1), SHORTFALL, (0.0,))

    def totals(self, heavy: np.ndarray) -> np.ndarray:
        """The share nu."""
        return self.nu * heavy

    def posed(self, problem: KernelProblem) -> KernelProblem:
        """One group with the sum nu."""
        total = self.nu * float(problem.row_weights.sum())
        return dataclasses.replace(problem, y=np.zeros(problem.n), loss=SHORTFALL, intercept=Free(1.0, total))

    def model(self, facts: ModelFacts, beta: np.ndarray, offsets: Any, proven: Certificate) -> PublishedModel:
        """As they are."""
        return PublishedModel(beta, float(offsets), proven)

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """As they are."""
        return beta


@dataclasses.dataclass(frozen=True)
class NuClassification:
    """Two classes, a share `nu` of the rows at most inside the margin."""

    nu: float

    def layout(self, loss: Loss, classes: int) -> Layout:
        """The later class is +1, and comes first."""
        return Layout((1.0, -1.0), (0, 1, 2), SHORTFALL, (0.0, 0.0))

    def totals(self, heavy: np.ndarray) -> np.ndarray:
        """Half of the share nu in each class.

        Raises
        ------
        ValueError
            A class is too small for this nu.
        """
        half, least = 0.5 * self.nu * heavy.sum(axis=1), heavy.min(axis=1)
        small = np.flatnonzero(half > least * (1.0 + 1e-12))
        if small.size:
            most = 2.0 * least[small[0]] / heavy[small[0]].sum()
            raise ValueError(f"nu={self.nu:g} is infeasible: the smaller class allows at most {most:.6g}")
        return np.repeat(np.minimum(half, least)[:, None], 2, axis=1)

    def posed(self, problem: KernelProblem) -> KernelProblem:
        """A group for each class.

        Raises
        ------
        ValueError
            A class is too small for this nu.
        """
        s = problem.row_weights
        sides = [np.flatnonzero(problem.y == sign).astype(np.int32) for sign in (1.0, -1.0)]
        [totals] = self.totals(np.array([[s[side].sum() for side in sides]])).tolist()
        groups = tuple(Group(side, Free(1.0, total)) for side, total in zip(sides, totals, strict=True))
        views = Views(np.arange(problem.n), problem.y, problem.n)
        return dataclasses.replace(
            problem, y=np.zeros(problem.n), loss=SHORTFALL, intercept=Free(1.0), views=views, groups=groups
        )

    def model(self, facts: ModelFacts, beta: np.ndarray, offsets: Any, proven: Certificate) -> PublishedModel:
        """Divided by rho, so that the margin is 1, as in the C form; as they are where there is no margin.

        The best multiple of the quotient is certified, since rho is not published. No coefficient of the quotient is
        off by more than half a unit of its last place, which moves its values less than the rounding of a certificate
        allows for: that is counted twice. The multiple zero has the objective zero.
        """
        ahead, behind = map(float, offsets)
        rho = -0.5 * (ahead + behind)
        size = float(beta.sum())  # an optimum that is zero may be met by a multiple below zero
        largest = size * facts.longest**2
        moved = DIVIDING * (abs(ahead) + abs(behind)) * facts.charge
        once_more = proven.primal_rounding + moved
        margin = proven.primal + once_more < 0.0 < rho
        unit = rho if size > 0.0 and (margin or rho > NO_MARGIN * largest) else 1.0
        if proven.primal < 0.0:
            primal = min(proven.primal + once_more, 0.0)
            above = proven.primal_rounding + primal - proven.primal
            proven = dataclasses.replace(proven, primal=primal, primal_rounding=above)
        return PublishedModel(facts.of_points(beta) / unit, 0.5 * (ahead - behind) / unit, proven)

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """With their signs, multiplied by rho again: what they sum to is given."""
        assert problem.views is not None
        signed = beta * problem.views.signs
        asked, size = sum(side.intercept.total for side in problem.sides), float(signed.sum())
        return np.asarray(signed * (asked / size) if size > 0.0 else signed)


@dataclasses.dataclass(frozen=True)
class NuRegression:
    """A regression whose tube leaves a share `nu` of the rows outside, at most."""

    nu: float

    def layout(self, loss: Loss, classes: int) -> Layout:
        """All points twice, with both signs."""
        return Layout((1.0, -1.0), (0, 1, 2), SHORTFALL)

    def totals(self, heavy: np.ndarray) -> np.ndarray:
        """Half of the share nu on each side."""
        return 0.5 * self.nu * heavy

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

    def model(self, facts: ModelFacts, beta: np.ndarray, offsets: Any, proven: Certificate) -> PublishedModel:
        """The tube is in the middle between both offsets."""
        ahead, behind = offsets
        return PublishedModel(facts.of_points(beta), 0.5 * (ahead - behind), proven)

    def rows_of(self, problem: KernelProblem, beta: np.ndarray) -> np.ndarray:
        """Each on the side of its sign."""
        return np.concatenate([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])
