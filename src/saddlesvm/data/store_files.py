"""The files of a store while it is written: arrays that grow, and a folder that appears when it is whole."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.errors import BeingWritten, DataError, sync_folder
from saddlesvm.data.store_format import HEADER, PARTIAL, code_of, npy_header

_CHUNK = 1 << 20


class GrowingArray:
    """A ``.npy`` file that rows are appended to; its header is written again when its length is known."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path, self.dtype = path, np.dtype(dtype)
        self.crc32 = 0
        self.n_items = 0
        self.file = path.open("xb")
        self.file.write(npy_header(self.dtype, (0,)))

    def append(self, array: np.ndarray[Any, Any]) -> None:
        """Add the values of an array, cast to the type of the file."""
        part = np.ascontiguousarray(array, dtype=self.dtype).reshape(-1)
        if part.size:
            bytes_ = part.view(np.uint8).data
            self.crc32 = zlib.crc32(bytes_, self.crc32)
            self.file.write(bytes_)
            self.n_items += part.size

    def finish(self, shape: tuple[int, ...]) -> dict[str, Any]:
        """Write the header, bring the file to the disk, and say what the store's header says of it."""
        with self.file:
            self.file.seek(0)
            self.file.write(npy_header(self.dtype, shape))
            self.file.flush()
            os.fsync(self.file.fileno())
        return {"dtype": code_of(self.dtype), "shape": list(shape), "crc32": f"{self.crc32:08x}"}

    def close(self) -> None:
        """Close the file as it is."""
        self.file.close()


class Scratch:
    """Numbers of 8 bytes whose type in the store is known only at the end: kept in a file, read back in pieces."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("x+b")
        self.n_items = 0

    def append(self, array: np.ndarray[Any, Any]) -> None:
        """Add int64 or float64 numbers, as they are."""
        self.file.write(np.ascontiguousarray(array).data)
        self.n_items += array.size

    def pieces(self, start: int, stop: int, dtype: Any) -> Iterator[np.ndarray[Any, Any]]:
        """The numbers from `start` to `stop` again, some at a time, taken to be of `dtype`."""
        self.file.flush()
        for first in range(start, stop, _CHUNK):
            self.file.seek(8 * first)
            yield np.frombuffer(self.file.read(8 * min(_CHUNK, stop - first)), dtype=dtype)
        self.file.seek(0, os.SEEK_END)

    def remove(self) -> None:
        """Close and remove the file."""
        self.file.close()
        with suppress(OSError):
            self.path.unlink()


class StoreFolder:
    """The folder of a store that is being written: NAME.partial beside its target, renamed when it is whole.

    Parameters
    ----------
    target : str or path
    overwrite : bool
        Whether a store may be replaced.

    Raises
    ------
    DataError
        The target exists, is not a store that could be overwritten, is being written by another process, or cannot be.
    """

    def __init__(self, target: str | os.PathLike[str], overwrite: bool) -> None:
        self.given = os.fspath(target)
        self.target = Path(os.path.realpath(target))
        self.path = self.target.with_name(self.target.name + PARTIAL)
        self.overwrite = overwrite
        self._lock = ExitStack()
        self._open = False
        if self.target.name.endswith(PARTIAL):
            raise DataError(f"{self.given}: names that end in {PARTIAL!r} are kept for conversions that are under way")
        self._refuse_target()
        with writing(self.given):
            self._take()
        self._open = True

    def _refuse_target(self) -> None:
        if not self.target.exists():
            return
        if not self.overwrite:
            raise DataError(
                f"{self.given}: exists already; overwrite it (overwrite=True, --overwrite), or give another name"
            )
        if not (self.target / HEADER).is_file():
            raise DataError(f"{self.given}: is not a store, so it is not overwritten; remove it, or give another name")

    def _take(self) -> None:
        """Make the folder anew: remove what a killed conversion left there, but leave a running one alone."""
        if self.path.exists():
            with self._lock_on(self.path):
                shutil.rmtree(self.path)
        try:
            self.path.mkdir()
        except FileExistsError:
            raise self._being_written() from None
        self._lock.enter_context(self._lock_on(self.path))

    @contextmanager
    def _lock_on(self, folder: Path) -> Iterator[None]:
        """Keep other writers off a folder; the lock goes when this process does, however it ends."""
        try:
            import fcntl

            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # it was published, or removed, a moment ago
            raise self._being_written() from None
        except (ImportError, OSError):  # not this system, or not this folder: two writers are then not kept apart
            yield
            return
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = os.path.samestat(os.stat(folder), os.fstat(handle))  # another may have made it anew before
            except (BlockingIOError, FileNotFoundError):
                held = False
            if not held:
                raise self._being_written()
            yield
        finally:
            os.close(handle)

    def _being_written(self) -> BeingWritten:
        return BeingWritten(f"{self.given}: is being written by another process")

    def publish(self) -> None:
        """Give the folder its name: from here on it is a store."""
        sync_folder(self.path)
        replaced = self.target.with_name(f"{self.target.name}.replaced{PARTIAL}")
        self._refuse_target()
        former = self.target.exists()
        if former:
            shutil.rmtree(replaced, ignore_errors=True)
            self.target.rename(replaced)
        try:
            self.path.rename(self.target)
        except OSError:
            if former:
                replaced.rename(self.target)
            raise
        self._open = False
        sync_folder(self.target.parent)
        shutil.rmtree(replaced, ignore_errors=True)

    def close(self) -> None:
        """Remove the folder unless it was published."""
        if self._open:
            shutil.rmtree(self.path, ignore_errors=True)
            self._open = False
        self._lock.close()


def wait_for_writer(target: str | os.PathLike[str]) -> None:
    """Wait until no other process is writing a store of this name, where the system has locks that say so."""
    given = Path(os.path.realpath(target))
    try:
        import fcntl

        handle = os.open(given.with_name(given.name + PARTIAL), os.O_RDONLY)
    except (ImportError, OSError):  # not this system, or it has just ended
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    finally:
        os.close(handle)


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Turn errors of the system (no space, no access, no such folder) into a `DataError` that names the store."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{name}: cannot be written: {error.strerror or error}") from None
