"""``saddlesvm train``: read, fit, test, save, and print how good the model is."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import click

from saddlesvm.cli.command import declare, model_option, output_option, solving_option
from saddlesvm.cli.options import (
    JSON,
    OF_KERNELS,
    REPORT_OPTION,
    STRENGTH_OPTIONS,
    TRAINING_OPTIONS,
    model_options,
)
from saddlesvm.cli.values import DATA, OUTPUT
from saddlesvm.data.reading import Reading


@declare(
    examples=(
        "saddlesvm train heart --C auto --validation 0.2 --report heart.html",
        "saddlesvm train people.csv --label bought --model people.model",
    )
)
@TRAINING_OPTIONS
@model_options(
    STRENGTH_OPTIONS,
    *OF_KERNELS,
    solving_option(
        "--tol", type=float, metavar="GAP", help="Relative gap to prove; 1e-4 for linear models."
    ),
    model_option(
        "--cv",
        "folds",
        type=click.IntRange(min=2),
        metavar="FOLDS",
        rare=True,
        help="Choose among several values of C or gamma by so many folds; 5 by default.",
    ),
    model_option(
        "--probability",
        is_flag=True,
        default=None,
        rare=True,
        help="Fit probabilities to the scores of rows that were left out.",
    ),
)
@solving_option(
    "--until-proven",
    type=DATA,
    rare=True,
    help="Test data; continue the fit until it proves that the exact optimum predicts the same "
    "label for each row.",
)
@output_option("--model", "model_path", type=OUTPUT, help="Write the model here.")
@REPORT_OPTION
@output_option(
    "--liblinear", type=OUTPUT, rare=True, help="Write the model here as a LIBLINEAR text model."
)
@JSON
def command(
    *,
    data: str | list[str],
    test: str | None,
    validation: float | None,
    standardize: bool,
    folds: int | None,
    until_proven: str | None,
    reading: Reading,
    asked: dict[str, Any],
    **outputs: Any,
) -> int:
    """Train a model, and prove how far it is from the optimum."""
    from saddlesvm.cli import choice, models, results
    from saddlesvm.cli.facts import describe_fit
    from saddlesvm.cli.rows import labels_to_fit, read_rows

    # Check all options before the data are read.
    began = time.perf_counter()
    reading = replace(reading, memory=asked.get("memory"))
    entry = models.choose_entry(asked)
    folds = choice.choose_folds(asked, folds)
    pairwise = asked.get("kernel") == "precomputed"
    check_standardize(standardize, outputs["liblinear"], pairwise)
    if until_proven is not None:
        others = {"cv": folds, **asked}
        results.check_until_proven(entry, test, until_proven, others)
        test = until_proven
    rows = read_rows(
        data,
        reading,
        entry,
        test=test,
        validation=validation,
        standardize=standardize,
        pairwise=pairwise,
        seed=asked["seed"],
        quiet=outputs["as_json"],
    )
    y = labels_to_fit(rows.train, entry)
    model = models.make_estimator(asked, entry, y, quiet=outputs["as_json"])
    results.check_liblinear(model, outputs["liblinear"], entry, y, rows.has_words)

    # Fit by folds, or once.
    facts = rows.facts
    if folds is not None:
        model, facts["cross_validation"] = choice.choose_by_folds(model, asked, folds, rows, y)
        facts["fit"] = describe_fit(model, rows.train)
    else:
        model.fit(rows.train.X, y, rows.train.sample_weight)
        facts["fit"] = describe_fit(model, rows.train)
    facts["quality"] = results.measure_quality(
        model, rows, y, until_proven is not None, standardize
    )
    facts |= results.explain_hard_fit(model, rows.train, entry, standardize)
    return results.finish(model, facts, outputs, began, rows)


def check_standardize(standardize: bool, liblinear: str | None, pairwise: bool) -> None:
    """Raise ValueError for options that do not work with scaled features."""
    if not standardize:
        return
    if liblinear is not None:
        raise ValueError(
            "--liblinear files do not hold how features were scaled: leave --standardize out, or "
            "save the model with --model"
        )
    if pairwise:
        raise ValueError(
            "--standardize does not work with --kernel precomputed: scale the features before the "
            "kernel is computed"
        )
