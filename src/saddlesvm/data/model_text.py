"""The text of LIBLINEAR's and LIBSVM's model files: a header of named lines, then numbers."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import IO

from saddlesvm.data.data_table import is_number
from saddlesvm.data.errors import DataError

LIBSVM_START = b"svm_type "
LIBLINEAR_START = b"solver_type "
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def begins_with(path: str | os.PathLike[str], start: bytes) -> bool:
    """Return True if a file begins with these bytes, perhaps behind a byte order mark."""
    with open(path, "rb") as file:
        head = file.read(len(_BYTE_ORDER_MARK) + len(start))
    return head.removeprefix(_BYTE_ORDER_MARK).startswith(start)


def read_header(
    file: IO[str], where: str, names: Sequence[str], last: str, program: str
) -> dict[str, str]:
    """Return the lines of a model before its line `last`, by their first word, one of `names`."""
    header: dict[str, str] = {}
    for number, line in enumerate(file, 1):
        name, _, value = line.strip().partition(" ")
        if name == last:
            return header
        if name not in names or name in header:
            raise DataError(
                f"{where}: line {number}: found {line[:40]!r}; "
                f"this is not a line of a {program} model"
            )
        header[name] = value.strip()
    raise DataError(f"{where}: is truncated or not a {program} model: there is no line {last!r}")


def find_words(header: dict[str, str], name: str, count: int, where: str) -> list[str]:
    """Return the words of a line of a header, as many as are needed."""
    words = header.get(name, "").split()
    if len(words) != count:
        raise DataError(f"{where}: its line {name!r} has {len(words)} numbers; {count} are needed")
    return words


def find_numbers(header: dict[str, str], name: str, count: int, where: str) -> list[float]:
    """Return the finite numbers in a line of a header."""
    words = find_words(header, name, count, where)
    if not all(is_number(word) and math.isfinite(float(word)) for word in words):
        raise DataError(
            f"{where}: its line {name!r} is {header[name][:60]!r}; finite numbers are needed"
        )
    return [float(word) for word in words]


def find_whole_numbers(header: dict[str, str], name: str, count: int, where: str) -> list[int]:
    """Return the whole numbers in a line of a header."""
    words = find_words(header, name, count, where)
    if not all(_WHOLE.fullmatch(word) for word in words):
        raise DataError(
            f"{where}: its line {name!r} is {header[name][:60]!r}; whole numbers are needed"
        )
    return [int(word) for word in words]
