"""The options that several commands share, declared once.

An option means the same as the parameter of the same name in Python. One that is not given is None, and the estimator
keeps its own default.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from saddlesvm.cli.command import data_option, model_option, output_option, solving_option, together
from saddlesvm.cli.values import DATA, GAMMA, HEADER, INDEX_BASE, KINDS, NAMES, OUTPUT, SETTING, STRENGTH, join_sources
from saddlesvm.data.errors import DataError
from saddlesvm.runtime.option_names import INTERCEPTS, KERNEL_NAMES, MISSING_VALUES

CLASSIFICATION_LOSSES = "squared_hinge (default), hinge, logistic"
REGRESSION_LOSSES = "epsilon_insensitive, squared, huber, ..."


def data_argument(several: bool = True) -> Callable[[Any], Any]:
    """The argument DATA: one source; with `several`, or stores side by side."""
    if not several:
        return click.argument("data", type=DATA, metavar="DATA")
    return click.argument("data", type=DATA, metavar="DATA...", nargs=-1, required=True, callback=join_sources)


@dataclass
class Reading:
    """How the data of a command are read; the limit of memory is for the fit, too, and set by the command."""

    label: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    drop_columns: tuple[str, ...] = ()
    header: Any = "auto"
    index_base: Any = "auto"
    missing: str | None = None
    memory: str | None = None
    scale: float = 1.0

    def check_stores(self, stores: list[str], further: dict[str, Any] | None = None) -> None:
        """Raise DataError if options of files are given for stores.

        Parameters
        ----------
        stores : list of str
        further : dict
            Flags of the command that are for files, too, and their values.
        """
        plain = Reading()
        changed = [f"--{name.replace('_', '-')}" for name in vars(self) if getattr(self, name) != getattr(plain, name)]
        changed += [flag for flag, value in (further or {}).items() if value is not None]
        for flag in changed:
            if flag != "--memory":
                raise DataError(f"{flag} is for files; {', '.join(stores)} are stores")


LABEL = data_option("--label", metavar="NAME", help="Label column of a table; the last one by default.")
OF_TABLES = (
    LABEL,
    data_option("--columns", type=KINDS, default=(), help="Kinds of columns: zip=category,note=text,id=drop."),
    data_option(
        "--drop-columns", type=NAMES, default=(), rare=True, help="Columns to leave out, such as identifiers: id,name."
    ),
    data_option(
        "--header",
        type=HEADER,
        default="auto",
        rare=True,
        help="Whether the first line of a table has names; auto finds out.",
    ),
    data_option(
        "--index-base",
        type=INDEX_BASE,
        default="auto",
        rare=True,
        help="The number of the first feature in LIBSVM text.",
    ),
)
MISSING = data_option(
    "--missing",
    type=click.Choice(MISSING_VALUES),
    metavar="HOW",
    rare=True,
    help="Missing values: error, drop (their rows), or fill in mean or median of the column.",
)
JSON = output_option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def reading_options(*further: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The options of reading; the function gets them as one object, `reading`, and ``--json`` as `as_json`.

    Parameters
    ----------
    *further : decorators
        Options whose parameters are fields of :class:`Reading`, such as MISSING.
    """

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def with_reading(*given: Any, **options: Any) -> int:
            fields = [name for name in Reading.__dataclass_fields__ if name in options and name != "memory"]
            reading = Reading(**{name: options.pop(name) for name in fields})
            if isinstance(options.get("data"), list):
                reading.check_stores(options["data"])
            return int(function(*given, reading=reading, **options))

        return together(*OF_TABLES, *further)(with_reading)

    return decorate


def import_module(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    """Import the user's own module, from this folder too, so that it registers its classes."""
    if name is None or ctx.resilient_parsing:
        return name
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise click.BadParameter(f"cannot import {name}: {error}", ctx, param) from None
    return name


IMPORT = model_option(
    "--import",
    "imported",
    metavar="MODULE",
    callback=import_module,
    expose_value=False,
    rare=True,
    help="Import your Python module, which registers a loss, a solver or an estimator.",
)
LAMBDA = model_option(
    "--lambda", "lam", type=float, metavar="LAMBDA", rare=True, help="Lambda = 1 / (C n), in place of C."
)
LOSS = model_option("--loss", metavar="LOSS", help=f"{CLASSIFICATION_LOSSES}; for targets {REGRESSION_LOSSES}")
SEED = solving_option("--seed", type=int, default=0, show_default=True, rare=True, help="Of the random choices.")
OF_KERNELS = (
    model_option(
        "--kernel",
        type=click.Choice(KERNEL_NAMES),
        metavar="NAME",
        help="A kernel machine: rbf, poly, sigmoid, laplacian, ...",
    ),
    model_option("--gamma", type=GAMMA, rare=True, help="Of the kernel: scale (default), auto, or numbers."),
    model_option(
        "--nu", type=float, rare=True, help="Train a nu machine: the share of rows that may be margin errors."
    ),
)
OF_MODELS = (
    LOSS,
    model_option(
        "--penalty",
        type=click.Choice(["l2", "l1", "elasticnet"]),
        metavar="NAME",
        help="l2 (default); l1, elasticnet set weights to zero.",
    ),
    model_option("--class-weight", metavar="WEIGHTS", help="balanced, or LABEL=FACTOR,LABEL=FACTOR."),
    model_option(
        "--multi-class",
        type=click.Choice(["ovr", "ovo", "crammer_singer", "multinomial"]),
        metavar="WAY",
        rare=True,
        help="ovr (default), ovo, crammer_singer or multinomial.",
    ),
    model_option(
        "--intercept",
        type=click.Choice(INTERCEPTS),
        metavar="KIND",
        rare=True,
        help="regularized (default), free or none.",
    ),
    model_option(
        "--epsilon", type=float, rare=True, help="Half-width of the tube in which errors of a regression cost nothing."
    ),
    model_option(
        "--estimator",
        metavar="NAME",
        rare=True,
        help="LinearSVC, LinearSVR, SVC, NuSVC, SVR, NuSVR, OneClassSVM, or one of your own.",
    ),
    model_option(
        "--set",
        "settings",
        type=SETTING,
        multiple=True,
        rare=True,
        help="A further parameter of the estimator: degree=2. May be repeated.",
    ),
    IMPORT,
    solving_option("--max-time", type=float, metavar="SECONDS", help="Stop after so many seconds."),
    solving_option("--max-iter", type=int, metavar="EPOCHS", rare=True, help="Stop after so many epochs."),
    solving_option(
        "--solver",
        metavar="NAME",
        rare=True,
        help="auto, dcd, sdca, newton, pegasos:batch_size=64, ...; auto by default.",
    ),
    SEED,
    solving_option("--checkpoint", type=OUTPUT, help="Save the state of the fit here; continue from it."),
    solving_option("--n-jobs", type=int, metavar="N", help="Threads; -1 for all cores."),
    solving_option("--memory", metavar="BYTES", help="Train block by block in this memory: 512M, 1.5G."),
)
PARAMETERS = (
    "loss", "C", "lam", "penalty", "class_weight", "multi_class", "intercept", "epsilon", "kernel", "gamma", "nu",
    "probability", "estimator", "settings", "tol", "max_time", "max_iter", "solver", "seed", "checkpoint", "n_jobs",
    "memory",
)  # fmt: skip


def model_options(*further: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The options of a model; the function gets those given as one dict, `asked`.

    Parameters
    ----------
    *further : decorators
        Options of the command beside them, which stand first: C, ends of a path.
    """

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def with_model(*given: Any, **options: Any) -> int:
            asked = {name: options.pop(name) for name in PARAMETERS if name in options}
            asked = {name: value for name, value in asked.items() if value not in (None, ())}
            return int(function(*given, asked=asked, **options))

        return together(*further, *OF_MODELS)(with_model)

    return decorate


STRENGTH_OPTIONS = together(
    model_option("--C", "C", type=STRENGTH, help="Weight of the losses: 1, several (0.1,1,10) or auto."), LAMBDA
)
