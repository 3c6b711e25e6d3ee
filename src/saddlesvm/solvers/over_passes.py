"""Methods over passes: each pass over the rows evaluates one point.

A pass is what costs, as rows are read from files or lie on other machines. So a method stands
between two passes with a question, and a pass returns all that the next step needs: sums over the
rows, and copies of a few rows that are taken along.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from saddlesvm.problem.bounds import (
    Facts,
    LossSums,
    PointSizes,
    Sums,
    add_sizes,
    bound_sums,
    largest_among,
)
from saddlesvm.problem.certificate import relative
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.problem.terms import Terms
from saddlesvm.solvers.base import empty_array

if TYPE_CHECKING:
    from typing import Self

UNASKED = np.empty(0)  # in the place of multipliers that nobody needs
# The sizes of multipliers that bounds on rounding need: their number, and which are no sums.
SIZES = len(PointSizes._fields)
LARGEST = largest_among(PointSizes)


class Setting(NamedTuple):
    """The problem of a method over passes, besides its rows, and the limits of its work.

    Attributes
    ----------
    loss : Loss
    C : float
    regularizer : Regularizer
    tol : float
        The relative gap asked for.
    memory : float
        Bytes for factors of a problem over rows taken along.
    """

    loss: Loss
    C: float
    regularizer: Regularizer
    tol: float
    memory: float


class PassSums:
    """The base class of what a pass finds in some rows.

    Subclasses are dataclasses: arrays are sums, lists are rows taken along.
    """

    sizes: np.ndarray  # of shape (SIZES,): what bounds on rounding need of the multipliers

    @property
    def values(self) -> list[Any]:
        """The sums and the lists."""
        return [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]

    def add(self, other: PassSums) -> None:
        """Add the sums and the rows of other rows."""
        for total, more in zip(self.values, other.values, strict=True):
            if total is self.sizes:
                add_sizes(total, more, LARGEST)
            else:
                total += more

    def copy(self) -> Self:
        """Return a copy, which may be added to."""
        return type(self)(*map(copy, self.values))

    def without_rows(self) -> Self:
        """Return the sums alone."""
        return type(self)(*([] if isinstance(value, list) else value for value in self.values))


class Question(Protocol):
    """What a pass has to compute, the same for all parts of the rows."""

    def limit_to_share(self, share: float) -> Question:
        """Return the question to a share of the rows, which may use the same share of the room."""

    def empty(self) -> PassSums:
        """Return the empty answer."""

    def add_to(
        self,
        sums: Any,
        /,
        terms: Terms,
        members: np.ndarray,
        alpha: np.ndarray = UNASKED,
        first: int = 0,
        seed: int = 0,
    ) -> None:
        """Add the sums over some rows, and put their dual variables into `alpha`.

        Parameters
        ----------
        sums : PassSums
            What :meth:`empty` returned, with the sums over other rows.
        terms : Terms
        members : ndarray of shape (m,)
            The rows that take part, ascending, in the numbering of `terms`.
        alpha : ndarray of shape (n,)
            In the numbering of `terms`; or of shape (0,), if nobody needs them.
        first, seed : int, default=0
            The number of the first row of `terms`, and that of the part: more seeds of the draw.
        """


@dataclass
class OverPasses(ABC):
    """The state of a method that evaluates one point in each pass over the rows.

    It keeps the best weights and the best dual point, which may come from different passes, with
    the sums of their certificate. A pass costs too much to be made twice.

    Attributes
    ----------
    at : ndarray of shape (d + 1,)
        The point that the next pass evaluates.
    model : ndarray of shape (d + 1,)
        The best weights so far.
    passes : int
        Passes so far.
    ended : bool
        True if rounding hides what a further step could gain.
    active : int
        Rows that bend, or are free, at the point of the last pass.
    primal, paid : float
        The objective of `model` in the C form, and the sum of its losses.
    dual, conjugates, charged : float
        The objective of the best dual point, the sum of its conjugates, and that of their sizes.
        Minus infinity without a dual point: the sums are then those of zero.
    pull : ndarray of shape (d + 1,)
        ``C sum_i a_i x_i`` of that point.
    sizes : ndarray of shape (SIZES,)
        The sizes of the labels and of its dual variables, which bounds on rounding need.
    products, product_sizes : float
        Sums of ``a_i z_i`` and of their sizes if both points belong to one pass; else infinite.
    """

    at: np.ndarray
    model: np.ndarray = field(default_factory=empty_array)
    passes: int = 0
    ended: bool = False
    active: int = 0
    primal: float = np.inf
    paid: float = 0.0
    dual: float = -np.inf
    conjugates: float = 0.0
    charged: float = 0.0
    pull: np.ndarray = field(default_factory=empty_array)
    sizes: np.ndarray = field(default_factory=lambda: np.zeros(SIZES))
    products: float = np.inf
    product_sizes: float = np.inf

    @property
    @abstractmethod
    def remark(self) -> str:
        """The last step, in words."""

    @property
    def estimate(self) -> float:
        """The relative gap of the best points."""
        return relative(max(self.primal - self.dual, 0.0), self.primal, self.dual)

    @property
    def is_proven(self) -> bool:
        """True if there are weights, and a dual point with the sum that the intercept asks for."""
        return bool(np.isfinite(self.dual) and np.isfinite(self.primal))

    @abstractmethod
    def question(self) -> Question:
        """Return the question of the next pass."""

    @abstractmethod
    def learn_from_pass(self, setting: Setting, found: Any) -> Any:
        """Learn from a pass; return the problem over the rows taken along, or None."""

    def keep_weights(self, primal: float, paid: float) -> None:
        """Keep the point of the pass if it is the best so far."""
        if primal < self.primal:
            self.primal = primal
            self.paid = paid
            self.model = self.at
            self.products = np.inf

    def keep_bound(self, dual: float, pull: np.ndarray, sums: LossSums, sizes: np.ndarray) -> bool:
        """Keep a dual point with the sum that is asked for if it is the best; return True then."""
        if not dual > self.dual:
            return False
        self.dual = dual
        self.pull = pull
        self.conjugates = sums.conjugates
        self.charged = sums.conjugate_sizes
        self.sizes = sizes
        self.products = np.inf
        return True

    def keep_best_of(self, other: OverPasses) -> None:
        """Keep the best points of a method that went before: further passes have to be better."""
        self.model = other.model
        self.primal = other.primal
        self.paid = other.paid
        self.dual = other.dual
        self.conjugates = other.conjugates
        self.charged = other.charged
        self.pull = other.pull
        self.sizes = other.sizes

    def bound_sums(self, facts: Facts) -> Sums:
        """Return the sums of the certificate of the best points, rounding bounded."""
        found = LossSums(
            self.paid, self.conjugates, self.products, self.charged, self.product_sizes
        )
        return bound_sums(facts, found, PointSizes(*self.sizes.tolist()), self.model, self.pull)

    def gives_up(self, most: int) -> bool:
        """Return True if the method does not suit the rows, or has done `most` passes in vain."""
        return False


def sizes_of_labels(sizes: np.ndarray) -> np.ndarray:
    """Return the sizes of zero dual variables, from those of others of the same rows."""
    point = PointSizes(*sizes.tolist())
    return np.array(point._replace(pulled=0.0, paired=0.0, positive=0.0, negative=0.0))
