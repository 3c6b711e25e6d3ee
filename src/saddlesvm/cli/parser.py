"""The parser of the command line: ``--help`` in groups with examples, errors of one line, and the command that runs.

Nothing heavy is loaded here, so that help and errors come at once: a subcommand's own options are added when it is
asked for, its function is imported when it runs, and the files that it names are looked for before.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from saddlesvm import __version__
from saddlesvm.cli import USAGE_ERROR, arguments as kinds
from saddlesvm.cli.arguments import flag, known_estimators, made_known
from saddlesvm.cli.console import check_outputs, check_sources, give_up_output, print_error, ready_output, why_unwritten
from saddlesvm.cli.options import COMMANDS, COMMON, FLAGS, GROUPS, OPTIONS, Command, Option, with_default
from saddlesvm.data.errors import DataError
from saddlesvm.runtime.lazy import Later

WEIGHTS = "--class-weight"
WIDEST = 26  # columns of the options, beside their texts
OF_ALL = ["saddlesvm train heart", "saddlesvm train --help"]  # examples of the whole command line


class HelpAll(argparse.Action):
    """Print the help of every option and end."""

    def __init__(self, option_strings: Any, dest: str, **named: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **named)

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        sys.stdout.write(help_of(parser, whole=True))
        parser.exit()


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line on standard error, exit code 2.

    Parameters
    ----------
    command : Command, optional
        The subcommand whose options are added when the parser is first used, or by :func:`make_parser`.
    """

    def __init__(self, *given: Any, command: Command | None = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.command, self.filled = command, command is None

    def fill(self) -> None:
        """Add the options, once."""
        if not self.filled and self.command is not None:
            self.filled = True
            add_options(self, self.command)

    def format_help(self) -> str:
        """The common options of a command in groups, and two examples."""
        return help_of(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse, with all options in place, and with labels that begin with a minus after --class-weight."""
        self.fill()
        words = list(sys.argv[1:] if args is None else args)
        while WEIGHTS in words[:-1]:
            at = words.index(WEIGHTS)
            words[at : at + 2] = [f"{WEIGHTS}={words[at + 1]}"]
        return super().parse_known_args(words, namespace)

    def parse_args(self, *given: Any, **named: Any) -> Any:
        """As argparse; the error about further names after the data says how several files are given."""
        options, left = self.parse_known_args(*given, **named)
        if left and options.data is not None and not any(word.startswith("-") for word in left):
            self.error(
                f"one source of data goes here, and {left[0]!r} came after {options.data!r}: bring several files "
                "into one store with 'saddlesvm convert'; 'saddlesvm train' takes several stores, side by side"
            )
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return options

    def error(self, message: str) -> NoReturn:
        print_error(f"{self.prog}: error: {message}")
        raise SystemExit(USAGE_ERROR)


def add_options(parser: Parser, command: Command) -> None:
    """Add the options of a command, and where it fits models those of the registered estimators."""
    declared = kinds.known_command(command.run).options
    for names in command.options.split():
        several = "|" in names
        group: Any = parser.add_mutually_exclusive_group() if several else parser
        for name in names.split("|"):
            word = name.removesuffix("...")
            dest = word.lower() if word.isupper() and len(word) > 1 else word
            own, changed = OPTIONS.get(dest, {}), declared.get(word, {}) | command.changes.get(word, {})
            sources: Option = {} if word == name else {"nargs": "+", "action": kinds.Sources}
            if dest != word:
                group.add_argument(dest, **{"metavar": word} | (changed or own) | sources)
            else:
                group.add_argument(*FLAGS.get(name, (flag(name),)), dest=name, **own | changed)
    if command.fits:
        add_options_of_estimators(parser)
        text = "show every option and exit"
        parser.add_argument("--help-all", dest="help_all", action=HelpAll, help=text)
    absent = OPTIONS.keys() - {one.dest for one in parser._actions}
    parser.set_defaults(**{name: OPTIONS[name].get("default") for name in absent})
    home = Later(f"saddlesvm.cli.{command.run}")
    parser.set_defaults(run=home, reads=command.reads, models=command.models, writes=command.writes)


def add_options_of_estimators(parser: Parser) -> None:
    """Add the options of the registered estimators that a parser does not have."""
    seen = {one.dest for one in parser._actions}
    for one in known_estimators():
        for name in one.options:
            if name not in seen:
                seen.add(name)
                default, declared = one.defaults.get(name), OPTIONS.get(name, {})
                how: Option = {"type": type_of(default), "help": one.texts.get(name)} | declared
                parser.add_argument(flag(name), dest=name, **how | {"help": with_default(str(how["help"]), default)})


def type_of(default: Any) -> Any:
    """The type of an option: that of its default, a number where the default is a whole number, else text."""
    if isinstance(default, bool):
        return kinds.truth
    if isinstance(default, int):
        return kinds.whole_or_number
    return float if isinstance(default, float) else str


def examples_of(parser: argparse.ArgumentParser) -> list[str]:
    """Command lines that show how a command is used."""
    command = getattr(parser, "command", None)
    return OF_ALL if command is None else kinds.known_command(command.run).examples


def sections_of(parser: argparse.ArgumentParser, whole: bool = True) -> dict[str, list[argparse.Action]]:
    """The options of a command by the title of their group.

    Parameters
    ----------
    parser : ArgumentParser
    whole : bool, default=True
        All options, instead of the common ones.
    """
    actions = [one for one in parser._actions if one.help != argparse.SUPPRESS]
    command = getattr(parser, "command", None)
    if command is None or not command.fits:
        placed = [one for one in actions if not one.option_strings]
        return {"arguments": placed, "options": [one for one in actions if one.option_strings]}
    by_name = {one.dest: one for one in actions if whole or one.dest in COMMON}
    found = {title: [by_name.pop(name) for name in names if name in by_name] for title, names in GROUPS.items()}
    return {**found, "of your own estimators": list(by_name.values())}


def help_of(parser: argparse.ArgumentParser, whole: bool = False) -> str:
    """The text of ``--help``, or with `whole` of ``--help-all``."""
    formatter = argparse.HelpFormatter(parser.prog, max_help_position=WIDEST)
    actions = [one for one in parser._actions if not one.option_strings]
    words = " ".join(str(one.metavar or one.dest) for one in actions)
    formatter.add_usage(f"{parser.prog} {words} [options]" if actions else f"{parser.prog} [options]", [], [])
    formatter.add_text(parser.description)
    for title, members in sections_of(parser, whole).items():
        formatter.start_section(title)
        formatter.add_arguments(members)
        formatter.end_section()
    return formatter.format_help() + "".join(["\nexamples:\n", *(f"  {line}\n" for line in examples_of(parser))])


def make_parser(whole: bool = True) -> Parser:
    """The command line.

    Parameters
    ----------
    whole : bool, default=True
        Give every subcommand its options at once, rather than when it is used.
    """
    parser = Parser(prog="saddlesvm", description="Support vector machines trained fast to a certified optimum.")
    parser.add_argument("--version", action="version", version=f"saddlesvm {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for name, command in COMMANDS.items():
        text = kinds.known_command(command.run).text
        made = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", command=command)
        if whole:
            made.fill()
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns
    -------
    int
        0; 2 for bad usage or input; 3 when it stopped before the certificate asked for was reached; 130 after Ctrl-C
        where there was nothing to keep.
    """
    try:
        made_known(sys.argv[1:] if arguments is None else arguments)
        parser = make_parser(whole=False)
    except (argparse.ArgumentTypeError, argparse.ArgumentError) as error:
        print_error(f"saddlesvm: error: {error}")
        return USAGE_ERROR
    options = parser.parse_args(arguments)
    try:
        ready_output()
        check_sources(options)
        check_outputs(options)
        code = int(Later("saddlesvm.cli.running:run")(options))
        sys.stdout.flush()
        return code
    except (DataError, ValueError, ModuleNotFoundError) as error:
        print_error(f"saddlesvm: error: {error}")
    except MemoryError as error:
        print_error(f"saddlesvm: error: not enough memory: {error}")
    except OSError as error:
        print_error(f"saddlesvm: error: {why_unwritten(error)}")
        give_up_output()
    return USAGE_ERROR
