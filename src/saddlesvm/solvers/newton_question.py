"""The question of a single pass that computes all that a step of Newton's method needs.

If a pass over the rows is expensive, because they are read from files or lie on other machines, it
has to return everything at once: the sums of a certificate at the weights W, the pull of the dual
variables there, and so the gradient, and the curvature of a share of the rows. Only rows that are
taken along are kept; the sums over parts of the rows are added.

Curvature is a matrix of the features, or rows taken along, from which conjugate gradients find a
step in memory (:mod:`saddlesvm.solvers.equations`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.bounds import add_sizes, point_sizes, radii
from saddlesvm.problem.intercepts import shorten, signed_sums
from saddlesvm.problem.sums import SUMS, loss_sums
from saddlesvm.problem.terms import Pointwise, Terms, weights_at, weights_or_one
from saddlesvm.rows.matrix import IN_CACHE, LEAST_ROWS
from saddlesvm.rows.places import FLOAT64, Memory
from saddlesvm.solvers.machines import Binary, SoftmaxMachine
from saddlesvm.solvers.over_passes import LARGEST, SIZES, UNASKED, PassSums
from saddlesvm.solvers.search import PLACES
from saddlesvm.solvers.taken_rows import TakenRows


class NewtonQuestion(NamedTuple):
    """What a pass has to compute, the same for all parts of the rows.

    Attributes
    ----------
    W : ndarray of shape (d + 1,) or (d + 1, K)
        The weights at which sums are asked for.
    line_start : ndarray of shape (d + 1,) or (d + 1, K), or (0,)
        The start of the step to W if losses at places of this line are asked for; else empty.
    matrix_share : float
        The share of the rows that the matrix is made of; 0 for no matrix.
    kind : dtype
        The precision in which the matrix is summed.
    taken_share : float
        The share of the rows that may be taken along.
    shorten : tuple of (float, float, bool), optional
        How dual variables are shortened before they are summed, see
        :func:`~saddlesvm.problem.intercepts.shortening`: the dual variables of a free intercept
        have a given sum.
    draw_seed : int
        Seed of the draw of rows, for the matrix or to take along: another for each pass.
    signs : bool
        True if the sums of positive and negative dual variables are asked for.
    """

    W: np.ndarray
    line_start: np.ndarray = UNASKED
    matrix_share: float = 0.0
    kind: type = np.float32
    taken_share: float = 0.0
    shorten: tuple[float, float, bool] | None = None
    draw_seed: int = 0
    signs: bool = False

    def limit_to_share(self, share: float) -> NewtonQuestion:
        """Return the question for a share of the rows: the same, as it takes shares along."""
        return self

    def empty(self) -> NewtonSums:
        """Return the empty answer."""
        side = self.W.shape[0] if self.matrix_share > 0.0 else 0
        return NewtonSums(
            sums=np.zeros(SUMS),
            signed=np.zeros(4),
            pulled=np.zeros(self.W.shape),
            line=np.zeros(len(PLACES)),
            bent=np.zeros(3),
            matrix=np.zeros((side, side)),
            sizes=np.zeros(SIZES),
        )

    def add_to(
        self,
        into: NewtonSums,
        terms: Terms,
        members: np.ndarray,
        alpha: np.ndarray = UNASKED,
        first: int = 0,
        seed: int = 0,
    ) -> None:
        """Add the sums over some rows, as :meth:`~saddlesvm.solvers.over_passes.Question.add_to`.

        The loss is smooth, or the softmax, whose labels are class numbers.
        """
        random = np.random.default_rng([self.draw_seed, seed, first])
        place = strips_of(terms, members)
        drawn: list[tuple[np.ndarray, np.ndarray]] = []
        for rows, block in place.blocks():
            chosen = members[rows]
            norms = terms.norms[chosen]
            Z = place.scores(block, self.W)
            # Losses, conjugates and the pull; then second derivatives.
            machine: Binary | SoftmaxMachine
            if self.W.ndim > 1:
                machine, A, bends, mean = self.add_classes(into, terms, chosen, norms, Z)
            else:
                machine, A, bends, mean = self.add_margins(into, terms, chosen, norms, Z)
            into.pulled += place.pull(block, A)
            if self.line_start.size:
                self.add_line(into, machine, place.scores(block, self.line_start), Z)
            if alpha.size:
                alpha[chosen] = A
            into.bent[:] += chosen.size, np.count_nonzero(mean), norms.sum()

            # The matrix sum_i bend_i x_i x_i'. Rows for the matrix are drawn in proportion to what
            # they add to its trace. Weighted by the inverse of their odds, they have the matrix of
            # all rows as expectation.
            if self.matrix_share > 0.0:
                some, odds = draw_rows(mean * norms, self.matrix_share, random)
                drawn.append((rows.start + some, mean[some] / odds))
            if self.taken_share > 0.0:
                some, odds = draw_rows(mean * norms, self.taken_share, random)
                self.take_along(into, terms, chosen[some], bends[some] / odds[:, None], odds)
        if drawn:
            some, weights = (np.concatenate(found) for found in zip(*drawn, strict=True))
            into.matrix += place.gram(some, weights, self.kind)

    @staticmethod
    def add_line(
        into: NewtonSums, machine: Binary | SoftmaxMachine, before: np.ndarray, after: np.ndarray
    ) -> None:
        """Add the losses at some places of a step, whose ends have these scores."""
        ahead = after - before
        for k, t in enumerate(PLACES):
            into.line[k] += machine.losses(before + t * ahead)

    @staticmethod
    def take_along(
        into: NewtonSums, terms: Terms, rows: np.ndarray, bends: np.ndarray, odds: np.ndarray
    ) -> None:
        """Take rows along, with the weight of all rows."""
        if rows.size:
            weights = weights_or_one(terms.weights, rows) / odds
            taken = TakenRows(terms.X.take(rows), terms.y[rows], weights, np.empty(0), bends, rows)
            into.pieces.append(taken)

    def add_margins(
        self, into: NewtonSums, terms: Terms, chosen: np.ndarray, norms: np.ndarray, z: np.ndarray
    ) -> tuple[Binary, np.ndarray, np.ndarray, np.ndarray]:
        """Add sums of rows with one score; return machine, dual variables, bends, mean bends."""
        points = Pointwise(terms.loss, terms.y[chosen], weights_at(terms.weights, chosen))
        every = np.arange(chosen.size)
        machine = Binary(terms.loss, points.y, points.weights if points.weights.size else 1.0)
        a = machine.dual_variables(every, z, UNASKED, 0.0)
        bends = machine.bend(every, z, a, UNASKED, 0.0)
        if self.signs:
            into.signed += signed_sums(points, every, a)
        if self.shorten is not None:
            shorten(points, every, a, *self.shorten)
        into.sums += loss_sums(points, every, z, 0.0, a)
        sizes = point_sizes(
            terms.loss, points.y, norms, points.weights, every, a, signs=self.shorten is not None
        )
        add_sizes(into.sizes, np.array(sizes), LARGEST)
        return machine, a, bends, bends

    def add_classes(
        self, into: NewtonSums, terms: Terms, chosen: np.ndarray, norms: np.ndarray, Z: np.ndarray
    ) -> tuple[SoftmaxMachine, np.ndarray, np.ndarray, np.ndarray]:
        """Add the sums of rows with a score for each class; bends are averaged over the classes."""
        codes = terms.y[chosen].astype(np.intp)
        weights = weights_at(terms.weights, chosen)
        every = np.arange(chosen.size)
        machine = SoftmaxMachine(
            codes, weights if weights.size else 1.0, self.W.shape[1], radii(norms)
        )
        A, found = machine.respond(every, Z, Z, 0.0)
        into.sums[:3] += found.losses, found.conjugates, found.pulled_size
        bends = machine.bend(every, Z, A, Z, 0.0)
        return machine, A, bends, machine.mean_bend(every, bends)


def draw_rows(
    sizes: np.ndarray, share: float, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw about a share of the rows; return them and their odds, in proportion to their sizes."""
    total = float(sizes.sum())
    if share >= 1.0 or not total > 0.0:
        some = np.flatnonzero(sizes > 0.0)
        return some, np.ones(some.size)
    # The odds add up to the number of rows wanted, share * n, but for those cut at 1.
    odds = np.minimum(1.0, (share * sizes.size / total) * sizes)
    some = np.flatnonzero(random.random(sizes.size) < odds)
    return some, odds[some]


@dataclass
class NewtonSums(PassSums):
    """The answer to a :class:`NewtonQuestion`: sums over some rows.

    Attributes
    ----------
    sums : ndarray of shape (SUMS,)
        :class:`~saddlesvm.problem.bounds.LossSums`, at W and its dual variables; of classes the
        losses, the conjugates, and what :class:`~saddlesvm.problem.multinomial.Response` names
        `pulled`.
    signed : ndarray of shape (4,)
        Sums of the positive and negative dual variables, and of dual variables strictly inside
        their bounds.
    pulled : ndarray of shape (d + 1,) or (d + 1, K)
        ``sum_i a_i x_i``.
    line : ndarray of shape (len(PLACES),)
        Sums of the losses at places of a line.
    bent : ndarray of shape (3,)
        Numbers of the rows, and of the rows that bend; and the sum of all squared norms.
    matrix : ndarray of shape (d + 1, d + 1) or (0, 0)
        ``sum_i bend_i x_i x_i'``, estimated from a share of the rows.
    sizes : ndarray of shape (SIZES,)
        What bounds on rounding need of the dual variables.
    pieces : list of TakenRows
        The rows taken along, with their bends in the place of dual variables.
    """

    sums: np.ndarray
    signed: np.ndarray
    pulled: np.ndarray
    line: np.ndarray
    bent: np.ndarray
    matrix: np.ndarray
    sizes: np.ndarray
    pieces: list[TakenRows] = field(default_factory=list)

    @property
    def n_bent(self) -> int:
        """The number of rows that bend."""
        return int(self.bent[1])

    @property
    def squared_norms(self) -> float:
        """The sum of all squared norms."""
        return float(self.bent[2])


def strips_of(terms: Terms, members: np.ndarray) -> Memory:
    """Return some rows in blocks of about 2^18 values, in double precision."""
    place = Memory(terms.X, members)
    place.kind = FLOAT64
    if terms.X.sparse:
        indptr = terms.X.indptr
        values_per_row = (indptr[-1] - indptr[0]) / max(1, terms.X.n_rows)
        place.block = max(LEAST_ROWS, int(IN_CACHE / max(1.0, values_per_row)))
    return place
