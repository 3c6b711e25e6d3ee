"""Landmarks: a few rows whose kernel functions stand for those of all, and the features that they give.

With the landmarks Z and ``L L' = k(Z, Z)``, the features ``F = k(X, Z) L^-T`` have the products ``F F' = k(X, Z)
k(Z, Z)^-1 k(Z, X)``: what the kernel matrix is, seen from the span of the landmarks' kernel functions. A linear model w
on them is the kernel expansion ``L^-T w`` over the landmarks.

Landmarks are drawn by randomly pivoted Cholesky: with a probability proportional to what those before leave of
``k(x, x)``, some at a time; those that an earlier one of the same draw makes superfluous are rejected. Weights of rows
may say where the approximation is to be good.

Source: Chen, Epperly, Tropp and Webber (2024), "Randomly pivoted Cholesky"; Epperly, Tropp and Webber (2024), "Embrace
rejection: kernel matrix approximation by accelerated randomly pivoted Cholesky".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular

from saddlesvm.rows.kernel_errors import kernel_errors, smallest_eigenvalue
from saddlesvm.rows.kernels import Kernel, Matrix, dense_if_quicker

DRAWS, FEWEST = 10, 32  # draws in which the landmarks are found; rows of one, at least
NEGLIGIBLE = 1e-5  # what is left of the largest k(x, x) when no landmark is worth adding
FINE = 1e-3  # what is left of k(x, x) at a landmark, relative, below which float32 is too coarse to compute features
JITTER = 1e-9  # on the diagonal of a kernel matrix, relative, while landmarks may depend on each other
DEPENDENT = 1e-6  # what earlier ones leave of a landmark, relative, below which it is dropped: float32 let it through
COARSER = 10.0  # times as much, where rounding hides whether the landmarks are independent
BLOCK, PANEL = 4096, 256  # rows, and columns, of the features that are computed at once
DIAGONAL = 64  # rows of a block of kernel values of which the diagonal is taken
EXPONENT = 1024.0  # the largest exponent of the radial kernel that float32 resolves


class Landmarks(NamedTuple):
    """Landmarks and the map to their features.

    Attributes
    ----------
    kernel : Kernel
    rows : int ndarray of shape (m,)
        Their numbers among the training rows, in the order in which they were drawn.
    points : array or CSR matrix of shape (m, d), float64
    inverse : ndarray of shape (m, m), float64
        ``L^-T``, an upper triangle.
    fine : bool
        Features must be computed in float64.
    least : float
        A lower bound on the eigenvalues of their kernel matrix; zero where a single one's own value may be rounding.
    """

    kernel: Kernel
    rows: np.ndarray
    points: Any
    inverse: np.ndarray
    fine: bool
    least: float

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """Coefficients of the landmarks' kernel functions, shape (..., m), of weights of the features."""
        found: np.ndarray = w @ self.inverse.T
        return found

    def features(self, X: Matrix, known: np.ndarray | None = None) -> np.ndarray:
        """The features of rows, a block at a time, shape (rows, m), float32.

        Parameters
        ----------
        X : array or CSR matrix of shape (rows, d)
        known : ndarray of shape (rows, first), optional
            Features of the first landmarks, where they are known.
        """
        first = 0 if known is None else known.shape[1]
        found = np.empty((X.shape[0], self.rows.size), np.float32)
        values = _Values(self.kernel, self.points, np.float64 if self.fine else np.float32)
        inverse = self.inverse.astype(values.dtype, copy=False)
        for start in range(0, X.shape[0], BLOCK):
            part = slice(start, start + BLOCK)
            between = values(X[part])
            if known is not None:
                found[part, :first] = known[part]
            for left in range(first, self.rows.size, PANEL):
                right = min(left + PANEL, self.rows.size)
                found[part, left:right] = between[:, :right] @ inverse[:right, left:right]
        return found


class _Values:
    """Kernel values between rows and fixed points, in working precision."""

    def __init__(self, kernel: Kernel, points: Matrix, dtype: Any) -> None:
        points = dense_if_quicker(points)
        self.kernel, self.dtype, self.points = kernel, dtype, points
        self.radial = kernel.metric == "rbf" and not sparse.issparse(points)
        if self.radial:
            self.shift = points.mean(axis=0)
            moved = points - self.shift
            half = kernel.gamma * np.einsum("ij,ij->i", moved, moved)
            if half.max(initial=0.0) > EXPONENT:
                self.dtype = np.float64
            self.half = half.astype(self.dtype)
            self.ahead = np.ascontiguousarray((2.0 * kernel.gamma * moved.T).astype(self.dtype))

    def __call__(self, A: Matrix) -> np.ndarray:
        if not self.radial:
            A = A.astype(np.float64)
            if sparse.issparse(A) and not sparse.issparse(self.points):
                A = A.toarray()
            return np.asarray(self.kernel(A, self.points)).astype(self.dtype, copy=False)
        A = A.toarray() if sparse.issparse(A) else A
        A = (A - self.shift.astype(A.dtype)).astype(self.dtype)
        values = A @ self.ahead
        values -= self.half
        values -= self.dtype(self.kernel.gamma) * np.einsum("ij,ij->i", A, A)[:, None]
        np.minimum(values, 0.0, out=values)
        np.exp(values, out=values)
        return np.asarray(values)


def make_landmarks(kernel: Kernel, X: Matrix, rows: np.ndarray) -> Landmarks:
    """The landmarks that rows of X are, in their order; those that depend on earlier ones are left out.

    Raises
    ------
    ValueError
        The kernel is not positive semi-definite.
    """
    points = X[rows].astype(np.float64)
    K = np.asarray(kernel(points, points), dtype=np.float64)
    errors, most = kernel_errors(kernel, points), float(K.diagonal().max(initial=0.0))
    kept, cut = np.arange(rows.size), DEPENDENT * most
    while True:
        among = K[np.ix_(kept, kept)]
        jitter = np.diag(np.full(kept.size, JITTER * most))
        left = _factor(kernel, among + jitter).diagonal() ** 2
        strong = left >= min(cut, left.max(initial=0.0))
        if not strong.all():
            kept = kept[strong]
            continue
        factor = _factor(kernel, among)
        inverse = solve_triangular(factor, np.eye(kept.size), lower=True, check_finite=False).T
        least = max(smallest_eigenvalue(among, inverse, errors.among(kept)), 0.0)
        if least > 0.0 or kept.size <= 1:
            return Landmarks(kernel, rows[kept], points[kept], inverse, bool(left.min() < FINE * left.max()), least)
        cut *= COARSER


def _factor(kernel: Kernel, K: np.ndarray) -> np.ndarray:
    """The lower Cholesky factor of a kernel matrix."""
    try:
        return np.asarray(cholesky(K, lower=True, check_finite=False))
    except np.linalg.LinAlgError:
        raise ValueError(f"the kernel {kernel.name} is not positive semi-definite: it has no landmarks") from None


def draw_landmarks(
    kernel: Kernel,
    X: Matrix,
    pool: np.ndarray,
    count: int,
    random: np.random.RandomState,
    given: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Draw landmarks among some rows.

    Parameters
    ----------
    kernel : Kernel
        Positive semi-definite.
    X : array or CSR matrix of shape (n, d)
    pool : int ndarray
        The rows to draw from.
    count : int
        How many to have at most, those given included; fewer where these leave next to nothing of the pool.
    random : RandomState
    given : int ndarray, optional
        Rows that are landmarks already.
    weights : ndarray of shape (pool,), optional
        How much the rows of the pool count; all the same when left out.

    Returns
    -------
    int ndarray
        Numbers of the rows; the given ones first.
    """
    chosen = np.empty(0, dtype=np.intp) if given is None else given
    points = X[pool]
    left = diagonal(kernel, points)
    most = float(left.max(initial=0.0))
    features = np.zeros((pool.size, count), np.float32)
    if chosen.size:
        features[:, : chosen.size] = make_landmarks(kernel, X, chosen).features(points)
        left -= np.einsum("ij,ij->i", features, features, dtype=np.float64)
        left[np.isin(pool, chosen)] = 0.0
    size = max(FEWEST, count // DRAWS)
    while chosen.size < count:
        odds = np.where(left > NEGLIGIBLE * most, left, 0.0) * (1.0 if weights is None else weights)
        if not odds.any():
            break
        drawn = np.unique(random.choice(pool.size, min(size, count - chosen.size), p=odds / odds.sum()))
        known = features[drawn, : chosen.size].astype(np.float64)
        there = points[drawn].astype(np.float64)
        rest = np.asarray(kernel(there, there)) - known @ known.T
        taken, factor = _accepted(rest, left[drawn], NEGLIGIBLE * most, random)
        left[np.setdiff1d(drawn, drawn[taken])] *= 0.5  # superfluous, or rejected: less likely from now on
        new = drawn[taken]
        if not new.size:
            continue
        columns = _Values(kernel, points[new].astype(np.float64), np.float32)(points)
        columns -= features[:, : chosen.size] @ features[new, : chosen.size].T
        found = solve_triangular(factor.astype(np.float32), columns.T, lower=True, check_finite=False).T
        features[:, chosen.size : chosen.size + new.size] = found
        left -= np.einsum("ij,ij->i", found, found, dtype=np.float64)
        left[new] = 0.0
        chosen = np.concatenate([chosen, pool[new]])
    return chosen


def _accepted(
    rest: np.ndarray, left: np.ndarray, least: float, random: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """The drawn rows that are accepted, one after the other, and the Cholesky factor of what is left between them.

    Parameters
    ----------
    rest : ndarray of shape (k, k)
        What the landmarks so far leave of the kernel values between the drawn rows.
    left : ndarray of shape (k,)
        What they leave of ``k(x, x)``, as it was when they were drawn.
    least : float
        What must be left of that for a row to be accepted.
    """
    taken, columns, now = [], [], rest.copy()
    for j in range(left.size):
        if now[j, j] > least and random.uniform() * left[j] < now[j, j]:
            column = now[:, j] / np.sqrt(now[j, j])
            now -= np.outer(column, column)
            taken.append(j)
            columns.append(column)
    places = np.array(taken, dtype=np.intp)
    factor = np.tril(np.array(columns).reshape(places.size, -1)[:, places].T)
    return places, factor


def diagonal(kernel: Kernel, X: Matrix) -> np.ndarray:
    """``k(x, x)`` of the rows, float64."""
    if kernel.metric in ("rbf", "laplacian", "chi2"):
        return np.ones(X.shape[0])
    parts = (X[start : start + DIAGONAL].astype(np.float64) for start in range(0, X.shape[0], DIAGONAL))
    return np.concatenate([np.asarray(kernel(part, part)).diagonal() for part in parts]).astype(np.float64)
