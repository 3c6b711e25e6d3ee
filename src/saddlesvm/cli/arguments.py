"""The values of options as the command line reads them. Light to import, as all that the parser needs."""

from __future__ import annotations

import argparse
from typing import get_args

from saddlesvm.runtime.words import Calibration

COUNT = 13  # values of C of a grid
MISSING = ("error", "drop", "mean", "median")  # what may happen to missing values
MOST_DIGITS = 24  # of a range of rows
FOLDS = 5  # folds where several values of C are given, and no number of folds


def number_or_name(text: str) -> float | str:
    """`text` as a number if it is one, else as it is."""
    try:
        return float(text)
    except ValueError:
        return text


def whole_or_name(text: str) -> int | str:
    """`text` as a whole number if it is one, else as it is."""
    return int(text) if text.isdecimal() else text


def whole_or_number(text: str) -> float:
    """A whole number where the text is one, else a number."""
    return int(text) if text.lstrip("+-").isdigit() else float(text)


def row_numbers(text: str) -> list[int]:
    """The numbers in a text such as "3,7-9"."""
    found: list[int] = []
    for one in text.split(","):
        first, _, last = one.partition("-")
        if not (first.isascii() and first.isdigit() and (last or first).isdigit() and len(one) < MOST_DIGITS):
            raise argparse.ArgumentTypeError(f"{one!r}: numbers of rows are allowed, and ranges such as 7-9")
        found += range(int(first), int(last or first) + 1)
    return found


def truth(text: str) -> bool:
    """True or False of "yes" or "no"."""
    if text not in ("yes", "no"):
        raise argparse.ArgumentTypeError(f"{text!r}: yes or no is allowed")
    return text == "yes"


def probability(text: str) -> bool | str:
    """Whether and how scores become probabilities: "yes", "no", or a method."""
    methods = get_args(Calibration)
    if text not in ("yes", "no", *methods):
        raise argparse.ArgumentTypeError(f"{text!r}: yes, no or one of {', '.join(methods)} is allowed")
    return text == "yes" if text in ("yes", "no") else text


def numbers_or_name(text: str) -> float | str | tuple[float, ...]:
    """A number, several with commas, or a name."""
    try:
        numbers = tuple(map(float, text.split(",")))
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def strength(text: str) -> float | str | tuple[float, ...]:
    """C of the command line: a number, several with commas, or words such as "auto"."""
    found = numbers_or_name(text)
    if isinstance(found, str) and text[:1].isdigit():
        raise argparse.ArgumentTypeError(f"{text!r}: a number, several with commas, as in 0.1,1,10, or auto is allowed")
    return found


def columns(text: str) -> tuple[str, ...]:
    """Names or positions of columns, with commas."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text!r}: names or positions of columns are needed, as in id,name")
    return found


def column_kinds(text: str) -> tuple[tuple[str, str], ...]:
    """Names or positions of columns and their kinds, ``city=category,note=text:1-2``."""
    found = [tuple(part.strip() for part in one.rpartition("=")[::2]) for one in text.split(",")]
    if not all(name and kind for name, kind in found):
        raise argparse.ArgumentTypeError(
            f"{text!r}: names of columns and their kinds are needed, as in city=category,note=text,id=drop"
        )
    return tuple((name, kind) for name, kind in found)


def share(text: str) -> float:
    """A share of the rows, above 0 and below 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < 1.0:
        raise argparse.ArgumentTypeError(
            f"{text!r}: a share of the rows is needed, above 0 and below 1 (0.2); a file goes with --test"
        )
    return number


def fold_count(text: str) -> int:
    """A number of folds, at least 2."""
    if not text.isdigit() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r}: a whole number of folds is needed, at least 2")
    return int(text)


def two_ends(text: str) -> tuple[float, float]:
    """Two numbers with a comma."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: two numbers with a comma are needed, as in 1e-3,1e3") from None
    return low, high


def count_of_Cs(text: str) -> int:
    """A number of values of C, at least one."""
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: a number of values is needed, as in 13")
    return count
