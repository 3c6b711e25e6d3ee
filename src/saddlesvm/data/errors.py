"""The one exception of this package's readers and writers."""

from __future__ import annotations

from saddlesvm.runtime.shown import one_line

__all__ = ["WAYS_WITH_GAPS", "BeingWritten", "DataError"]

WAYS_WITH_GAPS = "--missing drop, mean or median leaves such rows out or fills them in (in Python: missing='keep')"


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
