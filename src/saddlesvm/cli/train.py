"""``saddlesvm train``: read, fit, test, save, and say how good the model is."""

from __future__ import annotations

import time
from typing import Any

import click

from saddlesvm.cli.command import data_option, declare, model_option, output_option, solving_option
from saddlesvm.cli.options import (
    JSON,
    MISSING,
    OF_KERNELS,
    STRENGTH_OPTIONS,
    Reading,
    data_argument,
    model_options,
    reading_options,
)
from saddlesvm.cli.values import DATA, OUTPUT, REPORT, SHARE


@declare(
    examples=(
        "saddlesvm train heart --C auto --validation 0.2 --report heart.html",
        "saddlesvm train people.csv --label bought --model people.model",
    )
)
@data_argument()
@data_option("--test", type=DATA, help="Data to test the model on.")
@data_option("--validation", type=SHARE, help="Hold this share of the rows out for a test: 0.2.")
@reading_options(MISSING)
@data_option("--standardize", is_flag=True, help="Scale features to mean 0 and variance 1.")
@model_options(
    STRENGTH_OPTIONS,
    *OF_KERNELS,
    solving_option("--tol", type=float, metavar="GAP", help="Relative gap to prove; 1e-4 for linear models."),
    model_option(
        "--cv",
        "folds",
        type=click.IntRange(min=2),
        metavar="FOLDS",
        rare=True,
        help="Choose among several values of C or gamma by so many folds; 5 by default.",
    ),
    model_option(
        "--probability", is_flag=True, default=None, rare=True, help="Fit probabilities to the scores of rows left out."
    ),
)
@solving_option(
    "--until-proven",
    type=DATA,
    rare=True,
    help="Test data; go on until each of their labels is proven to be the exact optimum's.",
)
@solving_option("--dask", metavar="local:N|ADDRESS", rare=True, help="Train on N processes here, or on a Dask cluster.")
@output_option("--model", "model_path", type=OUTPUT, help="Write the model here.")
@output_option("--report", type=REPORT, help="Write an HTML report with charts here.")
@output_option("--liblinear", type=OUTPUT, rare=True, help="Write the model here as a LIBLINEAR text model.")
@JSON
def command(
    *,
    data: str | list[str],
    test: str | None,
    validation: float | None,
    standardize: bool,
    folds: int | None,
    until_proven: str | None,
    dask: str | None,
    reading: Reading,
    asked: dict[str, Any],
    **outputs: Any,
) -> int:
    """Train a model, and prove how far it is from the optimum."""
    from saddlesvm.cli import choice, cluster, models, results
    from saddlesvm.cli.rows import labels_to_fit, read_rows

    # Everything that can be refused is refused before the data are read.
    began = time.perf_counter()
    reading.memory = asked.get("memory")
    entry = models.choose_kind(asked)
    folds = choice.settle_folds(asked, folds)
    pairwise = asked.get("kernel") == "precomputed"
    check_standardize(standardize, outputs["liblinear"], dask, pairwise)
    if until_proven is not None:
        results.check_until_proven(entry, test, until_proven, {"cv": folds, "dask": dask, **asked})
        test = until_proven
    cluster.check_dask(dask, asked, folds, entry)
    if dask is not None and isinstance(data, list):
        reading.check_stores(data, {"--validation": validation})
        return cluster.train_on_stores(data, test, entry, asked, folds, dask, outputs, began)

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
    facts = rows.facts
    if dask is not None:
        weighted = (rows.train.X, y, rows.train.sample_weight)
        model, found = cluster.fit_on_cluster(model, weighted, asked, folds, dask)
        facts |= found
    else:
        if folds is None:
            model.fit(rows.train.X, y, rows.train.sample_weight)
        else:
            model, facts["cross_validation"] = choice.choose_by_folds(model, asked, folds, rows, y)
        facts["fit"] = results.describe_fit(model, rows.train)
    facts["quality"] = results.judge(model, rows, y, until_proven is not None, standardize)
    facts |= results.find_what_was_hard(model, rows.train, entry, standardize)
    return results.finish(model, facts, outputs, began, rows)


def check_standardize(standardize: bool, liblinear: str | None, dask: str | None, pairwise: bool) -> None:
    """Raise ValueError for options that do not go with scaled features."""
    if not standardize:
        return
    if liblinear is not None:
        raise ValueError("--liblinear files hold no scaling of the features: leave --standardize out")
    for other, given in (("--dask", dask is not None), ("--kernel precomputed", pairwise)):
        if given:
            raise ValueError(f"--standardize does not work with {other}: scale the features before")
