"""Standard output and error of a command, even if they are a full disk, or closed."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys

from saddlesvm.data.errors import DataError
from saddlesvm.runtime.safe_text import escape_hidden, escape_line_breaks, one_line

OUTPUT = "standard output"  # its name in messages


def prepare_output() -> None:
    """Make standard output spell out the characters that its encoding lacks.

    Raises
    ------
    DataError
        There is no standard output; this is raised before any work is done.
    """
    if sys.stdout is None:
        raise DataError(f"{OUTPUT}: is closed; redirect it to a file or to /dev/null")
    with contextlib.suppress(AttributeError, ValueError):  # another object replaces it
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def print_error(message: str) -> None:
    """Print a message, if any, as a line on standard error."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        print(one_line(message), file=sys.stderr, flush=True)


def explain_failed_write(error: OSError) -> str:
    """Return a message that names the file that could not be written, or standard output."""
    # An error of our own, for example of a store that is cut off, has no number, and says all.
    if error.errno is None:
        return str(error)
    reason = error.strerror or str(error)
    if isinstance(error, BrokenPipeError):
        reason = f"{reason}: the program that reads it has ended"
    name = OUTPUT
    if error.filename:
        name = os.fsdecode(error.filename)
    return f"{name}: cannot be written: {reason}"


def discard_output() -> None:
    """Send standard output to nowhere, because Python could not write its buffer at exit either."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def format_warning(message: Warning | str, *place: object, **more: object) -> str:
    """Format a warning as a line, without its place in the source."""
    return f"saddlesvm: warning: {one_line(str(message))}\n"


def printable_label(text: str, is_terminal: bool) -> str:
    """Return a label as a terminal may show it, or as a line of a file can hold it."""
    return escape_hidden(text) if is_terminal else escape_line_breaks(text)


def write_output(text: str) -> None:
    """Write results, of which no character may be replaced.

    Raises
    ------
    DataError
        The encoding of standard output lacks a character.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        lacking = escape_hidden(error.object[error.start])
        raise DataError(
            f"{OUTPUT}: its encoding {encoding} lacks {lacking!r}: set PYTHONIOENCODING=utf-8, or "
            "write to a file with --output"
        ) from None
    sys.stdout.write(text)


def command_line() -> str:
    """Return the command as it was typed, for reports."""
    return shlex.join(["saddlesvm", *sys.argv[1:]])
