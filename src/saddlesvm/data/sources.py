"""Which sources of data there are, before anything is read."""

from __future__ import annotations

import os

from saddlesvm.data.errors import DataError

__all__ = ["BUNDLED", "check_there"]

BUNDLED = ("banknote", "heart", "toy")


def check_there(name: str) -> None:
    """Raise a `DataError` unless a bundled set, a file or a folder has this name."""
    if name not in BUNDLED and not os.path.exists(name):
        raise DataError(f"{name}: no such file; the bundled data sets are {', '.join(BUNDLED)}")
