"""The command line."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; see :func:`saddlesvm.cli.parser.main`."""
    from saddlesvm.cli.parser import main as run

    return run(arguments)
