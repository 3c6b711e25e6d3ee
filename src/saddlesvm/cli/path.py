"""``saddlesvm path``: fit every C between two ends with a proof, and choose one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.command import declare
from saddlesvm.cli.options import JSON, MODEL_OPTIONS, TRAINING_OPTIONS, keep_given, take_reading
from saddlesvm.cli.values import ENDS, OUTPUT

if TYPE_CHECKING:
    import numpy as np

    from saddlesvm.cli.rows import Rows
    from saddlesvm.estimators.certified_path import CertifiedPath

VALUES_SHOWN = 9  # values of C in the table: one or two for each power of ten between the ends

# By the name of the rows: values of C, and the error at each of them.
Errors = dict[str, tuple["np.ndarray", "np.ndarray"]]


@declare(
    "saddlesvm path heart --loss logistic",
    "saddlesvm path data.csv --C 0.01,100 --tol 1e-3 --validation 0.2 --model data.model",
)
@TRAINING_OPTIONS
@click.option(
    "--tol",
    "gap",
    type=float,
    metavar="GAP",
    help="Relative gap to prove; 0.01 by default.",
)
@click.option("--C", "ends", type=ENDS, help="Smallest and largest C; 1e-3,1e3 by default.")
@click.option(
    "--lambda",
    "lam",
    type=ENDS,
    help="Smallest and largest lambda = 1 / (C n), in place of C.",
)
@MODEL_OPTIONS
@click.option("--model", "model_path", type=OUTPUT, help="Write the model of the chosen C here.")
@JSON
def command(
    *,
    data: str,
    test: str | None,
    validation: float | None,
    standardize: bool,
    gap: float | None,
    ends: tuple[float, float] | None,
    lam: tuple[float, float] | None,
    model_path: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Fit every C between two ends with a proof, and choose one by held-out rows."""
    from saddlesvm.cli.models import choose_entry, make_estimator
    from saddlesvm.cli.rows import read_rows, save_model
    from saddlesvm.cli.show import show
    from saddlesvm.estimators.C_range import GAP
    from saddlesvm.estimators.columns import import_skops
    from saddlesvm.estimators.training_data import labels_of
    from saddlesvm.fit.outcome import Outcome

    reading = take_reading(given)
    asked = keep_given(given)
    entry = choose_entry(asked)
    # Say before the fits that the model cannot be saved.
    if standardize and model_path is not None:
        import_skops()
    if not entry.linear:
        raise ValueError(f"path is for linear models, which {entry.name} is not")
    # Fit the path, and measure its errors.
    rows = read_rows(
        data,
        reading,
        entry,
        test=test,
        validation=validation,
        standardize=standardize,
        seed=asked["seed"],
        quiet=as_json,
    )
    y = labels_of(rows.train)
    if gap is None:
        gap = GAP
    template = make_estimator(asked, entry, y, quiet=as_json)
    path = template.path(
        rows.train.X, y, C=ends, lam=lam, gap=gap, sample_weight=rows.train.sample_weight
    )
    errors = measure_errors(path, rows)
    chosen = None
    if "validation" in errors:
        grid, error = errors["validation"]
        chosen = float(grid[error.argmin()])

    # What is printed, and the model.
    facts = rows.facts | {"path": describe_path(path, errors)}
    if chosen is not None:
        facts["chosen"] = {"C": chosen} | errors_at(errors, chosen)
    if model_path is not None:
        model = path.model(float(path.Cs[-1]) if chosen is None else chosen)
        save_model(model, rows, model_path)
        facts["written"] = {"model": model_path}
    show(facts, as_json)
    return OK if path.outcome is Outcome.CERTIFIED else NOT_CERTIFIED


def measure_errors(path: CertifiedPath, rows: Rows) -> Errors:
    """Return the errors along the path, on held-out rows and on test rows."""
    from saddlesvm.estimators.training_data import labels_of

    errors: Errors = {}
    grid = path.grid()
    for name, part in (("validation", rows.validation), ("test", rows.test)):
        if part is not None:
            errors[name] = (grid, 1.0 - path.score(part.X, labels_of(part), grid))
    return errors


def errors_at(errors: Errors, C: float) -> dict[str, float]:
    """Return each error at C, interpolated between its neighbours on the grid."""
    import numpy as np

    return {
        f"{name}_error": float(np.interp(np.log(C), np.log(grid), error))
        for name, (grid, error) in errors.items()
    }


def describe_path(path: CertifiedPath, errors: Errors) -> dict[str, object]:
    """Return facts of the fits, and a table of some values of C."""
    unproven = [f"C from {low:.4g} to {high:.4g}" for low, high in path.unproven]
    facts: dict[str, Any] = {
        "fits": int(path.Cs.size),
        "c_from": float(path.Cs[0]),
        "c_to": float(path.Cs[-1]),
        "seconds": path.seconds,
        "proven_relative_gap": path.proven_gap,
        "outcome": str(path.outcome),
        "not_proven": unproven or None,
    }
    facts["values"] = [
        {"C": float(C), "relative_gap": path.certificate(C).relative_gap} | errors_at(errors, C)
        for C in path.grid(VALUES_SHOWN)
    ]
    return facts
