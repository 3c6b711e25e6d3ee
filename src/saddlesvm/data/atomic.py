"""Writing a file all at once: a reader sees the old file or the whole new one, never a part."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from saddlesvm.data.errors import DataError


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
