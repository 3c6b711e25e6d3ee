"""A partition of the rows on a cluster, and the problems that are solved over it.

Everything here runs beside the rows, in tasks of a cluster or in this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saddlesvm.data.column_errors import naming_columns
from saddlesvm.data.label_checks import check_targets
from saddlesvm.multiclass.splits import has_factors, sub_problems_of
from saddlesvm.multiclass.sub_problems import SubProblem
from saddlesvm.problem.intercepts import InterceptName
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.csr_checks import canonical
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.matrix import BadRowError, check_norms
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.small_types import kept_type, precision_of, widen
from saddlesvm.runtime.data_types import Matrix

NO_ROWS = np.empty(0)


class Split(NamedTuple):
    """The problems that a fit solves together over the same partitions.

    Attributes
    ----------
    classes : int
        0 for targets.
    multi_class : {"ovr", "ovo", "crammer_singer", "multinomial"}
    """

    classes: int
    multi_class: str = "ovr"

    def sub_problems(
        self, y: np.ndarray = NO_ROWS, factors: np.ndarray | None = None
    ) -> Sequence[SubProblem]:
        """Return the problems over rows with these class numbers, or targets.

        `factors` are as for :func:`~saddlesvm.multiclass.sub_problems.one_vs_rest`.
        """
        if not self.classes:
            return [SubProblem(0, "", y)]
        codes = y.astype(np.intp)
        return sub_problems_of(self.multi_class, codes, np.arange(self.classes), factors)

    @property
    def n_problems(self) -> int:
        """The number of problems: of classes or pairs, or one."""
        return len(self.sub_problems())

    @property
    def n_vectors(self) -> int:
        """Weight vectors of a problem: one, or one for each class of a joint machine."""
        return self.sub_problems()[0].n_vectors


class Partition(NamedTuple):
    """Rows of a partition, and the problems over them.

    Attributes
    ----------
    X : Dense or CSR
    y : ndarray of shape (n,)
        Class numbers or targets.
    weights : ndarray of shape (n,) or (0,)
        Row weights; empty if all are 1.
    norms : ndarray of shape (n,)
        Squared norms of the rows.
    split : Split
    intercept : str
    number : int
        Of the partition.
    class_factors : ndarray, optional
        Factors of the weights of the rows of each class in its own problem.
    """

    X: Rows
    y: np.ndarray
    weights: np.ndarray
    norms: np.ndarray
    split: Split
    intercept: InterceptName
    number: int = 0
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
        if not self.size:
            return 0
        return self.X.nbytes + self.y.nbytes + self.weights.nbytes + self.norms.nbytes

    def sub_problems(self) -> Sequence[SubProblem]:
        """Return the problems over these rows."""
        return self.split.sub_problems(self.y, self.class_factors)

    def problems(self, loss: Loss, C: float, indices: Iterable[int]) -> Iterator[Problem]:
        """Yield the regularised risk problems with these numbers, one at a time."""
        every = self.sub_problems()
        weights = self.weights if self.weights.size else None
        for index in indices:
            yield every[index].problem(
                self.X, loss, C=C, weights=weights, intercept=self.intercept, norms=self.norms
            )


def make_partition(
    X: Any,
    y: ArrayLike,
    weights: object,
    classes: np.ndarray | None,
    scale: float,
    intercept: InterceptName,
    factors: np.ndarray | None = None,
    *,
    number: int = 0,
    multi_class: str = "ovr",
) -> Partition:
    """Check the rows of a partition and bring them into the form that the kernels read.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
    weights : array-like of shape (n,), optional
    classes : ndarray, optional
        All labels, ascending; None if y holds targets.
    scale : float
        Value of the virtual feature; 0 without an intercept.
    intercept : str
    factors : ndarray, optional
        Factors on the weights of the rows of each class.
    number : int, default=0
        Of the partition.
    multi_class : str, default="ovr"
        See :class:`Split`.

    Raises
    ------
    ValueError
        Bad data; the message says what was found.
    """
    X = as_matrix(X)
    n = X.shape[0]
    design = rows.as_rows(X, scale)
    norms = np.empty(0)
    if n:
        try:
            norms = check_norms(squared_norms(design), design)
        except BadRowError as error:
            raise BadRowError(error.message, error.row, number) from None

    # Class numbers, or targets.
    codes = np.empty(0)
    count = 0
    if classes is not None:
        codes = np.searchsorted(classes, np.asarray(y).ravel()).astype(np.float64)
        count = len(classes)
    elif n:
        codes = check_targets(y, n)

    s = np.empty(0)
    if weights is not None:
        s = np.ascontiguousarray(weights, dtype=np.float64).ravel()
    if s.size and not (np.isfinite(s).all() and (s >= 0.0).all()):
        raise ValueError("sample_weight must be finite and not negative")

    # One-vs-rest weighs a class in its own problem only; other ways weigh its rows everywhere.
    own_factors = None
    if has_factors(multi_class, count):
        own_factors = factors
    elif factors is not None:
        s = factors[codes.astype(np.intp)] * (s if s.size else 1.0)
    return Partition(
        X=design,
        y=np.ascontiguousarray(codes),
        weights=s,
        norms=norms,
        split=Split(count, multi_class),
        intercept=intercept,
        number=number,
        class_factors=own_factors,
    )


def as_matrix(X: Matrix) -> Matrix:
    """Return a block of rows as a C-contiguous array or CSR matrix of a type that kernels take."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    given = getattr(values, "dtype", None)
    if getattr(given, "kind", "") == "c":
        raise ValueError("Complex data not supported: features must be real numbers")
    if sparse.issparse(values):
        return canonical(sparse.csr_array(values, dtype=precision_of(values.dtype)))
    # Types of few bits, such as uint8, stay as they are; all others become float64.
    if given is not None and kept_type(given) is not None:
        return np.ascontiguousarray(values)
    with naming_columns(X):
        return np.ascontiguousarray(values, dtype=np.float64)


def join_partitions(pieces: Sequence[Partition]) -> Partition:
    """Return one partition of all these rows."""
    filled = [piece for piece in pieces if piece.size] or list(pieces[:1])
    first = filled[0]
    weights = np.empty(0)
    if any(piece.weights.size for piece in filled):
        weights = np.concatenate([piece.row_weights for piece in filled])
    # Dense rows keep their type. SciPy stacks sparse ones, and dense ones among them.
    X: Any
    if any(piece.X.sparse for piece in filled):
        blocks = []
        for piece in filled:
            values = piece.X.matrix if piece.X.sparse else sparse.csr_array(widen(piece.X.values))
            blocks.append(values)
        X = sparse.csr_array(sparse.vstack(blocks, format="csr"))
    else:
        X = np.concatenate([piece.X.values for piece in filled if not piece.X.sparse])
    return first._replace(
        X=rows.as_rows(X, first.X.bias),
        y=np.concatenate([piece.y for piece in filled]),
        weights=weights,
        norms=np.concatenate([piece.norms for piece in filled]),
    )


def find_labels(y: ArrayLike, weights: object = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels of a partition, and the sum of the weights of each one's rows.

    Raises
    ------
    ValueError
        There are no labels, or some are missing.
    """
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: the file holds no labels"
        )
    labels = np.asarray(y).ravel()
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: labels must be finite.")
    found, codes = np.unique(labels, return_inverse=True)
    s = None if weights is None else np.asarray(weights, dtype=np.float64).ravel()
    return found, np.bincount(codes, s, found.size).astype(np.float64)


def find_shape(part: Partition) -> tuple[int, int, int]:
    """Return the rows, features and bytes of a partition."""
    return part.size, part.X.n_features, part.nbytes
