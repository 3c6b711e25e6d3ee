"""Dense linear algebra on blocks of rows: Cholesky factors, sums of squares, Gram matrices."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dgemm
from scipy.linalg.lapack import get_lapack_funcs

from saddlesvm.rows.layouts import Rows
from saddlesvm.runtime.compiled import INTERPRETED
from saddlesvm.runtime.lazy import LateFunction
from saddlesvm.runtime.threads import blas_for, count_pieces, run_pieces, worthwhile
from saddlesvm.solvers.smoothed import add_outer_sparse, fill, gram_sparse
from saddlesvm.solvers.smoothed_arrays import gram_sparse as gram_of_few

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

# Values of a block of rows that are widened to float64, or transposed, at once; a guess.
BLOCK_VALUES = 1_000_000
# Seconds of work for each place of a sum of its own, at least: ten times what it takes to add the
# sum up; measured.
PIECE_COST = 2.5e-8
# Operations a second, of which only the ratios matter; measured on one core.
BLAS_SPEED = 3e10
SYRK_SPEED = 6e10
LOOP_SPEED = 1e9
LIFTS = 1e-4  # share of the largest diagonal that may be added to a matrix, at most; a guess

# The functions of the BLAS that scipy uses, and where Numba knows their address.
IN_SCIPY = {
    np.dtype(np.float32): LateFunction("scipy.linalg.blas:ssyrk"),
    np.dtype(np.float64): LateFunction("scipy.linalg.blas:dsyrk"),
}
NAMES = {
    np.dtype(np.float32): ("ssyrk", ctypes.c_float),
    np.dtype(np.float64): ("dsyrk", ctypes.c_double),
}
address_of = LateFunction("numba.extending:get_cython_function_address")


def cholesky(matrix: np.ndarray) -> np.ndarray:
    """Return the lower factor of a Fortran-ordered positive definite matrix.

    The diagonal is raised if rounding has made the matrix indefinite.

    Raises
    ------
    numpy.linalg.LinAlgError
        The matrix is far from positive definite, or not finite.
    """
    diagonal = np.arange(matrix.shape[0])
    largest = float(matrix[diagonal, diagonal].max(initial=0.0))
    (potrf,) = get_lapack_funcs(("potrf",), (matrix,))
    lift = 0.0
    # What is added grows a hundredfold until the factor exists.
    while lift < LIFTS:
        work = matrix if lift == 0.0 else matrix.copy(order="F")
        work[diagonal, diagonal] += lift * largest
        factor, failed = potrf(work, lower=1, clean=0, overwrite_a=lift > 0.0)
        if not failed:
            return factor
        lift = max(50.0 * float(np.finfo(matrix.dtype).eps), 100.0 * lift)
    raise np.linalg.LinAlgError("the Newton matrix is not positive definite")


def blocks(chosen: np.ndarray, width: int) -> list[np.ndarray]:
    """Return `chosen` in parts whose widened rows hold about BLOCK_VALUES values."""
    size = max(16, BLOCK_VALUES // width)
    return [chosen[k : k + size] for k in range(0, chosen.size, size)]


def widen(
    X: Rows, chosen: np.ndarray, factors: np.ndarray, dtype: DTypeLike = np.float64
) -> np.ndarray:
    """Return the chosen rows times factors, shape (chosen, d + 1)."""
    out = np.empty((chosen.size, X.n_features + 1), dtype=dtype)
    fill(X, chosen, factors, out)
    return out


def squares_cost(X: Rows, count: int, values_per_row: float, times: float = 1.0) -> float:
    """Return the rough seconds of :func:`add_outer`; `times` is 0.5 in float32."""
    if X.sparse:
        return count * 0.5 * values_per_row**2 / LOOP_SPEED
    d = X.n_features + 1
    return count * times * d * d / SYRK_SPEED


def factor_cost(size: int, times: float = 1.0) -> float:
    """Return the rough seconds of :func:`cholesky`."""
    return times * size**3 / (3.0 * BLAS_SPEED)


class Threads(NamedTuple):
    """The threads that sums over rows may use.

    Attributes
    ----------
    most : int, default=1
        Threads.
    room : float, default=0.0
        Bytes for sums of their own; if there is room for one only, one thread does the work.
    """

    most: int = 1
    room: float = 0.0


ALONE = Threads()


def add_outer(
    X: Rows,
    chosen: np.ndarray,
    factors: np.ndarray,
    total: np.ndarray,
    sign: float = 1.0,
    threads: Threads = ALONE,
) -> None:
    """Add ``sign sum_k factors_k x_chosen[k] x_chosen[k]'`` to a total, in its lower triangle.

    Parameters
    ----------
    X : Dense or CSR
    chosen : ndarray of shape (k,)
    factors : ndarray of shape (k,)
        Not negative: dense rows are scaled by their square roots.
    total : ndarray of shape (d + 1, d + 1)
        In Fortran order, float32 or float64; the rows are widened to its precision.
    sign : float, default=1.0
        1 or -1.
    threads : Threads
        Several threads sum parts of the rows, each part by itself. The sizes alone, and the room,
        define the parts.
    """
    sums = min(int(threads.room / total.nbytes), chosen.size)
    seconds = 0.0
    if threads.most > 1 and sums > 1:
        seconds = squares_cost(X, chosen.size, X.values_of(chosen), total.itemsize / 8.0)
    pieces = min(count_pieces(seconds), sums, int(seconds / (PIECE_COST * total.size)))
    if pieces < 2:
        _add_some(X, chosen, factors, total, sign)
        return

    def sum_piece(k: int) -> np.ndarray:
        place = slice(chosen.size * k // pieces, chosen.size * (k + 1) // pieces)
        own = np.zeros_like(total)
        _add_some(X, chosen[place], factors[place], own, sign)
        return own

    # These threads take the cores: the BLAS has one.
    with blas_for(0.0):
        for own in run_pieces(sum_piece, pieces, worthwhile(seconds, threads.most)):
            total += own


def _add_some(
    X: Rows, chosen: np.ndarray, factors: np.ndarray, total: np.ndarray, sign: float
) -> None:
    """Do the work of :func:`add_outer` in one thread."""
    if X.sparse:
        add_outer_sparse(X, chosen, sign * factors, total.T)
        return
    width = total.shape[0]
    for part, share in zip(blocks(chosen, width), blocks(factors, width), strict=True):
        add_squares_of(widen(X, part, np.sqrt(share), total.dtype), sign, total)


def gram_block(X: Rows, chosen: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """Return ``x_i . x_l`` for the chosen i and the l in the pool, shape (chosen, pool)."""
    out = np.empty((chosen.size, pool.size))
    if X.sparse and X.is_small:
        gram_of_few(X, chosen, pool, out)
        return out
    if X.sparse:
        shape = (X.indptr.size - 1, X.n_features)
        whole = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=shape, copy=False)
        columns = whole[pool].tocsc()
        gram_sparse(X, chosen, columns.data, columns.indices, columns.indptr, out)
        return out
    # Dense rows: a block of the chosen rows times each block of the pool.
    width = X.n_features + 1
    done = 0
    for part in blocks(chosen, width):
        left = widen(X, part, np.ones(part.size))
        reached = 0
        for other in blocks(pool, width):
            right = widen(X, other, np.ones(other.size))
            products = dgemm(1.0, left.T, right.T, trans_a=1)
            out[done : done + part.size, reached : reached + other.size] = products
            reached += other.size
        done += part.size
    return out


@functools.cache
def _syrk(dtype: np.dtype) -> tuple[Callable[..., None], Any]:
    """Return the function of the BLAS that scipy uses, and the type of its numbers."""
    name, number = NAMES[dtype]
    place = ctypes.c_void_p
    kinds = [ctypes.c_char_p, ctypes.c_char_p, *(place,) * 8]
    address = address_of("scipy.linalg.cython_blas", name)
    return ctypes.CFUNCTYPE(None, *kinds)(address), number


def add_squares_of(rows: np.ndarray, sign: float, total: np.ndarray) -> None:
    """Add ``sign rows' rows`` to a total, in its lower triangle.

    BLAS does it without the interpreter's lock, which scipy's own function holds: other threads go
    on meanwhile.

    Parameters
    ----------
    rows : ndarray of shape (k, d)
        In C order.
    sign : float
    total : ndarray of shape (d, d)
        In Fortran order, of the same precision.

    Raises
    ------
    ValueError
        The arrays do not fit together.
    """
    count, width = rows.shape
    fits = total.shape == (width, width) and total.dtype == rows.dtype
    is_ordered = rows.flags.c_contiguous and total.flags.f_contiguous
    if not (fits and is_ordered and total.flags.writeable):
        raise ValueError(
            f"rows of shape {rows.shape}, {rows.dtype}, cannot be added to {total.shape}, "
            f"{total.dtype}"
        )
    # Numba, which knows the address, may not be there.
    if INTERPRETED:
        IN_SCIPY[rows.dtype](sign, rows.T, beta=1.0, c=total, lower=1, overwrite_c=1)
        return
    syrk, number = _syrk(rows.dtype)
    d = ctypes.c_int(width)
    k = ctypes.c_int(count)
    factor = number(sign)
    one = number(1.0)

    def at(value: ctypes.c_int | ctypes.c_float | ctypes.c_double) -> ctypes.c_void_p:
        return ctypes.cast(ctypes.byref(value), ctypes.c_void_p)

    # total = sign rows' rows + total; the arguments of BLAS are addresses.
    syrk(
        b"L",
        b"N",
        at(d),
        at(k),
        at(factor),
        rows.ctypes.data,
        at(d),
        at(one),
        total.ctypes.data,
        at(d),
    )
