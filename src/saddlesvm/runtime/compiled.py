"""Compile kernels: decorators for them, and a way to choose the body of an operation by types.

Kernels are plain Python functions compiled by Numba. They release the GIL, are cached on disk, and
may reassociate sums (which lets a dot product be vectorised), but keep NaN and infinity: shrinking
compares with infinity.

Numba keys its cache only by the file that defines a kernel. A change to code that kernels of other
files inline (losses, ``arithmetic.py``, ``exp_log.py``, ``layouts.py``) leaves those kernels stale:
delete the cached files (``*.nbi``, ``*.nbc``) after such a change.

Nothing here imports Numba, which takes 0.15 seconds: a process that only fits small problems needs
none of it. :mod:`saddlesvm.runtime.compiler` does, when a kernel is first called.

With ``NUMBA_DISABLE_JIT=1``, or if Numba is not installed, every kernel is the Python function that
it is written as. That takes hundreds of times as long, and a debugger can follow it.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from saddlesvm.runtime.clock import WATCH
from saddlesvm.runtime.lazy import LateFunction

if TYPE_CHECKING:
    from collections.abc import Mapping

Function = TypeVar("Function", bound=Callable[..., Any])

# Options of Numba. `_nrt` False leaves out reference counting.
REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}
ALLOCATING: dict[str, Any] = {"nogil": True, "fastmath": REASSOCIATE, "error_model": "numpy"}
PLAIN: dict[str, Any] = ALLOCATING | {"_nrt": False}
SEARCHING: dict[str, Any] = PLAIN | {"fastmath": REASSOCIATE | {"nnan"}}
# A call with many arguments takes longer than a product with a short row.
INLINE: Any = {"forceinline": True}
# The body of an operation.
BODY: Any = {"fastmath": REASSOCIATE, "error_model": "numpy"} | INLINE

dispatcher_of = LateFunction("saddlesvm.runtime.compiler:dispatcher_of")
declare_operations = LateFunction("saddlesvm.runtime.compiler:declare_operations")
type_of_instruction = LateFunction("saddlesvm.runtime.instructions:type_of_instruction")
LOCK = threading.RLock()
OPERATIONS: list[tuple[Any, Any]] = []  # stubs and picks that Numba does not know yet


def _runs_python() -> bool:
    """Return True if Numba is set to compile nothing, or is not installed, as for WebAssembly."""
    if "numba" in sys.modules:
        return bool(sys.modules["numba"].config.DISABLE_JIT)
    is_disabled = os.environ.get("NUMBA_DISABLE_JIT", "0").strip() not in ("", "0")
    return is_disabled or find_spec("numba") is None


INTERPRETED = _runs_python()


class CompiledFunction:
    """A function that Numba compiles.

    Numba, which takes longer to import than a small fit, is imported when the function is first
    called, or first met in the text of another kernel that is compiled.

    Attributes
    ----------
    py_func : callable
        The Python function.
    options : dict
        Options of :func:`numba.njit`.
    saved : bool
        True if the compiled code is kept on disk.
    """

    def __init__(
        self, function: Callable[..., object], options: Mapping[str, object], saved: bool
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.options = options
        self.saved = saved
        self.made: Any = None

    def __call__(self, *arguments: object) -> Any:
        return (self.made or self.dispatcher())(*arguments)

    def dispatcher(self) -> Any:
        """Return Numba's own object."""
        if self.made is None:
            with LOCK:
                declare_waiting()
                self.made = self.made or dispatcher_of(self.py_func, self.options, self.saved)
        return self.made

    @property
    def _numba_type_(self) -> object:
        """Numba's type of this function, for compiled code that calls it."""
        return self.dispatcher()._numba_type_

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher(), name)


class Instruction:
    """An instruction of the processor: a name in :mod:`saddlesvm.runtime.instructions`."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def _numba_type_(self) -> object:
        """Numba's type of this instruction, for compiled code that calls it."""
        return type_of_instruction(self.name)


def instruction(name: str, in_python: Callable[..., object]) -> Callable[..., Any]:
    """Return the instruction of this name; `in_python` if nothing is compiled."""
    found: Any = in_python if INTERPRETED else Instruction(name)
    return found


@functools.cache
def is_at_hand(compiled: object) -> bool:
    """Return True if a kernel was compiled earlier, or came with the wheel: it loads in no time.

    The answer is the same throughout a process. It says nothing of the argument types, which only
    Numba can read.
    """
    if not isinstance(compiled, CompiledFunction):
        return True
    file = Path(compiled.py_func.__code__.co_filename)
    pattern = f"{file.stem}.{compiled.py_func.__qualname__}-*.nbi"

    # Where Numba keeps kernels: a folder of the user's choice, or beside the file; the user's
    # cache; and the kernels of the wheel.
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        searches = [Path(chosen).glob(f"*/{pattern}")]
    else:
        searches = [(file.parent / "__pycache__").glob(pattern)]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    searches.append(Path(home, "numba").glob(f"*/{pattern}"))
    shipped = Path(__file__).parents[1] / "_kernels" / compiled.py_func.__module__
    searches.append(shipped.glob(pattern))
    return any(True for search in searches for _ in search)


def declare_waiting() -> None:
    """Let Numba know new operations; the time of its import counts as compiling."""
    with LOCK:
        module = dispatcher_of.home.partition(":")[0]
        # Importing Numba takes seconds: that time counts as compiling.
        is_first = module not in sys.modules
        if is_first:
            WATCH.on_start()
        waiting = OPERATIONS[:]
        del OPERATIONS[: len(waiting)]
        declare_operations(waiting, BODY)
        if is_first:
            WATCH.on_end()


def silence(function: Function) -> Function:
    """Return a kernel that Python runs, without warnings about values that are not finite."""

    @functools.wraps(function)
    def call_silently(*arguments: object) -> object:
        with np.errstate(all="ignore"):
            return function(*arguments)

    call_silently.py_func = function  # type: ignore[attr-defined]
    return call_silently  # type: ignore[return-value]


def _compile(function: Function, options: Mapping[str, object]) -> Function:
    """Return a kernel, kept on disk; a Python function if nothing is compiled."""
    if INTERPRETED:
        return silence(function)
    made: Any = CompiledFunction(function, options, saved=True)
    return made


def kernel(function: Function) -> Function:
    """Compile `function` at its first call for each combination of argument types.

    It is cached on disk, and releases the GIL. A kernel makes no arrays: it is compiled without
    reference counting, whose atomic operations cost more than a short row does. A kernel that must
    make arrays is an :func:`allocating_kernel`.
    """
    return _compile(function, PLAIN)


def allocating_kernel(function: Function) -> Function:
    """Compile a kernel that makes arrays."""
    return _compile(function, ALLOCATING)


def searching_kernel(function: Function) -> Function:
    """Compile a kernel that meets no NaN: comparisons then take several numbers at a time."""
    return _compile(function, SEARCHING)


def inlined(function: Function) -> Function:
    """Compile a small helper as a part of the kernels that call it; it needs no cache of its own.

    A call from Python compiles it anew in every process, which takes longer than most fits: only
    tests call it so.
    """
    return _compile_helper(function, PLAIN | INLINE)


def inlined_search(function: Function) -> Function:
    """Compile a helper of searching kernels, as :func:`inlined`."""
    return _compile_helper(function, SEARCHING | INLINE)


def _compile_helper(function: Function, options: Mapping[str, object]) -> Function:
    """Return a helper with these options; the Python function if nothing is compiled."""
    made: Any = function if INTERPRETED else CompiledFunction(function, options, saved=False)
    return made


def operation(pick: Callable[..., Callable[..., object] | None]) -> Callable[[Function], Function]:
    """Let compiled code use a function with the body that `pick` chooses from the argument *types*.

    Types, not functions, carry the choice: a kernel that takes a jitted function as an argument
    cannot be cached.
    """

    def declare(stub: Function) -> Function:
        if not INTERPRETED:
            OPERATIONS.append((stub, pick))
        # Numba is there already, and has to know the operation now.
        if "numba" in sys.modules:
            declare_waiting()
        return stub

    return declare


def arithmetic(function: Function) -> Function:
    """Let compiled code inline a function that Python calls with numbers or arrays.

    Its text uses what both know: operators, ``np.minimum``, :func:`select`, and other functions
    of this kind.
    """
    return operation(lambda *types: function)(function)


def _choose(condition: bool, a: object, b: object) -> object:
    """Return what :func:`select` does, in compiled code."""
    return a if condition else b


@operation(lambda *types: _choose)
def select(condition: Any, a: Any, b: Any) -> Any:
    """Return `a` if the condition holds, else `b`; element by element for arrays, as `np.where`.

    In a kernel it is a conditional. Both sides are computed: each must be harmless if the other is
    chosen.
    """
    # Arrays of NumPy, and those that its functions take.
    if hasattr(condition, "__array_function__"):
        return np.where(condition, a, b)
    return a if condition else b


def record_of(*names: str, kind: object = np.float64) -> np.dtype:
    """Return the type of a record of numbers with these names, all of the same kind.

    Compiled code reads ``m[0].name``, Python ``m["name"][0]``. A file of such an array needs no
    pickle, and its bytes are a plain array with a place for each name.
    """
    fields = [(name, kind) for name in names]
    # Python, which then runs the kernels, can read the fields of NumPy's records only.
    if INTERPRETED:
        return np.dtype((np.record, fields))
    return np.dtype(fields)
