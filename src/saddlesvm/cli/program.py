"""The program ``saddlesvm``: its commands, how one is run, and how errors are told."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence

import click

from saddlesvm import __version__
from saddlesvm.cli import INTERRUPTED, USAGE_ERROR
from saddlesvm.cli.command import Command, nearest
from saddlesvm.cli.console import give_up_output, print_error, ready_output, why_unwritten
from saddlesvm.data.errors import DataError

COMMANDS = ("train", "predict", "certify", "path", "convert", "info", "compare", "watch", "prove", "verify")


class Program(click.Group):
    """The group of commands; the module of a command is imported when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of their use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command of that name."""
        if name not in COMMANDS:
            return None
        found: Command = importlib.import_module(f"saddlesvm.cli.{name}").command
        return found

    def resolve_command(
        self, ctx: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with an error that has the nearest name."""
        name = words[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {name!r}{nearest(name, COMMANDS)}")
        return super().resolve_command(ctx, words)

    def invoke(self, ctx: click.Context) -> int:
        """Run the command; its exit code.

        Click has other words for Ctrl-C, and another exit code for a pipe whose reader has ended.
        """
        try:
            code = int(super().invoke(ctx))
            sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            print_error("saddlesvm: interrupted")
            return INTERRUPTED
        except BrokenPipeError:  # as by head, which has read all that it wants
            give_up_output()
            return USAGE_ERROR


@click.group(cls=Program)
@click.version_option(__version__, message="saddlesvm %(version)s")
def program() -> None:
    """Support vector machines, trained to a certified optimum."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program; its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        ready_output()
        code = program.main(words or ["--help"], prog_name="saddlesvm", standalone_mode=False)
        return int(code) if words else USAGE_ERROR
    except click.ClickException as error:
        print_error(f"saddlesvm: error: {error.format_message()}")
    except (DataError, ValueError, ImportError) as error:
        print_error(f"saddlesvm: error: {in_flags(str(error), words)}")
    except MemoryError as error:
        print_error(f"saddlesvm: error: not enough memory: {error}")
    except OSError as error:
        print_error(f"saddlesvm: error: {why_unwritten(error)}")
        give_up_output()
    return USAGE_ERROR


def in_flags(message: str, words: Sequence[str]) -> str:
    """A message of the library with the command's flags in place of Python's parameters."""
    if not words or words[0] not in COMMANDS:
        return message
    command = importlib.import_module(f"saddlesvm.cli.{words[0]}").command
    options = {one.name: one for one in command.params if isinstance(one, click.Option)}
    flags = {name: max(one.opts, key=len) for name, one in options.items()}

    def with_value(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"]
        if options[name].is_flag:
            return flags[name]
        return f"{flags[name]} {value.replace('True', 'yes').replace('False', 'no')}"

    message = re.sub(r" \(in Python: [^)]*\)", "", message)
    # A parameter with its value, header=True; then names that are no words of a sentence, max_iter.
    given = rf"(?<![\w./-])(?P<name>{'|'.join(flags)})=(?P<quote>['\"]?)(?P<value>[^\s,;:)'\"]+)(?P=quote)"
    message = re.sub(given, with_value, message)
    names = "|".join(name for name in flags if "_" in name)
    return re.sub(rf"(?<![\w./-])({names})(?![\w./-])", lambda found: flags[found[0]], message) if names else message
