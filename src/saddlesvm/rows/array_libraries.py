"""Libraries of arrays besides NumPy: which one an array is of, and the way there and back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from types import ModuleType

CPU = 1  # as DLPack numbers devices


def is_on_device(X: object) -> bool:
    """Return True for an array in memory that only its own library reads."""
    if isinstance(X, np.ndarray) or not hasattr(X, "__dlpack_device__"):
        return False
    if not (hasattr(X, "__array_namespace__") or is_torch(X)):
        return False
    # The device by its name, if it has one, or by DLPack's code.
    name = getattr(X, "device", "")
    named_otherwise = not callable(name) and "cpu" not in str(name).lower()
    return named_otherwise or int(X.__dlpack_device__()[0]) != CPU


def is_torch(X: object) -> bool:
    """Return True for a tensor of torch, which has no array namespace."""
    return type(X).__module__.partition(".")[0] == "torch"


def namespace_of(X: Any) -> ModuleType:
    """Return the functions of an array's library."""
    if is_torch(X):
        return sys.modules["torch"]
    return X.__array_namespace__()


def sent(values: np.ndarray, like: Any, dtype: object = None) -> Any:
    """Return NumPy values as an array on the device of another; they keep their type by default."""
    place = {} if type(like).__module__.startswith("cupy") else {"device": like.device}
    return namespace_of(like).asarray(np.ascontiguousarray(values), dtype=dtype, **place)


def brought(values: Any) -> np.ndarray:
    """Return an array of any library as a NumPy array."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "get"):  # CuPy
        return np.asarray(values.get())
    if hasattr(values, "cpu"):  # torch
        return np.asarray(values.detach().cpu().numpy())
    if hasattr(values, "to_device"):
        values = values.to_device(namespace_of(values).Device("CPU_DEVICE"))
    return np.asarray(np.from_dlpack(values))
