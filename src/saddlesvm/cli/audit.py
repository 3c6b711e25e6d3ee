"""``saddlesvm audit``: rows that are probably mislabelled, what rows and groups do, contradictions, separability."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.asked import make_estimator
from saddlesvm.cli.console import command_line
from saddlesvm.cli.display import Facts, described, show
from saddlesvm.cli.reading import check_classes, labels_of, read_table
from saddlesvm.data import DataError
from saddlesvm.estimators.audit import Audit, audit
from saddlesvm.fit.outcome import Outcome

SHOWN = 20  # suspects that are printed; all of them with --json


def run(options: argparse.Namespace) -> int:
    """Fit, audit, and print or draw what was found."""
    table = read_table(options, options.data)
    check_classes(table)
    y = labels_of(table)
    groups = None if options.groups is None else read_groups(options.groups, table.n_rows)
    model: Any = make_estimator(options, y).fit(table.X, y, table.sample_weight)
    if table.feature_names:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)
    found = audit(model, table.X, y, groups, sample_weight=table.sample_weight)
    facts: Facts = {"read": described(table)} | facts_of(found, y, None if options.json else SHOWN)
    if options.report:
        from saddlesvm.lab.reports import audit_report

        of_fit = [
            ("rows", f"{table.n_rows:,}"),
            ("features", f"{table.n_features:,}"),
            ("C", str(getattr(model, "C_", model.C))),
        ]
        audit_report(found, model, table.X, y, str(table.source), of_fit, command_line()).write(options.report)
        facts["proven"]["report written to"] = options.report
    show(facts, options.json)
    return OK if model.outcome_ is Outcome.CERTIFIED else NOT_CERTIFIED


def read_groups(path: str, n: int) -> np.ndarray:
    """The names of the rows' groups, one a line.

    Raises
    ------
    DataError
        The file cannot be read, or has another number of lines.
    """
    try:
        with open(path, encoding="utf-8") as file:
            names = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot read the groups: {error}") from None
    if len(names) != n:
        raise DataError(f"{path}: has {len(names):,} lines; the data has {n:,} rows: give one name a line for each row")
    return np.array(names)


def facts_of(found: Audit, y: np.ndarray, most: int | None) -> Facts:
    """The facts to print; `most` suspects, or all."""
    loo, n = found.leave_one_out, y.size
    facts: Facts = {
        "proven": {
            "leave-one-out error from": loo.error_low,
            "leave-one-out error to": loo.error_high,
            "decisions that no single row can change": int(found.stable.sum()),
            "of decisions": int(found.stable.size),
            "rows proven to get another class from the model without them": int(np.sum(found.margins_high < 0.0)),
        },
        "suspects": {
            f"row {i}": f"label {y[i]}, suggested {suggested}, margin {found.margins[i]:.4g} "
            f"({found.margins_low[i]:.4g} to {found.margins_high[i]:.4g})"
            for i, suggested in list(zip(found.suspects.tolist(), found.suggested, strict=True))[:most]
        },
        "contradictions": {
            "rows " + ", ".join(map(str, some.tolist())): "labels " + ", ".join(map(str, y[some].tolist()))
            for some in found.contradictions[:most]
        },
        "separable": {
            f"class {name}": f"{one.separable}: {one.reason} (margin {one.low:.4g} to {one.high:.4g})"
            for name, one in found.separability.items()
        },
    }
    order = np.argsort(-found.moves_high, kind="stable")[: most or n]
    facts["moves of the weights"] = {f"row {i}": [found.moves_low[i], found.moves_high[i]] for i in order.tolist()}
    if found.groups is not None:
        one = found.groups
        facts["proven"]["decisions that no single group can change"] = int(one.stable.sum())
        facts["groups"] = {
            str(name): f"changes {one.changes_low[k]} to {one.changes_high[k]} decisions, moves the weights by "
            f"{one.moves_low[k]:.4g} to {one.moves_high[k]:.4g}, error on its rows {one.errors_low[k]:.4g} to "
            f"{one.errors_high[k]:.4g}"
            for k, name in enumerate(one.names.tolist())
        }
    if found.notes:
        facts["notes"] = {"not proven": found.notes}
    return facts
