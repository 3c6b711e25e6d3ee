"""The options that several commands share, declared once.

An option means the same as the parameter of the same name in Python. An option that is not given is
None, and the estimator keeps its own default.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
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
from saddlesvm.cli.values import DATA, KINDS, OUTPUT, REPORT, SETTING
from saddlesvm.data.reading import Reading
from saddlesvm.runtime.option_names import INTERCEPTS, MISSING_VALUES, MULTI_CLASS, PENALTY_NAMES

CLASSIFICATION_LOSSES = "squared_hinge (default), hinge, logistic"
REGRESSION_LOSSES = "epsilon_insensitive, squared, huber, ..."
# Words of the command line for values of `Reading`.
HEADERS = {"auto": "auto", "yes": True, "no": False}
INDEX_BASES = {"auto": "auto", "0": True, "1": False}


def data_argument() -> Decorator:
    """Declare the argument DATA, a source."""
    return click.argument("data", type=DATA, metavar="DATA")


def gather(name: str, make: Callable[[dict[str, Any]], object], *options: Decorator) -> Decorator:
    """Declare options whose values the command gets as one argument.

    Parameters
    ----------
    name : str
        The name of the argument.
    make : callable
        Makes its value of the values of the options by name.
    *options : decorators
    """

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call(**values: Any) -> int:
            given = {option: values.pop(option) for option in gathered}
            return int(function(**{name: make(given)}, **values))

        # Click keeps the options of a function in a list, the last one first.
        before = len(getattr(call, "__click_params__", ()))
        declared = combine(*options)(call)
        gathered = [
            str(option.name) for option in declared.__click_params__[before:] if option.expose_value
        ]
        return declared

    return decorate


def make_reading(given: dict[str, Any]) -> Reading:
    """Return how the rows are read."""
    # Columns to leave out have a field of their own, so that the other columns may be numbers.
    kinds = given.pop("columns")
    dropped = tuple(name for name, kind in kinds if kind == "drop")
    return Reading(
        columns=tuple(pair for pair in kinds if pair[1] != "drop"),
        drop_columns=dropped,
        header=HEADERS[given.pop("header")],  # type: ignore[arg-type]
        zero_based=INDEX_BASES[given.pop("zero_based")],  # type: ignore[arg-type]
        **given,
    )


def keep_given(given: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the options that were given."""
    return {name: value for name, value in given.items() if value not in (None, ())}


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


def reading_options(*further: Decorator) -> Decorator:
    """Declare the options of reading; the command gets their values as `reading`.

    Parameters
    ----------
    *further : decorators
        Options whose parameters are fields of :class:`Reading`, too, such as ``--missing``.
    """
    return gather(
        "reading",
        make_reading,
        LABEL,
        data_option(
            "--columns",
            type=KINDS,
            default=(),
            help="Kinds of columns: zip=category,note=text,id=drop.",
        ),
        data_option(
            "--header",
            type=click.Choice(list(HEADERS)),
            default="auto",
            rare=True,
            help="Whether the first line of a table has names; auto finds out.",
        ),
        data_option(
            "--index-base",
            "zero_based",
            type=click.Choice(list(INDEX_BASES)),
            default="auto",
            rare=True,
            help="The number of the first feature in LIBSVM text.",
        ),
        *further,
    )


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
        help="Any other parameter: epsilon=0.1 (repeatable).",
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
    return gather("asked", keep_given, *further, *OF_MODELS)


def write_flag(name: str) -> str:
    """Return the spelling of a parameter on the command line."""
    return "--lambda" if name == "lam" else f"--{name.replace('_', '-')}"
