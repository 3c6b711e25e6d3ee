"""How this project compiles its kernels: one decorator, and one way to choose the body of an operation by type.

Kernels are plain Python functions compiled by Numba. They release the GIL, are cached on disk, and may reassociate
sums (which is what lets a dot product be vectorised), but keep NaN and infinity: shrinking compares with infinity.

Numba keys its cache only by the file that defines a kernel. A change to code that kernels of other files inline
(losses, ``logit.py``, ``exp_log.py``, ``layouts.py``) leaves those kernels stale: ``python -m saddlesvm.clear_cache``
removes every cached kernel of this package.

Processes that compile at the same time number their files alike, and the index that one of them writes last may then
lead to code that the other has written for other types. So the files of each process have names of their own here, and
a kernel that such an index misses is compiled once more. A checksum protects the contents of the files
(:mod:`saddlesvm.runtime.kernel_cache`).

With ``NUMBA_DISABLE_JIT=1`` every kernel is the Python function that it is written as, which takes hundreds of times as
long, and which a debugger can follow.
"""

from __future__ import annotations

import functools
import hashlib
import os
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numba.core import config
from numba.core.caching import FunctionCache
from numba.extending import overload

from saddlesvm.runtime.class_sources import classes_in, is_outside, source_of
from saddlesvm.runtime.kernel_cache import CheckedCacheFile

Function = TypeVar("Function", bound=Callable[..., Any])

REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}
PLAIN: dict[str, Any] = {"nogil": True, "fastmath": REASSOCIATE, "error_model": "numpy", "_nrt": False}
SEARCHING = PLAIN | {"fastmath": REASSOCIATE | {"nnan"}}
INLINE: Any = {"forceinline": True}  # a call with its many arguments takes longer than a product with a short row
BODY: Any = {"fastmath": REASSOCIATE, "error_model": "numpy"} | INLINE  # of an operation
INTERPRETED = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]
TOKEN = uuid.uuid4().hex[:12]  # of this process and its forks


class OwnNames(str):
    """Numba's pattern of the names of a kernel's files, which here are no other process's."""

    def format(self, *, number: int) -> str:  # type: ignore[override]
        """The name of the file of this number."""
        return self.replace("{number:d}", f"{number}-{os.getpid()}-{TOKEN}")


class KernelCache(FunctionCache):
    """Numba's cache of a kernel, its files checked and under names of this process; with an index of their own for each
    set of classes from outside the package."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._indices: dict[str, CheckedCacheFile] = {}

    def _load_overload(self, signature: Any, target: Any) -> Any:
        return super()._load_overload(signature, target) if self._turn_to(signature) else None

    def _save_overload(self, signature: Any, data: Any) -> None:
        if self._turn_to(signature):
            super()._save_overload(signature, data)

    def _turn_to(self, signature: Any) -> bool:
        """Use the index for the classes of a signature; False where one of them cannot stand in any."""
        marks = [source_of(kind) for kind in classes_in(getattr(signature, "args", signature)) if is_outside(kind)]
        if None in marks:
            return False
        name = hashlib.sha256("".join(sorted(map(str, set(marks)))).encode()).hexdigest()[:16] if marks else ""
        if name not in self._indices:
            locator = self._impl.locator
            base = f"{self._impl.filename_base}-{name}" if name else self._impl.filename_base
            index = CheckedCacheFile(self._cache_path, base, locator.get_source_stamp())
            index._data_name_pattern = OwnNames(index._data_name_pattern)
            self._indices[name] = index
        self._cache_file = self._indices[name]
        return True


def cached(compiled: Any, function: Callable[..., Any]) -> Any:
    """The compiled function with :class:`KernelCache`, or the Python function where nothing is compiled."""
    if INTERPRETED:
        return quiet(compiled)
    compiled._cache = KernelCache(function)
    return compiled


def quiet(function: Function) -> Function:
    """A kernel that Python runs, with the arithmetic of compiled code: no warning about values that are not finite."""

    @functools.wraps(function)
    def silent(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    silent.py_func = function  # type: ignore[attr-defined]
    return silent  # type: ignore[return-value]


def kernel(function: Function) -> Function:
    """Compile `function` at its first call for each combination of argument types; cached on disk, without the GIL.

    A kernel makes no arrays: it is compiled without reference counting, whose atomic operations cost more than a
    short row does. A kernel that must make arrays is an :func:`allocating_kernel`.
    """
    compiled: Any = cached(njit(function, **PLAIN), function)
    return compiled


def allocating_kernel(function: Function) -> Function:
    """A kernel that makes arrays."""
    compiled: Any = cached(njit(function, nogil=True, fastmath=REASSOCIATE, error_model="numpy"), function)
    return compiled


def searching_kernel(function: Function) -> Function:
    """A kernel that meets no NaN: comparisons of numbers then take several at a time."""
    compiled: Any = cached(njit(function, **SEARCHING), function)
    return compiled


def allocating_search(function: Function) -> Function:
    """A :func:`searching_kernel` that makes arrays."""
    compiled: Any = cached(njit(function, **(SEARCHING | {"_nrt": True})), function)
    return compiled


def inlined(function: Function) -> Function:
    """Compile a small helper that becomes part of the kernels that call it, and so needs no cache of its own.

    A call from Python compiles it anew in every process, which takes longer than most fits: only tests call it so.
    """
    compiled: Any = njit(function, **(PLAIN | INLINE))
    return compiled


def inlined_search(function: Function) -> Function:
    """An :func:`inlined` helper of searching kernels."""
    compiled: Any = njit(function, **(SEARCHING | INLINE))
    return compiled


def operation(pick: Callable[..., Callable[..., Any] | None]) -> Callable[[Function], Function]:
    """Let compiled code use the decorated function, with the body that `pick` chooses from the argument *types*.

    Types, not functions, carry the choice: a kernel that takes a jitted function as an argument cannot be cached.
    """

    def declare(stub: Function) -> Function:
        overload(stub, strict=False, jit_options=BODY)(pick)
        return stub

    return declare


def record_of(*names: str, kind: Any = np.float64) -> np.dtype:
    """The type of a record of numbers with these names, all of one kind, for arrays of one or more records.

    Compiled code reads ``m[0].name``, Python ``m["name"][0]``.

    A file of such an array needs no pickle, and its bytes are those of a plain array with one place for each name.
    """
    fields = [(name, kind) for name in names]
    return np.dtype((np.record, fields)) if INTERPRETED else np.dtype(fields)  # whose fields Python can name
