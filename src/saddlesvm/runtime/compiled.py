"""Compilation of the kernels: one decorator, and one way to choose the body of an operation by type.

Kernels are plain Python functions compiled by Numba. They release the GIL, are cached on disk, and may reassociate
sums (which is what lets a dot product be vectorised), but keep NaN and infinity: shrinking compares with infinity.

Numba keys its cache only by the file that defines a kernel. A change to code that kernels of other files inline
(losses, ``arithmetic.py``, ``exp_log.py``, ``layouts.py``) leaves those kernels stale:
``python -m saddlesvm.clear_cache`` removes every cached kernel of this package.

Nothing here imports Numba, which takes 0.15 seconds: a process that only fits small problems needs none of it.
:mod:`saddlesvm.runtime.compiler` does, when a kernel is first called.

With ``NUMBA_DISABLE_JIT=1``, and where Numba is not installed, every kernel is the Python function that it is written
as, which takes hundreds of times as long, and which a debugger can follow.

The classes that compiled kernels depend on through their argument types, and the text that defines them.

Classes from outside the package, such as a user's own loss, must not stand in the index that all processes read: a
process that cannot import their module could not read it. So kernels for such a class have an index of their own. Its
name is derived from the text of the file that defines the class, as it was when the class was made: a changed file
gives a new name, and never meets old code. A class that other processes cannot import (typed in, or made inside a
function) has no index; its kernels are compiled in each process. Changes to other files that the class uses are not
noticed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from saddlesvm.runtime.clock import WATCH
from saddlesvm.runtime.lazy import Later

if TYPE_CHECKING:
    from numba.core import types

Function = TypeVar("Function", bound=Callable[..., Any])

REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}
PLAIN: dict[str, Any] = {"nogil": True, "fastmath": REASSOCIATE, "error_model": "numpy", "_nrt": False}
ALLOCATING: dict[str, Any] = {"nogil": True, "fastmath": REASSOCIATE, "error_model": "numpy"}
SEARCHING: dict[str, Any] = PLAIN | {"fastmath": REASSOCIATE | {"nnan"}}
INLINE: Any = {"forceinline": True}  # a call with its many arguments takes longer than a product with a short row
BODY: Any = {"fastmath": REASSOCIATE, "error_model": "numpy"} | INLINE  # of an operation

dispatcher_of = Later("saddlesvm.runtime.compiler:dispatcher_of")
declare_operations = Later("saddlesvm.runtime.compiler:declare_operations")
type_of_instruction = Later("saddlesvm.runtime.compiler:type_of")
LOCK = threading.RLock()
OPERATIONS: list[tuple[Any, Any]] = []  # stubs and picks that Numba has not been told of


def _is_interpreted() -> bool:
    """Whether Numba is set to compile nothing, or is not installed: no wheels of it exist for WebAssembly."""
    if "numba" in sys.modules:
        return bool(sys.modules["numba"].config.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0").strip() not in ("", "0") or find_spec("numba") is None


INTERPRETED = _is_interpreted()


class Compiled:
    """A function that Numba compiles. Numba, which takes longer to import than a small fit, is imported when the
    function is first called, or first met in the text of another one that is compiled.

    Attributes
    ----------
    py_func : callable
        The Python function.
    options : dict
        Of :func:`numba.njit`.
    saved : bool
        Whether the compiled code is kept on disk.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], saved: bool) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.options, self.saved = function, options, saved
        self.made: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return (self.made or self.dispatcher())(*arguments)

    def dispatcher(self) -> Any:
        """Numba's own object."""
        if self.made is None:
            with LOCK:
                declare_waiting()
                self.made = self.made or dispatcher_of(self.py_func, self.options, self.saved)
        return self.made

    @property
    def _numba_type_(self) -> Any:  # by which compiled code that calls this one knows it
        return self.dispatcher()._numba_type_

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher(), name)


class Instruction:
    """An instruction of the processor, for compiled code: a name in :mod:`saddlesvm.runtime.compiler`."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def _numba_type_(self) -> Any:
        return type_of_instruction(self.name)


def instruction(name: str, in_python: Callable[..., Any]) -> Callable[..., Any]:
    """The instruction of this name; `in_python` where nothing is compiled."""
    made: Any = in_python if INTERPRETED else Instruction(name)
    return made


@functools.cache
def is_at_hand(compiled: Any) -> bool:
    """Return True if a kernel was compiled by an earlier process, or came with the wheel: it then loads in no time.

    The answer is the same throughout a process. It says nothing of the argument types, which only Numba can read.
    """
    if not isinstance(compiled, Compiled):
        return True
    file = Path(compiled.py_func.__code__.co_filename)
    base = f"{file.stem}.{compiled.py_func.__qualname__}-*.nbi"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    # Where Numba keeps kernels: a folder of the user's choice, beside the file, or in the user's cache.
    places = [Path(chosen).glob(f"*/{base}")] if chosen else [(file.parent / "__pycache__").glob(base)]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    places.append(Path(home, "numba").glob(f"*/{base}"))
    shipped = Path(__file__).parents[1] / "_kernels" / compiled.py_func.__module__
    places.append(shipped.glob(base))
    return any(True for place in places for _ in place)


def declare_waiting() -> None:
    """Let Numba know the operations that were declared since the last call; importing it counts as compiling."""
    with LOCK:
        first = dispatcher_of.home.partition(":")[0] not in sys.modules
        if first:
            WATCH.on_start()
        waiting = OPERATIONS[:]
        del OPERATIONS[: len(waiting)]
        declare_operations(waiting, BODY)
        if first:
            WATCH.on_end()


def quiet(function: Function) -> Function:
    """A kernel that Python runs, with the arithmetic of compiled code: no warning about values that are not finite."""

    @functools.wraps(function)
    def silent(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    silent.py_func = function  # type: ignore[attr-defined]
    return silent  # type: ignore[return-value]


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    """A kernel with these options, kept on disk; the Python function where nothing is compiled."""
    made: Any = quiet(function) if INTERPRETED else Compiled(function, options, saved=True)
    return made


def kernel(function: Function) -> Function:
    """Compile `function` at its first call for each combination of argument types; cached on disk, without the GIL.

    A kernel makes no arrays: it is compiled without reference counting, whose atomic operations cost more than a
    short row does. A kernel that must make arrays is an :func:`allocating_kernel`.
    """
    return _compiled(function, PLAIN)


def allocating_kernel(function: Function) -> Function:
    """A kernel that makes arrays."""
    return _compiled(function, ALLOCATING)


def searching_kernel(function: Function) -> Function:
    """A kernel that meets no NaN: comparisons of numbers then take several at a time."""
    return _compiled(function, SEARCHING)


def allocating_search(function: Function) -> Function:
    """A :func:`searching_kernel` that makes arrays."""
    return _compiled(function, SEARCHING | {"_nrt": True})


def inlined(function: Function) -> Function:
    """Compile a small helper that becomes part of the kernels that call it, and so needs no cache of its own.

    A call from Python compiles it anew in every process, which takes longer than most fits: only tests call it so.
    """
    return _helper(function, PLAIN | INLINE)


def inlined_search(function: Function) -> Function:
    """An :func:`inlined` helper of searching kernels."""
    return _helper(function, SEARCHING | INLINE)


def _helper(function: Function, options: dict[str, Any]) -> Function:
    made: Any = function if INTERPRETED else Compiled(function, options, saved=False)
    return made


def operation(pick: Callable[..., Callable[..., Any] | None]) -> Callable[[Function], Function]:
    """Let compiled code use the decorated function, with the body that `pick` chooses from the argument *types*.

    Types, not functions, carry the choice: a kernel that takes a jitted function as an argument cannot be cached.
    """

    def declare(stub: Function) -> Function:
        if not INTERPRETED:
            OPERATIONS.append((stub, pick))
        if "numba" in sys.modules:
            declare_waiting()
        return stub

    return declare


def arithmetic(function: Function) -> Function:
    """Let compiled code inline a function of numbers that Python calls with numbers or arrays: one text for both.

    The text uses what both know: operators, ``np.minimum``, :func:`select`, other functions of this kind.
    """
    return operation(lambda *types: function)(function)


def _choose(condition: bool, a: Any, b: Any) -> Any:
    """The body of :func:`select` in compiled code."""
    return a if condition else b


@operation(lambda *types: _choose)
def select(condition: Any, a: Any, b: Any) -> Any:
    """Return `a` if the condition holds and `b` otherwise; of arrays, element by element (:func:`numpy.where`).

    In a kernel it is a conditional. Both sides are computed: each must be harmless if the other is chosen.
    """
    if isinstance(condition, np.ndarray):
        return np.where(condition, a, b)
    return a if condition else b


def record_of(*names: str, kind: Any = np.float64) -> np.dtype:
    """The type of a record of numbers with these names, all of one kind, for arrays of one or more records.

    Compiled code reads ``m[0].name``, Python ``m["name"][0]``.

    A file of such an array needs no pickle, and its bytes are those of a plain array with one place for each name.
    """
    fields = [(name, kind) for name in names]
    return np.dtype((np.record, fields)) if INTERPRETED else np.dtype(fields)  # whose fields Python can name


PACKAGE = __name__.partition(".")[0]


def python_class(numba_type: types.Type) -> type | None:
    """The NamedTuple class behind a Numba type; None for other types."""
    return getattr(numba_type, "instance_class", None)


def number_in(array: Any) -> Any:
    """NumPy's type of the numbers in an array, given the array's Numba type."""
    return np.dtype(str(array.dtype)).type


def classes_in(signature: Iterable[Any]) -> set[type]:
    """The NamedTuple classes that argument types are made of."""
    found: set[type] = set()
    for one in signature:
        kind = python_class(one)
        found |= classes_in(getattr(one, "types", ())) | ({kind} if kind else set())
    return found


def is_outside(kind: type) -> bool:
    """Whether a class is defined outside this package."""
    return kind.__module__.partition(".")[0] != PACKAGE


def mark_source(kind: Any) -> None:
    """Mark a class with the present text of the file that defines it; cached kernels for it are found by this mark."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file is not None and os.path.isfile(file) and is_outside(kind):
        kind.kernel_source = hashlib.sha256(
            f"{kind.__module__}:{kind.__qualname__}:".encode() + Path(file).read_bytes()
        ).hexdigest()


def source_of(kind: Any) -> str | None:
    """The mark of a class from outside; None where another process would not find the same class by its name."""
    found: Any = sys.modules.get(kind.__module__) if kind.__module__ != "__main__" else None
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    mark: str | None = getattr(kind, "kernel_source", None)
    return mark if found is kind else None
