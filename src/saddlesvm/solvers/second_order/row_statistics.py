"""Looks: what Newton's method learns from the rows in one pass, part by part; the caller adds what the parts tell.

A look at the weights w gives, of some rows, everything that a step needs: the sums of a certificate, the pull of the
multipliers at w (and so the gradient), the matrix of the rows that bend, and the losses at a few places of the line on
which w was reached, so that a step that proves too long or too short costs one further pass and no more. Nothing of a
row is kept from one pass to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.bounds import add_sizes, point_sizes
from saddlesvm.problem.intercepts import shorten, signed_sums
from saddlesvm.problem.loss import Loss, is_cornerless, traits_of
from saddlesvm.problem.sums import loss_sums
from saddlesvm.problem.terms import Pointwise, Terms, weights_at
from saddlesvm.rows.layouts import Rows, dot_rows
from saddlesvm.runtime.threads import blas_for
from saddlesvm.solvers.base import nothing
from saddlesvm.solvers.second_order.corners import Near, Taken, first_to_cross, rows_taken
from saddlesvm.solvers.second_order.driver import LARGEST, SIZES, TRIALS, UNASKED, PassSums
from saddlesvm.solvers.second_order.kernels import (
    NEGLIGIBLE,
    SmoothedTerms,
    answers_at,
    combine,
    hessian_diagonal,
    hessian_product,
)
from saddlesvm.solvers.second_order.linear_algebra import add_outer, squares_cost

STRIP_VALUES, FEWEST_ROWS = 250_000, 256  # values of the rows that are looked at together: the cache holds them
WIDE_VALUES = 4_000_000  # values of the rows whose squares are summed in single precision, at most
LOSS_SUMS = 5  # numbers that :func:`~saddlesvm.problem.sums.loss_sums` returns


class Ask(NamedTuple):
    """The question of a pass, the same for all parts of the rows.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
        The point to look at.
    back : ndarray of shape (d + 1,) or (0,)
        The point that the line to w comes from; empty for none.
    shorten : tuple of (float, float, bool), optional
        The multipliers are to be shortened so before their sums and their pull are taken, see
        :func:`~saddlesvm.problem.intercepts.shorten`: those of a free intercept have a given sum.
    base : ndarray of shape (d + 1,), optional
        A point whose matrix is known: the change of the matrix from there to w is asked for.
    precise : bool
        Rows of single precision are widen before their squares are added up; else strips of them are summed in single
        precision, which takes half the time.
    share : float
        The share of the rows whose squares are added up, drawn at random; they weigh as much as all do. 0 asks for no
        matrix.
    along : ndarray of shape (d + 1,) or (0,), optional
        The product of the matrix and this direction is asked for, and the diagonal of the matrix, not the matrix.
    alone : bool
        That product is all that is asked for.
    near : Near, optional
        Rows near a corner are to be taken along; the matrix is that of the others.
    """

    w: np.ndarray
    back: np.ndarray
    shorten: tuple[float, float, bool] | None = None
    base: np.ndarray | None = None
    precise: bool = False
    share: float = 1.0
    along: np.ndarray | None = None
    alone: bool = False
    near: Near | None = None

    @property
    def nbytes(self) -> int:
        """Bytes that travel: those of the beginning of the line only once."""
        others = (self.base, None if self.near is None else self.near.other)
        beside = sum(0 if one is None or one is self.back else one.nbytes for one in others)
        return self.w.nbytes + self.back.nbytes + beside + (0 if self.along is None else self.along.nbytes)

    def of_share(self, share: float) -> Ask:
        """The question to a share of the rows: the same."""
        return self

    def empty(self) -> RowStatistics:
        """The empty answer."""
        width = self.w.size
        along, beside = 0 if self.along is None else self.along.size, 0 if self.alone else width
        side = width if self.along is None else 0
        sums, line, bent, signed, sizes = (np.zeros(size) for size in (LOSS_SUMS, len(TRIALS), 3, 4, SIZES))
        pull, diagonal, matrix = np.zeros(beside), np.zeros(beside), np.zeros((side, side), order="F")
        return RowStatistics(sums, line, bent, signed, pull, matrix, diagonal, np.zeros(along), sizes)

    def add_to(
        self,
        into: RowStatistics,
        terms: Terms,
        members: np.ndarray,
        alpha: np.ndarray = UNASKED,
        first: int = 0,
        seed: int = 0,
    ) -> None:
        """Add what some rows tell, and put their multipliers at w into `alpha`.

        Parameters
        ----------
        into : RowStatistics
        terms : Terms
            Of a smooth loss.
        members : ndarray of shape (m,)
            The rows that take part, ascending, in the numbering of `terms`.
        alpha : ndarray of shape (n,)
            In the numbering of `terms`; or of shape (0,), where nobody needs them.
        first, seed : int, default=0
            Make no difference here.
        """
        if self.along is not None:
            _add_product(terms, members, self, into, alpha)
            return
        single = not self.precise and not terms.X.sparse and terms.X.dtype == np.float32
        drawn = nothing() if self.share >= 1.0 else np.random.default_rng(members.size).random(members.size)
        every, done = np.empty(terms.y.size if drawn.size else 0), 0
        for wide in strips(terms.X, members, WIDE_VALUES):
            total = np.zeros(into.matrix.shape, dtype=np.float32, order="F") if single else into.matrix
            for chosen in strips(terms.X, wide, STRIP_VALUES):
                bends = _add_strip(terms, chosen, self, into, alpha)
                if drawn.size and self.share:
                    every[chosen] = bends
                    hessian_diagonal(terms.X, chosen, every, into.diagonal)
                    some = np.flatnonzero(drawn[done : done + chosen.size] < self.share)
                    done, chosen, bends = done + chosen.size, chosen[some], bends[some] / self.share
                if self.share:
                    _add_squares(terms, chosen, bends, total)
            if single:
                into.matrix[:] += total


@dataclass
class RowStatistics(PassSums):
    """The answers of some rows.

    Attributes
    ----------
    sums : ndarray of shape (5,)
        Of :func:`~saddlesvm.problem.sums.loss_sums`, at w and its multipliers.
    line : ndarray of shape (len(TRIALS),)
        ``sum_i s_i phi_i`` at the places of the line; zeros where there is none.
    bent : ndarray of shape (3,)
        How many rows bend; and the sums, and sums of squares, of their part in the matrix, ``C s_i phi_i'' ||x_i||^2``.
    signed : ndarray of shape (4,)
        Sums of the positive and negative multipliers, see :func:`~saddlesvm.problem.intercepts.signed_sums`.
    pull : ndarray of shape (d + 1,)
        ``sum_i a_i x_i`` of the multipliers at w.
    matrix : ndarray of shape (d + 1, d + 1)
        ``C sum_i s_i phi_i'' x_i x_i'``, its lower triangle, or the change of it; in Fortran order.
    diagonal : ndarray of shape (d + 1,)
        The diagonal of all rows' matrix, where that of a share of them was asked for, or a product; else zeros.
    product : ndarray of shape (d + 1,) or (0,)
        That of the matrix and the direction that was asked about.
    sizes : ndarray of shape (SIZES,)
        What bounds on rounding need of the multipliers, see :class:`~saddlesvm.problem.bounds.PointSizes`.
    counts : ndarray of shape (2,)
        The rows near a corner that were taken along, and how many there were to choose from.
    pieces : list of Taken
        These rows.
    """

    sums: np.ndarray
    line: np.ndarray
    bent: np.ndarray
    signed: np.ndarray
    pull: np.ndarray
    matrix: np.ndarray
    diagonal: np.ndarray
    product: np.ndarray
    sizes: np.ndarray
    counts: np.ndarray = field(default_factory=lambda: np.zeros(2))
    pieces: list[Taken] = field(default_factory=list)

    def without_rows(self) -> RowStatistics:
        """The sums alone, and the matrix only where no rows were taken along: else the step is taken where they are."""
        return replace(self, pieces=[], matrix=np.zeros((0, 0)) if self.counts[1] else self.matrix)


def _add_product(terms: Terms, members: np.ndarray, ask: Ask, into: RowStatistics, alpha: np.ndarray) -> None:
    """:meth:`Ask.add_to` for a product with the matrix, in the place of the matrix."""
    bends = np.zeros(terms.y.size)
    for chosen in strips(terms.X, members, STRIP_VALUES):
        bends[chosen] = _bends(terms, chosen, ask.w) if ask.alone else _add_strip(terms, chosen, ask, into, alpha)
        some = chosen[bends[chosen] * terms.norms[chosen] > NEGLIGIBLE]
        if ask.along is not None and ask.along.size:
            hessian_product(terms.X, some, bends, ask.along, into.product)
        if into.diagonal.size:
            hessian_diagonal(terms.X, some, bends, into.diagonal)


def changes_alone(loss: Loss) -> bool:
    """Whether the matrix is best found by its change: the second derivatives of most rows stay as they are."""
    return traits_of(loss).parabolic or not is_cornerless(loss)


def _add_strip(terms: Terms, chosen: np.ndarray, ask: Ask, into: RowStatistics, alpha: np.ndarray) -> np.ndarray:
    """Look at a strip of rows, for everything but the matrix: their second derivatives, or the changes of them.

    Those of rows taken along are zero.
    """
    points, every = points_of(terms, chosen), np.arange(chosen.size)
    smoothed = SmoothedTerms(*points[:3], terms.C)
    z = margins_of(terms, chosen, ask.w)
    answers = answers_at(smoothed, z)
    into.signed[:] += signed_sums(points, every, answers.alpha)
    if ask.shorten is not None:
        shorten(points, every, answers.alpha, *ask.shorten)
    into.sums[:] += loss_sums(points, every, z, 0.0, answers.alpha)
    combine(terms.X, chosen, answers.alpha, into.pull)
    former = np.empty(0)
    if ask.back.size:
        former = margins_of(terms, chosen, ask.back)
        into.line[:] += losses_on_line(points, former, z)
    norms = terms.norms[chosen]
    parts = answers.bend * norms
    into.bent[:] += np.count_nonzero(parts > NEGLIGIBLE), parts.sum(), parts @ parts
    sizes = point_sizes(
        terms.loss, points.y, norms, points.weights, every, answers.alpha, signs=ask.shorten is not None
    )
    add_sizes(into.sizes, np.array(sizes), LARGEST)
    if alpha.size:
        alpha[chosen] = answers.alpha
    if ask.near is not None:
        other = former if ask.near.other is ask.back else margins_of(terms, chosen, ask.near.other)
        into.counts[1] += z.size
        room = int(ask.near.share * into.counts[1]) - int(into.counts[0])
        taken = first_to_cross(smoothed, z, np.abs(z - other), answers, room)
        into.counts[0] += taken.size
        into.pieces.extend(rows_taken(terms.X, chosen, points, norms, answers.alpha, taken))
        answers.bend[taken] = 0.0
    if ask.base is None:
        return answers.bend
    if ask.base is not ask.back:
        former = margins_of(terms, chosen, ask.base)
    return answers.bend - answers_at(smoothed, former).bend


def _bends(terms: Terms, chosen: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The second derivatives of some rows' losses, times C."""
    smoothed = SmoothedTerms(*points_of(terms, chosen)[:3], terms.C)
    return answers_at(smoothed, margins_of(terms, chosen, w)).bend


def points_of(terms: Terms, chosen: np.ndarray) -> Pointwise:
    """Loss, labels and weights of some rows."""
    return Pointwise(terms.loss, terms.y[chosen], weights_at(terms.weights, chosen))


def margins_of(terms: Terms, chosen: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The margins of some rows."""
    z = np.empty(chosen.size)
    dot_rows(terms.X, chosen, w, z)
    return z


def losses_on_line(points: Pointwise, former: np.ndarray, z: np.ndarray) -> list[float]:
    """``sum_i s_i phi_i`` at the places of a line, by the margins at its beginning and at the point of the pass."""
    every, nowhere = np.arange(z.size), np.zeros(z.size)
    return [loss_sums(points, every, former + place * (z - former), 0.0, nowhere)[0] for place in TRIALS]


def _add_squares(terms: Terms, chosen: np.ndarray, bends: np.ndarray, total: np.ndarray) -> None:
    """``total += sum_k bends_k x_chosen[k] x_chosen[k]'``, its lower triangle."""
    X, sizes = terms.X, bends * terms.norms[chosen]
    per_row = X.data.size / max(X.indptr.size - 1, 1) if X.sparse else 0.0
    for sign in (1.0, -1.0):
        some = np.flatnonzero(sign * sizes > NEGLIGIBLE)
        if some.size:
            with blas_for(squares_cost(X, some.size, per_row, total.itemsize / 8.0)):
                add_outer(X, chosen[some], sign * bends[some], total, sign)


def strips(X: Rows, members: np.ndarray, values: int) -> Iterator[np.ndarray]:
    """The members, rows of about so many values at a time."""
    width = X.n_features + 1
    if X.sparse:
        width = X.data.size // max(X.indptr.size - 1, 1) + 1
    size = max(FEWEST_ROWS, values // width)
    for start in range(0, members.size, size):
        yield members[start : start + size]
