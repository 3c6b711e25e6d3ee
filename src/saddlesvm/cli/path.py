"""``saddlesvm path``: every C between two ends, fitted with a proof, and one of them chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.command import data_option, declare, model_option, output_option, solving_option
from saddlesvm.cli.options import JSON, MISSING, Reading, data_argument, model_options, reading_options
from saddlesvm.cli.values import DATA, ENDS, OUTPUT, REPORT, SHARE

if TYPE_CHECKING:
    import numpy as np

    from saddlesvm.cli.rows import Rows
    from saddlesvm.estimators.certified_path import CertifiedPath
    from saddlesvm.estimators.path import RegularizationPath

    Path = CertifiedPath | RegularizationPath

SHOWN = 9  # values of C in the table
ESTIMATED = 13  # values of C whose leave-one-out error is estimated


@declare(
    examples=(
        "saddlesvm path heart --leave-one-out --report heart-path.html",
        "saddlesvm path data.csv --C 0.01,100 --tol 1e-3 --validation 0.2 --model data.model",
    )
)
@data_argument()
@data_option("--test", type=DATA, help="Data to measure the error of every C on.")
@data_option("--validation", type=SHARE, help="Hold this share of the rows out; they choose C.")
@reading_options(MISSING)
@data_option("--standardize", is_flag=True, help="Scale features to mean 0 and variance 1.")
@model_options(
    solving_option("--tol", type=float, metavar="GAP", help="Relative gap to prove for every C; 0.01 by default."),
    model_option("--C", "ends", type=ENDS, help="Smallest and largest C; 1e-3,1e3 by default."),
    model_option("--lambda", "lam", type=ENDS, rare=True, help="The same in lambda = 1 / (C n)."),
    model_option("--leave-one-out", is_flag=True, help="Choose C by the error of training rows left out."),
)
@output_option("--model", "model_path", type=OUTPUT, help="Write the model of the chosen C here.")
@output_option("--report", type=REPORT, help="Write an HTML report with charts here.")
@JSON
def command(
    *,
    data: str | list[str],
    test: str | None,
    validation: float | None,
    standardize: bool,
    ends: tuple[float, float] | None,
    leave_one_out: bool,
    reading: Reading,
    asked: dict[str, Any],
    model_path: str | None,
    report: str | None,
    as_json: bool,
) -> int:
    """Fit every C between two ends with a proof, and choose one."""
    from saddlesvm.cli.models import choose_kind, make_estimator
    from saddlesvm.cli.rows import read_rows
    from saddlesvm.cli.show import show
    from saddlesvm.estimators.preparation import labels_of
    from saddlesvm.fit.outcome import Outcome
    from saddlesvm.models import persistence

    in_lambda = asked.pop("lam", None)
    tol = asked.pop("tol", None)
    reading.memory = asked.get("memory")
    entry = choose_kind(asked)
    if not entry.linear:
        raise ValueError(f"path is for linear models; {entry.name} has a path in Python only")
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
    template = make_estimator(asked, entry, y, quiet=as_json)
    path = fit(template, rows, y, ends or in_lambda, tol, in_lambda is not None)
    errors = measure_errors(path, rows, leave_one_out)
    chosen = choose(errors)

    facts = rows.facts | {"path": describe(path, errors)}
    if chosen is not None:
        facts["chosen"] = {"C": chosen} | {f"{name}_error": value for name, value in errors_at(errors, chosen).items()}
    written = {}
    if model_path is not None:
        model = path.model(float(path.Cs[-1]) if chosen is None else chosen)
        rows.name_features(model)
        persistence.save(rows.preparation.behind(model), model_path, rows.notes())
        written["model"] = model_path
    if report is not None:
        write_report(path, rows, errors, chosen, report)
        written["report"] = report
    show(facts | ({"written": written} if written else {}), as_json)
    return OK if path.outcome is Outcome.CERTIFIED else NOT_CERTIFIED


Errors = dict[str, tuple["np.ndarray", "np.ndarray"]]  # by the name of the rows: values of C, and the error of each


def fit(
    template: Any, rows: Rows, y: np.ndarray, ends: tuple[float, float] | None, tol: float | None, in_lambda: bool
) -> Path:
    """Every C between two ends; a grid from the first weight on if the penalty sets weights to zero."""
    import numpy as np

    from saddlesvm.estimators.path import takes_features
    from saddlesvm.estimators.register import GAP, GRID

    # The path has a C, a lambda and a gap of its own.
    options = template.get_params(deep=False)
    options = {name: value for name, value in options.items() if name not in ("C", "lam", "gap")}
    options["sample_weight"] = rows.train.sample_weight
    gap = GAP if tol is None else tol
    if not takes_features(template):
        where = {"lam" if in_lambda else "C": ends} if ends else {}
        return template.path(rows.train.X, y, gap=gap, **where, **options)
    if in_lambda:
        raise ValueError(f"a path with --penalty {template.penalty} goes over C: give --C LOW,HIGH, not --lambda")
    Cs = GRID if ends is None else np.geomspace(*ends, GRID)
    return template.path(rows.train.X, y, Cs=Cs, **options | {"tol": gap})


def measure_errors(path: Path, rows: Rows, estimate: bool) -> Errors:
    """The errors along the path: of rows held out, of leave-one-out, of test rows; the first chooses C."""
    import numpy as np

    from saddlesvm.estimators.leave_one_out import leave_one_out
    from saddlesvm.estimators.preparation import labels_of

    errors: Errors = {}
    if rows.validation is not None:
        grid = path.grid()
        errors["validation"] = (grid, 1.0 - path.score(rows.validation.X, labels_of(rows.validation), grid))
    if estimate:
        grid = path.grid(ESTIMATED)
        found = [leave_one_out(path.model(C), rows.train.X, rows.train.y, rows.train.sample_weight) for C in grid]
        error = np.array([one.error if one.trusted else np.nan for one in found])
        is_known = np.isfinite(error)
        if is_known.any():
            errors["leave_one_out"] = (grid[is_known], error[is_known])
    if rows.test is not None:
        grid = path.grid()
        errors["test"] = (grid, 1.0 - path.score(rows.test.X, labels_of(rows.test), grid))
    return errors


def choose(errors: Errors) -> float | None:
    """The C with the least error of rows held out, or of leave-one-out; test rows choose nothing."""
    for name in ("validation", "leave_one_out"):
        if name in errors:
            grid, error = errors[name]
            return float(grid[int(error.argmin())])
    return None


def errors_at(errors: Errors, C: float) -> dict[str, float]:
    """Each error at C, between its neighbours on the grid."""
    import numpy as np

    return {name: float(np.interp(np.log(C), np.log(grid), error)) for name, (grid, error) in errors.items()}


def describe(path: Path, errors: Errors) -> dict[str, Any]:
    """Facts of the fits, and a table of some values of C."""
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
    table = []
    features = {}
    if isinstance(path, CertifiedPath):
        facts["not_proven"] = [f"C from {low:.4g} to {high:.4g}" for low, high in path.unproven] or None
        grid = path.grid(SHOWN)
    else:
        grid = path.Cs
        features = dict(zip(path.Cs, path.n_features_selected, strict=True))
    for C in grid:
        row = {"C": float(C), "relative_gap": path.certificate(C).relative_gap}
        if features:
            row["features_with_a_weight"] = int(features[C])
        row |= {f"{name}_error": value for name, value in errors_at(errors, C).items()}
        table.append(row)
    return facts | {"values": table}


def write_report(path: Path, rows: Rows, errors: Errors, chosen: float | None, report: str) -> None:
    """Write the HTML report."""
    from saddlesvm.cli.console import command_line
    from saddlesvm.lab.displays import PathDisplay
    from saddlesvm.lab.reports import path_report

    facts = [
        ("rows", f"{rows.train.n_rows:,}"),
        ("features", f"{rows.train.n_features:,}"),
        ("gap proven", f"{path.proven_gap:.3g}"),
    ]
    named = {name.replace("leave_one_out", "leave-one-out (estimated)"): found for name, found in errors.items()}
    display = PathDisplay(path, named, chosen, rows.train.feature_names or None)
    path_report(display, str(rows.train.source), facts, command_line()).write(report)
