"""Libraries of arrays besides NumPy: which one an array is of, and copies there and back."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from types import ModuleType

CPU = 1  # DLPack's number of the device
# Libraries whose arrays do not name their namespace: it is the module itself.
WITHOUT_NAMESPACE = ("torch", "cupy")


def is_on_device(X: object) -> bool:
    """Return True for an array in memory that only its own library reads."""
    if isinstance(X, np.ndarray) or not hasattr(X, "__dlpack_device__"):
        return False
    if not (hasattr(X, "__array_namespace__") or library_name(X) in WITHOUT_NAMESPACE):
        return False
    # The device by its name, or by DLPack's number; some libraries make `device` a method.
    name = getattr(X, "device", "")
    named_otherwise = not callable(name) and "cpu" not in str(name).lower()
    return named_otherwise or int(X.__dlpack_device__()[0]) != CPU


def library_name(X: object) -> str:
    """Return the name of the package that an array is of."""
    return type(X).__module__.partition(".")[0]


def is_torch(X: object) -> bool:
    """Return True for a tensor of torch."""
    return library_name(X) == "torch"


def namespace_of(X: Any) -> ModuleType:
    """Return the functions of an array's library."""
    name = library_name(X)
    if name in WITHOUT_NAMESPACE:
        return sys.modules[name]
    return X.__array_namespace__()


def check_library(X: Any) -> None:
    """Raise ValueError for rows whose library or device does not compute in double precision."""
    # Arrays of JAX cannot be written to, and compute in single precision by default.
    name = library_name(X)
    if name.startswith("jax"):
        raise ValueError(
            "rows of JAX on a device are not trained there: hand them over to torch or CuPy, "
            "without a copy, by torch.from_dlpack(X) or cupy.from_dlpack(X)"
        )
    wide = None
    # A device of Apple has no double precision, and says so by an exception.
    with contextlib.suppress(TypeError, RuntimeError):
        wide = copy_to_device(np.zeros(1), X, dtype=namespace_of(X).float64)
    if wide is None or not str(wide.dtype).endswith("float64"):
        raise ValueError(
            f"the device of X ({getattr(X, 'device', name)}) has no double precision, in which "
            "gaps are proven: bring the rows to the CPU"
        )


def copy_to_device(values: np.ndarray, like: Any, dtype: object = None) -> Any:
    """Return NumPy values as an array on the device of another; they keep their type by default."""
    # CuPy has no such argument: it copies to the current device.
    place = {}
    if library_name(like) != "cupy":
        place["device"] = like.device
    return namespace_of(like).asarray(np.ascontiguousarray(values), dtype=dtype, **place)


def copy_to_numpy(values: Any) -> np.ndarray:
    """Return an array of any library as a NumPy array."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "get"):  # CuPy
        return np.asarray(values.get())
    if hasattr(values, "cpu"):  # torch
        return np.asarray(values.detach().cpu().numpy())
    if library_name(values).startswith("jax"):
        return np.asarray(values)
    # The array API standard.
    if hasattr(values, "to_device"):
        values = values.to_device(namespace_of(values).Device("CPU_DEVICE"))
    return np.asarray(np.from_dlpack(values))
