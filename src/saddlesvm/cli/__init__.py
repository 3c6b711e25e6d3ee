"""The command line: a command a file, declared with click. Nothing heavy is imported before a command runs."""

from __future__ import annotations

from collections.abc import Sequence

from saddlesvm.runtime.lazy import Later

OK = 0
USAGE_ERROR = 2
NOT_CERTIFIED = 3
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``saddlesvm``; those of this process by default.

    Returns
    -------
    int
        0; 2 for bad usage or input; 3 if the command stopped before the gap asked for was proven;
        130 after Ctrl-C with nothing to keep.
    """
    try:
        return int(Later("saddlesvm.cli.program:run")(arguments))
    except KeyboardInterrupt:  # while the program starts
        return INTERRUPTED
