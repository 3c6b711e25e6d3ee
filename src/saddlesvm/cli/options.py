"""The options that several commands share, declared once.

An option means the same as the parameter of the same name in Python. An option that is not given is
None, and the estimator keeps its own default.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from typing import Any

import click

from saddlesvm.cli.command import (
    Decorator,
    combine,
    data_option,
    model_option,
    output_option,
    solving_option,
)
from saddlesvm.cli.values import (
    DATA,
    GAMMA,
    HEADER,
    INDEX_BASE,
    KINDS,
    NAMES,
    OUTPUT,
    REPORT,
    SETTING,
    STRENGTH,
    join_sources,
)
from saddlesvm.data.errors import DataError
from saddlesvm.data.reading import DEFAULT_READING, Reading
from saddlesvm.runtime.option_names import (
    INTERCEPTS,
    KERNEL_NAMES,
    MISSING_VALUES,
    MULTI_CLASS,
    PENALTY_NAMES,
)

CLASSIFICATION_LOSSES = "squared_hinge (default), hinge, logistic"
REGRESSION_LOSSES = "epsilon_insensitive, squared, huber, ..."

# The fields of `Reading` that are options of a command. Its memory is an option of the fit.
READING_OPTIONS = {
    "label": "--label",
    "columns": "--columns",
    "drop_columns": "--drop-columns",
    "header": "--header",
    "zero_based": "--index-base",
    "missing": "--missing",
}
# The options that describe a model and its fit.
MODEL_PARAMETERS = (
    "loss", "C", "lam", "penalty", "class_weight", "multi_class", "intercept", "epsilon", "kernel",
    "gamma", "nu", "probability", "estimator", "settings", "tol", "max_time", "max_iter", "solver",
    "seed", "checkpoint", "n_jobs", "memory",
)  # fmt: skip


def data_argument(several: bool = True) -> Decorator:
    """Declare the argument DATA: a source; with `several`, a source or a list of stores."""
    if not several:
        return click.argument("data", type=DATA, metavar="DATA")
    return click.argument(
        "data", type=DATA, metavar="DATA...", nargs=-1, required=True, callback=join_sources
    )


def check_stores(reading: Reading, stores: list[str], is_validation: bool = False) -> None:
    """Raise DataError if options for files are given for stores."""
    # An option counts as given if it is not the default.
    given = [
        option
        for name, option in READING_OPTIONS.items()
        if getattr(reading, name) != getattr(DEFAULT_READING, name)
    ]
    if is_validation:
        given.append("--validation")
    if given:
        raise DataError(f"{given[0]} is for files; {', '.join(stores)} are stores: leave it out")


def import_module(ctx: click.Context, param: click.Parameter, name: str | None) -> str | None:
    """Import the user's own module, also from this folder, so that it registers its classes."""
    if name is None or ctx.resilient_parsing:
        return name
    # The module may lie in the folder in which the program runs.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise click.BadParameter(f"cannot import {name}: {error}", ctx, param) from None
    return name


LABEL = data_option(
    "--label", metavar="NAME", help="Label column of a table; by default the last one."
)
OF_TABLES = (
    LABEL,
    data_option(
        "--columns",
        type=KINDS,
        default=(),
        help="Kinds of columns: zip=category,note=text,id=drop.",
    ),
    data_option(
        "--drop-columns",
        type=NAMES,
        default=(),
        rare=True,
        help="Columns to leave out, such as identifiers: id,name.",
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
        "zero_based",
        type=INDEX_BASE,
        default="auto",
        rare=True,
        help="The number of the first feature in LIBSVM text.",
    ),
)


def reading_options(*further: Decorator) -> Decorator:
    """Declare the options of reading; the command gets their values as `reading`.

    Parameters
    ----------
    *further : decorators
        Options whose parameters are fields of :class:`Reading`, too, such as ``--missing``.
    """

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call_with_reading(*given: Any, **options: Any) -> int:
            # The command sees these options as one value.
            fields = {name: options.pop(name) for name in READING_OPTIONS if name in options}
            reading = Reading(**fields)
            if isinstance(options.get("data"), list):
                check_stores(reading, options["data"])
            return int(function(*given, reading=reading, **options))

        return combine(*OF_TABLES, *further)(call_with_reading)

    return decorate


TRAINING_OPTIONS = combine(
    data_argument(),
    data_option("--test", type=DATA, help="Data to measure the error on."),
    data_option(
        "--validation",
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        metavar="SHARE",
        help="Hold out this share of the rows, as in 0.2.",
    ),
    reading_options(
        data_option(
            "--missing",
            type=click.Choice(MISSING_VALUES),
            metavar="HOW",
            rare=True,
            help="Missing values: error, drop (their rows), or fill in mean or median of the "
            "column.",
        )
    ),
    data_option("--standardize", is_flag=True, help="Scale features to mean 0 and variance 1."),
)
JSON = output_option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
REPORT_OPTION = output_option(
    "--report", type=REPORT, help="Write an HTML report with charts here."
)
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
    "--lambda",
    "lam",
    type=float,
    metavar="LAMBDA",
    rare=True,
    help="Lambda = 1 / (C n), in place of C.",
)
STRENGTH_OPTIONS = combine(
    model_option(
        "--C", "C", type=STRENGTH, help="The price of errors: a number, several (0.1,1,10) or auto."
    ),
    LAMBDA,
)
OF_KERNELS = (
    model_option(
        "--kernel",
        type=click.Choice(KERNEL_NAMES),
        metavar="NAME",
        help="A kernel machine: rbf, poly, sigmoid, laplacian, ...",
    ),
    model_option(
        "--gamma",
        type=GAMMA,
        rare=True,
        help="Parameter of the kernel: scale (default), auto, or numbers.",
    ),
    model_option(
        "--nu",
        type=float,
        rare=True,
        help="Train a nu machine: nu is the share of rows that may be margin errors.",
    ),
)
OF_MODELS = (
    model_option(
        "--loss", metavar="LOSS", help=f"{CLASSIFICATION_LOSSES}; for targets {REGRESSION_LOSSES}"
    ),
    model_option(
        "--penalty",
        type=click.Choice(PENALTY_NAMES),
        metavar="NAME",
        help="l2 (default); l1, elasticnet set weights to zero.",
    ),
    model_option(
        "--class-weight", metavar="WEIGHTS", help="balanced, or LABEL=FACTOR,LABEL=FACTOR."
    ),
    model_option(
        "--multi-class",
        type=click.Choice(MULTI_CLASS),
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
        "--epsilon",
        type=float,
        rare=True,
        help="Errors of a regression up to this size cost nothing.",
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
        help="A further parameter of the estimator, as in degree=2. May be repeated.",
    ),
    IMPORT,
    solving_option(
        "--max-time", type=float, metavar="SECONDS", help="Stop the fit after so many seconds."
    ),
    solving_option(
        "--max-iter",
        type=int,
        metavar="EPOCHS",
        rare=True,
        help="Stop the fit after so many epochs.",
    ),
    solving_option(
        "--solver",
        metavar="NAME",
        rare=True,
        help="auto, dcd, sdca, newton, pegasos:batch_size=64, ...; auto by default.",
    ),
    solving_option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        rare=True,
        help="Seed of the random choices.",
    ),
    solving_option(
        "--checkpoint", type=OUTPUT, help="Save the state of the fit here, and continue from it."
    ),
    solving_option("--n-jobs", type=int, metavar="N", help="Number of threads; -1 for all cores."),
    solving_option(
        "--memory", metavar="BYTES", help="Train block by block in this memory: 512M, 1.5G."
    ),
)


def model_options(*further: Decorator) -> Decorator:
    """Declare the options of a model; the command gets the given values as a dict, `asked`.

    Parameters
    ----------
    *further : decorators
        Options of the command that stand first in the help: C, or the ends of a path.
    """

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call_with_model(*given: Any, **options: Any) -> int:
            # Keep the options that were given, and leave the defaults to the estimator.
            asked = {}
            for name in MODEL_PARAMETERS:
                value = options.pop(name, None)
                if value not in (None, ()):
                    asked[name] = value
            return int(function(*given, asked=asked, **options))

        return combine(*further, *OF_MODELS)(call_with_model)

    return decorate


def write_flag(name: str) -> str:
    """Return the spelling of a parameter on the command line."""
    return "--lambda" if name == "lam" else f"--{name.replace('_', '-')}"
