"""The command line."""

from __future__ import annotations

from collections.abc import Sequence

from saddlesvm.runtime.lazy import Later

OK, USAGE_ERROR, NOT_CERTIFIED, INTERRUPTED = 0, 2, 3, 130  # exit codes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; see :func:`saddlesvm.cli.parser.main`.

    Ctrl-C before the command itself has begun ends it without a word.
    """
    try:
        return int(Later("saddlesvm.cli.parser:main")(arguments))
    except KeyboardInterrupt:
        return INTERRUPTED
