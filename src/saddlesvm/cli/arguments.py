"""The values of options as the command line reads them. Light to import, as all that the parser needs."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Callable
from typing import Any, TypeVar, get_args

from saddlesvm.runtime.words import Calibration

MOST_DIGITS = 24  # of a range of rows
FOLDS = 5  # folds where several values of C are given, and no number of folds

Value = TypeVar("Value")


def reader(needed: str, fine: Callable[[Any], bool] = lambda _: True) -> Callable[[Any], Callable[[str], Any]]:
    """Let a reader of a text raise argparse's error, which says what is `needed`, where it cannot read the text or what
    it returns is not `fine`."""

    def declare(read: Callable[[str], Value]) -> Callable[[str], Value]:
        def value(text: str) -> Value:
            try:
                found = read(text)
            except (ValueError, KeyError):
                found = None
            if found is None or not fine(found):
                raise argparse.ArgumentTypeError(f"{text!r}: {needed}")
            return found

        return value

    return declare


truth = reader("yes or no is allowed")({"yes": True, "no": False}.__getitem__)
header = reader("auto, yes or no is allowed")({"auto": "auto", "yes": True, "no": False}.__getitem__)
index_base = reader("auto, 0 or 1 is allowed")({"auto": "auto", "0": True, "1": False}.__getitem__)
METHODS = get_args(Calibration)
probability = reader(f"yes, no or one of {', '.join(METHODS)} is allowed")(
    {"yes": True, "no": False, **{name: name for name in METHODS}}.__getitem__
)
share = reader(
    "a share of the rows is needed, above 0 and below 1 (0.2); a file goes with --test", lambda one: 0 < one < 1
)(float)
fold_count = reader("a whole number of folds is needed, at least 2", lambda count: count >= 2)(int)
count_of_Cs = reader("a number of values is needed, as in 13", lambda count: count >= 1)(int)


class Sources(argparse.Action):
    """One name of data, or the list of several: names side by side, and those that a pattern means, in their order."""

    def __call__(self, parser: argparse.ArgumentParser, options: argparse.Namespace, words: Any, *_: Any) -> None:
        found: list[str] = []
        for word in words:
            is_pattern = any(sign in word for sign in "*?[") and not os.path.exists(word)
            found += (is_pattern and sorted(glob.glob(word))) or [word]
        setattr(options, self.dest, words[0] if found == words[:1] else found)


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


@reader("numbers with commas are needed, as in 0.1,1,10")
def numbers(text: str) -> list[float]:
    """Numbers with commas."""
    return [float(one) for one in text.split(",")]


@reader("two numbers with a comma are needed, as in 1e-3,1e3")
def two_ends(text: str) -> tuple[float, float]:
    """Two numbers with a comma."""
    low, high = map(float, text.split(","))
    return low, high


def numbers_or_name(text: str) -> float | str | tuple[float, ...]:
    """A number, several with commas, or a name."""
    try:
        found = tuple(map(float, text.split(",")))
    except ValueError:
        return text
    return found[0] if len(found) == 1 else found


@reader("a number, several with commas, as in 0.1,1,10, or auto is allowed")
def strength(text: str) -> float | str | tuple[float, ...]:
    """C of the command line: a number, several with commas, or words such as "auto"."""
    found = numbers_or_name(text)
    if isinstance(found, str) and text[:1].isdigit():
        raise ValueError
    return found


@reader("names or positions of columns are needed, as in id,name", all)
def columns(text: str) -> tuple[str, ...]:
    """Names or positions of columns, with commas."""
    return tuple(name.strip() for name in text.split(","))


@reader(
    "names of columns and their kinds are needed, as in city=category,note=text,id=drop",
    lambda found: all(name and kind for name, kind in found),
)
def column_kinds(text: str) -> tuple[tuple[str, str], ...]:
    """Names or positions of columns and their kinds, ``city=category,note=text:1-2``."""
    split = (one.rpartition("=") for one in text.split(","))
    return tuple((name.strip(), kind.strip()) for name, _, kind in split)
