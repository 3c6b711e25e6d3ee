"""The work of one partition: it holds rows and dual variables of its own, improves these in a round, and reports.

Everything here runs where the data are. A partition sends one vector of the size of w per problem, and a few numbers.
The same functions serve a cluster's tasks and the simulation in one process.

Source: Ma, Smith, Jaggi and others (2015), "Adding vs. averaging in distributed primal-dual optimization", algorithm 1;
the local solver is :class:`~saddlesvm.solvers.dcd.DCD`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.cluster.tasks import Answer, Vectors, added, bytes_of, combined, measured, touched, whole, without_zeros
from saddlesvm.data.column_errors import naming_columns
from saddlesvm.data.label_checks import check_targets
from saddlesvm.multiclass.splits import has_factors, sub_problems_of
from saddlesvm.multiclass.sub_problems import SubProblem, likely_classes, without_folds
from saddlesvm.problem.bounds import PointSizes, RowSizes, add_sizes, largest_among
from saddlesvm.problem.intercepts import InterceptName
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.sums import SUMS, conjugate_sum, sums_of_margins
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.csr_checks import canonical
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.matrix import BadRowError, check_norms
from saddlesvm.rows.passes import InMemory, squared_norms
from saddlesvm.rows.small_types import kept_type, precision_of
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.dcd import DCD

NO_ROWS, NO_FACTORS, NO_FOLDS = np.empty(0), np.empty(0), np.empty(0, dtype=np.int16)
SIZES = len(RowSizes._fields) + len(PointSizes._fields)
LARGEST = largest_among(RowSizes, PointSizes)


class RoundSums(NamedTuple):
    """Sums over rows, for each problem.

    Attributes
    ----------
    found : ndarray of shape (problems, SUMS)
        Those of :func:`~saddlesvm.problem.sums.loss_sums` at the point that the round began with.
    proposed : ndarray of shape (problems,)
        Conjugates at the point that the partition proposes.
    squares : ndarray of shape (problems,)
        Squared norms of the changes of w that the partitions propose.
    sizes : ndarray of shape (problems, SIZES)
        Where a report is to prove something: the sizes that bounds on rounding need, of the rows and the dual point.
    """

    found: np.ndarray
    proposed: np.ndarray
    squares: np.ndarray
    sizes: np.ndarray

    @classmethod
    def none(cls, problems: int) -> RoundSums:
        """Those of no row."""
        shapes = ((problems, SUMS), (problems,), (problems,), (problems, SIZES))
        return cls(*map(np.zeros, shapes))

    def plus(self, other: RoundSums) -> RoundSums:
        """The sums over both."""
        sizes = self.sizes.copy()
        add_sizes(sizes, other.sizes, LARGEST)
        sums = RoundSums(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))
        return sums._replace(sizes=sizes)


class Split(NamedTuple):
    """The problems that a fit solves together over the same partitions: they share every round.

    Attributes
    ----------
    classes : int
        0 for targets.
    multi_class : {"ovr", "ovo", "crammer_singer", "multinomial"}
    folds : int
        0 for none. Problems come fold by fold, each without the rows of a fold, and last those of all rows.
    """

    classes: int
    multi_class: str = "ovr"
    folds: int = 0

    def over(
        self, y: np.ndarray = NO_ROWS, fold: np.ndarray = NO_FOLDS, factors: np.ndarray | None = None
    ) -> Sequence[SubProblem]:
        """The problems over rows with these class numbers or targets, and folds; without rows their kinds.

        `factors` are those of :func:`~saddlesvm.multiclass.sub_problems.one_vs_rest`.
        """
        if self.classes:
            codes, classes = y.astype(np.intp), np.arange(self.classes)
            kinds = sub_problems_of(self.multi_class, codes, classes, factors)
        else:
            kinds = [SubProblem(0, "", y)]
        return without_folds(kinds, fold, self.folds)

    @property
    def problems(self) -> int:
        """The number of all problems."""
        return len(self.over())

    @property
    def kinds(self) -> int:
        """The number of problems over the same rows: one for each class, or for each pair, or one for all."""
        return self.problems // (self.folds + 1)

    @property
    def vectors(self) -> int:
        """Weight vectors of a problem: one, or one for each class, of three or more, that it holds."""
        return self.over()[0].n_vectors


class Part(NamedTuple):
    """The rows of a partition: values, squared norms, row weights (empty when all are 1); class numbers or targets; the
    problems over them; the partition's number; the fold of each row (empty without folds); and what is multiplied
    with the weights of each problem's rows, and with those of each class's own rows in its problem (empty for 1)."""

    X: Rows
    y: np.ndarray
    weights: np.ndarray
    norms: np.ndarray
    split: Split
    intercept: InterceptName
    place: int = 0
    fold: np.ndarray = NO_FOLDS
    factors: np.ndarray = NO_FACTORS
    class_factors: np.ndarray | None = None

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.y.size)

    @property
    def row_weights(self) -> np.ndarray:
        """The weights of the rows, shape (size,)."""
        return self.weights if self.weights.size else np.ones(self.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows, with labels, weights and norms."""
        return self.X.nbytes + self.y.nbytes + self.weights.nbytes + self.norms.nbytes if self.size else 0

    def sub_problems(self) -> Sequence[SubProblem]:
        """The problems over these rows."""
        return self.split.over(self.y, self.fold, self.class_factors)

    def problems(self, loss: Loss, C: float, indices: Iterable[int]) -> Iterator[Problem]:
        """The regularised risk problems behind some of them, one at a time."""
        every = self.sub_problems()
        for index in indices:
            weights = self.weights if self.weights.size else None
            if self.factors.size:
                weights = self.factors[index] * self.row_weights
            given: dict[str, Any] = {"weights": weights, "intercept": self.intercept, "norms": self.norms}
            yield every[index].problem(self.X, loss, C=C, **given)


class Duals(NamedTuple):
    """The dual variables of a partition, shape (problems, n), and the change that is proposed to them."""

    alpha: np.ndarray
    change: np.ndarray

    def after(self, shares: np.ndarray) -> np.ndarray:
        """The dual variables once the share that was decided on is taken."""
        return self.alpha + shares[:, None] * self.change


class Order(NamedTuple):
    """The question of a round to every partition: a few numbers, the same for all."""

    shares: np.ndarray  # share of the last round's change to take, one per problem
    sigmas: np.ndarray
    live: np.ndarray  # problems that are still worked on
    loss: Loss
    C: float
    passes: float
    seed: int


class Report(NamedTuple):
    """The report of a partition, or of several together, on a round.

    Attributes
    ----------
    moves : Vectors of shape (problems, d + 1)
        Sum of the changes of w that are proposed.
    sums : RoundSums
    """

    moves: Vectors
    sums: RoundSums

    def plus(self, other: Report) -> Report:
        """The sum of both."""
        return Report(added(self.moves, other.moves), self.sums.plus(other.sums))


class Improved(NamedTuple):
    """What a round makes of a partition: its dual variables, which stay there, and its report."""

    duals: Duals
    report: Report

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return bytes_of(self.report)


def duals_of(answer: Answer) -> Duals:
    """The dual variables that stay there."""
    duals: Duals = answer.found.duals
    return duals


def report_of(answer: Answer) -> Answer:
    """The report, with what it cost."""
    return answer._replace(found=answer.found.report)


@combined
def total(reports: list[Report]) -> Report:
    """The sum of several reports, in their order."""
    return functools.reduce(Report.plus, reports)


def sums_together(sums: list[RoundSums]) -> RoundSums:
    """The sums over the rows of several partitions, added in their order."""
    return functools.reduce(RoundSums.plus, sums)


def vectors_together(vectors: list[Vectors]) -> Vectors:
    """The sum of vectors, added in their order."""
    return functools.reduce(added, vectors)


def make_part(
    X: Any,
    y: Any,
    weights: Any,
    classes: Any,
    scale: float,
    intercept: InterceptName,
    factors: Any = None,
    *,
    place: int = 0,
    multi_class: str = "ovr",
    folds: int = 0,
    seed: int = 0,
) -> Part:
    """Check the rows of a partition and bring them into the form that the kernels read.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
    weights : array-like of shape (n,), optional
    classes : ndarray, optional
        The labels there are, ascending; left out, y holds targets.
    scale : float
        Value of the virtual feature; 0 without an intercept.
    factors : ndarray, optional
        Factors on the weights of the rows of each class; in its own problem where it has one.
    place : int, default=0
        The partition's number.
    multi_class, folds
        How the problems are made of classes and folds, see :class:`Split`. Rows are dealt out to the folds at random.
    seed : int, default=0
        Of the folds.

    Raises
    ------
    ValueError
        Bad data; the message says what was found.
    """
    X = as_matrix(X)
    n = X.shape[0]
    design = rows.as_rows(X, scale)
    try:
        norms = check_norms(squared_norms(design), design) if n else np.empty(0)
    except BadRowError as error:
        raise BadRowError(error.message, error.row, place) from None
    if classes is None:
        codes, count = check_targets(y, n) if n else np.empty(0), 0
    else:
        codes, count = np.searchsorted(classes, np.asarray(y).ravel()).astype(np.float64), len(classes)
    s = np.empty(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64).ravel()
    if s.size and not (np.isfinite(s).all() and (s >= 0.0).all()):
        raise ValueError("sample_weight must be finite and not negative")
    apart = has_factors(multi_class, count)
    if factors is not None and not apart:
        s = factors[codes.astype(np.intp)] * (s if s.size else 1.0)
    split, fold = Split(count, multi_class, folds), folds_of(n, folds, seed, place)
    own_factors = factors if apart else None
    return Part(design, np.ascontiguousarray(codes), s, norms, split, intercept, place, fold, class_factors=own_factors)


def folds_of(n: int, folds: int, seed: int, place: int) -> np.ndarray:
    """The fold of each row of a partition, drawn at random; empty without folds."""
    if not folds:
        return NO_FOLDS
    dealt = np.random.default_rng([seed, place]).permutation(n) + place
    return (dealt % folds).astype(np.int16)


def as_matrix(X: Any) -> Any:
    """A block of rows as a C-contiguous array or CSR matrix of a type that kernels take, which may have no rows."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    given = getattr(values, "dtype", None)
    if getattr(given, "kind", "") == "c":
        raise ValueError("Complex data not supported: features must be real numbers")
    if sparse.issparse(values):
        return canonical(sparse.csr_array(values, dtype=precision_of(values.dtype)))
    if given is not None and kept_type(given) is not None:
        return np.ascontiguousarray(values)
    with naming_columns(X):
        return np.ascontiguousarray(values, dtype=np.float64)


def first_duals(part: Part, problems: int) -> Duals:
    """All zero."""
    return Duals(np.zeros((problems, part.size)), np.zeros((problems, part.size)))


@measured
def improve(part: Part, duals: Duals, shared: Vectors, order: Order) -> Improved:
    """A round of a partition: take the share of the last change, then propose a new one against the shared weights.

    Parameters
    ----------
    part : Part
    duals : Duals
    shared : Vectors of shape (problems, d + 1)
        The shared weights, after the share of the last round's changes was taken by all.
    order : Order
    """
    W, alpha = whole(shared), duals.after(order.shares)
    change, moves, sums = np.zeros_like(alpha), np.zeros_like(W), RoundSums.none(len(W))
    live = np.flatnonzero(order.live).tolist() if part.size else []
    for k, problem in zip(live, part.problems(order.loss, order.C, live), strict=True):
        if not problem.members.size:
            continue
        sums.found[k] = sums_of_margins(problem, W[k], alpha[k])
        proposal, move = local_step(problem, alpha[k], W[k], order.sigmas[k], order.passes, order.seed + k)
        change[k], moves[k] = proposal - alpha[k], move
        sums.proposed[k] = conjugate_sum(problem.pointwise, problem.members, proposal, 1.0)
        sums.squares[k] = move @ move
    return Improved(Duals(alpha, change), Report(without_zeros(moves), sums))


def local_step(
    problem: Problem, alpha: np.ndarray, w: np.ndarray, sigma: float, passes: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """The local step: coordinate descent with ``sigma C`` for C on a w of one's own; new duals, and the change of w."""
    scaled, solver = replace(problem, C=sigma * problem.C), DCD()
    state = solver.init(scaled, seed)
    state.alpha, state.w, state.offset = alpha.copy(), w.copy(), np.empty(0)
    visits = max(1, round(passes * problem.members.size))
    state = solver.step(scaled, state, Budget(visits))
    return state.alpha, (state.w - w) / sigma


def weights_of(part: Part, duals: Duals, order: Order) -> Vectors:
    """What the partition's dual variables contribute to the weights: ``C sum_i a_i x_i``."""
    alpha = duals.after(order.shares)
    members = np.arange(part.size, dtype=np.int32 if part.size < 2**31 else np.int64)
    passes = InMemory(part.X, members, 1.0)
    return without_zeros(order.C * np.stack([passes.pull(alpha[k]) for k in range(len(alpha))]))


def sums_of(part: Part, duals: Duals, shared: Vectors, order: Order) -> RoundSums:
    """The partition's share of the sums of the certificate of W and the dual variables; nothing is changed."""
    W, alpha = whole(shared), duals.after(order.shares)
    sums = RoundSums.none(len(W))
    for k, problem in enumerate(part.problems(order.loss, order.C, range(len(W) if part.size else 0))):
        if not problem.members.size:
            continue
        sums.found[k] = sums_of_margins(problem, W[k], alpha[k])
        sums.sizes[k] = (*problem.row_sizes, *problem.point_sizes(alpha[k]))
    return sums


def places_of(part: Part) -> np.ndarray:
    """The places of w that travel to and from a partition; empty for all."""
    return touched(part.X)


def rows_of_problems(part: Part) -> np.ndarray:
    """The number of a partition's rows in each problem, shape (problems,)."""
    every = (sub.members for sub in part.sub_problems())
    return np.array([part.size if members is None else members.size for members in every])


def with_factors(part: Part, factors: np.ndarray) -> Part:
    """The partition with factors on the weights of each problem's rows."""
    return part._replace(factors=factors)


def labels_of(y: Any, weights: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels of a partition, and the sum of the weights of each one's rows.

    Raises
    ------
    ValueError
        There are no labels, or some are missing.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: the file holds no labels")
    labels = np.asarray(y).ravel()
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: labels must be finite.")
    found, codes = np.unique(labels, return_inverse=True)
    s = None if weights is None else np.asarray(weights, dtype=np.float64).ravel()
    return found, np.bincount(codes, s, found.size).astype(np.float64)


def count_right(part: Part, W: np.ndarray) -> np.ndarray:
    """How many rows of each fold are predicted correctly, and the rows of each fold; shape (2, folds).

    W are the weights of all problems, see :class:`Split`.
    """
    split = part.split
    counts, each = np.zeros((2, split.folds), dtype=np.int64), split.kinds * split.vectors
    for fold in range(split.folds):
        members = np.flatnonzero(part.fold == fold)
        if members.size:
            passes = InMemory(part.X, members.astype(np.int32), 1.0)
            scores = np.stack([passes.margins(w) for w in W[fold * each : (fold + 1) * each]], axis=1)
            guessed = likely_classes(scores, split.classes, split.multi_class == "ovo")
            counts[:, fold] = np.count_nonzero(guessed == part.y[members]), members.size
    return counts
