"""Standard output and error of a command, also if they are a full disk, or closed."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from typing import Any

from saddlesvm.data.errors import DataError
from saddlesvm.runtime.shown import one_line, shown, unbroken

OUTPUT = "standard output"


def ready_output() -> None:
    """Make standard output spell out the characters that its encoding lacks.

    Raises
    ------
    DataError
        There is no standard output; raised before any work is done.
    """
    if sys.stdout is None:
        raise DataError(f"{OUTPUT}: is closed; redirect it to a file or to /dev/null")
    with contextlib.suppress(AttributeError, ValueError):  # another object in its place
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def print_error(message: str) -> None:
    """A message as one line on standard error, if there is one."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        print(one_line(message), file=sys.stderr, flush=True)


def why_unwritten(error: OSError) -> str:
    """The text of an error of the system with the name of the file, or of standard output where it names none.

    An error that the system did not raise, such as that of a store cut off while it is read, says itself what it is.
    """
    if error.errno is None:
        return str(error)
    reason = error.strerror or str(error)
    if isinstance(error, BrokenPipeError):
        reason = f"{reason}: what reads it has ended"
    return f"{os.fsdecode(error.filename) if error.filename else OUTPUT}: cannot be written: {reason}"


def give_up_output() -> None:
    """Send standard output to nowhere, because Python cannot write its buffer at exit either."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def warning_as_line(message: Warning | str, *place: Any, **more: Any) -> str:
    """A warning as a line for a person, without the place in the source that it comes from."""
    return f"saddlesvm: warning: {one_line(str(message))}\n"


def safe_label(text: str, terminal: bool) -> str:
    """A label as a terminal may show it, or as a line of a file can hold it."""
    return shown(text) if terminal else unbroken(text)


def write_output(text: str) -> None:
    """Write results: never with characters replaced.

    Raises
    ------
    DataError
        The encoding of standard output lacks one of them.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        lacking = shown(error.object[error.start])
        raise DataError(
            f"{OUTPUT}: its encoding {encoding} lacks {lacking!r}; set PYTHONIOENCODING=utf-8, or use --output"
        ) from None
    sys.stdout.write(text)


def command_line() -> str:
    """The command as it was given, for reports."""
    return shlex.join(["saddlesvm", *sys.argv[1:]])
