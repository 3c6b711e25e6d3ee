"""The cached kernels of this package: files that are checked before they are run, and how to remove them."""

from __future__ import annotations

import hashlib
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.caching import IndexDataCacheFile

__all__ = ["CheckedCacheFile", "clear_cache"]

PACKAGE = Path(__file__).parents[1]
MAGIC = b"saddlesvm kernel 1\n"
DIGEST_BYTES = 32


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
        """What a file holds; None, and the file is removed, where that is not what was written."""
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
