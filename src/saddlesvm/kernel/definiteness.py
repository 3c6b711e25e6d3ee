"""Whether a kernel matrix is symmetric, and evidence that it is not positive semi-definite.

The gap of a kernel machine bounds the distance to the optimum only if the kernel is positive semi-
definite. The names and parameters of most kernels say that they are. For the others (sigmoid,
precomputed, functions of the user's) this module looks for proof of the contrary: a negative value
``k(x, x)``, a pair of points with ``k(x, z)^2 > k(x, x) k(z, z)``, a negative eigenvalue of the
matrix of some points, or a negative quadratic form. Up to some hundred points the matrix is
decomposed as a whole, so that nothing is missed; of more points some are chosen, since a negative
eigenvalue of their matrix belongs to a part of the whole (Cauchy's interlacing theorem).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh_tridiagonal, eigvalsh

from saddlesvm.kernel.mercer import Kernel, Matrix, gram

# Points whose matrix is decomposed: 0.1 s, guessed to be little beside a fit of more
DECOMPOSED = 1024
# The same for a function of the user's, which may take long for each value
DECOMPOSED_OF_FUNCTION = 512
BLOCK = 1024  # rows and columns of a given matrix that are compared at once: 8 MB
ASYMMETRY = 1e-5  # relative difference of two values that rounding, in float32, explains
STEPS = 12  # of the Lanczos iteration on a large given matrix
# Size of a residual, relative, below which the iteration has found all that its start can reach
EXHAUSTED = 1e-10


def make_symmetric(K: np.ndarray) -> np.ndarray:
    """Return a kernel matrix, made symmetric if rounding alone makes it differ.

    Raises
    ------
    ValueError
        The matrix is not symmetric.
    """
    n = K.shape[0]
    allowed = ASYMMETRY * max(float(K.max(initial=0.0)), -float(K.min(initial=0.0)))
    equal = True
    # Compare a block with the transpose of its mirror image, so that no copy of K is needed.
    for top in range(0, n, BLOCK):
        for left in range(top, n, BLOCK):
            upper = K[top : top + BLOCK, left : left + BLOCK]
            lower = K[left : left + BLOCK, top : top + BLOCK].T
            if np.array_equal(upper, lower):
                continue
            equal = False
            apart = np.abs(upper - lower)
            if apart.max() > allowed:
                i, j = np.unravel_index(int(apart.argmax()), apart.shape)
                refuse_asymmetry(K, top + int(i), left + int(j))
    if equal:
        return K
    return 0.5 * (K + K.T)


def refuse_asymmetry(K: np.ndarray, i: int, j: int) -> None:
    """Raise ValueError: the matrix is not symmetric in this place."""
    both_halves = np.tril(K, -1).any() and np.triu(K, 1).any()
    advice = "use (K + K.T) / 2 if rounding is the cause"
    if not both_halves:
        advice = "fill the other half, by K + K.T - np.diag(np.diag(K))"
    raise ValueError(
        f"a precomputed kernel matrix must be symmetric; row {i}, column {j} has {K[i, j]:.6g}, "
        f"and row {j}, column {i} has {K[j, i]:.6g}: {advice}"
    )


def evidence_against(kernel: Kernel, X: Matrix, preferred: np.ndarray | None = None) -> str:
    """Return words that prove a kernel matrix not positive semi-definite; empty without proof.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (n, d)
        The kernel matrix of shape (n, n) if it is precomputed.
    preferred : int ndarray, optional
        Rows to look at first if there are too many, such as the support vectors.
    """
    if kernel.definite:
        return ""
    n = X.shape[0]
    # A principal submatrix of a positive semi-definite matrix is one too: few rows can refute all.
    most = DECOMPOSED
    if callable(kernel.metric):
        most = DECOMPOSED_OF_FUNCTION
    chosen = choose_rows(n, most, preferred)
    has_all_rows = chosen.size == n
    # The unit is what a kernel value may be off by, relative to it.
    if kernel.precomputed:
        values = X if has_all_rows else X[np.ix_(chosen, chosen)]
        unit = float(np.finfo(X.dtype).eps)
    else:
        values = gram(kernel, X if has_all_rows else X[chosen])
        unit = float(np.finfo(np.float64).eps) * max(X.shape[1], 1)
    found = find_negative_diagonal(values, chosen)
    if not found:
        found = find_negative_eigenvalue(np.asarray(values, dtype=np.float64), unit)
    if found or not kernel.precomputed or has_all_rows:
        return found
    # A given matrix is at hand as a whole: its diagonal, its pairs and a few Lanczos steps are
    # cheap.
    found = find_negative_diagonal(X, np.arange(n)) or find_indefinite_pair(X)
    return found or find_negative_form(X, unit)


def choose_rows(n: int, most: int, preferred: np.ndarray | None) -> np.ndarray:
    """Return some of n rows, ascending: half of the preferred rows, the others spread evenly."""
    if n <= most:
        return np.arange(n)
    first = np.empty(0, dtype=np.intp)
    if preferred is not None:
        first = np.asarray(preferred, dtype=np.intp)
    if first.size > most // 2:
        first = first[np.linspace(0, first.size - 1, most // 2).astype(np.intp)]
    spread = np.linspace(0, n - 1, most - first.size).astype(np.intp)
    return np.unique(np.concatenate([first, spread]))


def find_negative_diagonal(K: np.ndarray, rows: np.ndarray) -> str:
    """Return a negative value on the diagonal, in words; empty without one."""
    diagonal = np.diagonal(K)
    least = int(diagonal.argmin())
    if diagonal[least] >= 0.0:
        return ""
    return f"row {rows[least]} has k(x, x) = {diagonal[least]:.3g}"


def find_negative_eigenvalue(K: np.ndarray, unit: float) -> str:
    """Return a negative eigenvalue that rounding does not explain, in words."""
    noise = rounding_of_eigenvalues(K, unit)
    try:
        cholesky(K + noise * np.eye(K.shape[0]), lower=True, overwrite_a=True, check_finite=False)
        return ""
    except LinAlgError:
        least = float(eigvalsh(K, subset_by_index=[0, 0], check_finite=False)[0])
    return f"its matrix has the eigenvalue {least:.3g}" if least < -noise else ""


def rounding_of_eigenvalues(K: np.ndarray, unit: float) -> float:
    """Return a size of eigenvalues that rounding of the values may cause."""
    return 4.0 * unit * K.shape[0] * float(np.abs(np.diagonal(K)).max())


def find_indefinite_pair(K: np.ndarray) -> str:
    """Return a pair of rows whose matrix has a negative determinant, in words."""
    # Cauchy and Schwarz: k(x, z)^2 <= k(x, x) k(z, z) for every positive semi-definite kernel.
    roots = np.sqrt(np.diagonal(K).astype(np.float64))
    for top in range(0, K.shape[0], BLOCK):
        part = K[top : top + BLOCK]
        beyond = np.abs(part) > (1.0 + ASYMMETRY) * np.outer(roots[top : top + BLOCK], roots)
        if beyond.any():
            i, j = np.unravel_index(int(beyond.argmax()), beyond.shape)
            value = float(part[i, j])
            pair = f"rows {top + int(i)} and {int(j)}"
            return f"{pair} have k(x, z)^2 > k(x, x) k(z, z), as k(x, z) = {value:.3g}"
    return ""


def find_negative_form(K: np.ndarray, unit: float) -> str:
    """Search a negative ``v' K v`` with a v of length 1 by steps of Lanczos; return it in words."""
    n = K.shape[0]
    v: np.ndarray = np.random.default_rng(0).standard_normal((n,))
    v /= np.linalg.norm(v)
    basis = np.zeros((STEPS, n))
    diagonal = np.zeros(STEPS)
    beside = np.zeros(STEPS)
    used = 0
    for step in range(STEPS):
        basis[step] = v
        used = step + 1
        image = np.asarray(K @ v, dtype=np.float64)
        diagonal[step] = v @ image
        # Orthogonalise against all of the basis: it is short, and rounding would undo its
        # orthogonality.
        image -= basis[:used].T @ (basis[:used] @ image)
        beside[step] = float(np.linalg.norm(image))
        if beside[step] <= EXHAUSTED * np.abs(diagonal[:used]).max():
            break
        v = image / beside[step]
    # The quotient of the vector itself is the evidence, which does not rest on an orthogonal basis.
    _, vectors = eigh_tridiagonal(
        diagonal[:used], beside[: used - 1], select="i", select_range=(0, 0)
    )
    lowest = vectors[:, 0] @ basis[:used]
    lowest /= np.linalg.norm(lowest)
    quotient = float(lowest @ np.asarray(K @ lowest, dtype=np.float64))
    if quotient >= -rounding_of_eigenvalues(K, unit):
        return ""
    return f"its matrix has an eigenvalue of {quotient:.3g} or less"
