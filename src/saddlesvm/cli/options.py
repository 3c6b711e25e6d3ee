"""The options that several commands share, declared once.

An option means the same as the parameter of the same name in Python. An option that is not given is
None, and the estimator keeps its own default.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from saddlesvm.cli.command import combine
from saddlesvm.cli.values import DATA, KINDS, SETTING
from saddlesvm.data.reading import Reading
from saddlesvm.runtime.option_names import INTERCEPTS, MISSING_VALUES, PENALTY_NAMES

CLASSIFICATION_LOSSES = "squared_hinge (default), hinge, logistic"
REGRESSION_LOSSES = "epsilon_insensitive, squared, huber, ..."
# Words of the command line for values of `Reading`.
HEADERS = {"auto": "auto", "yes": True, "no": False}
INDEX_BASES = {"auto": "auto", "0": True, "1": False}

DATA_ARGUMENT = click.argument("data", type=DATA, metavar="DATA")


def take_reading(given: dict[str, Any]) -> Reading:
    """Return how the rows are read, and take its options out of those of a command."""
    # Columns to leave out have a field of their own, so that the other columns may be numbers.
    kinds = given.pop("columns")
    return Reading(
        label=given.pop("label"),
        header=HEADERS[given.pop("header")],  # type: ignore[arg-type]
        zero_based=INDEX_BASES[given.pop("zero_based")],  # type: ignore[arg-type]
        missing=given.pop("missing", None),
        drop_columns=tuple(name for name, kind in kinds if kind == "drop"),
        columns=tuple(pair for pair in kinds if pair[1] != "drop"),
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


LABEL = click.option(
    "--label", metavar="NAME", help="Label column of a table; by default the last one."
)


# :func:`take_reading` takes their values.
READING_OPTIONS = combine(
    LABEL,
    click.option(
        "--columns",
        type=KINDS,
        default=(),
        help="Kinds of columns: zip=category,note=text,id=drop.",
    ),
    click.option(
        "--header",
        type=click.Choice(list(HEADERS)),
        default="auto",
        metavar="HOW",
        help="The first line has names: yes, no or auto (default).",
    ),
    click.option(
        "--index-base",
        "zero_based",
        type=click.Choice(list(INDEX_BASES)),
        default="auto",
        metavar="N",
        help="First index in LIBSVM text: 0, 1 or auto (default).",
    ),
)
TRAINING_OPTIONS = combine(
    DATA_ARGUMENT,
    click.option("--test", type=DATA, help="Data to measure the error on."),
    click.option(
        "--validation",
        type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
        metavar="SHARE",
        help="Hold out this share of the rows.",
    ),
    READING_OPTIONS,
    click.option(
        "--missing",
        type=click.Choice(MISSING_VALUES),
        metavar="HOW",
        help="Missing values: error, drop, mean or median.",
    ),
    click.option("--standardize", is_flag=True, help="Scale features to mean 0 and variance 1."),
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
IMPORT = click.option(
    "--import",
    "imported",
    metavar="MODULE",
    callback=import_module,
    expose_value=False,
    help="Your Python module of losses or estimators.",
)
LAMBDA = click.option(
    "--lambda", "lam", type=float, metavar="LAMBDA", help="Lambda = 1 / (C n), in place of C."
)
# Those that were given are parameters of the estimator, see :func:`keep_given`.
MODEL_OPTIONS = combine(
    click.option(
        "--loss", metavar="LOSS", help=f"{CLASSIFICATION_LOSSES}; for targets {REGRESSION_LOSSES}"
    ),
    click.option(
        "--penalty",
        type=click.Choice(PENALTY_NAMES),
        metavar="NAME",
        help="l2 (default); l1, elasticnet set weights to zero.",
    ),
    click.option(
        "--class-weight", metavar="WEIGHTS", help="balanced, or LABEL=FACTOR,LABEL=FACTOR."
    ),
    click.option(
        "--intercept",
        type=click.Choice(INTERCEPTS),
        metavar="KIND",
        help="regularized (default), free or none.",
    ),
    click.option(
        "--estimator", metavar="NAME", help="LinearSVC, LinearSVR, SVC, NuSVC, ..., or your own."
    ),
    click.option(
        "--set",
        "settings",
        type=SETTING,
        multiple=True,
        help="Any other parameter: --set max_time=60.",
    ),
    IMPORT,
    click.option(
        "--seed",
        type=click.IntRange(0, 2**32 - 1),
        default=0,
        metavar="N",
        help="Random seed; 0 by default.",
    ),
    click.option("--n-jobs", type=int, metavar="N", help="Number of threads; -1 for all cores."),
    click.option(
        "--memory", metavar="BYTES", help="Train block by block in this memory, as in 512M."
    ),
)
