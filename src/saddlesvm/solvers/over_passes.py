"""Methods over passes: each pass over the rows evaluates one point.

A pass is what costs, as rows are read from files or lie on other machines. So a method stands
between two passes with a question, and a pass returns all that the next step needs: sums over the
rows, and copies of a few rows that are taken along.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

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
from saddlesvm.problem.intercepts import Intercept
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.problem.terms import Terms

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

    Attributes
    ----------
    at : ndarray of shape (d + 1,)
        The point that the next pass evaluates.
    model : ndarray of shape (d + 1,)
        The point to certify: the one that the last pass evaluated, or the best so far.
    passes : int
        Passes so far.
    ended : bool
        True if rounding hides what a further step could gain.
    estimate : float
        The relative gap, as far as it is known.
    active : int
        Rows that bend, or are free, at the point of the last pass.
    balances : bool
        True if the best dual point is kept, with the sum that a free intercept asks for.
    """

    balances: ClassVar[bool] = False
    at: np.ndarray
    model: np.ndarray = field(default_factory=lambda: np.empty(0))
    passes: int = 0
    ended: bool = False
    estimate: float = np.inf
    active: int = 0

    @property
    @abstractmethod
    def remark(self) -> str:
        """The last step, in words."""

    @property
    def evaluates(self) -> bool:
        """True if the next pass evaluates a point."""
        return True

    @abstractmethod
    def question(self) -> Question:
        """Return the question of the next pass."""

    @abstractmethod
    def learn_from_pass(self, setting: Setting, found: Any) -> Any:
        """Learn from a pass; return the problem over the rows taken along, or None."""

    @abstractmethod
    def bound_sums(self, facts: Facts) -> Sums:
        """Return the sums of the certificate of `model`, rounding bounded."""

    @abstractmethod
    def ask_balanced(self) -> Any:
        """Return the question of a pass that proves `model` if a free intercept asks for a sum."""

    def bound_balanced(self, facts: Facts, found: Any) -> Sums:
        """Return the sums of the certificate of `model`, from the sums of such a pass."""
        # Balanced dual variables are not those of the margins: their products are not known.
        sums = LossSums(*found.sums.tolist())._replace(products=np.inf, product_sizes=np.inf)
        sizes = PointSizes(*found.sizes.tolist())
        return bound_sums(facts, sums, sizes, self.model, facts.C * found.pulled)

    def proves(self, intercept: Intercept) -> bool:
        """Return True if there is a point to certify."""
        return self.passes > 0

    def gives_up(self, most: int) -> bool:
        """Return True if the method does not suit the rows, or has done `most` passes in vain."""
        return False
