"""The one exception of this package's readers and writers, and refusals before anything is read."""

from __future__ import annotations

import os
import stat

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


class BeingWritten(DataError):
    """Another process is writing a store of this name."""


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
