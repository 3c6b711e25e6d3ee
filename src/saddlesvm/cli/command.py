"""The class of our commands: examples below the help, and warnings as lines."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import click

from saddlesvm.cli.console import format_warning
from saddlesvm.cli.values import OUTPUT, REPORT
from saddlesvm.data.errors import DataError

HELP_WIDTH = 100  # columns of the help at most, on a wide terminal

Decorator = Callable[[Any], Any]


def combine(*decorators: Decorator) -> Decorator:
    """Make a decorator of several; the first stands first in the help."""

    def decorate(function: object) -> Any:
        # The last decorator is applied first, so that the first one stands outermost.
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


class Command(click.Command):
    """A command that prints warnings as lines, and writes each output to a file of its own."""

    def invoke(self, ctx: click.Context) -> int:
        """Run the command, and return its exit code."""
        from saddlesvm.fit.outcome import NotCertifiedWarning
        from saddlesvm.runtime.clock import report_compilation

        check_outputs_differ(self, ctx)
        usual_format = warnings.formatwarning
        warnings.formatwarning = format_warning
        try:
            with warnings.catch_warnings(), report_compilation(True):
                # The command prints the outcome of the fit itself.
                warnings.simplefilter("ignore", NotCertifiedWarning)
                # The readers have compared the names of the features.
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                return int(super().invoke(ctx))
        finally:
            warnings.formatwarning = usual_format


def declare(*examples: str) -> Callable[[Callable[..., int]], Command]:
    """Declare a :class:`Command`, with command lines as examples below its help."""
    # Click keeps the lines of a paragraph that begins with this sign.
    epilog = "\n".join(["\b", "Examples:", *(f"  {example}" for example in examples)])
    settings = {"max_content_width": HELP_WIDTH}
    return click.command(cls=Command, epilog=epilog, context_settings=settings)


def check_outputs_differ(command: click.Command, ctx: click.Context) -> None:
    """Raise DataError if two options name the same file to write."""
    written: set[str] = set()
    for param in command.params:
        if param.type not in (OUTPUT, REPORT):
            continue
        name = ctx.params[str(param.name)]
        if not name:
            continue
        # Two spellings of a path may lead to one file.
        path = os.path.realpath(name)
        if path in written:
            raise DataError(f"{name}: is given for two outputs; each needs a file of its own")
        written.add(path)


def flag_of(param: click.Parameter) -> str:
    """Return the flag of an option: the longer one of two."""
    return max(param.opts, key=len)


def suggest(word: str, known: Iterable[str]) -> str:
    """Return a question that suggests the known name nearest to a word; empty if none is near."""
    found = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""
