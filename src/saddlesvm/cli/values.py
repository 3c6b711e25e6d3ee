"""The values of options, as the command line reads them. Nothing heavy is imported here.

Names of files are checked while the command line is read, so that a typing error is reported before
any work.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import click
from click.shell_completion import CompletionItem

from saddlesvm.data.errors import BUNDLED, DataError, check_exists, refuse_special
from saddlesvm.data.reading import STANDARD_INPUT
from saddlesvm.runtime.extras import how_to_install

PACKAGES_OF_REPORTS = ("matplotlib", "pandas")


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
    if name != STANDARD_INPUT:
        check_exists(name)


def check_model(name: str) -> None:
    """Raise DataError if there is no such file of a model."""
    check_file(name, "a model", "saddlesvm train DATA --model FILE")


def check_proof(name: str) -> None:
    """Raise DataError if there is no such file of a proof."""
    check_file(name, "a proof", "saddlesvm prove MODEL DATA --output FILE")


def check_file(name: str, what: str, command: str) -> None:
    """Raise DataError, with the command that writes such a file, if there is none."""
    advice = f"{what} is needed here, which '{command}' writes"
    if os.path.isdir(name):
        raise DataError(f"{name}: is a folder; {advice}")
    if not os.path.exists(name):
        found = "is a bundled data set" if name in BUNDLED else "no such file"
        raise DataError(f"{name}: {found}; {advice}")
    refuse_special(name)


def check_output(name: str) -> None:
    """Raise DataError if no file of this name can be written, or it is a pipe or a device."""
    check_folder(name)
    refuse_special(name)


def check_report(name: str) -> None:
    """Raise DataError if no report of this name can be drawn and written."""
    check_output(name)
    for package in PACKAGES_OF_REPORTS:
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


def read_numbers(text: str) -> float | tuple[float, ...]:
    """Read a number, or several with commas."""
    numbers = tuple(float(number) for number in text.split(","))
    return numbers[0] if len(numbers) == 1 else numbers


def read_ends(text: str) -> tuple[float, float]:
    """Read two numbers with a comma, the smaller one first."""
    low, high = map(float, text.split(","))
    if not low < high:
        raise ValueError
    return low, high


def read_strength(text: str) -> float | str:
    """Read a number, or a rule such as ``auto:low=0.1``."""
    if text.partition(":")[0] == "auto":
        return text
    return float(text)


def read_kinds(text: str) -> tuple[tuple[str, str], ...]:
    """Read names of columns and their kinds, ``city=category,note=text``."""
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


DATA = FileName("DATA", check_data, bundled=True)
MODEL = FileName("MODEL", check_model)
PROOF = FileName("PROOF", check_proof)
OUTPUT = FileName("PATH", check_output)
REPORT = FileName("PATH", check_report)
LINES = FileName("PATH", check_folder)  # a pipe may take lines
NUMBERS = Value("NUMBERS", "numbers with commas are needed, as in 0.1,1,10", read_numbers)
ENDS = Value("LOW,HIGH", "two numbers are needed, the smaller one first, as in 1e-3,1e3", read_ends)
STRENGTH = Value("C", "a number or auto is allowed", read_strength)
KINDS = Value(
    "NAME=KIND",
    "names of columns and their kinds are needed, as in city=category,note=text,id=drop",
    read_kinds,
)
SETTING = Value("NAME=VALUE", "a parameter and its value are needed, as in degree=2", read_setting)
