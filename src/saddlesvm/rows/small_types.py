"""Numbers of 1 and 2 bytes, which rows keep: how kernels read and widen them.

Half precision reaches kernels as records of sixteen bits, because neither Numba nor NumPy knows a
bfloat16, and Numba's processors no float16. A number becomes float32 when it is read, by a single
instruction, and never a whole row before that. Every number of these types is exact in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.runtime.compiled import instruction, operation

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

HALF = np.dtype([("float16", "<u2")], align=True)
#: bfloat16 numbers in arrays and stores: the same sixteen bits as in ml_dtypes, without the package
bfloat16 = np.dtype([("bfloat16", "<u2")], align=True)
FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
SMALL = (np.dtype(np.float16), bfloat16, np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.bool_))
AT_ONCE = 2**13  # bfloat16 numbers that are widened at once, by way of a copy; a guess
# float16 numbers from which on arithmetic takes half the time of NumPy's conversion; measured.
FEWEST_HALVES = 2**13
# A float32 has an exponent of 8 bits with the bias 127, a float16 one of 5 bits with the bias 15.
REBIAS = np.float32(2.0 ** (127 - 15))
SIGN_AND_HALF = np.int32(-0x70000001)  # all bits of a float32 but the three below the sign
BEYOND_HALF = 65536.0  # what infinite halves become by arithmetic, and NaN something larger


def kept_type(dtype: np.dtype) -> np.dtype | None:
    """Return the type in which rows of a type are kept in place; None if they are converted.

    ml_dtypes' bfloat16 (which JAX and TensorFlow use) is the same sixteen bits as
    :data:`bfloat16`.
    """
    dtype = np.dtype(dtype)
    if dtype.name == "bfloat16" and dtype.itemsize == 2:
        return bfloat16
    return next((kept for kept in (*FLOATS, *SMALL) if dtype == kept), None)


def in_place(values: np.ndarray) -> np.ndarray:
    """Return a view of small or whole numbers with the type that kernels read."""
    kept = kept_type(values.dtype)
    if kept is None:
        return values
    # Kernels know no half precision: a record of sixteen bits stands for it.
    if kept == np.float16:
        return values.view(HALF)
    if kept == np.bool_:
        return values.view(np.uint8)
    return values.view(kept)


def type_name(dtype: Any) -> str:
    """Return the name of a type of numbers, to show and to store."""
    return "bfloat16" if kept_type(dtype) == bfloat16 else str(np.dtype(dtype))


def precision_of(dtype: np.dtype) -> np.dtype:
    """Return the precision of weights for stored numbers: float32 if it holds them all."""
    if dtype in FLOATS:
        return dtype
    is_small = dtype.names is not None or kept_type(dtype) is not None or dtype.itemsize <= 2
    return np.dtype(np.float32 if is_small else np.float64)


def widen(values: np.ndarray, dtype: DTypeLike | None = None) -> np.ndarray:
    """Return stored numbers as float32, or as float64 if float32 does not hold them.

    Parameters
    ----------
    values : ndarray
    dtype : float32, float64 or None
        None for the :func:`precision_of` their type. Numbers of this type are not copied.
    """
    wanted = precision_of(values.dtype) if dtype is None else np.dtype(dtype)
    kept = kept_type(values.dtype)
    if kept == bfloat16:
        # The sixteen bits are the upper half of a float32.
        bits = values.view(np.uint16).reshape(-1)
        out = np.empty(values.shape, wanted)
        for start in range(0, bits.size, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            out.reshape(-1)[part] = (bits[part].astype(np.uint32) << 16).view(np.float32)
        return out
    plain = values.view(np.float16) if values.dtype == HALF else values
    if plain.dtype == np.float16 and wanted == np.float32 and plain.size >= FEWEST_HALVES:
        return widen_halves(plain)
    return plain.astype(wanted, copy=False)


def widen_halves(values: np.ndarray) -> np.ndarray:
    """Return float16 numbers as float32: NumPy converts one by one, but shifts many at once."""
    # The sign is extended to the left, and exponent and fraction move to their places.
    bits = values.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= SIGN_AND_HALF
    # The exponent is still that of a half; the product is exact, for tiny numbers as well.
    found = bits.view(np.float32)
    found *= REBIAS
    if found.max() >= BEYOND_HALF or found.min() <= -BEYOND_HALF:
        return values.astype(np.float32)
    return found


half_of = instruction("half_of", lambda bits: np.float32(np.uint16(bits).view(np.float16)))
brain_of = instruction(
    "brain_of", lambda bits: np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)
)


def _pick_number(x: Any) -> Callable[..., float | np.floating]:
    """Return the body of :func:`number` for a Numba type."""
    # Records of sixteen bits, whole numbers, and floats.
    fields = getattr(x, "fields", None)
    if fields is not None:
        if "float16" in fields:
            return lambda x: half_of(x.float16)
        return lambda x: brain_of(x.bfloat16)
    if hasattr(x, "signed"):
        # float32 holds whole numbers of up to sixteen bits exactly.
        if x.bitwidth <= 16:
            return lambda x: np.float32(x)
        return lambda x: np.float64(x)
    return lambda x: x


@operation(_pick_number)
def number(x: Any) -> float:
    """Return a stored number as float32, or as float64 if float32 does not hold it."""
    return float(widen(np.asarray(x)))
