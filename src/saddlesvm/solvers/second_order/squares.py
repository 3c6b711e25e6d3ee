"""BLAS's ``syrk`` without the interpreter's lock, which scipy's own function holds: other threads go on meanwhile."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from saddlesvm.runtime.compiled import INTERPRETED
from saddlesvm.runtime.lazy import Later

IN_SCIPY = {
    np.dtype(np.float32): Later("scipy.linalg.blas:ssyrk"),
    np.dtype(np.float64): Later("scipy.linalg.blas:dsyrk"),
}
address_of = Later("numba.extending:get_cython_function_address")
NAMES = {np.dtype(np.float32): ("ssyrk", ctypes.c_float), np.dtype(np.float64): ("dsyrk", ctypes.c_double)}


@functools.cache
def _syrk(dtype: np.dtype) -> tuple[Callable[..., None], Any]:
    """The function of the BLAS that scipy uses, and the type of its numbers."""
    name, number = NAMES[dtype]
    place = ctypes.c_void_p
    kinds = [ctypes.c_char_p, ctypes.c_char_p, *(place,) * 8]
    address = address_of("scipy.linalg.cython_blas", name)
    return ctypes.CFUNCTYPE(None, *kinds)(address), number


def add_squares_of(rows: np.ndarray, sign: float, total: np.ndarray) -> None:
    """``total += sign rows' rows`` in its lower triangle, in place.

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
    if not (fits and rows.flags.c_contiguous and total.flags.f_contiguous and total.flags.writeable):
        raise ValueError(f"rows of shape {rows.shape}, {rows.dtype}, cannot be added to {total.shape}, {total.dtype}")
    if INTERPRETED:  # Numba, which knows the address, may not be there
        IN_SCIPY[rows.dtype](sign, rows.T, beta=1.0, c=total, lower=1, overwrite_c=1)
        return
    syrk, number = _syrk(rows.dtype)
    d, k = ctypes.c_int(width), ctypes.c_int(count)
    factor, one = number(sign), number(1.0)

    def at(value: Any) -> Any:
        return ctypes.cast(ctypes.byref(value), ctypes.c_void_p)

    syrk(b"L", b"N", at(d), at(k), at(factor), rows.ctypes.data, at(d), at(one), total.ctypes.data, at(d))
