"""A look at the rows: all that a step of Newton's method needs of them, from a single pass.

If a pass over the rows is dear, because they are read from files or lie on other machines, it has
to return everything at once: the sums of a certificate at the weights W, the pull of the
multipliers there, and so the gradient, and the curvature of a share of the rows. Nothing of a row
is kept but what is taken along, and what parts of the rows tell is added up.

Curvature is a matrix of the features, or rows taken along, from which conjugate gradients find a step in memory
(:mod:`saddlesvm.solvers.equations`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.bounds import add_sizes, point_sizes, radii
from saddlesvm.problem.intercepts import shorten, signed_sums
from saddlesvm.problem.sums import loss_sums
from saddlesvm.problem.terms import Pointwise, Terms, weights_at
from saddlesvm.rows.matrix import IN_CACHE, LEAST_ROWS
from saddlesvm.rows.places import FLOAT64, Memory
from saddlesvm.solvers.machines import Binary, Softmax
from saddlesvm.solvers.over_passes import LARGEST, SIZES, UNASKED, PassSums
from saddlesvm.solvers.search import PLACES
from saddlesvm.solvers.taken_rows import Taken

LOSS_SUMS = 5  # numbers that loss_sums returns


class Look(NamedTuple):
    """The question of a pass, the same for all parts of the rows.

    Attributes
    ----------
    W : ndarray of shape (d + 1,) or (d + 1, K)
        The weights to look at.
    back : ndarray of shape (d + 1,) or (d + 1, K), or (0,)
        The beginning of the line to W, if losses at its places are asked for; else empty.
    telling : float
        The share of the rows that tells the matrix; 0 for no matrix.
    kind : dtype
        The precision of the matrix' products.
    product : ndarray of shape (d + 1,) or (0,)
        A direction whose product with the matrix is asked for, and the matrix' diagonal.
    alone : bool
        That product is all that is asked for.
    along : float
        The share of the rows that may be taken along.
    shorten : tuple of (float, float, bool), optional
        How multipliers are shortened before they are summed, see
        :func:`~saddlesvm.problem.intercepts.shortening`: the multipliers of a free intercept have a
        given sum.
    draw : int
        Of the rows that make the matrix or are taken along: another seed for each pass.
    signs : bool
        Whether the sums of positive and negative multipliers are asked for.
    """

    W: np.ndarray
    back: np.ndarray = UNASKED
    telling: float = 0.0
    kind: type = np.float32
    product: np.ndarray = UNASKED
    alone: bool = False
    along: float = 0.0
    shorten: tuple[float, float, bool] | None = None
    draw: int = 0
    signs: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return self.W.nbytes + self.back.nbytes + self.product.nbytes

    def of_share(self, share: float) -> Look:
        """The question to a share of the rows: the same."""
        return self

    def empty(self) -> Looked:
        """The empty answer."""
        side = self.W.shape[0] if self.telling > 0.0 else 0
        return Looked(
            sums=np.zeros(LOSS_SUMS),
            signed=np.zeros(4),
            pulled=np.zeros(self.W.shape),
            line=np.zeros(len(PLACES)),
            bent=np.zeros(3),
            matrix=np.zeros((side, side)),
            product=np.zeros(self.product.shape),
            diagonal=np.zeros(0 if self.alone else self.product.shape),
            sizes=np.zeros(SIZES),
        )

    def add_to(
        self,
        into: Looked,
        terms: Terms,
        members: np.ndarray,
        alpha: np.ndarray = UNASKED,
        first: int = 0,
        seed: int = 0,
    ) -> None:
        """Add what some rows tell, and put their multipliers at W into `alpha`.

        Parameters
        ----------
        into : Looked
        terms : Terms
            Of a smooth loss, or of the softmax, whose labels are class numbers.
        members : ndarray of shape (m,)
            The rows that take part, ascending, in the numbering of `terms`.
        alpha : ndarray of shape (n,)
            In the numbering of `terms`; or of shape (0,), if nobody needs them.
        first, seed : int, default=0
            The number of the first row of `terms`, and that of the part: of the draw of rows to take along.
        """
        random = np.random.default_rng([self.draw, seed, first])
        place = strips_of(terms, members)
        told: list[tuple[np.ndarray, np.ndarray]] = []
        for rows, block in place.blocks():
            chosen = members[rows]
            norms = terms.norms[chosen]
            Z = place.scores(block, self.W)
            if self.alone:
                into.product += place.pull(block, self.curve(terms, chosen, Z, place.scores(block, self.product)))
                continue
            machine: Binary | Softmax
            if self.W.ndim > 1:
                machine, A, bends, mean = self.look_at_classes(into, terms, chosen, norms, Z)
            else:
                machine, A, bends, mean = self.look_at_margins(into, terms, chosen, norms, Z)
            into.pulled += place.pull(block, A)
            if self.back.size:
                self.look_along(into, machine, place.scores(block, self.back), Z)
            if alpha.size:
                alpha[chosen] = A
            into.bent[:] += chosen.size, np.count_nonzero(mean), norms.sum()
            if self.telling > 0.0:
                some, odds = draw_rows(mean * norms, self.telling, random)
                told.append((rows.start + some, mean[some] / odds))
            if self.product.size:
                change = machine.curve(rows, bends, place.scores(block, self.product))
                into.product += place.pull(block, change)
                into.diagonal += place.pull_squares(block, mean)
            if self.along > 0.0:
                some, odds = draw_rows(mean * norms, self.along, random)
                self.take_along(into, terms, chosen[some], bends[some] / odds[:, None], odds)
        if told:
            some, weights = (np.concatenate(found) for found in zip(*told, strict=True))
            into.matrix += place.gram(some, weights, self.kind)

    @staticmethod
    def look_along(into: Looked, machine: Binary | Softmax, before: np.ndarray, after: np.ndarray) -> None:
        """Add the losses at some places of a line, whose ends have these scores."""
        ahead = after - before
        for k, place in enumerate(PLACES):
            into.line[k] += machine.losses(before + place * ahead)

    @staticmethod
    def take_along(into: Looked, terms: Terms, rows: np.ndarray, bends: np.ndarray, odds: np.ndarray) -> None:
        """Take rows along, which weigh as much as all rows."""
        if rows.size:
            weights = (terms.weights[rows] if terms.weights.size else 1.0) / odds
            taken = Taken(terms.X.taken(rows), terms.y[rows], weights, np.empty(0), bends, rows)
            into.pieces.append(taken)

    @staticmethod
    def curve(terms: Terms, chosen: np.ndarray, z: np.ndarray, along: np.ndarray) -> np.ndarray:
        """By how much the multipliers of rows with scores z fall along changes of these."""
        weights = weights_at(terms.weights, chosen)
        machine = Binary(terms.loss, terms.y[chosen], weights if weights.size else 1.0)
        bends = machine.bend(np.arange(z.size), z, z, UNASKED, 0.0)
        return machine.curve(np.arange(z.size), bends, along)

    def look_at_margins(
        self, into: Looked, terms: Terms, chosen: np.ndarray, norms: np.ndarray, z: np.ndarray
    ) -> tuple[Binary, np.ndarray, np.ndarray, np.ndarray]:
        """Add the sums of some rows with a score each; return machine, multipliers, bends, and bends."""
        points = Pointwise(terms.loss, terms.y[chosen], weights_at(terms.weights, chosen), True)
        every = np.arange(chosen.size)
        machine = Binary(terms.loss, points.y, points.weights if points.weights.size else 1.0)
        a = machine.multipliers(every, z, UNASKED, 0.0)
        bends = machine.bend(every, z, a, UNASKED, 0.0)
        if self.signs:
            into.signed += signed_sums(points, every, a)
        if self.shorten is not None:
            shorten(points, every, a, *self.shorten)
        into.sums += loss_sums(points, every, z, 0.0, a)
        sizes = point_sizes(terms.loss, points.y, norms, points.weights, every, a, signs=self.shorten is not None)
        add_sizes(into.sizes, np.array(sizes), LARGEST)
        return machine, a, bends, bends

    def look_at_classes(
        self, into: Looked, terms: Terms, chosen: np.ndarray, norms: np.ndarray, Z: np.ndarray
    ) -> tuple[Softmax, np.ndarray, np.ndarray, np.ndarray]:
        """The same for rows with a score for each class; the last are means over these."""
        codes = terms.y[chosen].astype(np.intp)
        weights = weights_at(terms.weights, chosen)
        every = np.arange(chosen.size)
        machine = Softmax(codes, weights if weights.size else 1.0, self.W.shape[1], radii(norms))
        A, found = machine.respond(every, Z, Z, 0.0)
        into.sums[:3] += found.paid, found.conjugates, found.pulled
        bends = machine.bend(every, Z, A, Z, 0.0)
        return machine, A, bends, machine.mean_bend(every, bends)


def draw_rows(sizes: np.ndarray, share: float, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw about a share of the rows, more likely rows of large size; return them, and their odds."""
    total = float(sizes.sum())
    if share >= 1.0 or not total > 0.0:
        some = np.flatnonzero(sizes > 0.0)
        return some, np.ones(some.size)
    odds = np.minimum(1.0, (share * sizes.size / total) * sizes)
    some = np.flatnonzero(random.random(sizes.size) < odds)
    return some, odds[some]


@dataclass
class Looked(PassSums):
    """What some rows tell.

    Attributes
    ----------
    sums : ndarray of shape (5,)
        Of :func:`~saddlesvm.problem.sums.loss_sums`, at W and its multipliers; of classes the losses, the conjugates,
        and what :class:`~saddlesvm.problem.multinomial.Response` names `pulled`.
    signed : ndarray of shape (4,)
        Sums of the positive and negative multipliers, and of multipliers strictly inside their
        bounds.
    pulled : ndarray of shape (d + 1,) or (d + 1, K)
        ``sum_i a_i x_i``.
    line : ndarray of shape (len(PLACES),)
        Sums of the losses at places of a line.
    bent : ndarray of shape (3,)
        Numbers of the rows, and of the rows that bend; and the sum of all squared norms.
    matrix : ndarray of shape (d + 1, d + 1) or (0, 0)
        ``sum_i bend_i x_i x_i'``, as a share of them tells it.
    product, diagonal : ndarray of shape (d + 1,) or (0,)
        The matrix times a direction, and its diagonal, of all rows.
    sizes : ndarray of shape (SIZES,)
        What bounds on rounding need of the multipliers.
    pieces : list of Taken
        The rows taken along, with their bends in the place of multipliers.
    """

    sums: np.ndarray
    signed: np.ndarray
    pulled: np.ndarray
    line: np.ndarray
    bent: np.ndarray
    matrix: np.ndarray
    product: np.ndarray
    diagonal: np.ndarray
    sizes: np.ndarray
    pieces: list[Taken] = field(default_factory=list)


def strips_of(terms: Terms, members: np.ndarray) -> Memory:
    """Some rows in strips of about 2^18 values, in double precision."""
    place = Memory(terms.X, members)
    place.kind = FLOAT64
    if terms.X.sparse:
        indptr = terms.X.indptr
        a_row = (indptr[-1] - indptr[0]) / max(1, terms.X.n_rows)
        place.block = max(LEAST_ROWS, int(IN_CACHE / max(1.0, a_row)))
    return place
