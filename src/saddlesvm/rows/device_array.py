"""Vectors on a device that NumPy's functions take: losses are then computed where the rows are.

The text of a loss is NumPy's, and NumPy hands its functions over to other arrays by two protocols:
``__array_ufunc__`` for functions element by element, ``__array_function__`` for the others.
:class:`DeviceArray` answers both with the library of the array that it holds: torch, CuPy, or one
that follows the array API standard. Numbers are float64.

Source: NumPy enhancement proposals 13 and 18.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from saddlesvm.rows.array_libraries import copy_to_device, copy_to_numpy, namespace_of

if TYPE_CHECKING:
    from collections.abc import Callable

# Functions that all libraries have as operators, by NumPy's names.
OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "negative": operator.neg,
    "absolute": operator.abs,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "matmul": operator.matmul,
}
# Functions that take truth values as they are; for the others these are the numbers 0 and 1.
LOGICAL: dict[str, Callable[..., Any]] = {
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "invert": operator.invert,
}
# The constants of losses (zero, one, and a few more) as arrays, each copied to a device once.
NUMBERS: dict[tuple[float, object, str], Any] = {}


class DeviceArray(NDArrayOperatorsMixin):
    """An array on a device, for NumPy's functions.

    Parameters
    ----------
    values : object
        An array of float64, of whole numbers or of truth values on the device.
    """

    def __init__(self, values: Any) -> None:
        self.values = values

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the lengths of the axes."""
        return tuple(self.values.shape)

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self.values.shape)

    @property
    def size(self) -> int:
        """Return the number of values."""
        return int(np.prod(self.shape))

    def __float__(self) -> float:
        """Return the number of an array of one."""
        return float(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Bring the values to NumPy."""
        return copy_to_numpy(self.values).astype(dtype or np.float64, copy=False)

    def __getitem__(self, key: Any) -> DeviceArray:
        """Return some of the values."""
        if self.ndim > 1 and not isinstance(key, tuple):
            key = (key, ...)  # the standard wants all axes
        return DeviceArray(self.values[key])

    def __setitem__(self, key: Any, values: Any) -> None:
        """Change some of the values."""
        self.values[key] = self._unwrap(values)

    def __array_ufunc__(self, function: np.ufunc, method: str, *given: Any, **options: Any) -> Any:
        """Apply a function element by element, on the device."""
        # Reductions such as ``np.add.reduce`` are not element by element.
        if method != "__call__":
            return NotImplemented

        # 1. The values: by an operator if there is one, as operators take single numbers, too.
        name = function.__name__
        arguments = [self._unwrap(argument) for argument in given]
        if name in LOGICAL:
            found = LOGICAL[name](*arguments)
        elif name in OPERATORS:
            found = OPERATORS[name](*map(self._as_numbers, arguments))
        else:
            # Functions of a library take arrays only.
            library_function: Any = getattr(namespace_of(self.values), name)
            found = library_function(*map(self._as_float64, arguments))

        # 2. Where they go: ``a += b`` names an array, on the device or of NumPy.
        outputs: Any = options.get("out")
        if outputs is None:
            return DeviceArray(found)
        output = outputs[0]
        if isinstance(output, DeviceArray):
            output.values = found
        else:
            output[...] = copy_to_numpy(found)
        return output

    def __array_function__(self, function: Any, types: Any, given: Any, options: Any) -> Any:
        """Apply a function of NumPy by the method of this class that has its name, or refuse it."""
        own = getattr(self, f"_{function.__name__}", None)
        if own is None:
            return NotImplemented
        return own(*given, **options)

    # ---- Functions of NumPy: np.where is _where, and so on

    def _where(self, condition: Any, a: Any, b: Any) -> DeviceArray:
        xp = namespace_of(self.values)
        return DeviceArray(
            xp.where(self._unwrap(condition), self._as_float64(a), self._as_float64(b))
        )

    def _broadcast_to(self, values: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
        return DeviceArray(namespace_of(self.values).broadcast_to(values.values, shape))

    def _sum(self, values: DeviceArray) -> float:
        return values.sum()

    def _concatenate(self, pieces: Any) -> DeviceArray:
        # The standard's name, and CuPy's.
        xp = namespace_of(self.values)
        join = getattr(xp, "concat", None) or xp.concatenate
        return DeviceArray(join([piece.values for piece in pieces]))

    def _vdot(self, a: Any, b: Any) -> float:
        return float(namespace_of(self.values).sum(self._as_float64(a) * self._as_float64(b)))

    def _count_nonzero(self, values: DeviceArray) -> int:
        differs = values
        if not is_logical(values.values):
            differs = values != 0.0
        return int(differs.sum())

    # ---- Methods of NumPy's arrays

    def sum(self, axis: int | None = None) -> Any:
        """Return the sum of all values, or the sums along an axis."""
        xp = namespace_of(self.values)
        values = self._as_numbers(self.values)
        if axis is None:
            return float(xp.sum(values))
        return DeviceArray(xp.sum(values, axis=axis))

    def max(self, initial: float) -> float:
        """Return the largest value, and at least `initial`."""
        if not self.size:
            return initial
        return max(initial, float(namespace_of(self.values).max(self.values)))

    # ---- Arguments as functions of the library take them

    def _unwrap(self, given: Any) -> Any:
        """Return an argument as an array of the library; single numbers as numbers of Python."""
        if isinstance(given, DeviceArray):
            return given.values
        if isinstance(given, np.ndarray) and given.ndim:
            return copy_to_device(given, self.values)
        if isinstance(given, (np.generic, np.ndarray)):
            return given.item()
        return given

    def _as_numbers(self, values: Any) -> Any:
        """Return truth values as 0 and 1."""
        if not is_logical(values):
            return values
        one = self._as_float64(1.0)
        zero = self._as_float64(0.0)
        return namespace_of(self.values).where(values, one, zero)

    def _as_float64(self, given: Any) -> Any:
        """Return an argument as an array of float64 on the device."""
        values = self._unwrap(given)
        if isinstance(values, (bool, int, float)):
            return number_like(float(values), self.values)
        return self._as_numbers(values)


def number_like(number: float, like: Any) -> Any:
    """Return a number as an array of float64 on the device of another."""
    # A copy to the device takes as long as a sum there: each number is copied once.
    key = (number, namespace_of(like), str(getattr(like, "device", "")))
    if key not in NUMBERS:
        NUMBERS[key] = copy_to_device(np.asarray(number), like)
    return NUMBERS[key]


def is_logical(values: Any) -> bool:
    """Return True for an array of truth values."""
    return str(getattr(values, "dtype", "")).endswith("bool")
