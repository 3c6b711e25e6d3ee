"""``saddlesvm certify``: how far a saved model is from the optimum on some data."""

from __future__ import annotations

from typing import Any

import click

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.command import declare, option
from saddlesvm.cli.options import IMPORT, JSON, LAMBDA, Reading, data_argument, reading_options
from saddlesvm.cli.values import MODEL
from saddlesvm.data.errors import DataError


@declare(
    examples=(
        "saddlesvm certify data.model data.csv",
        "saddlesvm certify liblinear.model data.svm --C 1 --refine 20 --tol 1e-3",
    )
)
@click.argument("model_path", type=MODEL, metavar="MODEL")
@data_argument()
@option("--C", "C", type=float, help="Weight of the losses, in place of the model's own.")
@LAMBDA
@option("--refine", type=int, default=0, metavar="EPOCHS", help="Epochs of dual ascent that tighten the bound.")
@option("--tol", type=float, metavar="GAP", help="Exit with 3 unless the relative gap is at most this.")
@IMPORT
@reading_options()
@JSON
def command(
    *,
    model_path: str,
    data: str | list[str],
    C: float | None,
    lam: float | None,
    refine: int,
    tol: float | None,
    reading: Reading,
    as_json: bool,
) -> int:
    """Prove how far a model is from the optimum on some data."""
    from saddlesvm.cli.facts import describe_certificate, describe_data
    from saddlesvm.cli.rows import kind_of, load_model
    from saddlesvm.cli.show import Facts, show
    from saddlesvm.estimators.certify import certify_model, compare_with_fit, describe_finding
    from saddlesvm.estimators.preparation import labels_of
    from saddlesvm.kernel.certify_kernel import kernel_certificates
    from saddlesvm.problem.certificate import Certificate

    model, preparation = load_model(model_path)
    entry = kind_of(model)
    if not entry.linear and (refine or C is not None or lam is not None):
        raise DataError(f"{model_path}: --refine, --C and --lambda are for linear models")

    table = preparation.read(data, task="regression" if entry.task == "regression" else None, **vars(reading))
    y = None if entry.task == "novelty" else labels_of(table)
    if entry.linear:
        certificates = certify_model(model, table.X, y, sample_weight=table.sample_weight, refine=refine, C=C, lam=lam)
    else:
        certificates = kernel_certificates(model, table.X, y, sample_weight=table.sample_weight)
    total = Certificate.total(certificates)

    difference = compare_with_fit(model, table.X, y) if entry.linear else ""
    facts: Facts = {
        "found": describe_finding(model, difference, total),
        "certified": state_problem(model, C, lam),
        "quality": describe_certificate(model, total),
        "data": describe_data(table),
    }
    if len(certificates) > 1:
        facts["quality"]["largest_relative_gap"] = max(one.relative_gap for one in certificates)
    show(facts, as_json)
    is_missed = tol is not None and total.relative_gap > tol
    return NOT_CERTIFIED if is_missed or difference else OK


def state_problem(model: Any, C: float | None, lam: float | None) -> dict[str, Any]:
    """The problem of which a model is certified to be near the optimum."""
    from sklearn.base import clone

    from saddlesvm.cli.facts import name_problem

    if C is not None or lam is not None:
        posed = clone(model).set_params(C=1.0 if C is None else C, lam=lam)
        return {"problem": name_problem(posed)}
    facts = {"problem": name_problem(model)}
    if str(model.notes_.get("written by", "")).startswith("LIBLINEAR"):
        facts["note"] = "files of LIBLINEAR do not hold C: C = 1 is assumed; give --C or --lambda"
    return facts
