"""The cached kernels of this package, in files that are checked before they are run.

Processes that compile at the same time number their files alike, and the index that one of them
writes last may then lead to code that another has written for other types. So the files of each
process have names of their own here, and a kernel that such an index lacks is compiled once more. A
checksum protects the contents of the files.

A wheel may bring kernels along, compiled for a portable processor: they serve until this one has
its own. They are in ``_kernels`` beside the rooms, a folder for each module, in files of
:class:`CheckedCacheFile`. A process takes one if it has no such kernel in Numba's cache and its
processor has the instructions. The files are of one version of Python and of Numba, and of the very
text of the module: with another one they count as missing, and the kernel is compiled. ``python -m
saddlesvm.ship_kernels`` makes them.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import platform
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llvmlite import binding
from numba.core.caching import FunctionCache, IndexDataCacheFile

from saddlesvm.runtime.argument_types import classes_in, is_outside, source_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGE = Path(__file__).parents[1]
FOLDER = PACKAGE / "_kernels"
# LLVM's name of what nearly all processors since 2015 (AMD) or 2013 (Intel) have.
PROCESSOR = "x86-64-v3"
# Its instructions beyond x86-64-v2.
INSTRUCTIONS = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
MAGIC = b"saddlesvm kernel 1\n"  # the first bytes of a file
DIGEST_BYTES = 32  # of SHA-256
NAME_DIGITS = 16  # hexadecimal digits of a hash in the name of an index
TOKEN = uuid.uuid4().hex[:12]  # of this process and its forks


@functools.cache
def fits_this_processor() -> bool:
    """Return True if there are kernels of a wheel, and this processor has their instructions."""
    if not FOLDER.is_dir() or platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    features = binding.get_host_cpu_features()
    return all(features.get(name) for name in INSTRUCTIONS)


@functools.cache
def stamp_of(file: str) -> str:
    """Return a hash of the text that a kernel was compiled of."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


class Shipping:
    """Use of the kernels that a wheel brings along: it uses them, or it makes them in a folder."""

    uses = True
    into: Path | None = None


SHIPPING = Shipping()


class CheckedCacheFile(IndexDataCacheFile):
    """Numba's files of a kernel, each of which begins with a checksum of its contents.

    A file that is damaged, was written by something else, or belongs to a user who owns neither
    this package nor this process, counts as missing: it is deleted if possible, and the kernel is
    compiled anew. A kernel for which the disk has no room is compiled anew, too. The checksum finds
    damage; it does not protect from somebody who may write to the folder.
    """

    def save(self, key: object, data: object) -> None:
        """Save a kernel, unless the disk refuses it."""
        with suppress(OSError):
            super().save(key, data)

    def _load_index(self) -> dict[object, str]:
        """Return the files by signature; empty if the index is of another text or version."""
        index = self._read_checked(self._index_path)
        if not isinstance(index, tuple) or len(index) != 3:
            return {}
        version, stamp, overloads = index
        # Another version, or another text of the source, has other kernels.
        is_current = (version, stamp) == (self._version, self._source_stamp)
        return overloads if is_current and isinstance(overloads, dict) else {}

    def _save_index(self, overloads: Mapping[object, str]) -> None:
        """Write the files by signature."""
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> object:
        """Return a kernel, or None."""
        return self._read_checked(self._data_path(name))

    def _save_data(self, name: str, data: object) -> None:
        """Write a kernel."""
        self._write(self._data_path(name), data)

    def _write(self, path: str, value: object) -> None:
        """Write a value with its checksum."""
        text = self._dump(value)
        with self._open_for_write(path) as file:
            file.write(MAGIC + hashlib.sha256(text).digest() + text)

    def _read_checked(self, path: str) -> object:
        """Return the contents of a file; remove it and return None if it was not written here."""
        try:
            with open(path, "rb") as file:
                is_safe = _is_safe_owner(os.fstat(file.fileno()).st_uid)
                whole = file.read() if is_safe else b""
        except OSError:
            return None
        start = len(MAGIC) + DIGEST_BYTES
        text = whole[start:]
        if whole[:start] == MAGIC + hashlib.sha256(text).digest():
            # A class that has changed since then may raise anything.
            with suppress(Exception):
                return pickle.loads(text)
        with suppress(OSError):
            os.unlink(path)
        return None


def _is_safe_owner(owner: int) -> bool:
    """Return True for a user who may leave code: this user, the system, or the package's."""
    return not hasattr(os, "getuid") or owner in (os.getuid(), 0, PACKAGE.stat().st_uid)


class ProcessNames(str):
    """Numba's pattern of the names of a kernel's files, with a mark of this process."""

    def format(self, *, number: int) -> str:  # type: ignore[override]
        """Return the name of the file of this number."""
        return self.replace("{number:d}", f"{number}-{os.getpid()}-{TOKEN}")


class KernelCache(FunctionCache):
    """Numba's cache of a kernel, with checked files under names of this process.

    Each set of classes from outside the package has an index of its own.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        self._indices: dict[str, CheckedCacheFile] = {}

    def _load_overload(self, signature: object, target: object) -> object:
        """Return a compiled kernel for a signature, or None."""
        if not self._choose_index(signature):
            return None
        overload = super()._load_overload(signature, target)
        return self._load_from_wheel(signature, target) if overload is None else overload

    def _save_overload(self, signature: object, data: Any) -> None:
        """Save a compiled kernel, also for the wheel if it is being made."""
        if not self._choose_index(signature):
            return
        super()._save_overload(signature, data)
        if SHIPPING.into is not None and self._impl.check_cachable(data):
            files = self._files_of_wheel(SHIPPING.into)
            Path(files._cache_path).mkdir(parents=True, exist_ok=True)
            files.save(self._portable_key(signature, data.codegen), self._impl.reduce(data))

    def _load_from_wheel(self, signature: object, target: Any) -> object:
        """Return the kernel that a wheel brought along, or None."""
        if not SHIPPING.uses or not fits_this_processor():
            return None
        # A wheel has no kernels for classes from outside.
        if self._cache_file is not self._indices.get(""):
            return None
        key = self._portable_key(signature, target.codegen())
        data = self._files_of_wheel(FOLDER).load(key)
        return None if data is None else self._impl.rebuild(target, data)

    def _files_of_wheel(self, folder: Path) -> CheckedCacheFile:
        """Return the files of this kernel in a folder of kernels for a wheel."""
        code = self._py_func.__code__
        path = os.fspath(folder / self._py_func.__module__)
        return CheckedCacheFile(path, self._impl.filename_base, stamp_of(code.co_filename))

    def _portable_key(self, signature: object, codegen: object) -> object:
        """Return the key of a kernel for any processor of this kind."""
        signature, _, text = self._index_key(signature, codegen)
        return signature, PROCESSOR, text

    def _choose_index(self, signature: Any) -> bool:
        """Use the index for the classes of a signature; return False if there can be none."""
        classes = classes_in(getattr(signature, "args", signature))
        # A class from outside the package may change: kernels for it have an index named after its
        # source.
        marks = {source_of(kind) for kind in classes if is_outside(kind)}
        # Without a source, a class cannot be told from its next version.
        if None in marks:
            return False
        name = ""
        if marks:
            text = "".join(sorted(map(str, marks)))
            name = hashlib.sha256(text.encode()).hexdigest()[:NAME_DIGITS]
        if name not in self._indices:
            base = self._impl.filename_base
            if name:
                base = f"{base}-{name}"
            stamp = self._impl.locator.get_source_stamp()
            index = CheckedCacheFile(self._cache_path, base, stamp)
            index._data_name_pattern = ProcessNames(index._data_name_pattern)
            self._indices[name] = index
        self._cache_file = self._indices[name]
        return True
