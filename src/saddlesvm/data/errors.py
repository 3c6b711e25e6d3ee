"""The exception of all readers and writers, refusals before anything is read, and atomic writing.

A file is written all at once: a reader sees the old file or the whole new file, never a part.
"""

from __future__ import annotations

import importlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from saddlesvm.runtime.extras import how_to_install
from saddlesvm.runtime.safe_text import one_line

# What a user can do about a missing value; the end of several messages.
MISSING_ADVICE = (
    "saddlesvm train and path leave such rows out (--missing drop), or fill them in "
    "(--missing mean or median); saddlesvm.table does so in Python"
)
BUNDLED = ("banknote", "heart", "toy")  # names of the data sets that come with the package
_SPECIAL_FILES = {
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


class DataError(ValueError):
    """A file or its contents cannot be used.

    The message is a line that names the file and the line or column, and says what was found and
    what is allowed. Control characters in names, and marks of the writing direction, are escaped.

    Examples
    --------
    >>> from saddlesvm.data import DataError, read
    >>> try:
    ...     read("no-such-file.csv")
    ... except DataError as error:
    ...     print(error)
    no-such-file.csv: ...
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def import_for_files(module: str, what: str) -> Any:
    """Import a module of the extra ``files``; a `DataError` says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise DataError(f"{what} needs {package}: {how_to_install('files')}") from None


def check_exists(name: str) -> None:
    """Raise a `DataError` unless a bundled set, a file or a folder has this name."""
    if name not in BUNDLED and not os.path.exists(name):
        raise DataError(f"{name}: no such file; the bundled data sets are {', '.join(BUNDLED)}")


def refuse_special(path: str | os.PathLike[str], advice: str = "a file is needed") -> None:
    """Raise a `DataError` for a pipe, socket or device, which may block, or never end."""
    try:
        kind = _SPECIAL_FILES.get(stat.S_IFMT(os.stat(path).st_mode))
    except (OSError, ValueError):
        # The caller opens the path next, and says why that fails.
        return
    if kind is not None:
        raise DataError(f"{os.fspath(path)}: is a {kind}; {advice}")


def write_fault(path: str | os.PathLike[str], error: OSError) -> str:
    """Say why a path cannot be written, and where it leads if it is a symbolic link."""
    fault = f"{os.fspath(path)}: cannot be written: {error.strerror or error}"
    if os.path.islink(path):
        fault += f" (it is a link to {os.path.realpath(path)})"
    return fault


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file that takes the name `path` only if the block ends without an exception.

    The bytes go to a temporary name in the same folder, are flushed to disk, and the file is then
    renamed. A symbolic link is followed. An existing path that is not a regular file (a pipe, a
    device) is written to directly.

    Raises
    ------
    DataError
        The file cannot be written; the message says why.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        if target.is_dir():
            raise DataError(f"{os.fspath(path)}: is a folder; a file name is needed")
        # A pipe or a device cannot be replaced by a file.
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as file:
                yield file
            return
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise DataError(write_fault(path, error)) from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_page(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text in UTF-8, make the folders above it if needed, and return its path.

    Raises
    ------
    DataError
        The file cannot be written.
    """
    written = Path(path)
    try:
        written.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{os.fspath(path)}: cannot be written: {error.strerror or error}"
        ) from None
    with atomic_write(written) as file:
        file.write(text.encode())
    return written


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, so that renamed files survive a loss of power."""
    # Some systems cannot open a folder; the rename has happened all the same.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
