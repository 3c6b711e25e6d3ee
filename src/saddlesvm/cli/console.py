"""Input and output of a command: its files, checked before heavy packages are loaded, standard output and error,
also where they are a full disk, or closed."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from importlib.util import find_spec

from saddlesvm.data.errors import DataError, check_there, refuse_special
from saddlesvm.runtime.shown import one_line, shown, unbroken

STANDARD_INPUT = "-"
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


def check_sources(options: argparse.Namespace) -> None:
    """Raise DataError where a command reads data, or a model, that are not there.

    The options that name them are `reads` and `models` among those of the command. Standard input is left to it.
    """
    for path in named(options, "models"):
        if not os.path.exists(path):
            raise DataError(f"{path}: no such file")
        refuse_special(path)
    for source in named(options, "reads"):
        if source != STANDARD_INPUT:
            check_there(source)


def check_outputs(options: argparse.Namespace) -> None:
    """Raise DataError for a file that could not be written, or would be written twice; `writes` names the options."""
    paths = named(options, "writes")
    for path in paths:
        folder = os.path.dirname(os.path.realpath(path))
        if not os.path.isdir(folder):
            raise DataError(f"{path}: its folder does not exist")
        if os.path.isdir(path):
            raise DataError(f"{path}: is a folder; a file name is needed")
        refuse_special(path)
        if not os.access(folder, os.W_OK):
            raise DataError(f"{path}: cannot be written: permission denied in its folder")
    if "report" in options.writes and options.report and find_spec("matplotlib") is None:
        raise DataError(f"{options.report}: a report needs the lab extra: pip install 'saddlesvm[lab]'")
    real = [os.path.realpath(path) for path in paths]
    for path, one in zip(paths, real, strict=True):
        if real.count(one) > 1:
            raise DataError(f"{path}: is given for two outputs; each needs a file of its own")


def named(options: argparse.Namespace, kind: str) -> list[str]:
    """The paths in those options that are of a kind: reads, models or writes."""
    given = [getattr(options, name) for name in getattr(options, kind)]
    return [path for one in given if one for path in ([one] if isinstance(one, str) else one)]
