"""The class of our commands: help in sections with examples, and warnings as lines.

``--help`` fits a screen. ``--help-all`` shows every option of a command that has more.
"""

from __future__ import annotations

import difflib
import functools
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from saddlesvm.cli.console import warning_as_line
from saddlesvm.cli.values import OUTPUT, REPORT
from saddlesvm.data.errors import DataError

OPTION_WIDTH = 24  # columns that the spellings of the options take at most
HELP_WIDTH = 100  # columns of the help at most, on a wide terminal
EXCLUSIVE = (("C", "lam"), ("ends", "lam"), ("scores", "probabilities"))  # parameters of commands
SECTIONS = ("data", "model", "solving", "output", "options")  # in the order of the help


class Option(click.Option):
    """An option that stands in a section of the help.

    Parameters
    ----------
    section : str
        One of :data:`SECTIONS`.
    rare : bool, default=False
        ``--help`` leaves it out, ``--help-all`` has it.
    """

    def __init__(self, *given: Any, section: str = "options", rare: bool = False, **named: Any) -> None:
        super().__init__(*given, **named)
        self.section = section
        self.rare = rare


def option(*given: Any, **named: Any) -> Callable[[Any], Any]:
    """``click.option`` for an :class:`Option`."""
    return click.option(*given, cls=Option, **named)


data_option = functools.partial(option, section="data")
model_option = functools.partial(option, section="model")
solving_option = functools.partial(option, section="solving")
output_option = functools.partial(option, section="output")


def together(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make one decorator of several; the first one stands first in the help."""

    def decorate(function: Any) -> Any:
        for one in reversed(decorators):
            function = one(function)
        return function

    return decorate


class Command(click.Command):
    """A command whose help has sections, examples, and ``--help-all`` if there are rare options.

    Parameters
    ----------
    examples : sequence of str
        Command lines.
    """

    def __init__(self, *given: Any, examples: Sequence[str] = (), **named: Any) -> None:
        super().__init__(*given, **named)
        self.examples = examples
        if self.rare_options():
            self.params.append(
                click.Option(
                    ["--help-all"],
                    is_flag=True,
                    is_eager=True,
                    expose_value=False,
                    callback=show_whole_help,
                    help="Show every option and exit.",
                )
            )

    def invoke(self, ctx: click.Context) -> int:
        """Run the command; its exit code."""
        from saddlesvm.fit.outcome import NotCertifiedWarning
        from saddlesvm.runtime.clock import reporting_compilation

        check_exclusive(self, ctx)
        check_outputs_differ(self, ctx)
        usual_format = warnings.formatwarning
        warnings.formatwarning = warning_as_line
        try:
            with warnings.catch_warnings(), reporting_compilation(True):
                warnings.simplefilter("ignore", NotCertifiedWarning)  # the command tells the outcome
                # The readers compare the names of features already.
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                return int(super().invoke(ctx))
        finally:
            warnings.formatwarning = usual_format

    def rare_options(self) -> list[Option]:
        """The options that ``--help`` leaves out."""
        return [one for one in self.params if isinstance(one, Option) and one.rare]

    def sections(self, ctx: click.Context, whole: bool) -> dict[str, list[click.Parameter]]:
        """The options by section: all of them, or the usual ones."""
        found: dict[str, list[click.Parameter]] = {name: [] for name in SECTIONS}
        for one in self.get_params(ctx):
            if isinstance(one, click.Argument):
                continue
            section = one.section if isinstance(one, Option) else "output"
            if whole or not (isinstance(one, Option) and one.rare):
                found[section].append(one)
        if not found["model"] and not found["solving"]:
            found["options"] = [*found["options"], *found.pop("output")]
        return {name: options for name, options in found.items() if options}

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The arguments, then the word for all options."""
        arguments = [one for one in self.get_params(ctx) if isinstance(one, click.Argument)]
        return [piece for one in arguments for piece in one.get_usage_pieces(ctx)] + ["[OPTIONS]"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in their sections."""
        whole = bool(ctx.meta.get("whole help"))
        for name, options in self.sections(ctx, whole).items():
            records = [one.get_help_record(ctx) for one in options]
            # All sections get the same first column.
            padded = [(one[0].ljust(OPTION_WIDTH), one[1]) for one in records if one]
            with formatter.section(name.capitalize()):
                formatter.write_dl(padded, col_max=OPTION_WIDTH)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"  {line}\n")


def declare(examples: Sequence[str], **named: Any) -> Callable[[Callable[..., int]], Command]:
    """``click.command`` for a :class:`Command`."""
    settings = {"max_content_width": HELP_WIDTH}
    return click.command(cls=Command, examples=examples, context_settings=settings, **named)


def show_whole_help(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    """Print the help with every option, and end."""
    if asked and not ctx.resilient_parsing:
        ctx.meta["whole help"] = True
        click.echo(ctx.get_help())
        ctx.exit()


def check_exclusive(command: click.Command, ctx: click.Context) -> None:
    """Raise an error if two options are given that exclude each other."""
    flags = {one.name: max(one.opts, key=len) for one in command.params}
    for pair in EXCLUSIVE:
        given = [flags[name] for name in pair if ctx.params.get(name)]
        if len(given) > 1:
            raise click.UsageError(f"{' and '.join(given)} exclude each other: leave one of the two out")


def check_outputs_differ(command: click.Command, ctx: click.Context) -> None:
    """Raise DataError if two options name the same file to write."""
    names = [ctx.params[one.name] for one in command.params if one.type in (OUTPUT, REPORT) and one.name]
    written: set[str] = set()
    for name in filter(None, names):
        real = os.path.realpath(name)
        if real in written:
            raise DataError(f"{name}: is given for two outputs; each needs a file of its own")
        written.add(real)


def nearest(word: str, known: Iterable[str]) -> str:
    """Words that ask for the nearest of the known names; empty if none is near."""
    found = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""
