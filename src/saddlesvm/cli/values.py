"""The values of options, as the command line reads them. Nothing heavy is imported here.

Names of files are checked while the command line is read, so that a typing error is reported before
any work.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from saddlesvm.data.errors import BUNDLED, DataError, check_exists, refuse_special
from saddlesvm.runtime.extras import how_to_install

if TYPE_CHECKING:
    from collections.abc import Mapping

STANDARD_INPUT = "-"
CHOICES_OF_HEADER = {"auto": "auto", "yes": True, "no": False}
CHOICES_OF_BASE = {"auto": "auto", "0": True, "1": False}  # whether indices count from 0


class Value(click.ParamType):
    """Text that a function reads.

    Parameters
    ----------
    name : str
        The word for the value in the help.
    needed : str
        The part of the error that says what is allowed.
    read : callable
        Raises ValueError for text that it cannot read.
    """

    def __init__(self, name: str, needed: str, read: Callable[[str], object]) -> None:
        self.name = name
        self.needed = needed
        self.read = read

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """Read the text; a default is returned as it is."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except ValueError:
            self.fail(f"{value!r}: {self.needed}", param, ctx)


class FileName(click.ParamType):
    """A name of a file that a command reads or writes.

    Parameters
    ----------
    name : str
        The word for the value in the help.
    check : callable
        Raises DataError for a name that cannot be used.
    bundled : bool, default=False
        Whether the shell's completion offers the bundled data sets, too.
    """

    def __init__(self, name: str, check: Callable[[str], object], bundled: bool = False) -> None:
        self.name = name
        self.check = check
        self.bundled = bundled

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> object:
        """Check the name, and return it."""
        # Completion asks about names that are not complete.
        is_completion = ctx is not None and ctx.resilient_parsing
        if not is_completion:
            self.check(value)
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the bundled data sets that begin so, and a request for files."""
        items = [CompletionItem(incomplete, type="file")]
        if self.bundled and incomplete:
            items += [CompletionItem(name) for name in BUNDLED if name.startswith(incomplete)]
        return items


def check_data(name: str) -> None:
    """Raise DataError if there is no such data: a file, a folder, a bundled set, or ``-``."""
    if name != STANDARD_INPUT and not expand_pattern(name):
        check_exists(name)


def check_model(name: str) -> None:
    """Raise DataError if there is no such file."""
    if not os.path.exists(name):
        raise DataError(f"{name}: no such file")
    refuse_special(name)


def check_output(name: str) -> None:
    """Raise DataError if no file of this name can be written, or it is a pipe or a device."""
    check_folder(name)
    refuse_special(name)


def check_report(name: str) -> None:
    """Raise DataError if no report of this name can be drawn and written."""
    check_output(name)
    for package in ("matplotlib", "pandas"):
        if find_spec(package) is None:
            raise DataError(f"{name}: a report needs {package}: {how_to_install('lab')}")


def check_folder(name: str) -> None:
    """Raise DataError if nothing of this name can be written into its folder."""
    folder = os.path.dirname(os.path.realpath(name))
    if not os.path.isdir(folder):
        raise DataError(f"{name}: its folder does not exist")
    if os.path.isdir(name):
        raise DataError(f"{name}: is a folder; a file name is needed")
    if not os.access(folder, os.W_OK):
        raise DataError(f"{name}: cannot be written: permission denied in its folder")


def expand_pattern(pattern: str) -> list[str]:
    """Return the files that a quoted pattern matches, in order; empty for a plain name."""
    has_signs = any(sign in pattern for sign in "*?[")
    if not has_signs or os.path.exists(pattern):
        return []
    return sorted(glob.glob(pattern))


def join_sources(
    ctx: click.Context, param: click.Parameter, names: tuple[str, ...]
) -> str | list[str]:
    """Expand patterns; return a single name itself, several names as a list."""
    found: list[str] = []
    for name in names:
        # A pattern without a file stays as it is, so that the error about the file names it.
        found += expand_pattern(name) or [name]
    if found == [names[0]]:
        return names[0]
    return found


def read_numbers(text: str) -> tuple[float, ...]:
    """Read numbers with commas."""
    return tuple(float(number) for number in text.split(","))


def read_ends(text: str) -> tuple[float, float]:
    """Read two numbers with a comma, the smaller one first."""
    low, high = map(float, text.split(","))
    if not low < high:
        raise ValueError
    return low, high


def read_strength(text: str) -> float | str | tuple[float, ...]:
    """Read a number, several with commas, or a rule such as ``auto:low=0.1``."""
    if text.partition(":")[0] == "auto":
        return text
    numbers = read_numbers(text)
    return numbers[0] if len(numbers) == 1 else numbers


def read_gamma(text: str) -> float | str | tuple[float, ...]:
    """Read a number, several with commas, ``scale`` or ``auto``."""
    if text in ("scale", "auto"):
        return text
    return read_strength(text)


def read_one_gamma(text: str) -> float | str:
    """Read a number, ``scale`` or ``auto``."""
    if text in ("scale", "auto"):
        return text
    return float(text)


def read_names(text: str) -> tuple[str, ...]:
    """Read names with commas, none of them empty."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ValueError
    return names


def read_kinds(text: str) -> tuple[tuple[str, str], ...]:
    """Read names of columns and their kinds, ``city=category,note=text:1-2``."""
    kinds = []
    for part in text.split(","):
        # The name of a column may hold "=", a kind does not.
        name, _, kind = part.rpartition("=")
        if not (name.strip() and kind.strip()):
            raise ValueError
        kinds.append((name.strip(), kind.strip()))
    return tuple(kinds)


def read_setting(text: str) -> tuple[str, str]:
    """Read a parameter and its value, ``degree=2``."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError
    return name.strip().replace("-", "_"), value.strip()


def make_reader(choices: Mapping[str, object]) -> Callable[[str], object]:
    """Make a reader of words that stand for values."""

    def read(text: str) -> object:
        if text not in choices:
            raise ValueError
        return choices[text]

    return read


DATA = FileName("DATA", check_data, bundled=True)
MODEL = FileName("MODEL", check_model)
OUTPUT = FileName("PATH", check_output)
REPORT = FileName("PATH", check_report)
LINES = FileName("PATH", check_folder)  # a pipe may take lines
NUMBERS = Value("NUMBERS", "numbers with commas are needed, as in 0.1,1,10", read_numbers)
ENDS = Value("LOW,HIGH", "two numbers are needed, the smaller one first, as in 1e-3,1e3", read_ends)
STRENGTH = Value(
    "C", "a number, several with commas, as in 0.1,1,10, or auto is allowed", read_strength
)
GAMMA = Value(
    "GAMMA", "a number, several with commas, as in 0.1,1, or scale or auto is allowed", read_gamma
)
ONE_GAMMA = Value("GAMMA", "a number, scale or auto is allowed", read_one_gamma)
NAMES = Value("NAMES", "names or positions of columns are needed, as in id,name", read_names)
KINDS = Value(
    "NAME=KIND",
    "names of columns and their kinds are needed, as in city=category,note=text,id=drop",
    read_kinds,
)
SETTING = Value("NAME=VALUE", "a parameter and its value are needed, as in degree=2", read_setting)
HEADER = Value("auto|yes|no", "auto, yes or no is allowed", make_reader(CHOICES_OF_HEADER))
INDEX_BASE = Value("auto|0|1", "auto, 0 or 1 is allowed", make_reader(CHOICES_OF_BASE))
