"""A problem whose rows are read block by block, and certificates that need no extra pass over the data.

Weak duality holds for any pair of a primal and a dual point. A sweep over the blocks therefore proves two things on the
way: each block, as it is read, gives its share of ``P(v)`` for the weights v from when the sweep began, and once its
dual variables have moved, its share of ``D(a)``. At the end of the sweep ``P(v) - D(a)`` bounds how far v is from the
optimum, where a is one sweep newer than v. This certificate needs no pass of its own, and both sums are in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from saddlesvm.problem.certificate import Certificate, Evaluation, Point, evaluate
from saddlesvm.problem.fingerprint import fingerprint, marks, sketch
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem, is_classification, make_problem
from saddlesvm.problem.proven_sums import summed
from saddlesvm.problem.rounding import CHUNK, PointSizes, RowSizes, point_sizes, row_sizes
from saddlesvm.problem.sums import dual_weights, loss_sums
from saddlesvm.problem.terms import Pointwise, weights_at
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.files import BlockReader, RowBlock, rows_between
from saddlesvm.rows.layouts import Rows, add_rows
from saddlesvm.rows.passes import FromFiles, Part, Passes, squared_norms

SAMPLED = 256  # rows in a sample that represents all rows


class Rooms(NamedTuple):
    """Memory that a problem over files may use, each array of shape (n_all,), in memory or in a mapped file.

    Attributes
    ----------
    duals : ndarray
        Where the solver keeps its dual variables.
    best : ndarray, optional
        Those of the best bound so far; a copy in memory is made where there is no room.
    spare : ndarray, optional
        Further ones, of a sweep under way.
    kept_bytes : int
        Bytes for rows that the solver may keep from one block to the end of the sweep.
    """

    duals: np.ndarray
    best: np.ndarray | None = None
    spare: np.ndarray | None = None
    kept_bytes: int = 0


@dataclass(frozen=True, eq=False)
class StreamedProblem(Problem):
    """A problem over rows in files.

    ``X`` are the mapped rows; every pass over all of them reads them block by block (:attr:`passes`). Labels are kept
    as int8; the first reading of each block fills ``norms``.

    Attributes
    ----------
    reader : BlockReader
    rooms : Rooms
    """

    stored_points: ClassVar[str] = "checked later"
    in_memory: ClassVar[type[Problem]] = Problem  # of some of its rows
    reader: BlockReader = field(kw_only=True, repr=False)
    rooms: Rooms = field(kw_only=True, repr=False)

    @property
    def duals(self) -> np.ndarray:
        """Where the solver keeps its dual variables, shape (n_all,)."""
        return self.rooms.duals

    @property
    def kept_bytes(self) -> int:
        """Bytes for rows that the solver may keep from one block to the end of the sweep."""
        return self.rooms.kept_bytes

    def spare_duals(self) -> np.ndarray:
        """The room for further dual variables, shape (n_all,); in memory where none was given."""
        return np.zeros(self.y.size) if self.rooms.spare is None else self.rooms.spare

    def kept_duals(self, alpha: np.ndarray) -> np.ndarray:
        """A copy of dual variables, in the room for those of the best bound: the one copied before is gone."""
        if self.rooms.best is None or alpha.shape != self.rooms.best.shape:
            return alpha.copy()
        self.rooms.best[:] = alpha
        return self.rooms.best

    @property
    def row_sizes(self) -> RowSizes:
        """As of any problem, anew each time: squared norms are known once their block has been read."""
        return row_sizes(self.X, self.norms, self.weights, self.members)

    @cached_property
    def passes(self) -> Passes:
        """Passes over the blocks of the files."""
        return FromFiles(self.reader, self.members)

    @property
    def pointwise(self) -> Pointwise:
        """Loss, labels and weights as compiled kernels take them; the labels are a copy in float64."""
        return Pointwise(self.loss, self.y.astype(np.float64, copy=False), self.weights)

    @property
    def asks_margins(self) -> bool:
        """Whether the margins of all rows are computed as they are read: where at least half of them take part."""
        return 2 * self.members.size >= self.y.size

    def running_weights(self, alpha: np.ndarray) -> np.ndarray:
        """The pull of dual variables as a solver keeps it: in one row, laid out as the rows are; zeros are not read."""
        return dual_weights(self, alpha) if alpha.any() else np.zeros(self.n_features + 1)

    def each_class(self, flat: np.ndarray) -> np.ndarray:
        """Weights that a solver keeps in one row, in the shape of the model's."""
        return flat

    def judged(self, v: np.ndarray, paid: float, conjugates: float, w: np.ndarray, alpha: np.ndarray) -> Evaluation:
        """The model v with its own losses, against the bound of a dual point with weights w and its sum of conjugates.

        Both weights are kept in one row.
        """
        sizes = point_sizes(self.loss, self.y, self.norms, self.weights, self.members, alpha)
        sums = summed(self.facts, (paid, conjugates, np.inf, abs(conjugates), np.inf), sizes, v, w)
        certificate = Certificate.of(self.strength, sums)
        return Evaluation(v[:-1].copy(), float(v[-1] * self.scale), alpha, certificate, exact=False)

    def local(self, block: RowBlock) -> Problem:
        """The problem of one block's rows, with all other dual variables fixed."""
        weights = block.gather(self.weights) if self.weights.size else self.weights
        return self._over(block.X, block.gather(self.y), weights, block.gather(self.norms), self._members_of(block))

    def _members_of(self, block: RowBlock) -> np.ndarray:
        """The rows of a block that take part, in the numbering of the block."""
        if self.members.size == self.y.size:
            return np.arange(block.size, dtype=np.int32)
        pieces, done = [np.empty(0, dtype=np.int32)], 0
        for part in block.parts:
            first, last = np.searchsorted(self.members, (part.start, part.stop))
            pieces.append((self.members[first:last] - (part.start - done)).astype(np.int32))
            done += part.stop - part.start
        return np.concatenate(pieces)

    def of_rows(self, X: Rows, chosen: np.ndarray) -> Problem:
        """The problem of some rows, whose values are X, with all other dual variables fixed."""
        weights, every = weights_at(self.weights, chosen), np.arange(chosen.size)
        return self._over(X, self.y[chosen], weights, self.norms[chosen], every.astype(np.int32))

    def _over(self, X: Rows, y: np.ndarray, weights: np.ndarray, norms: np.ndarray, members: np.ndarray) -> Any:
        """The problem of some rows in memory; it tells its objectives in the C form."""
        of_rows = {"X": X, "y": y.astype(np.float64, copy=False), "weights": weights, "norms": norms}
        whole, kind = members.size == y.size, self.intercept.of_block
        form = {"uses_lambda": False, "share": 1.0}
        return self.as_kind(self.in_memory, **of_rows, **form, members=members, whole=whole, intercept=kind)


def make_streamed_problem(
    X: Rows,
    y: np.ndarray,
    loss: Loss,
    reader: BlockReader,
    rooms: Rooms | np.ndarray,
    **options: Any,
) -> StreamedProblem:
    """Assemble a problem; `options` are those of :func:`~saddlesvm.problem.problem.make_problem`.

    `rooms` is the memory that it may use, or the room for its dual variables alone.
    """
    whole = make_problem(X, y, loss, norms=reader.norms, **options)
    labels = whole.y.astype(np.int8) if is_classification(loss) else whole.y
    rooms = rooms if isinstance(rooms, Rooms) else Rooms(rooms)
    return whole.as_kind(StreamedProblem, reader=reader, rooms=rooms, y=labels)


def sampled(X: Rows) -> np.ndarray:
    """Some rows, evenly spread."""
    return np.unique(np.linspace(0, rows.n_rows(X) - 1, SAMPLED).astype(np.int64))


def sampled_norms(X: Rows) -> np.ndarray:
    """Squared norms of some rows: a cheap sample."""
    return np.array([squared_norms(rows_between(X, i, i + 1), 1)[0] for i in sampled(X)])


@dataclass(frozen=True)
class JudgedPoint(Point):
    """A point whose model and bound a sweep has judged already.

    Attributes
    ----------
    judged : Evaluation
        A quick estimate: its dual point rests on running weights.
    model : ndarray of shape (d + 1,)
    paid : float
        The weighted sum of the model's losses.
    enough : float
        The relative gap below which the judged model is used without reading all rows for a better certificate.
    """

    read: ClassVar[bool] = True
    judged: Evaluation = field(kw_only=True)
    model: np.ndarray = field(kw_only=True)
    paid: float = field(kw_only=True)
    enough: float = field(kw_only=True)


def evaluation_of_sweep(point: Point, exact: bool, prove: Callable[[JudgedPoint], Evaluation]) -> Evaluation | None:
    """What a sweep has told of its own point, or of one that it judged, proven where that is asked for and worth it."""
    if point.proven is not None:
        return point.proven
    if not isinstance(point, JudgedPoint):
        return None
    if not exact:
        return point.judged
    if point.judged.certificate.relative_gap <= point.enough:
        proven = prove(point)
        if proven.certificate.relative_gap <= point.enough:
            return proven
    return None


def evaluate_streamed(
    problem: StreamedProblem, point: Point, *, exact: bool = True, given_offset: bool = False
) -> Evaluation:
    """The sweep's own figures for a quick estimate; where small enough, a proof of them by one pass over the rows; a
    certificate of the last iterate otherwise."""
    unbalanced = problem.intercept.constrained and isinstance(point, JudgedPoint)  # a sweep's judgement proves nothing
    swept = None if unbalanced else evaluation_of_sweep(point, exact, lambda judged: _proven(problem, judged))
    if swept is not None:
        return swept
    plain = Point(point.w, point.alpha, point.tracks)
    return evaluate.dispatch(Problem)(problem, plain, exact=exact, given_offset=given_offset)


def _proven(problem: StreamedProblem, point: JudgedPoint) -> Evaluation:
    """The judged model against the dual point whose weights one pass over the rows gives."""
    assert point.alpha is not None
    alpha, members = point.alpha, problem.members
    pull = dual_weights(problem, alpha)
    _, conjugates, charged = sums_without_rows(problem, alpha)
    sizes = point_sizes(problem.loss, problem.y, problem.norms, problem.weights, members, alpha)
    sums = summed(problem.facts, (point.paid, conjugates, np.inf, charged, np.inf), sizes, point.model, pull)
    certificate = Certificate.of(problem.strength, sums)
    return replace(point.judged, certificate=certificate, exact=True)


def sums_without_rows(problem: StreamedProblem, alpha: np.ndarray) -> tuple[float, float, float]:
    """Sums for which no row is read: the losses at zero margins, the conjugates of a dual point, and their sizes."""
    paid = conjugates = charged = 0.0
    for start in range(0, problem.members.size, CHUNK):
        chosen = problem.members[start : start + CHUNK]
        terms = Pointwise(problem.loss, problem.y[chosen].astype(np.float64), weights_at(problem.weights, chosen))
        found = loss_sums(terms, np.arange(chosen.size), np.zeros(chosen.size), 0.0, alpha[chosen])
        paid, conjugates, charged = paid + found[0], conjugates + found[1], charged + found[3]
    return paid, conjugates, charged


class CarriedDuals:
    """A dual point of an earlier solver, whose bound the first sweep of another proves while the rows are at hand.

    Parameters
    ----------
    problem : StreamedProblem
    alpha : ndarray of shape (n_all,)
        It is balanced in place, where the intercept is free.
    """

    def __init__(self, problem: StreamedProblem, alpha: np.ndarray) -> None:
        if problem.intercept.constrained:
            alpha[:] = problem.intercept.balanced(problem.pointwise, problem.members, alpha)
        self.problem, self.alpha, self.pull = problem, alpha, np.zeros(problem.n_features + 1)

    def visit(self, part: Part) -> None:
        """Add what a part's rows pull."""
        add_rows(part.X, part.rows, part.of(self.alpha), self.pull)

    def found(self) -> tuple[np.ndarray, float, float, PointSizes]:
        """The pull of all rows, the sums of the conjugates and of their sizes, and the sizes of the dual point."""
        problem, signs = self.problem, self.problem.intercept.constrained
        _, conjugates, charged = sums_without_rows(problem, self.alpha)
        given = (problem.loss, problem.y, problem.norms, problem.weights, problem.members, self.alpha)
        return problem.pulled(self.pull), conjugates, charged, point_sizes(*given, signs=signs)


def streamed_fingerprint(problem: StreamedProblem, solver: Any) -> dict[str, Any]:
    """Like that of any problem, by some of its rows."""
    return marks(problem, solver, sketch(problem.X, sampled(problem.X)))


evaluate.register(StreamedProblem, evaluate_streamed)
fingerprint.register(StreamedProblem, streamed_fingerprint)
