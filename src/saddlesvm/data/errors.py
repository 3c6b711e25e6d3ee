"""The one exception of this package's readers and writers, and refusals before anything is read.

A file is written all at once: a reader sees the old file or the whole new one, never a part.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from saddlesvm.runtime.shown import one_line

WAYS_WITH_MISSING = "--missing drop, mean or median leaves such rows out or fills them in (in Python: missing='keep')"


class DataError(ValueError):
    """A file or its contents cannot be used.

    The message is one line that names the file and the line or column, and says what was found and what is allowed.
    Control and direction characters in names are spelled out.

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


BUNDLED = ("banknote", "heart", "toy")
SPECIAL = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


def check_there(name: str) -> None:
    """Raise a `DataError` unless a bundled set, a file or a folder has this name."""
    if name not in BUNDLED and not os.path.exists(name):
        raise DataError(f"{name}: no such file; the bundled data sets are {', '.join(BUNDLED)}")


def refuse_special(path: str | os.PathLike[str], advice: str = "a file is needed") -> None:
    """Raise a `DataError` for a pipe, a socket or a device: opening it may block, and reading it may never end."""
    try:
        kind = SPECIAL.get(stat.S_IFMT(os.stat(path).st_mode))
    except (OSError, ValueError):  # whoever opens it says why it cannot be
        return
    if kind is not None:
        raise DataError(f"{os.fspath(path)}: is a {kind}; {advice}")


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file that takes the name `path` only when the block ends without an exception.

    The bytes go to a temporary name in the same folder, are flushed to disk, and the file is then renamed. A symbolic
    link is followed. An existing path that is no regular file (a pipe, a device) is written to directly.

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
        raise DataError(f"{os.fspath(path)}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_page(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text in UTF-8, and the folders above it where there are none; its path.

    Raises
    ------
    DataError
        The file cannot be written.
    """
    written = Path(path)
    try:
        written.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be written: {error.strerror or error}") from None
    with atomic_write(written) as file:
        file.write(text.encode())
    return written


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, so that renamed files survive a loss of power."""
    # some systems cannot open a folder; the rename has happened all the same
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
