"""The format of a store: its files, the contents of its header, and the checks on both.

A store is a folder of plain ``.npy`` files and ``store.json``. ``docs/stores.md`` describes it for other programs; the
writer and the reader of this package both use this file. While a store is written, its arrays grow, and the folder
appears when it is whole.
"""

from __future__ import annotations

import io
import math
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import dtype_to_descr, write_array_header_1_0

from saddlesvm.data.archives import DAMAGE, check_stated, parsed_json, read_header, short
from saddlesvm.data.errors import BeingWritten, DataError, refuse_special, sync_folder
from saddlesvm.rows.small_types import FLOATS, bfloat16, type_name

FORMAT_NAME = "saddlesvm-store"
FORMAT_VERSION = 1
HEADER = "store.json"
NOTE = "missing values"  # the field that tells what a conversion did with them
PARTIAL = ".partial"

_MOST = 2**62  # rows or features: what the indices of any machine can count
_INTEGERS = ("<i4", "<i8")
BFLOAT16 = "bfloat16"
_ALLOWED = {
    "values": ("<f4", "<f8", "<f2", BFLOAT16, "|i1", "|u1", "|b1"),
    "indices": _INTEGERS,
    "indptr": _INTEGERS,
    "labels": ("<f8", *_INTEGERS),
    "weights": ("<f8",),
}


@dataclass(frozen=True)
class ArrayFile:
    """One array of a store as the header describes it; opening compares this with the file.

    Attributes
    ----------
    path : Path
    dtype : dtype
        Little-endian, one of those that the array may have.
    shape : tuple of int
    crc32 : int
        `zlib.crc32` of the array's bytes, the header of the ``.npy`` file left out.
    """

    path: Path
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    crc32: int

    @property
    def n_bytes(self) -> int:
        """Size of the array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def offset(self) -> int:
        """The offset of the array in its file, after comparing the file's header and size with what they must be.

        Raises
        ------
        DataError
            The file is missing, truncated, longer than it must be, or holds another array.
        """
        refuse_special(self.path)
        try:
            with self.path.open("rb") as file:
                found = read_header(file)
                offset = file.tell()
                size = file.seek(0, 2)
        except FileNotFoundError:
            raise DataError(f"{self.path}: is missing: the store is damaged") from None
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        except DAMAGE:
            raise DataError(f"{self.path}: is damaged: it does not start as a .npy file does") from None
        by_column = found.fortran and len(found.shape) > 1
        if found.shape != self.shape or found.dtype != self.dtype or (by_column and math.prod(found.shape) > 1):
            actual = f"{found.dtype} of shape {short(found.shape)}{', column by column' if by_column else ''}"
            raise DataError(f"{self.path}: holds {actual}; {HEADER} says {self.dtype} of shape {self.shape}")
        if size != offset + self.n_bytes:
            what = "is truncated" if size < offset + self.n_bytes else "is damaged"
            raise DataError(f"{self.path}: {what}: it has {size} bytes; {offset + self.n_bytes} are needed")
        return offset

    def map(self) -> np.ndarray[Any, Any]:
        """The array, mapped read-only (one without entries cannot be mapped, and is a plain one).

        Raises
        ------
        DataError
            As :meth:`offset`, or the system does not map the file.
        """
        offset = self.offset()
        if not self.n_bytes:
            return np.empty(self.shape, dtype=self.dtype)
        try:
            return np.memmap(self.path, dtype=self.dtype, mode="r", offset=offset, shape=self.shape)
        except OSError as error:
            raise DataError(f"{self.path}: cannot be mapped: {error.strerror or error}") from None


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The beginning of a ``.npy`` file (version 1.0): of the same length whatever the first size is, which NumPy leaves
    room for, so that it can be written again."""
    file = io.BytesIO()
    facts = {"descr": dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    write_array_header_1_0(file, facts)
    return file.getvalue()


def read_store_header(folder: Path) -> dict[str, Any]:
    """Read and check ``store.json``.

    Raises
    ------
    DataError
        There is no such folder, it is not a store, or a store of a newer version.
    """
    if not folder.exists():
        raise DataError(f"{folder}: no such store")
    if not folder.is_dir():
        raise DataError(f"{folder}: is a file; a store is a folder with a {HEADER} (saddlesvm convert writes one)")
    if folder.name.endswith(PARTIAL):
        raise DataError(f"{folder}: is left from an interrupted conversion; convert again (it removes this folder)")
    path = folder / HEADER
    refuse_special(path)
    try:
        text = path.read_bytes()
        header = parsed_json(text, len(text))
    except FileNotFoundError:
        raise DataError(f"{folder}: is not a store: it has no {HEADER}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, MemoryError) as error:
        raise DataError(f"{path}: is damaged: it is not JSON ({error})") from None
    check_stated(header, path, "header of a store", FORMAT_NAME, FORMAT_VERSION)
    found: dict[str, Any] = header
    return found


def expected_arrays(header: dict[str, Any], folder: Path) -> dict[str, ArrayFile]:
    """The arrays that a header promises, by name, after checking that header and arrays agree with each other.

    Raises
    ------
    DataError
        Something is missing from the header, or contradicts the rest; the message names it.
    """
    try:
        return _expected_arrays(header, folder)
    except DataError as error:
        raise DataError(f"{folder / HEADER}: {error}") from None
    except KeyError as error:
        raise DataError(f"{folder / HEADER}: is damaged: {error} is missing") from None
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise DataError(f"{folder / HEADER}: is damaged: an entry is of the wrong kind") from None


def _expected_arrays(header: dict[str, Any], folder: Path) -> dict[str, ArrayFile]:
    layout, (n, d), n_values = header["layout"], header["shape"], header["n_values"]
    if not all(type(size) is int and 0 < size < _MOST for size in (n, d)) or type(n_values) is not int:
        raise DataError(f"is damaged: the shape is {header['shape']!r} with {n_values!r} values")
    shapes: dict[str, tuple[int, ...]]
    if layout == "dense":
        shapes = {"values": (n, d)}
    elif layout == "csr":
        shapes = {"values": (n_values,), "indices": (n_values,), "indptr": (n + 1,)}
    else:
        raise DataError(f"the layout is {layout!r}; allowed are 'dense' and 'csr'")
    if (header["labels"] is None) != ("labels" not in header["arrays"]):
        raise DataError("is damaged: what it says of the labels contradicts itself")
    if header["labels"] is not None:
        _check_labels(header["labels"])
        shapes["labels"] = (n,)
    _check_names(header, d)
    _check_note(header.get(NOTE), d)
    if "weights" in header["arrays"]:
        shapes["weights"] = (n,)
    arrays = {name: _array_of(name, header["arrays"][name], shape, folder) for name, shape in shapes.items()}
    _check_numbers(header["row_norms"], "smallest", "largest")
    kept = arrays["values"].dtype
    if layout == "csr" and kept not in FLOATS:
        raise DataError(f"sparse rows are of type {header['dtype']!r}; allowed are float32 and float64")
    if type_name(kept) != header["dtype"] or n_values < 0 or (layout == "dense" and n_values != n * d):
        raise DataError("is damaged: dtype, shape and number of values contradict each other")
    return arrays


def _array_of(name: str, said: dict[str, Any], shape: tuple[int, ...], folder: Path) -> ArrayFile:
    if tuple(said["shape"]) != shape:
        raise DataError(f"is damaged: {name} has shape {said['shape']}; {list(shape)} is needed")
    if said["dtype"] not in _ALLOWED[name]:
        allowed = ", ".join(_ALLOWED[name])
        raise DataError(f"{name} is of type {said['dtype']!r}; allowed are {allowed}")
    dtype = bfloat16 if said["dtype"] == BFLOAT16 else np.dtype(said["dtype"])
    return ArrayFile(folder / f"{name}.npy", dtype, shape, int(said["crc32"], 16))


def code_of(dtype: np.dtype[Any]) -> str:
    """A type as the header writes it."""
    return BFLOAT16 if dtype == bfloat16 else dtype.str


def _check_labels(labels: dict[str, Any]) -> None:
    kind, classes, counts = labels["kind"], labels["classes"], labels["counts"]
    if kind not in ("numbers", "text"):
        raise DataError(f"the kind of the labels is {kind!r}; allowed are 'numbers' and 'text'")
    wanted = (str,) if kind == "text" else (int, float)
    listed = isinstance(classes, list) and all(type(one) in wanted for one in classes)
    if listed and kind == "numbers" and not all(abs(one) <= sys.float_info.max for one in classes):
        raise DataError("is damaged: a class is not finite")
    counted = (
        isinstance(counts, list) and listed and len(counts) == len(classes) and all(type(n) is int for n in counts)
    )
    if not counted and (kind == "text" or classes is not None or counts is not None):
        raise DataError(f"is damaged: the classes are not {kind} with a count each")
    if kind == "numbers":
        _check_numbers(labels, "smallest", "largest")


def _check_names(header: dict[str, Any], width: int) -> None:
    """Names, and where the rows came from: they may be missing, and must not be something else."""
    names, sources = header.get("feature_names"), header.get("sources", [])
    if names is not None and (len(names) > width or not all(isinstance(name, str) for name in names)):
        raise DataError(f"is damaged: feature_names must be at most {width} texts")
    if not isinstance(header.get("label_name"), (str, type(None))):
        raise DataError("is damaged: label_name must be text")
    if not isinstance(header.get("n_nonzero"), (int, type(None))):
        raise DataError("is damaged: n_nonzero must be a number")
    for source in sources:
        plain = isinstance(source["path"], str) and isinstance(source["format"], str)
        if not plain or any(type(source[name]) is not int for name in ("rows", "bytes")):
            raise DataError("is damaged: a source is not described correctly")


def _check_note(noted: Any, width: int) -> None:
    """The note on missing values: it may be left out, and must not be something else."""
    if noted is None:
        return
    fine = isinstance(noted, dict) and noted.get("how") in ("drop", "mean") and type(noted.get("count")) is int
    values = noted.get("values") if fine else None
    if not isinstance(values, list) or len(values) not in (0, width):
        raise DataError(f"is damaged: the field {NOTE!r} is not described correctly")
    _check_numbers(dict(enumerate(values)), *range(len(values)))


def _check_numbers(said: dict[Any, Any], *names: Any) -> None:
    """Raise TypeError for a value that is no number."""
    if any(type(said[name]) not in (int, float) or not abs(said[name]) <= sys.float_info.max for name in names):
        raise TypeError


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
