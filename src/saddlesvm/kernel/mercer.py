"""Mercer kernels: their functions, their parameters, and sums of them over support vectors, in
float64.

The functions are those of :mod:`sklearn.svm`, written out here, because the checks of arguments in
:mod:`sklearn.metrics.pairwise` take longer than a small block of values. Certificates and
predictions use the values computed here, in float64;
:mod:`saddlesvm.kernel.row_blocks` computes the float32 rows that steer a solver, and
:mod:`saddlesvm.kernel.rough_values` float32 values with bounds on their errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from saddlesvm.runtime.compiled import kernel as compiled
from saddlesvm.runtime.exp_log import exp_of_negative

Matrix: TypeAlias = Any  # a dense array, a CSR matrix or a CSR array

# Share of non-zeros above which dense arithmetic on a sparse matrix is faster (measured)
WORTH_DENSE = 0.05
BLOCK_VALUES = 2**21  # values of a float64 block of the kernel matrix
HUGE = 1e300  # an exponent of the radial kernel, or a value, whose sums may overflow
STRIPE = 64  # rows of a kernel matrix that are worked on while they are in the cache
FEW_VALUES = 2**13  # values of the radial kernel, up to which NumPy's exponential is quick enough
WITHOUT_GAMMA = ("linear", "precomputed")


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters.

    Attributes
    ----------
    metric : str or callable
        "linear", "poly", "rbf", "sigmoid", "precomputed", or a function of two matrices that gives
        the matrix of kernel values.
    gamma, coef0 : float
        Parameters of the kernels that have them; ignored by the others.
    degree : int
        Of the polynomial kernel.
    """

    metric: str | Callable[..., Any] = "rbf"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    @property
    def precomputed(self) -> bool:
        """Whether rows of the data *are* rows of the kernel matrix."""
        return self.metric == "precomputed"

    @property
    def has_products(self) -> bool:
        """Whether a matrix product of the rows gives its values."""
        return not (self.precomputed or callable(self.metric))

    @property
    def definite(self) -> bool:
        """Whether all matrices of its values are positive semi-definite, by name and parameters."""
        if self.metric == "poly":
            return min(self.gamma, self.coef0) >= 0.0
        return self.metric == "linear" or (self.metric == "rbf" and self.gamma >= 0.0)

    @property
    def name(self) -> str:
        """The name of the metric to show."""
        if isinstance(self.metric, str):
            return self.metric
        return getattr(self.metric, "__name__", "callable")

    def centres(self, X: Matrix, chosen: np.ndarray) -> Any:
        """Return the second argument of the kernel for the rows `chosen` of the training data."""
        return chosen if self.precomputed else X[chosen]

    def __call__(self, A: Matrix, centres: object) -> np.ndarray:
        """Return kernel values between the rows of `A` and `centres`, shape (rows, centres), in the
        precision of `A`.

        A callable kernel may give them as a sparse matrix.

        Raises
        ------
        ValueError
            A value is not finite, or a callable kernel gave an array of another shape.
        """
        if self.precomputed:
            return A[:, centres]
        values = self._values(A, centres)
        if not np.isfinite(values).all():
            raise ValueError(
                f"the kernel {self.name} gave values that are not finite: no model can be trained "
                "on them"
            )
        return values

    def _values(self, A: Matrix, centres: Any) -> np.ndarray:
        """Return the values, not checked to be finite."""
        # A function of products x'z: a matrix product, then the function of it.
        if not callable(self.metric):
            return self._of_products(*_of_used_columns(A, centres))
        # A function of the user.
        given = self.metric(A, centres)
        values = np.asarray(given.toarray() if sparse.issparse(given) else given, dtype=np.float64)
        shape = (A.shape[0], centres.shape[0])
        if values.shape != shape:
            raise ValueError(
                f"the kernel function gave shape {values.shape} for {shape[0]} and {shape[1]} rows"
            )
        return values

    def _of_products(self, A: Matrix, centres: Matrix) -> np.ndarray:
        """Return values of a kernel of inner products, and of the lengths of the rows."""
        values = safe_sparse_dot(A, centres.T, dense_output=True)
        number = values.dtype.type
        if self.metric == "rbf":
            # gamma ||x - z||^2 = gamma ||x||^2 + gamma ||z||^2 - 2 gamma x.z
            values *= number(2.0 * self.gamma)
            own = self.gamma * squares_of(A)
            others = own
            if centres is not A:
                others = self.gamma * squares_of(centres)
            return radial(values, own.astype(values.dtype), others.astype(values.dtype))
        if self.metric == "sigmoid":
            values *= number(self.gamma)
            values += number(self.coef0)
            np.tanh(values, out=values)
        elif self.metric == "poly":
            with np.errstate(over="ignore"):  # values that are not finite are refused
                for start in range(0, values.shape[0], STRIPE):
                    _polynomial(values[start : start + STRIPE], self.gamma, self.coef0, self.degree)
        return values


def squares_of(X: Matrix) -> np.ndarray:
    """Return ``||x||^2`` of the rows, shape (n,)."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def _radial_by_numpy(products: np.ndarray, own: np.ndarray, others: np.ndarray) -> None:
    """See :func:`radial`."""
    products -= others
    products -= own[:, None]
    np.minimum(products, 0.0, out=products)
    np.exp(products, out=products)


def _is_few(products: np.ndarray) -> bool:
    """Return True if NumPy serves these values: they are few, or not for compiled code."""
    return (
        products.size <= FEW_VALUES
        or products.dtype != np.float64
        or not products.flags.c_contiguous
    )


@compiled
def radial_in_place(products: np.ndarray, own: np.ndarray, others: np.ndarray) -> None:
    """Compute :func:`radial` for many values, in a fifteenth of the C library's time."""
    for i in range(products.shape[0]):
        row = products[i]
        h = own[i]
        for j in range(row.size):
            row[j] = exp_of_negative(min(row[j] - others[j] - h, 0.0))


def radial(products: np.ndarray, own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Write ``exp(products - own - others)``, at most 1, over the products.

    Parameters
    ----------
    products : ndarray of shape (rows, columns)
        ``2 gamma x.z``.
    own, others : ndarray of shape (rows,) and (columns,)
        ``gamma ||x||^2`` and ``gamma ||z||^2``.
    """
    if _is_few(products):
        _radial_by_numpy(products, own, others)
    else:
        radial_in_place(products, own, others)
    return products


def _polynomial(products: np.ndarray, gamma: float, coef0: float, p: int) -> None:
    """Write ``(gamma products + coef0) ** p`` over the products, by log2(p) multiplications."""
    if p == 0:
        products[:] = 1.0
        return
    number = products.dtype.type
    products *= number(gamma)
    products += number(coef0)
    # Powers by squaring take a tenth of the time of NumPy's power.
    square = products.copy()
    left = p - 1
    while left:
        if left & 1:
            products *= square
        left >>= 1
        if left:
            square *= square


def _of_used_columns(A: Matrix, B: Matrix) -> tuple[Matrix, Matrix]:
    """Return two sparse matrices without the columns of zeros, if these are most.

    A product takes memory for every column of its second factor, and no kernel counts a column of
    zeros.
    """
    if not (sparse.issparse(A) and sparse.issparse(B)) or A.shape[1] <= A.nnz + B.nnz:
        return A, B
    # Number the columns that occur in either matrix anew.
    used, places = np.unique(
        np.concatenate([A.indices[: A.nnz], B.indices[: B.nnz]]), return_inverse=True
    )
    places = places.astype(A.indices.dtype)
    first, second = (
        type(X)((X.data[: X.nnz], own, X.indptr), shape=(X.shape[0], max(used.size, 1)))
        for X, own in ((A, places[: A.nnz]), (B, places[A.nnz :]))
    )
    return first, second


def gram(kernel: Kernel, X: Matrix) -> np.ndarray:
    """Return the kernel matrix of a few rows, in float64; X itself if it is precomputed."""
    if kernel.precomputed:
        return np.ascontiguousarray(X, dtype=np.float64)
    X = dense_if_quicker(X.astype(np.float64))
    if kernel.metric != "rbf" or sparse.issparse(X):
        return np.ascontiguousarray(kernel(X, X))
    return _radial(kernel, np.ascontiguousarray(X))


def _radial(kernel: Kernel, X: np.ndarray) -> np.ndarray:
    """Return ``exp(-gamma ||x - z||^2)`` of all pairs of rows."""
    n = X.shape[0]
    scaled = (2.0 * kernel.gamma) * X
    half = kernel.gamma * squares_of(X)
    if not half.max(initial=0.0) < HUGE:
        raise ValueError(
            f"the kernel {kernel.name} gave values that are not finite: no model can be trained on "
            "them"
        )
    out = np.empty((n, n))
    # Compute the upper triangle, some rows at a time, and copy it to the lower one.
    for start in range(0, n, STRIPE):
        end = min(n, start + STRIPE)
        values = radial(scaled[start:end] @ X[start:].T, half[start:end], half[start:])
        out[start:end, start:] = values
        out[end:, start:end] = values[:, end - start :].T
    return out


def resolve_gamma(gamma: str | float, X: Matrix, sample_weight: np.ndarray | None = None) -> float:
    """Return gamma as a number: ``1 / (d Var(X))`` for "scale", ``1 / d`` for "auto".

    Row weights count in the variance as repetitions of the rows.

    Raises
    ------
    ValueError
        float64 cannot hold the variance of the rows, or its inverse.
    """
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma != "scale":
        return float(gamma)
    s = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    size = s.sum() * X.shape[1]
    mean = float(s @ np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()) / size
    # Centring would fill sparse rows: use E[x^2] - E[x]^2. Dense rows are centred, which cancels
    # less.
    if sparse.issparse(X):
        squares = np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()
        variance = float(s @ squares) / size - mean**2
    else:
        squares = np.concatenate([np.square(part - mean).sum(axis=1) for part in in_float64(X)])
        variance = float(s @ squares) / size
    with np.errstate(over="ignore"):
        found = 1.0 / (X.shape[1] * np.float64(variance)) if variance > 0.0 else 1.0
    if not (found > 0.0 and math.isfinite(found)):
        raise ValueError(
            "gamma='scale' is 1 / (d Var(X)), which float64 cannot hold for these rows (their "
            "variance is "
            f"{variance:.3g}): scale the features to moderate size, or give gamma a number"
        )
    return float(found)


def dense_if_quicker(X: Matrix) -> Matrix:
    """Return `X`, or a dense copy of a sparse matrix with few zeros, which is faster."""
    if sparse.issparse(X) and X.nnz > WORTH_DENSE * X.shape[0] * X.shape[1]:
        return X.toarray()
    return X


def in_float64(X: Matrix, block: int = 512) -> Iterator[Matrix]:
    """Yield the rows of `X`, a block at a time, in float64."""
    for start in range(0, X.shape[0], block):
        yield X[start : start + block].astype(np.float64)


def expand(kernel: Kernel, A: Matrix, centres: Any, coefficients: np.ndarray) -> np.ndarray:
    """Return ``sum_j coefficients[j] k(a_i, centre_j)`` for each row of `A`, in float64.

    Parameters
    ----------
    A : array or CSR matrix of shape (rows, d); of shape (rows, n) for a precomputed kernel
    centres : see :meth:`Kernel.centres`
    coefficients : ndarray of shape (centres,) or (centres, outputs)
    """
    out = np.zeros((A.shape[0], *coefficients.shape[1:]))
    count = coefficients.shape[0]
    if count == 0:
        return out
    if not kernel.precomputed:
        centres = dense_if_quicker(centres.astype(np.float64))
    both_dense = not sparse.issparse(centres)
    leaf = leaf_of(count)
    block = min(512, max(1, BLOCK_VALUES // count))
    for k, part in enumerate(in_float64(A, block)):
        part = part.toarray() if both_dense and sparse.issparse(part) else part
        values = kernel(part, centres)
        into = out[k * block : (k + 1) * block]
        # Leaf by leaf: each product then takes part in few additions (see kernel_errors).
        for first in range(0, count, leaf):
            into += values[:, first : first + leaf] @ coefficients[first : first + leaf]
    return out


def weighted_sums(values: np.ndarray, rows: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return ``values[rows].T @ coefficients``, summed leaf by leaf as in :func:`expand`."""
    count = coefficients.shape[0]
    leaf = leaf_of(count)
    out = np.zeros((values.shape[1], *coefficients.shape[1:]))
    for first in range(0, count, leaf):
        out += (coefficients[first : first + leaf].T @ values[rows[first : first + leaf]]).T
    return out


def leaf_of(count: int) -> int:
    """Return how many of `count` products are added up before their sum is added to the whole."""
    return max(16, math.isqrt(count))
