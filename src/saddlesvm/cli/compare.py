"""``saddlesvm compare`` and ``saddlesvm reproduce``: their options, and the functions to run them. Cheap to import."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import Any

from saddlesvm.cli.arguments import number_or_name
from saddlesvm.cli.console import print_error
from saddlesvm.cli.own import LOSSES, loss_text
from saddlesvm.data.errors import DataError
from saddlesvm.lab.experiments import HOMES
from saddlesvm.runtime.lazy import Later
from saddlesvm.runtime.shown import shown
from saddlesvm.runtime.words import KERNEL_NAMES

check_names = Later("saddlesvm.data.columns:check_names")
make_loss = Later("saddlesvm.problem.losses:make_loss")
split_losses = Later("saddlesvm.problem.losses:split_losses")
traits_of = Later("saddlesvm.problem.losses:traits_of")
USAGE_ERROR = 2
INTERRUPTED = 130


def add_arguments(subparsers: Any) -> None:
    """Add the two commands to an argparse sub-parser group; each sets ``run``, which takes the parsed arguments.

    Parameters
    ----------
    subparsers : object
        What ``ArgumentParser.add_subparsers()`` returned.
    """
    add_compare(subparsers)
    add_reproduce(subparsers)


def add_compare(subparsers: Any) -> None:
    """``saddlesvm compare``."""
    parser = subparsers.add_parser("compare", help="run solvers side by side and write a report with figures")
    parser.add_argument("data", metavar="DATA", help="data file, or a bundled set")
    parser.add_argument(
        "--solvers", help="by name, with options: dcd,pegasos:batch_size=64,output=average (default dcd,sdca,pegasos)"
    )
    parser.add_argument(
        "--with", dest="peers", default="", metavar="PEERS", help="sklearn,sgd,liblinear,cyanure,... or all"
    )
    strength = parser.add_mutually_exclusive_group()
    strength.add_argument("--C", help="one or several, with commas: 0.1,1,10 (default 1)")
    strength.add_argument("--lam", "--lambda", dest="lam", help="one or several, with commas, in place of C")
    parser.add_argument("--loss", default=None, help=f"with commas: {', '.join(LOSSES)}, MODULE:CLASS")
    parser.add_argument("--repeats", type=int, default=1, help="runs with the seeds 0, 1, ... (default 1)")
    parser.add_argument("--test", metavar="DATA", help="data to measure the test error on")
    parser.add_argument(
        "--max-time", dest="max_time", type=float, default=10.0, help="seconds for each run (default 10)"
    )
    parser.add_argument("--tol", type=float, default=1e-6, help="relative duality gap that ends a run (default 1e-6)")
    parser.add_argument("--intercept", choices=("none", "regularized", "free"), default="regularized")
    kernel = parser.add_argument_group("kernel machines in place of linear ones")
    kernel.add_argument("--kernel", choices=[name for name in KERNEL_NAMES if name != "precomputed"])
    kernel.add_argument("--gamma", type=number_or_name, default="scale", help="of the kernel: scale, auto or a number")
    kernel.add_argument("--degree", type=float, default=3.0, help="of the polynomial kernel (default 3)")
    kernel.add_argument("--coef0", type=float, default=0.0, help="of the polynomial and sigmoid kernels (default 0)")
    parser.add_argument("--positive", metavar="LABEL", help="the class compared with the rest, if there are several")
    parser.add_argument("--certify-every", dest="certify_every", type=float, default=1.0, help="epochs (default 1)")
    parser.add_argument("--label", help="label column of a table, by name or position")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply every value by this")
    parser.add_argument("--image", metavar="HxW", help="height and width, where a row is an image")
    parser.add_argument("--trace", metavar="PATH", help=".parquet or .csv; runs that it holds are not done again")
    parser.add_argument("--figures", metavar="DIR", help="write every figure here, as PNG and SVG")
    parser.add_argument("--report", metavar="PATH", required=True, help="the HTML report to write")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=Later("saddlesvm.cli.compare:run_compare"), reads=("data", "test"))


def add_reproduce(subparsers: Any) -> None:
    """``saddlesvm reproduce``."""
    parser = subparsers.add_parser("reproduce", help="run the published experiments again")
    parser.add_argument(
        "name", metavar="NAME", nargs="?", choices=tuple(HOMES), help=f"{', '.join(HOMES)}; all if left out"
    )
    parser.add_argument("--data", metavar="DIR", help="folder with the data files; else a cache folder, then OpenML")
    parser.add_argument("--report", metavar="PATH", help="HTML file; a folder where all are run (default: ./reports)")
    parser.add_argument("--figures", metavar="DIR", help="write every figure here as PNG")
    parser.add_argument("--quick", action="store_true", help="a part of the data, in seconds")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=Later("saddlesvm.cli.compare:run_reproduce"))


def run(arguments: argparse.Namespace) -> int:
    """Run the command that was parsed; its exit code: 0, 2 for bad usage or input, 130 after Ctrl-C."""
    return int(arguments.run(arguments))


def run_compare(arguments: argparse.Namespace) -> int:
    """Compare, write report, trace and figures, and print the verdict."""
    try:
        return _compare(arguments)
    except (ValueError, ModuleNotFoundError) as error:
        return _refuse("compare", error)


def run_reproduce(arguments: argparse.Namespace) -> int:
    """Reproduce, write the reports, and print what was found."""
    try:
        return _reproduce(arguments)
    except (ValueError, ModuleNotFoundError) as error:
        return _refuse("reproduce", error)


def _compare(arguments: argparse.Namespace) -> int:
    from saddlesvm.data import read
    from saddlesvm.lab import compare

    _check_outputs(arguments.report, arguments.figures)
    losses = [loss_text(one) for one in split_losses(arguments.loss)] if arguments.loss else None
    task: Any = traits_of(make_loss(losses[0])).task if losses else "classification"
    table = read(arguments.data, label=arguments.label, scale=arguments.scale, task=task)
    held_out = None
    if arguments.test:
        held_out = read(
            arguments.test,
            label=arguments.label,
            scale=arguments.scale,
            task=task,
            n_features=table.n_features,
            zero_based="auto" if table.zero_based is None else table.zero_based,
        )
        check_names(held_out.source, held_out.feature_names, table.source, table.feature_names)
    found = compare(
        table.X,
        _labels(table),
        solvers=arguments.solvers,
        C=_numbers(arguments.C),
        lam=_numbers(arguments.lam),
        losses=losses,
        repeats=arguments.repeats,
        test=None if held_out is None else (held_out.X, _labels(held_out)),
        budget=arguments.max_time,
        tol=arguments.tol,
        peers=arguments.peers,
        intercept=arguments.intercept,
        task=task,
        positive=arguments.positive,
        name=os.path.basename(arguments.data),
        image_shape=_image_shape(arguments.image, table),
        certify_every=arguments.certify_every,
        kernel=arguments.kernel,
        gamma=arguments.gamma,
        degree=arguments.degree,
        coef0=arguments.coef0,
        trace=arguments.trace,
        progress=not arguments.quiet,
        command=_command(),
    )
    path = found.report(arguments.report)
    if arguments.figures:
        found.save_figures(arguments.figures)
    if found.interrupted:
        print("interrupted: the report shows what was done so far")
    print(*map(shown, (*found.verdict(), *found.notes, f"report: {path}")), sep="\n")
    return INTERRUPTED if found.interrupted else 0


def _reproduce(arguments: argparse.Namespace) -> int:
    from saddlesvm.lab import reproduce

    report = arguments.report or ("reports" if arguments.name is None else f"{arguments.name}.html")
    _check_outputs(None if arguments.name is None else report, arguments.figures)
    found = reproduce(
        arguments.name,
        arguments.data,
        report,
        arguments.quick,
        figures=arguments.figures,
        progress=not arguments.quiet,
        command=_command(),
    )
    for name, made in found.items():
        print(f"{name}:", *(f"  {sentence}" for sentence in made.verdict), sep="\n")
    print(shown(f"report: {report}"))
    cut_short = any(made.verdict and made.verdict[0].startswith("Interrupted") for made in found.values())
    return INTERRUPTED if cut_short else 0


def _check_outputs(report: str | None, figures: str | None) -> None:
    """Raise DataError, before any work, for a report that is a folder or a folder of figures that is not one."""
    if report is not None and os.path.isdir(report):
        raise DataError(f"{report}: is a folder; the report is a file")
    if figures is not None and os.path.exists(figures) and not os.path.isdir(figures):
        raise DataError(f"{figures}: is a file; the figures go to a folder")


def _numbers(given: str | None) -> list[float] | None:
    return None if given is None else [float(one) for one in given.split(",")]


def _labels(table: Any) -> Any:
    if table.y is None:
        raise DataError(f"{table.source}: has no labels; a comparison needs them")
    return table.y


def _image_shape(given: str | None, table: Any) -> tuple[int, int] | None:
    """Height and width from ``HxW``; square for the images of an idx file."""
    if given:
        height, _, width = given.lower().partition("x")
        if not (height.isdigit() and width.isdigit()):
            raise ValueError(f"--image is {given!r}; it must be like 28x28")
        return int(height), int(width)
    side = round(table.n_features**0.5)
    return (side, side) if table.format == "idx" and side * side == table.n_features else None


def _command() -> str:
    return shlex.join(["saddlesvm", *sys.argv[1:]])


def _refuse(command: str, error: Exception) -> int:
    print_error(f"saddlesvm {command}: error: {error}")
    return USAGE_ERROR
