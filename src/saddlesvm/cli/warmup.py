"""``saddlesvm warmup``: its options and what runs it. Light to import."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from saddlesvm.runtime.lazy import Later
from saddlesvm.runtime.words import DTYPES, INTERCEPTS, LAYOUTS, USUAL_LAYOUTS, USUAL_LOSSES

__all__ = ["add_arguments", "run"]

warmup = Later("saddlesvm.estimators.warmup:warmup")


def add_arguments(subparsers: Any) -> None:
    """Add the command to an argparse sub-parser group; it sets ``run``, which takes the parsed arguments.

    Parameters
    ----------
    subparsers : object
        What ``ArgumentParser.add_subparsers()`` returned.
    """
    parser = subparsers.add_parser("warmup", help="compile ahead what first fits would otherwise wait for")
    parser.add_argument(
        "--loss", default=",".join(USUAL_LOSSES), help=f"one or more, by commas; {', '.join(USUAL_LOSSES)}"
    )
    parser.add_argument(
        "--layout",
        default=",".join(USUAL_LAYOUTS),
        help=f"of {', '.join(LAYOUTS)}; {' and '.join(USUAL_LAYOUTS)} by default",
    )
    parser.add_argument("--dtype", default="float64", help=f"of {', '.join(DTYPES)}; float64 by default")
    parser.add_argument("--intercept", choices=INTERCEPTS, default="regularized")
    parser.set_defaults(run=Later("saddlesvm.cli.warmup:run"))


def run(arguments: argparse.Namespace) -> int:
    """Compile, a line on standard error for each combination, and print what it took; the exit code."""

    def watch(name: str, seconds: float) -> None:
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)

    asked = {name: getattr(arguments, name).split(",") for name in ("loss", "layout", "dtype")}
    intercept = {"fit_intercept": False} if arguments.intercept == "none" else {"intercept": arguments.intercept}
    spent = warmup(**asked, watch=watch, **intercept)
    print(f"seconds compiling  {spent:.1f}")
    return 0
