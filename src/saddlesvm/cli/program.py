"""The program ``saddlesvm``: its commands, how a command is run, and how errors are printed."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence

import click

from saddlesvm import __version__
from saddlesvm.cli import INTERRUPTED, USAGE_ERROR
from saddlesvm.cli.command import Command, flag_of, suggest
from saddlesvm.cli.console import discard_output, explain_failed_write, prepare_output, print_error
from saddlesvm.data.errors import DataError

# In the order of their use.
COMMANDS = (
    "train",
    "predict",
    "certify",
    "path",
    "convert",
    "info",
    "compare",
    "watch",
    "prove",
    "verify",
)
YES_OR_NO = {"True": "yes", "False": "no"}  # values of flags in messages


class Program(click.Group):
    """The group of commands; the module of a command is imported if the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return the command of a name, None if there is none."""
        if name not in COMMANDS:
            return None
        return import_command(name)

    def resolve_command(
        self, ctx: click.Context, words: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command as click does; the error for an unknown name suggests the nearest."""
        name = words[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"there is no command {name!r}{suggest(name, COMMANDS)}")
        return super().resolve_command(ctx, words)

    def invoke(self, ctx: click.Context) -> int:
        """Run the command, and return its exit code."""
        # Click has other words for Ctrl-C, and another exit code for a pipe whose reader has ended.
        try:
            code = int(super().invoke(ctx))
            sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            print_error("saddlesvm: interrupted")
            return INTERRUPTED
        except BrokenPipeError:  # for example of `head`, which has read all that it needs
            discard_output()
            return USAGE_ERROR


@click.group(cls=Program)
@click.version_option(__version__, message="saddlesvm %(version)s")
def program() -> None:
    """Support vector machines, trained to a certified optimum."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program, print each error as a line, and return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        prepare_output()
        code = program.main(words or ["--help"], prog_name="saddlesvm", standalone_mode=False)
        # Without arguments the program shows its help, and ends as after a wrong use.
        return int(code) if words else USAGE_ERROR
    except click.ClickException as error:
        print_error(f"saddlesvm: error: {error.format_message()}")
    except ImportError as error:
        # Ctrl-C during the import of compiled code comes as an error of the import.
        if isinstance(error.__cause__, KeyboardInterrupt):
            print_error("saddlesvm: interrupted")
            return INTERRUPTED
        print_error(f"saddlesvm: error: {replace_parameters(str(error), words)}")
    except (DataError, ValueError) as error:
        print_error(f"saddlesvm: error: {replace_parameters(str(error), words)}")
    except MemoryError as error:
        print_error(f"saddlesvm: error: not enough memory: {error}")
    except OSError as error:
        print_error(f"saddlesvm: error: {explain_failed_write(error)}")
        discard_output()
    return USAGE_ERROR


def import_command(name: str) -> Command:
    """Import the module of a command, and return the command."""
    command: Command = importlib.import_module(f"saddlesvm.cli.{name}").command
    return command


def replace_parameters(message: str, words: Sequence[str]) -> str:
    """Replace Python's parameters in a message of the library by the flags of the command."""
    if not words or words[0] not in COMMANDS:
        return message
    params = import_command(words[0]).params
    options = {str(param.name): param for param in params if isinstance(param, click.Option)}

    # header=True becomes --header yes, and "C must be" becomes "--C must be".
    def write_flag(found: re.Match[str]) -> str:
        option = options[found["name"]]
        value = found["value"]
        if value is None or option.is_flag:
            return flag_of(option)
        return f"{flag_of(option)} {YES_OR_NO.get(value, value)}"

    # Parameters of --set have no flags.
    name = rf"(?<!--set )(?<![\w./-])(?P<name>{'|'.join(options)})"
    value = r"(?P<quote>['\"]?)(?P<value>[^\s,;:)'\"]+)(?P=quote)"
    return re.sub(rf"{name}(?:={value}|(?= must be ))", write_flag, message)
