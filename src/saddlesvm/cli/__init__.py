"""The command line: a file for each command, declared with click.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from saddlesvm.runtime.lazy import LateFunction

# Exit codes.
OK = 0
USAGE_ERROR = 2
NOT_CERTIFIED = 3
INTERRUPTED = 130  # 128 and the number of the signal of Ctrl-C, as shells have it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after ``saddlesvm``; by default, the arguments of this process.

    Returns
    -------
    int
        0 for success; 2 for bad usage or input; 3 if the command stopped before the requested gap
        was proven; 130 after Ctrl-C if there is nothing to keep.
    """
    try:
        return int(LateFunction("saddlesvm.cli.program:run")(arguments))
    except KeyboardInterrupt:  # while the program starts
        return INTERRUPTED
