"""Checks of the sources of data before anything is read."""

from __future__ import annotations

import os
import stat

from saddlesvm.data.errors import DataError

__all__ = ["BUNDLED", "check_there", "refuse_special"]

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
