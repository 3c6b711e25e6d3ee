"""Free rows, whose multipliers a small change of the weights would move: found in one pass.

A piecewise linear loss gives nearly every row a multiplier that stays as it is for all weights in
some neighbourhood: the hinge gives 0 to rows beyond the margin, and their weight to rows on the
wrong side of it. Such rows are decided. Their part of the objective is linear there, and one vector
stands for all of them, their pull ``sum_i a_i x_i``. A pass takes the other rows along, up to a
number that the memory allows; what is left to solve is a problem over these alone
(:mod:`saddlesvm.solvers.active_set`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.bounds import add_sizes, point_sizes
from saddlesvm.problem.sums import SUMS, dual_of_margins, loss_sums
from saddlesvm.problem.terms import Pointwise, Terms, weights_at
from saddlesvm.rows.layouts import Rows, combine_rows, dot_rows
from saddlesvm.solvers.over_passes import LARGEST, SIZES, UNASKED, PassSums
from saddlesvm.solvers.search import PLACES
from saddlesvm.solvers.taken_rows import TakenRows, take_along

STRIP_VALUES = 250_000  # values of the rows that are looked at together: the cache holds them
FEWEST_ROWS = 256  # rows that are looked at together, at least
LADDER = 4.0 ** np.arange(-3, 4)  # widths at which rows are counted, per width asked
NARROWEST = 1e-12  # the narrowest and the widest width
WIDEST = 1e12
COUNTED = 8  # one strip of so many is counted


class FreeRowQuestion(NamedTuple):
    """What a pass of the active-set method has to compute, the same for all parts of the rows.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
        The weights at which sums are asked for.
    line_start : ndarray of shape (d + 1,) or (0,)
        The point that the line to w comes from; empty for none.
    width : float
        A row is free if a change of its margin by this much may change its multiplier.
    most : int
        Free rows that a part may take along.
    drawn : float
        The share of the decided rows that is taken along too, drawn at random.
    """

    w: np.ndarray
    line_start: np.ndarray
    width: float
    most: int
    drawn: float

    def limit_to_share(self, share: float) -> FreeRowQuestion:
        """Return the question to a share of the rows, which may use the same share of the room."""
        return self._replace(most=int(np.ceil(share * self.most)))

    def empty(self) -> FreeRowSums:
        """Return the empty answer."""
        return FreeRowSums(
            sums=np.zeros(SUMS),
            line=np.zeros(len(PLACES)),
            counts=np.zeros(len(LADDER) + 1),
            rows=np.zeros(1),
            pull=np.zeros(self.w.size),
            sizes=np.zeros(SIZES),
        )

    def add_to(
        self,
        found: FreeRowSums,
        terms: Terms,
        members: np.ndarray,
        alpha: np.ndarray = UNASKED,
        first: int = 0,
        seed: int = 0,
    ) -> None:
        """Add the answers of some rows, as :meth:`~saddlesvm.solvers.over_passes.Question.add_to`.

        Decided rows are drawn anew for each `seed`; `first` numbers the rows taken along.
        """
        room = self.most - found.taken
        for number, chosen in enumerate(strips(terms.X, members, STRIP_VALUES)):
            points = points_of(terms, chosen)
            every = np.arange(chosen.size)
            norms = terms.norms[chosen]
            z = margins_of(terms, chosen, self.w)
            at = multipliers_at(points, every, z)

            # Free rows are taken along as long as there is room; the others count as decided.
            mask = free_rows(points, every, z, self.width)
            mask[np.flatnonzero(mask)[max(room, 0) :]] = False
            taken = np.flatnonzero(mask)
            decided = np.flatnonzero(~mask)
            room -= taken.size

            # How many rows are free at each width of the ladder, counted on a part of the strips.
            if number % COUNTED == 0:
                for k, step in enumerate(LADDER):
                    found.counts[k] += free_rows(points, every, z, step * self.width).sum()
                found.counts[-1] += chosen.size
            found.rows[0] += chosen.size

            # All sums are over the decided rows, but the losses are over all rows.
            found.sums += loss_sums(points, decided, z[decided], 0.0, at)
            found.sums[0] += loss_sums(points, taken, z[taken], 0.0, at).paid
            # f / C of the decided rows: sum_i a_i x_i.
            combine_rows(terms.X, chosen[decided], at[decided], found.pull)
            sizes = point_sizes(
                terms.loss, points.y, norms, points.weights, decided, at, signs=True
            )
            add_sizes(found.sizes, np.array(sizes), LARGEST)
            if self.line_start.size:
                found.line += losses_on_line(points, margins_of(terms, chosen, self.line_start), z)

            # The draw depends on the place of the rows only, not on who reads them.
            random = np.random.default_rng([members.size, number, seed])
            drawn = decided[random.random(decided.size) < self.drawn]
            for some, pieces in ((taken, found.pieces), (drawn, found.drawn)):
                own = take_along(terms.X, chosen, points, norms, at, some)
                pieces.extend(piece._replace(rows=first + piece.rows) for piece in own)
            if alpha.size:
                alpha[chosen] = at


@dataclass
class FreeRowSums(PassSums):
    """The answer to a :class:`FreeRowQuestion`: sums over some rows, and rows taken along.

    Attributes
    ----------
    sums : ndarray of shape (5,)
        Of :func:`~saddlesvm.problem.sums.loss_sums` at w: the first over all rows, the others over
        the decided ones.
    line : ndarray of shape (len(PLACES),)
        ``sum_i s_i phi_i`` at the places of the line; zeros without a line.
    counts : ndarray of shape (len(LADDER) + 1,)
        How many of the rows that were counted are free at each width, and how many were counted.
    rows : ndarray of shape (1,)
        The number of rows.
    pull : ndarray of shape (d + 1,)
        ``sum_i a_i x_i`` over the decided rows.
    sizes : ndarray of shape (SIZES,)
        What bounds on rounding need of their multipliers.
    pieces : list of TakenRows
        The free rows taken along.
    drawn : list of TakenRows
        The decided rows taken along, as a sample of all decided ones.
    """

    sums: np.ndarray
    line: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    pull: np.ndarray
    sizes: np.ndarray
    pieces: list[TakenRows] = field(default_factory=list)
    drawn: list[TakenRows] = field(default_factory=list)

    @property
    def taken(self) -> int:
        """Free rows taken along."""
        return sum(piece.y.size for piece in self.pieces)


def free_rows(points: Pointwise, every: np.ndarray, z: np.ndarray, width: float) -> np.ndarray:
    """Return which rows are free: a change of their margin by `width` may change the multiplier."""
    # Losses are convex: a multiplier that is the same at both ends is the same between.
    below = multipliers_at(points, every, z - width)
    above = multipliers_at(points, every, z + width)
    return np.asarray(below != above)


def width_of(points: Pointwise, z: np.ndarray, share: float) -> float:
    """Return about the largest width at which at most this share of rows is free."""
    every = np.arange(z.size)
    low = NARROWEST
    high = WIDEST
    if share >= 1.0:
        return np.inf
    while high > 1.1 * low:
        # Bisection in log width, to a tenth.
        middle = np.sqrt(low * high)
        if free_rows(points, every, z, middle).mean() > share:
            high = middle
        else:
            low = middle
    return float(low)


def multipliers_at(points: Pointwise, every: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the multipliers that the losses have at some margins."""
    alpha = np.empty(z.size)
    dual_of_margins(points, every, z, 0.0, alpha)
    return alpha


def points_of(terms: Terms, chosen: np.ndarray) -> Pointwise:
    """Return loss, labels and weights of some rows."""
    return Pointwise(terms.loss, terms.y[chosen], weights_at(terms.weights, chosen))


def margins_of(terms: Terms, chosen: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the margins of some rows."""
    z = np.empty(chosen.size)
    dot_rows(terms.X, chosen, w, z)
    return z


def losses_on_line(points: Pointwise, former: np.ndarray, z: np.ndarray) -> list[float]:
    """Return the losses at places of a line, by the margins at its start and at the point."""
    every = np.arange(z.size)
    nowhere = np.zeros(z.size)
    ahead = z - former
    return [loss_sums(points, every, former + place * ahead, 0.0, nowhere).paid for place in PLACES]


def strips(X: Rows, members: np.ndarray, values: int) -> Iterator[np.ndarray]:
    """Yield the members, rows of about so many values at a time."""
    width = X.n_features + 1
    if X.sparse:
        width = X.data.size // max(X.indptr.size - 1, 1) + 1
    size = max(FEWEST_ROWS, values // width)
    for start in range(0, members.size, size):
        yield members[start : start + size]
