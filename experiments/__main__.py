"""Run published experiments again, and write a report of each.

python -m experiments vlfeat-sdca --quick
python -m experiments dcd-tables --data DIR
python -m experiments --data DIR --reports reports
"""

from __future__ import annotations

import argparse
import shlex
import sys

from experiments import HOMES
from experiments.experiment import Options, run_experiments
from saddlesvm.data import DataError

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended


def main(words: list[str] | None = None) -> int:
    """Run the named experiments; return 2 if the data or the folders are wrong."""
    given = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Run published experiments again."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(HOMES)}; by default all"
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="folder with the data files (default: a cache folder, then OpenML)",
    )
    parser.add_argument(
        "--reports", default=".", metavar="DIR", help="where NAME.html is written (default: here)"
    )
    parser.add_argument("--figures", metavar="DIR", help="write every figure there as PNG")
    parser.add_argument("--quick", action="store_true", help="a part of the data, in seconds")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    options = parser.parse_args(given)
    unknown = [name for name in options.names if name not in HOMES]
    if unknown:
        parser.error(f"there is no experiment {unknown[0]!r}: use one of {', '.join(HOMES)}")
    command = shlex.join(["python", "-m", "experiments", *given])
    try:
        found = run_experiments(
            options.names or HOMES,
            Options(options.data, options.quick, command),
            reports=options.reports,
            figures=options.figures,
            progress=not options.quiet,
        )
    except DataError as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 2
    for name, report in found.items():
        print(f"{name}:", *(f"  {sentence}" for sentence in report.verdict), sep="\n")
        print(f"report: {options.reports}/{name}.html")
    interrupted = any(
        report.verdict[:1] and report.verdict[0].startswith("Interrupted")
        for report in found.values()
    )
    return INTERRUPTED if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
