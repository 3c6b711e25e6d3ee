"""``saddlesvm certify``: how far a saved model is from the optimum on some data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.command import declare
from saddlesvm.cli.options import DATA_ARGUMENT, IMPORT, JSON, LAMBDA, READING_OPTIONS, take_reading
from saddlesvm.cli.values import MODEL
from saddlesvm.data.errors import DataError

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator


@declare(
    "saddlesvm certify data.model data.csv",
    "saddlesvm certify liblinear.model data.svm --C 1 --refine 20 --tol 1e-3",
)
@click.argument("model_path", type=MODEL, metavar="MODEL")
@DATA_ARGUMENT
@click.option("--C", "C", type=float, help="The price of errors, in place of the model's own C.")
@LAMBDA
@click.option(
    "--refine",
    type=int,
    default=0,
    metavar="EPOCHS",
    help="Tighten the bound by so many epochs of dual ascent.",
)
@click.option(
    "--tol", type=float, metavar="GAP", help="Exit with 3 if the relative gap is larger than this."
)
@IMPORT
@READING_OPTIONS
@JSON
def command(
    *,
    model_path: str,
    data: str,
    C: float | None,
    lam: float | None,
    refine: int,
    tol: float | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Prove how far a model is from the optimum on some data."""
    from saddlesvm.cli.facts import describe_certificate, describe_data
    from saddlesvm.cli.rows import find_entry, load_model
    from saddlesvm.cli.show import Facts, show
    from saddlesvm.estimators.certify import certify_model, describe_finding
    from saddlesvm.estimators.training_data import labels_of
    from saddlesvm.kernel.certify_kernel import kernel_certificates
    from saddlesvm.problem.certificate import Certificate

    model, preparation = load_model(model_path)
    entry = find_entry(model)
    if not entry.linear and (refine or C is not None or lam is not None):
        raise DataError(
            f"{model_path}: is a {entry.name}; --refine, --C and --lambda are for linear models: "
            "leave them out"
        )

    # The certificates of the sub-problems, on these data with the model's or the given C.
    table = preparation.read(data, take_reading(given))
    y = None if entry.task == "novelty" else labels_of(table)
    weights = table.sample_weight
    if entry.linear:
        certificates = certify_model(
            model, table.X, y, sample_weight=weights, refine=refine, C=C, lam=lam
        )
    else:
        certificates = kernel_certificates(model, table.X, y, sample_weight=weights)
    total = Certificate.total(certificates)

    # The result stands first.
    facts: Facts = {
        "found": {"result": describe_finding(total)},
        "certified": state_problem(model, C, lam),
        "quality": describe_certificate(model, total),
        "data": describe_data(table),
    }
    if len(certificates) > 1:
        gaps = [certificate.relative_gap for certificate in certificates]
        facts["quality"]["largest_relative_gap"] = max(gaps)
    is_missed = tol is not None and total.relative_gap > tol
    if tol is not None:
        answer = "not proven" if is_missed else "proven"
        facts["found"]["asked_for"] = f"a relative gap of at most {tol:g}: {answer}"
    show(facts, as_json)
    return NOT_CERTIFIED if is_missed else OK


def state_problem(model: Estimator, C: float | None, lam: float | None) -> dict[str, Any]:
    """Return the problem whose optimum the model is compared with."""
    from sklearn.base import clone

    from saddlesvm.cli.facts import name_problem

    if C is not None or lam is not None:
        posed = clone(model).set_params(C=1.0 if C is None else C, lam=lam)
        return {"problem": name_problem(posed)}
    facts = {"problem": name_problem(model)}
    if str(model.notes_.get("written by", "")).startswith("LIBLINEAR"):
        facts["note"] = (
            "files of LIBLINEAR do not hold C, so C = 1 is assumed: give --C or --lambda"
        )
    return facts
