"""The cached kernels of this package: files that are checked before they are run, and how to remove them.

Processes that compile at the same time number their files alike, and the index that one of them writes last may then
lead to code that the other has written for other types. So the files of each process have names of their own here, and
a kernel that such an index misses is compiled once more. A checksum protects the contents of the files.

A wheel brings kernels along, compiled for a portable processor: they serve until this one has its own. They lie in
``_kernels`` beside the rooms, a folder a module, in files of :class:`CheckedCacheFile`. A process takes one where it
has no kernel of its own in Numba's cache and its processor has the instructions. The files are of one version of Python
and of Numba, and of the very text of the module: with another one they count as missing, and the kernel is compiled as
without them. ``python -m saddlesvm.ship_kernels`` makes them.

Numba itself, behind the decorators of :mod:`~saddlesvm.runtime.compiled`: imported when a kernel is first needed.

Here are also the instructions of the processor that Python has no words for, as compiled code calls them;
:func:`saddlesvm.runtime.compiled.instruction` names them without importing this module.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import platform
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from llvmlite import binding, ir
from numba import njit
from numba.core import cgutils, config, event, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.registry import cpu_target
from numba.extending import intrinsic, overload

from saddlesvm.runtime.clock import WATCH
from saddlesvm.runtime.compiled import classes_in, is_outside, source_of

__all__ = [
    "FOLDER", "PROCESSOR", "SHIPPING", "CheckedCacheFile", "KernelCache", "OwnNames", "clear_cache",
    "fits_this_processor", "stamp_of",
]  # fmt: skip

PACKAGE = Path(__file__).parents[1]
FOLDER = PACKAGE / "_kernels"
PROCESSOR = "x86-64-v3"  # LLVM's name of what nearly all processors since 2015 (AMD) or 2013 (Intel) have
NEEDED = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")  # beyond x86-64-v2
MAGIC = b"saddlesvm kernel 1\n"
DIGEST_BYTES = 32
TOKEN = uuid.uuid4().hex[:12]  # of this process and its forks


@functools.cache
def fits_this_processor() -> bool:
    """Whether there are such kernels, and this processor has their instructions."""
    if not FOLDER.is_dir() or platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    features = binding.get_host_cpu_features()
    return all(features.get(name) for name in NEEDED)


@functools.cache
def stamp_of(file: str) -> str:
    """A hash of the text that a kernel was compiled of."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


class Shipping:
    """Use of the kernels that a wheel brings along: it uses them, or it makes them in a folder."""

    uses = True
    into: Path | None = None


SHIPPING = Shipping()


class CheckedCacheFile(IndexDataCacheFile):
    """Numba's files of one kernel, each of which begins with a checksum of its contents.

    A file that is damaged, was written by something else, or belongs to a user who owns neither this package nor this
    process, counts as missing: it is deleted if possible, and the kernel is compiled anew. A kernel for which the disk
    has no room is compiled anew too. The checksum finds damage; it does not protect from somebody who may write to the
    folder.
    """

    @classmethod
    def of(cls, file: Any) -> CheckedCacheFile:
        """The same files as Numba's own object stands for."""
        made = cls.__new__(cls)
        vars(made).update(vars(file))
        return made

    def save(self, key: Any, data: Any) -> None:
        """Save a kernel, unless the disk refuses it."""
        with suppress(OSError):
            super().save(key, data)

    def _load_index(self) -> dict[Any, str]:
        loaded = self._checked(self._index_path)
        fits = isinstance(loaded, tuple) and len(loaded) == 3 and loaded[:2] == (self._version, self._source_stamp)
        return loaded[2] if fits and isinstance(loaded[2], dict) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._checked(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, value: Any) -> None:
        text = self._dump(value)
        with self._open_for_write(path) as file:
            file.write(MAGIC + hashlib.sha256(text).digest() + text)

    def _checked(self, path: str) -> Any:
        """The contents of a file; None, and the file is removed, where that is not what was written."""
        try:
            with open(path, "rb") as file:
                whole = file.read() if _is_trusted(os.fstat(file.fileno()).st_uid) else b""
        except OSError:
            return None
        start = len(MAGIC) + DIGEST_BYTES
        text = whole[start:]
        if whole[:start] == MAGIC + hashlib.sha256(text).digest():
            with suppress(Exception):  # whatever a class that has changed since then raises
                return pickle.loads(text)
        with suppress(OSError):
            os.unlink(path)
        return None


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
        if not self._turn_to(signature):
            return None
        found = super()._load_overload(signature, target)
        return self._load_shipped(signature, target) if found is None else found

    def _save_overload(self, signature: Any, data: Any) -> None:
        if not self._turn_to(signature):
            return
        super()._save_overload(signature, data)
        if SHIPPING.into is not None and self._impl.check_cachable(data):
            files = self._shipped_in(SHIPPING.into)
            Path(files._cache_path).mkdir(parents=True, exist_ok=True)
            files.save(self._portable_key(signature, data.codegen), self._impl.reduce(data))

    def _load_shipped(self, signature: Any, target: Any) -> Any:
        """The kernel that a wheel brought along; None where there is none for this processor and signature."""
        if not (SHIPPING.uses and fits_this_processor() and self._cache_file is self._indices.get("")):
            return None
        found = self._shipped_in(FOLDER).load(self._portable_key(signature, target.codegen()))
        return None if found is None else self._impl.rebuild(target, found)

    def _shipped_in(self, folder: Path) -> CheckedCacheFile:
        code = self._py_func.__code__
        place = os.fspath(folder / self._py_func.__module__)
        return CheckedCacheFile(place, self._impl.filename_base, stamp_of(code.co_filename))

    def _portable_key(self, signature: Any, codegen: Any) -> Any:
        """The key of a kernel, with a name that stands for the processor."""
        signature, _, text = self._index_key(signature, codegen)
        return signature, PROCESSOR, text

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


def _is_trusted(owner: int) -> bool:
    """Whether a user may leave code here: this process's own, the system's, or the owner of this package."""
    return not hasattr(os, "getuid") or owner in (os.getuid(), 0, PACKAGE.stat().st_uid)


def clear_cache() -> int:
    """Remove the cached kernels of this package; the number of files removed."""
    numba_config: Any = config
    elsewhere = numba_config.CACHE_DIR
    places = [PACKAGE, Path(elsewhere)] if elsewhere else [PACKAGE]
    found = [file for place in places for suffix in ("*.nbi", "*.nbc") for file in place.rglob(suffix)]
    ours = [file for file in found if PACKAGE in file.parents or "saddlesvm" in os.fspath(file)]
    for file in ours:
        file.unlink(missing_ok=True)
    return len(ours)


class Teller(event.Listener):
    """Forwards Numba's reports of its compilations."""

    def on_start(self, event: event.Event) -> None:
        """One begins."""
        WATCH.on_start()

    def on_end(self, event: event.Event) -> None:
        """It is done."""
        WATCH.on_end()


event.register("numba:compile", Teller())


def dispatcher_of(function: Callable[..., Any], options: dict[str, Any], saved: bool) -> Any:
    """Numba's object for a Python function; with :class:`KernelCache` where it is saved."""
    made: Any = njit(function, **options)
    if saved:
        made._cache = KernelCache(function)
    return made


def declare_operations(operations: Iterable[tuple[Any, Any]], options: Any) -> None:
    """Let compiled code use each stub with the body that its pick chooses from the argument types."""
    for stub, pick in operations:
        overload(stub, strict=False, jit_options=options)(pick)


FIRST_CACHE, SECOND_CACHE = 3, 2  # caches of the processor, as the instruction numbers them


def _prefetch_into(cache: int) -> Callable[..., Any]:
    """The instruction that asks the processor for the cache line at a byte offset in an array; it never faults."""

    def prefetch_line(typingctx: Any, array: types.Array, offset: types.Integer) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            byte = ir.IntType(8).as_pointer()
            start = builder.bitcast(view.data, byte)
            place = builder.gep(start, [arguments[1]])
            i32 = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
            name = "llvm.prefetch.p0i8" if getattr(byte, "is_opaque", False) is False else "llvm.prefetch.p0"
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(function, [place, i32(0), i32(cache), i32(1)])
            return context.get_dummy_value()

        return types.void(array, types.uint64), generate

    return prefetch_line


def _reread(to: types.Type, of: types.Type) -> Callable[..., Any]:
    """The bits of a number of type `of` read as one of type `to`."""

    def reread(typingctx: Any, x: types.Type) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(to))

        return to(of), generate

    return reread


def _number(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The address of a number in the gate, the first two arguments."""
    gate, place = arguments[:2]
    data = context.make_array(signature.args[0])(context, builder, gate).data
    return builder.gep(data, [place])


def add_one(typingctx: Any, gate: types.Array, place: types.Integer) -> Any:
    """Add one to a number of the gate, for all threads at once; the number before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", _number(context, builder, signature, arguments), one, "acq_rel")

    return types.int64(gate, types.intp), generate


def read(typingctx: Any, gate: types.Array, place: types.Integer) -> Any:
    """A number of the gate, as all threads see it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_number(context, builder, signature, arguments), "acquire", 8)

    return types.int64(gate, types.intp), generate


def write(typingctx: Any, gate: types.Array, place: types.Integer, value: types.Integer) -> Any:
    """Set a number of the gate, for all threads to see."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _number(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(gate, types.intp, types.int64), generate


def raise_from(typingctx: Any, gate: types.Array, place: types.Integer, value: types.Integer) -> Any:
    """Add one to a number of the gate if it is `value` still; whether it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, former = _number(context, builder, signature, arguments), arguments[2]
        raised = builder.add(former, ir.Constant(ir.IntType(64), 1))
        answer = builder.cmpxchg(address, former, raised, "acq_rel", "acquire")
        return builder.extract_value(answer, 1)

    return types.boolean(gate, types.intp, types.int64), generate


def give_way(typingctx: Any) -> Any:
    """Let another thread have the core."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


def nap(typingctx: Any, microseconds: types.Integer) -> Any:
    """Sleep."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "usleep"), arguments)
        return context.get_dummy_value()

    return types.void(types.uint32), generate


def high_product(typingctx: Any, a: types.Integer, b: types.Integer) -> Any:
    """The upper 64 bits of the 128-bit product of two uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        x, y = (builder.zext(one, wide) for one in arguments)
        return builder.trunc(builder.lshr(builder.mul(x, y), ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


def leading_zeros(typingctx: Any, a: types.Integer) -> Any:
    """Number of zero bits before the first one of a uint64 that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


def half_of(typingctx: Any, bits: types.Integer) -> Any:
    """The number whose bits in half precision (binary16) these are, as float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


def brain_of(typingctx: Any, bits: types.Integer) -> Any:
    """The number whose bits as bfloat16 these are, as float32: the upper half of its bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        i32 = ir.IntType(32)
        upper = builder.shl(builder.zext(arguments[0], i32), ir.Constant(i32, 16))
        return builder.bitcast(upper, ir.FloatType())

    return types.float32(types.uint16), generate


MAKERS: dict[str, Callable[..., Any]] = {
    "prefetch_line": _prefetch_into(FIRST_CACHE),
    "prefetch_line_far": _prefetch_into(SECOND_CACHE),
    "bits_of": _reread(types.int64, types.float64),
    "double_of": _reread(types.float64, types.int64),
    "single_bits": _reread(types.int32, types.float32),
    "add_one": add_one,
    "read": read,
    "write": write,
    "raise_from": raise_from,
    "give_way": give_way,
    "nap": nap,
    "high_product": high_product,
    "leading_zeros": leading_zeros,
    "half_of": half_of,
    "brain_of": brain_of,
}


@functools.cache
def type_of(name: str) -> Any:
    """Numba's type of an instruction."""
    made = intrinsic(MAKERS[name])
    context = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(made)
