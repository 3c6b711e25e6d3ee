"""``saddlesvm warmup``: its options and what runs it. Light to import."""

from __future__ import annotations

import argparse
import sys
from typing import Any, get_args

from saddlesvm.runtime.lazy import Later
from saddlesvm.runtime.words import (
    DTYPES,
    INTERCEPTS,
    KERNEL_LOSSES,
    KERNEL_NAMES,
    LAYOUTS,
    USUAL_LAYOUTS,
    USUAL_LOSSES,
    MultiClass,
    Penalty,
)

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
    parser.add_argument("--loss", help=f"one or more, by commas; {', '.join(USUAL_LOSSES)} by default")
    parser.add_argument(
        "--layout",
        default=",".join(USUAL_LAYOUTS),
        help=f"of {', '.join(LAYOUTS)}; {' and '.join(USUAL_LAYOUTS)} by default",
    )
    parser.add_argument("--dtype", default="float64", help=f"of {', '.join(DTYPES)}; float64 by default")
    parser.add_argument("--intercept", choices=INTERCEPTS, default="regularized")
    parser.add_argument("--multi-class", dest="multi_class", choices=get_args(MultiClass), help="of several classes")
    parser.add_argument("--penalty", choices=get_args(Penalty), help="of the weights")
    parser.add_argument(
        "--kernel", choices=[name for name in KERNEL_NAMES if name != "precomputed"], help="of SVC, SVR"
    )
    parser.add_argument("--n-jobs", dest="n_jobs", type=int, help="2 or more: also what threads within a fit need")
    parser.set_defaults(run=Later("saddlesvm.cli.warmup:run"))


def run(arguments: argparse.Namespace) -> int:
    """Compile, a line on standard error for each combination, and print what it took; the exit code."""

    def watch(name: str, seconds: float) -> None:
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)

    usual = KERNEL_LOSSES if arguments.kernel else USUAL_LOSSES[:1] if arguments.multi_class else USUAL_LOSSES
    asked = {name: getattr(arguments, name).split(",") for name in ("layout", "dtype")}
    asked["loss"] = arguments.loss.split(",") if arguments.loss else list(usual)
    intercept: dict[str, Any] = (
        {"fit_intercept": False} if arguments.intercept == "none" else {"intercept": arguments.intercept}
    )
    more = {name: getattr(arguments, name) for name in ("multi_class", "penalty", "kernel", "n_jobs")}
    options = {} if arguments.kernel else intercept
    options |= {name: one for name, one in more.items() if one is not None}
    spent = warmup(**asked, watch=watch, **options)
    print(f"seconds compiling  {spent:.1f}")
    return 0
