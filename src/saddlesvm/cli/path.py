"""``saddlesvm path``: fit every C between two ends with a proof, and choose one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.command import declare, model_option, output_option, solving_option
from saddlesvm.cli.options import JSON, REPORT_OPTION, TRAINING_OPTIONS, model_options
from saddlesvm.cli.values import ENDS, OUTPUT
from saddlesvm.data.reading import Reading

if TYPE_CHECKING:
    import numpy as np

    from saddlesvm.cli.rows import Rows
    from saddlesvm.estimators.base import Estimator
    from saddlesvm.estimators.certified_path import CertifiedPath
    from saddlesvm.estimators.path import RegularizationPath

    Path = CertifiedPath | RegularizationPath

VALUES_SHOWN = 9  # values of C in the table: one or two for each power of ten between the ends
VALUES_ESTIMATED = 13  # values of C whose leave-one-out error is estimated, each by a fit

# By the name of the rows: values of C, and the error at each of them.
Errors = dict[str, tuple["np.ndarray", "np.ndarray"]]


@declare(
    examples=(
        "saddlesvm path heart --leave-one-out --report heart-path.html",
        "saddlesvm path data.csv --C 0.01,100 --tol 1e-3 --validation 0.2 --model data.model",
    )
)
@TRAINING_OPTIONS
@solving_option(
    "--tol", type=float, metavar="GAP", help="Relative gap to prove for every C; 0.01 by default."
)
@model_option("--C", "ends", type=ENDS, help="Smallest and largest C; 1e-3,1e3 by default.")
@model_option(
    "--lambda",
    "lam",
    type=ENDS,
    rare=True,
    help="Smallest and largest lambda = 1 / (C n), in place of C.",
)
@model_option(
    "--leave-one-out", is_flag=True, help="Choose C by the estimated leave-one-out error."
)
@model_options()
@output_option("--model", "model_path", type=OUTPUT, help="Write the model of the chosen C here.")
@REPORT_OPTION
@JSON
def command(
    *,
    data: str,
    test: str | None,
    validation: float | None,
    standardize: bool,
    tol: float | None,
    ends: tuple[float, float] | None,
    lam: tuple[float, float] | None,
    leave_one_out: bool,
    reading: Reading,
    asked: dict[str, Any],
    model_path: str | None,
    report: str | None,
    as_json: bool,
) -> int:
    """Fit every C between two ends with a proof, and choose one."""
    from saddlesvm.cli.models import choose_entry, make_estimator
    from saddlesvm.cli.rows import read_rows, save_model
    from saddlesvm.cli.show import show
    from saddlesvm.estimators.training_data import labels_of
    from saddlesvm.fit.outcome import Outcome

    entry = choose_entry(asked)
    if not entry.linear:
        raise ValueError(f"path is for linear models; in Python, {entry.name} has a path, too")
    # Fit the path, and measure its errors.
    rows = read_rows(
        data,
        replace(reading, memory=asked.get("memory")),
        entry,
        test=test,
        validation=validation,
        standardize=standardize,
        seed=asked["seed"],
        quiet=as_json,
    )
    y = labels_of(rows.train)
    template = make_estimator(asked, entry, y, quiet=as_json)
    path = fit_path(template, rows, y, ends, lam, tol)
    errors = measure_errors(path, rows, leave_one_out)
    chosen = choose_C(errors)

    # What is printed, and the files.
    facts = rows.facts | {"path": describe_path(path, errors)}
    if chosen is not None:
        facts["chosen"] = {"C": chosen} | errors_at(errors, chosen)
    written = {}
    if model_path is not None:
        model = path.model(float(path.Cs[-1]) if chosen is None else chosen)
        save_model(model, rows, model_path)
        written["model"] = model_path
    if report is not None:
        write_report(path, rows, errors, chosen, report)
        written["report"] = report
    if written:
        facts["written"] = written
    show(facts, as_json)
    return OK if path.outcome is Outcome.CERTIFIED else NOT_CERTIFIED


def fit_path(
    template: Estimator,
    rows: Rows,
    y: np.ndarray,
    ends: tuple[float, float] | None,
    lambdas: tuple[float, float] | None,
    tol: float | None,
) -> Path:
    """Fit every C between two ends; a grid of C if the penalty sets weights to zero."""
    import numpy as np

    from saddlesvm.estimators.path import takes_features
    from saddlesvm.estimators.register import GAP, GRID

    # The path sets C, lambda and the gap itself.
    options = template.get_params(deep=False)
    for name in ("C", "lam", "gap"):
        options.pop(name, None)
    options["sample_weight"] = rows.train.sample_weight
    gap = GAP if tol is None else tol

    if takes_features(template):
        if lambdas is not None:
            raise ValueError(
                f"a path with --penalty {template.penalty} goes over C: give --C LOW,HIGH, not "
                "--lambda"
            )
        options["tol"] = gap
        Cs = GRID if ends is None else np.geomspace(*ends, GRID)
        return template.path(rows.train.X, y, Cs=Cs, **options)
    if ends is not None:
        options["C"] = ends
    if lambdas is not None:
        options["lam"] = lambdas
    return template.path(rows.train.X, y, gap=gap, **options)


def measure_errors(path: Path, rows: Rows, leave_one_out: bool) -> Errors:
    """Return the errors along the path: on held-out rows, of leave-one-out, on test rows."""
    import numpy as np

    from saddlesvm.estimators import leave_one_out as estimates
    from saddlesvm.estimators.training_data import labels_of

    errors: Errors = {}
    grid = path.grid()
    if rows.validation is not None:
        # Held-out rows and test rows are scored by the models of the path, without further fits.
        scores = path.score(rows.validation.X, labels_of(rows.validation), grid)
        errors["validation"] = (grid, 1.0 - scores)
    if leave_one_out:
        # Leave-one-out is estimated at fewer values of C: each needs the curvature of its model.
        Cs = path.grid(VALUES_ESTIMATED)
        train = rows.train
        error = np.full(len(Cs), np.nan)
        for k, C in enumerate(Cs):
            found = estimates.leave_one_out(path.model(C), train.X, train.y, train.sample_weight)
            if found.trusted:
                error[k] = found.error
        is_known = np.isfinite(error)
        if is_known.any():
            errors["leave_one_out"] = (Cs[is_known], error[is_known])
    if rows.test is not None:
        scores = path.score(rows.test.X, labels_of(rows.test), grid)
        errors["test"] = (grid, 1.0 - scores)
    return errors


def choose_C(errors: Errors) -> float | None:
    """Return the C with the least error on held-out rows, else of leave-one-out; never of tests."""
    for name in ("validation", "leave_one_out"):
        if name in errors:
            grid, error = errors[name]
            return float(grid[error.argmin()])
    return None


def errors_at(errors: Errors, C: float) -> dict[str, float]:
    """Return each error at C, interpolated between its neighbours on the grid."""
    import numpy as np

    return {
        f"{name}_error": float(np.interp(np.log(C), np.log(grid), error))
        for name, (grid, error) in errors.items()
    }


def describe_path(path: Path, errors: Errors) -> dict[str, object]:
    """Return facts of the fits, and a table of some values of C."""
    import numpy as np

    from saddlesvm.estimators.certified_path import CertifiedPath

    facts: dict[str, Any] = {
        "fits": int(path.Cs.size),
        "c_from": float(path.Cs[0]),
        "c_to": float(path.Cs[-1]),
        "seconds": float(np.sum(path.seconds)),
        "proven_relative_gap": path.proven_gap,
        "proven_for": "every C between the ends" if path.every_C else "each C of the grid",
        "outcome": str(path.outcome),
    }
    grid = path.Cs
    n_selected = None
    # A certified path has a model for every C between the ends, a grid for its own C only.
    if isinstance(path, CertifiedPath):
        grid = path.grid(VALUES_SHOWN)
        unproven = [f"C from {low:.4g} to {high:.4g}" for low, high in path.unproven]
        facts["not_proven"] = unproven or None
    else:
        n_selected = path.n_features_selected
    table = []
    for k, C in enumerate(grid):
        line = {"C": float(C), "relative_gap": path.certificate(C).relative_gap}
        if n_selected is not None:
            line["features_with_a_weight"] = int(n_selected[k])
        table.append(line | errors_at(errors, C))
    return facts | {"values": table}


def write_report(path: Path, rows: Rows, errors: Errors, chosen: float | None, report: str) -> None:
    """Write the HTML report."""
    from saddlesvm.cli.console import command_line
    from saddlesvm.lab.displays import PathDisplay
    from saddlesvm.lab.reports import path_report

    facts = [
        ("rows", f"{rows.train.n_rows:,}"),
        ("features", f"{rows.train.n_features:,}"),
        ("proven gap", f"{path.proven_gap:.3g}"),
    ]
    titles = {"leave_one_out": "leave-one-out (estimated)"}
    named = {titles.get(name, name): found for name, found in errors.items()}
    display = PathDisplay(path, named, chosen, rows.train.feature_names or None)
    path_report(display, str(rows.train.source), facts, command_line()).write(report)
