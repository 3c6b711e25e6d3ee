"""``--help`` and ``--help-all``: options in groups, and examples."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from saddlesvm.cli.help_texts import COMMON, EXAMPLES, GROUPS, WHOLE_HELP

__all__ = ["HelpAll", "examples_of", "help_of", "sections_of"]

WIDEST = 26  # columns of the options, beside their texts


class HelpAll(argparse.Action):
    """Print the help of every option and end."""

    def __init__(self, option_strings: Any, dest: str, **named: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **named)

    def __call__(self, parser: argparse.ArgumentParser, *given: Any) -> None:
        sys.stdout.write(help_of(parser, whole=True))
        parser.exit()


def command_of(parser: argparse.ArgumentParser) -> str:
    """The name of the command whose parser this is; "saddlesvm" for the whole command line."""
    return parser.prog.split()[-1]


def examples_of(parser: argparse.ArgumentParser) -> tuple[str, ...]:
    """Command lines that show how a command is used."""
    return EXAMPLES.get(command_of(parser), ())


def sections_of(parser: argparse.ArgumentParser, whole: bool = True) -> dict[str, list[argparse.Action]]:
    """The options of a command by the title of their group.

    Parameters
    ----------
    parser : ArgumentParser
    whole : bool, default=True
        All options, instead of the common ones.
    """
    actions = [one for one in parser._actions if one.help != argparse.SUPPRESS]
    if command_of(parser) not in WHOLE_HELP:
        placed = [one for one in actions if not one.option_strings]
        return {"arguments": placed, "options": [one for one in actions if one.option_strings]}
    by_name = {one.dest: one for one in actions if whole or one.dest in COMMON}
    found = {title: [by_name.pop(name) for name in names if name in by_name] for title, names in GROUPS.items()}
    return {**found, "of estimators of yours": list(by_name.values())}


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
    examples = "".join(f"  {line}\n" for line in examples_of(parser))
    return formatter.format_help() + (f"\nexamples:\n{examples}" if examples else "")
