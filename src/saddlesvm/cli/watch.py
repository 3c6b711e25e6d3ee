"""``saddlesvm watch``: its options, and the function that runs it. Cheap to import."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import Any

from saddlesvm.data.errors import DataError
from saddlesvm.runtime.lazy import Later
from saddlesvm.runtime.words import CLASSIFICATION_LOSSES


def add_arguments(subparsers: Any) -> None:
    """Add the command to an argparse sub-parser group; it sets ``run``, which takes the parsed arguments.

    Parameters
    ----------
    subparsers : object
        What ``ArgumentParser.add_subparsers()`` returned.
    """
    parser = subparsers.add_parser("watch", help="write a page that plays two solvers, row by row, side by side")
    parser.add_argument("data", metavar="DATA", help="data file, or a bundled set: banknote, heart, toy")
    parser.add_argument(
        "--solver", default="pegasos", help="pegasos, sdca, dcd or newton, with options: pegasos:projection=true"
    )
    parser.add_argument("--against", default="dcd", help="the one beside it (default dcd); none for one alone")
    strength = parser.add_mutually_exclusive_group()
    strength.add_argument("--C", type=float, help="instead of lambda")
    strength.add_argument("--lam", "--lambda", dest="lam", type=float, help="default 0.05")
    parser.add_argument("--loss", default="hinge", help=f"{', '.join(CLASSIFICATION_LOSSES)} (default hinge)")
    parser.add_argument("--intercept", choices=("none", "regularized"), default="regularized")
    parser.add_argument("--rows", type=int, default=60, help="rows at most, drawn at random (default 60)")
    parser.add_argument("--epochs", type=float, default=8.0, help="passes over them at most (default 8)")
    parser.add_argument("--seed", type=int, default=0, help="of the rows and of the solvers' draws (default 0)")
    parser.add_argument("--positive", metavar="LABEL", help="the class compared with the rest, if there are several")
    parser.add_argument("--label", help="label column of a table, by name or position")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply every value by this")
    parser.add_argument("--report", metavar="PATH", default="watch.html", help="the page to write (default watch.html)")
    parser.set_defaults(run=Later("saddlesvm.cli.watch:run"), reads=("data",))


def run(arguments: argparse.Namespace) -> int:
    """Record the solvers and write the page; the exit code."""
    from saddlesvm.data import read
    from saddlesvm.lab import watch

    if os.path.isdir(arguments.report):
        raise DataError(f"{arguments.report}: is a folder; the report is a file")
    table = read(arguments.data, label=arguments.label, scale=arguments.scale)
    if table.y is None:
        raise DataError(f"{table.source}: has no labels; there is nothing to train")
    seen = watch(
        table.X,
        table.y,
        solver=arguments.solver,
        against=None if arguments.against == "none" else arguments.against,
        loss=arguments.loss,
        C=arguments.C,
        lam=arguments.lam,
        intercept=arguments.intercept == "regularized",
        epochs=arguments.epochs,
        rows=arguments.rows,
        seed=arguments.seed,
        positive=arguments.positive,
        name=os.path.basename(arguments.data),
        command=shlex.join(["saddlesvm", *sys.argv[1:]]),
    )
    for one in seen.scene["runs"]:
        frames = one["frames"]
        gap = frames[-1]["primal"] - frames[-1]["dual"]
        print(
            f"{one['label']}: {len(frames) - 1} steps, {frames[-1]['touched']:,} rows touched, gap {max(gap, 0.0):.2g}"
        )
    print(f"report: {seen.report(arguments.report)}")
    return 0
