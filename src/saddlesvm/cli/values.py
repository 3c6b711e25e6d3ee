"""The values of options, as the command line reads them. Nothing heavy is imported here.

Names of files are checked as they are read, so that a mistyped one is told at once.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import click
from click.shell_completion import CompletionItem

from saddlesvm.data.errors import BUNDLED, DataError, check_there, refuse_special
from saddlesvm.runtime.extras import how_to_install

STANDARD_INPUT = "-"


class Value(click.ParamType):
    """Text that a function reads.

    Parameters
    ----------
    name : str
        The word for the value in the help.
    needed : str
        What the error asks for; empty to show the error of the function.
    read : callable
        Raises ValueError for text that it cannot read.
    """

    def __init__(self, name: str, needed: str, read: Callable[[str], Any]) -> None:
        self.name = name
        self.needed = needed
        self.read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of a text; defaults stay as they are."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except ValueError as error:
            self.fail(f"{value!r}: {self.needed or error}", param, ctx)


class FileName(click.ParamType):
    """A name of a file that a command reads or writes.

    Parameters
    ----------
    name : str
        The word for the value in the help.
    check : callable
        Raises DataError for a name that cannot be used.
    bundled : bool, default=False
        Completion offers the bundled data sets, too.
    """

    def __init__(self, name: str, check: Callable[[str], Any], bundled: bool = False) -> None:
        self.name = name
        self.check = check
        self.bundled = bundled

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The name, checked."""
        if ctx is None or not ctx.resilient_parsing:  # completion asks about names that are not whole
            self.check(value)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The files, and the bundled data sets."""
        names = [one for one in BUNDLED if self.bundled and incomplete and one.startswith(incomplete)]
        return [*map(CompletionItem, names), CompletionItem(incomplete, type="file")]


def check_data(name: str) -> None:
    """Raise DataError unless there is such data: a file, a folder, a bundled set, or ``-``."""
    if name != STANDARD_INPUT and not expand(name):
        check_there(name)


def check_model(name: str) -> None:
    """Raise DataError unless there is such a file."""
    if not os.path.exists(name):
        raise DataError(f"{name}: no such file")
    refuse_special(name)


def check_output(name: str) -> None:
    """Raise DataError if no file of this name can be written, or a pipe or a device has it."""
    check_place(name)
    refuse_special(name)


def check_report(name: str) -> None:
    """Raise DataError if no report of this name can be drawn and written."""
    check_output(name)
    if find_spec("matplotlib") is None:
        raise DataError(f"{name}: a report needs matplotlib: {how_to_install('lab')}")


def check_place(name: str) -> None:
    """Raise DataError if nothing of this name can be written."""
    folder = os.path.dirname(os.path.realpath(name))
    if not os.path.isdir(folder):
        raise DataError(f"{name}: its folder does not exist")
    if os.path.isdir(name):
        raise DataError(f"{name}: is a folder; a file name is needed")
    if not os.access(folder, os.W_OK):
        raise DataError(f"{name}: cannot be written: permission denied in its folder")


def expand(pattern: str) -> list[str]:
    """The files that a quoted pattern means, in order; empty for a plain name."""
    is_pattern = any(sign in pattern for sign in "*?[") and not os.path.exists(pattern)
    return sorted(glob.glob(pattern)) if is_pattern else []


def join_sources(ctx: click.Context, param: click.Parameter, names: tuple[str, ...]) -> str | list[str]:
    """One name of data, or the list of several, patterns expanded."""
    found = [one for name in names for one in expand(name) or [name]]
    return names[0] if tuple(found) == names[:1] else found


def read_numbers(text: str) -> tuple[float, ...]:
    """Numbers with commas."""
    return tuple(float(one) for one in text.split(","))


def read_ends(text: str) -> tuple[float, float]:
    """Two numbers with a comma."""
    low, high = map(float, text.split(","))
    return low, high


def read_strength(text: str) -> float | str | tuple[float, ...]:
    """A number, several with commas, or a rule such as ``auto:low=0.1``."""
    if text.partition(":")[0] == "auto":
        return text
    found = read_numbers(text)
    return found[0] if len(found) == 1 else found


def read_gamma(text: str) -> float | str | tuple[float, ...]:
    """A number, several with commas, ``scale`` or ``auto``."""
    return text if text in ("scale", "auto") else read_strength(text)


def read_share(text: str) -> float:
    """A number between 0 and 1."""
    share = float(text)
    if not 0.0 < share < 1.0:
        raise ValueError
    return share


def read_names(text: str) -> tuple[str, ...]:
    """Names with commas, none of them empty."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError
    return names


def read_kinds(text: str) -> tuple[tuple[str, str], ...]:
    """Names of columns and their kinds, ``city=category,note=text:1-2``."""
    found = []
    for part in text.split(","):
        name, _, kind = (one.strip() for one in part.rpartition("="))
        if not (name and kind):
            raise ValueError
        found.append((name, kind))
    return tuple(found)


def read_setting(text: str) -> tuple[str, str]:
    """A parameter and its value, ``degree=2``."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError
    return name.strip().replace("-", "_"), value.strip()


CHOICES_OF_HEADER = {"auto": "auto", "yes": True, "no": False}
CHOICES_OF_BASE = {"auto": "auto", "0": True, "1": False}  # whether indices count from 0


def one_of(choices: dict[str, Any]) -> Callable[[str], Any]:
    """A reader of words that stand for values."""

    def read(text: str) -> Any:
        if text not in choices:
            raise ValueError
        return choices[text]

    return read


DATA = FileName("DATA", check_data, bundled=True)
MODEL = FileName("MODEL", check_model)
OUTPUT = FileName("PATH", check_output)
REPORT = FileName("PATH", check_report)
LINES = FileName("PATH", check_place)  # lines may go into a pipe
NUMBERS = Value("NUMBERS", "numbers with commas are needed, as in 0.1,1,10", read_numbers)
ENDS = Value("LOW,HIGH", "two numbers with a comma are needed, as in 1e-3,1e3", read_ends)
STRENGTH = Value("C", "a number, several with commas, as in 0.1,1,10, or auto is allowed", read_strength)
GAMMA = Value("GAMMA", "a number, several with commas, as in 0.1,1, or scale or auto is allowed", read_gamma)
SHARE = Value("SHARE", "a share of the rows is needed, above 0 and below 1 (0.2); a file goes with --test", read_share)
NAMES = Value("NAMES", "names or positions of columns are needed, as in id,name", read_names)
KINDS = Value(
    "NAME=KIND", "names of columns and their kinds are needed, as in city=category,note=text,id=drop", read_kinds
)
SETTING = Value("NAME=VALUE", "a parameter and its value are needed, as in degree=2", read_setting)
HEADER = Value("auto|yes|no", "auto, yes or no is allowed", one_of(CHOICES_OF_HEADER))
INDEX_BASE = Value("auto|0|1", "auto, 0 or 1 is allowed", one_of(CHOICES_OF_BASE))
