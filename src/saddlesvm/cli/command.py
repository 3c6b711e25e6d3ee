"""The class of our commands: help in sections with examples, and warnings as lines.

``--help`` fits a screen. ``--help-all`` shows every option, if a command has more.
"""

from __future__ import annotations

import difflib
import functools
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from saddlesvm.cli.console import format_warning
from saddlesvm.cli.values import OUTPUT, REPORT
from saddlesvm.data.errors import DataError

OPTION_WIDTH = 24  # columns of the help that the names of the options take at most
HELP_WIDTH = 100  # columns of the help at most, on a wide terminal
SECTIONS = ("data", "model", "solving", "output", "options")  # in the order of the help
EXCLUSIVE = (("C", "lam"), ("ends", "lam"), ("scores", "probabilities"))  # pairs of parameters

Decorator = Callable[[Any], Any]


class Option(click.Option):
    """An option in a section of the help.

    Parameters
    ----------
    section : str
        One of :data:`SECTIONS`.
    rare : bool, default=False
        Whether ``--help`` omits it, and only ``--help-all`` shows it.
    """

    def __init__(
        self, *given: Any, section: str = "options", rare: bool = False, **named: Any
    ) -> None:
        super().__init__(*given, **named)
        self.section = section
        self.rare = rare


def option(*given: Any, **named: Any) -> Decorator:
    """Declare an :class:`Option`, as ``click.option`` does."""
    return click.option(*given, cls=Option, **named)


data_option = functools.partial(option, section="data")
model_option = functools.partial(option, section="model")
solving_option = functools.partial(option, section="solving")
output_option = functools.partial(option, section="output")


def combine(*decorators: Decorator) -> Decorator:
    """Make a decorator of several; the first stands first in the help."""

    def decorate(function: object) -> Any:
        # The last decorator is applied first, so that the first one stands outermost.
        for decorator in reversed(decorators):
            function = decorator(function)
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
            whole_help = click.Option(
                ["--help-all"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=print_whole_help,
                help="Show every option and exit.",
            )
            self.params.append(whole_help)

    def invoke(self, ctx: click.Context) -> int:
        """Run the command, and return its exit code."""
        from saddlesvm.fit.outcome import NotCertifiedWarning
        from saddlesvm.runtime.clock import report_compilation

        check_exclusive(self, ctx)
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

    def rare_options(self) -> list[Option]:
        """Return the options that ``--help`` omits."""
        return [param for param in self.params if isinstance(param, Option) and param.rare]

    def sections(self, ctx: click.Context, whole: bool) -> dict[str, list[click.Parameter]]:
        """Return the options of each section; without `whole`, rare options are omitted."""
        found: dict[str, list[click.Parameter]] = {name: [] for name in SECTIONS}
        for param in self.get_params(ctx):
            if isinstance(param, Option):
                if whole or not param.rare:
                    found[param.section].append(param)
            elif not isinstance(param, click.Argument):
                found["output"].append(param)  # --help and --help-all
        # A command without a model has few options: one section holds them.
        if not found["model"] and not found["solving"]:
            found["options"] += found.pop("output")
        return {name: options for name, options in found.items() if options}

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the names of the arguments, then the word for all options."""
        pieces = []
        for param in self.get_params(ctx):
            if isinstance(param, click.Argument):
                pieces += param.get_usage_pieces(ctx)
        return [*pieces, "[OPTIONS]"]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in their sections."""
        whole = bool(ctx.meta.get("whole help"))
        for name, options in self.sections(ctx, whole).items():
            records = [option.get_help_record(ctx) for option in options]
            # Padding gives all sections the same first column.
            lines = [(record[0].ljust(OPTION_WIDTH), record[1]) for record in records if record]
            with formatter.section(name.capitalize()):
                formatter.write_dl(lines, col_max=OPTION_WIDTH)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"  {line}\n")


def declare(examples: Sequence[str], **named: Any) -> Callable[[Callable[..., int]], Command]:
    """Declare a :class:`Command`, as ``click.command`` does."""
    settings = {"max_content_width": HELP_WIDTH}
    return click.command(cls=Command, examples=examples, context_settings=settings, **named)


def print_whole_help(ctx: click.Context, option: click.Parameter, is_given: bool) -> None:
    """Print the help with every option, and exit."""
    if is_given and not ctx.resilient_parsing:
        ctx.meta["whole help"] = True
        click.echo(ctx.get_help())
        ctx.exit()


def check_exclusive(command: click.Command, ctx: click.Context) -> None:
    """Raise an error if two options are given that exclude each other."""
    flags = {param.name: flag_of(param) for param in command.params}
    for pair in EXCLUSIVE:
        given = [flags[name] for name in pair if ctx.params.get(name)]
        if len(given) > 1:
            both = " and ".join(given)
            raise click.UsageError(f"{both} exclude each other: leave one of the two out")


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
