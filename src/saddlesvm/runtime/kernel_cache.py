"""The cached kernels of this package: files that are checked before they are run, and how to remove them.

Processes that compile at the same time number their files alike, and the index that one of them writes last may then
lead to code that the other has written for other types. So the files of each process have names of their own here, and
a kernel that such an index misses is compiled once more. A checksum protects the contents of the files.

A wheel brings kernels along, compiled for a portable processor: they serve until this one has its own. They lie in
``_kernels`` beside the rooms, a folder a module, in files of :class:`CheckedCacheFile`. A process takes one where it
has no kernel of its own in Numba's cache and its processor has the instructions. The files are of one version of Python
and of Numba, and of the very text of the module: with another one they count as missing, and the kernel is compiled as
without them. ``python -m saddlesvm.ship_kernels`` makes them.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import platform
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from llvmlite import binding
from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile

from saddlesvm.runtime.class_sources import classes_in, is_outside, source_of

__all__ = [
    "FOLDER", "PROCESSOR", "SHIPPING", "CheckedCacheFile", "KernelCache", "OwnNames", "clear_cache",
    "fits_this_processor", "only_own_kernels", "stamp_of",
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


@contextmanager
def only_own_kernels() -> Iterator[None]:
    """Kernels that a wheel brought along are not used meanwhile: this processor's own are compiled, and kept."""
    before, SHIPPING.uses = SHIPPING.uses, False
    try:
        yield
    finally:
        SHIPPING.uses = before


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
