"""Numbers of one and two bytes, which rows keep: how kernels read them, and in which precision weights go with them.

Half precision reaches kernels as records of sixteen bits, because neither Numba nor NumPy knows a bfloat16, and Numba's
processors no float16. A number becomes float32 when it is read, by one instruction, and never a whole row before that.
Every number of these types is exact in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saddlesvm.runtime.compiled import instruction, operation

HALF = np.dtype([("float16", "<u2")], align=True)
#: bfloat16 numbers in arrays and stores: the same sixteen bits as in ml_dtypes, which need no package
bfloat16 = np.dtype([("bfloat16", "<u2")], align=True)
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
SMALL = (np.dtype(np.float16), bfloat16, np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.bool_))
AT_ONCE = 2**13  # bfloat16 numbers that are widened at once, by way of a copy


def kept_type(dtype: Any) -> np.dtype | None:
    """The type in which rows of a type are kept in place; None for those that are converted.

    ml_dtypes' bfloat16 (which JAX and TensorFlow use) is the same sixteen bits as :data:`bfloat16`.
    """
    dtype = np.dtype(dtype)
    if dtype.name == "bfloat16" and dtype.itemsize == 2:
        return bfloat16
    return next((one for one in (*FLOATS, *SMALL) if dtype == one), None)


def in_place(values: np.ndarray) -> np.ndarray:
    """A view of an array of a small type, or of whole numbers, with the type that kernels read."""
    kept = kept_type(values.dtype)
    if kept is None:
        return values
    return values.view({np.dtype(np.float16): HALF, np.dtype(np.bool_): np.dtype(np.uint8)}.get(kept, kept))


def type_name(dtype: Any) -> str:
    """The name of a type of numbers, to show and to store."""
    return "bfloat16" if kept_type(dtype) == bfloat16 else str(np.dtype(dtype))


def precision_of(dtype: np.dtype) -> np.dtype:
    """The precision of weights that go with stored numbers: the least of float32 and float64 that holds all of them."""
    if dtype in FLOATS:
        return dtype
    exact = dtype.names is not None or kept_type(dtype) is not None or dtype.itemsize <= 2
    return FLOATS[1] if exact else FLOATS[0]


def widened(values: np.ndarray, dtype: Any = None) -> np.ndarray:
    """Stored numbers as float32 or float64, of which float64 is for numbers that float32 does not hold.

    Parameters
    ----------
    values : ndarray
    dtype : float32, float64 or None
        None for :func:`precision_of` theirs. Numbers that have the type already are not copied.
    """
    wanted = precision_of(values.dtype) if dtype is None else np.dtype(dtype)
    kept = kept_type(values.dtype)
    if kept == bfloat16:
        bits, out = values.view(np.uint16).reshape(-1), np.empty(values.shape, wanted)
        for start in range(0, bits.size, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            out.reshape(-1)[part] = (bits[part].astype(np.uint32) << 16).view(np.float32)
        return out
    plain = values.view(np.float16) if values.dtype == HALF else values
    return plain.astype(wanted, copy=False)


half_of = instruction("half_of", lambda bits: np.float32(np.uint16(bits).view(np.float16)))
brain_of = instruction("brain_of", lambda bits: np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32))


def _pick_number(x: Any) -> Callable[..., Any]:
    fields = getattr(x, "fields", None)
    if fields is not None:
        return (lambda x: half_of(x.float16)) if "float16" in fields else lambda x: brain_of(x.bfloat16)
    if hasattr(x, "signed"):
        return (lambda x: np.float32(x)) if x.bitwidth <= 16 else lambda x: np.float64(x)
    return lambda x: x


@operation(_pick_number)
def number(x: Any) -> float:
    """A stored number as one of float32; float64 for those that float32 does not hold."""
    return float(widened(np.asarray(x)))
