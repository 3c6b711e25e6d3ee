"""``saddlesvm path``: a model and a proof for every C between two ends, or for a grid of C where weights may be zero.

The functions that run it.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.asked import make_estimator, task_of
from saddlesvm.cli.console import command_line
from saddlesvm.cli.display import Facts, described, show
from saddlesvm.cli.reading import labels_of, read_table
from saddlesvm.cli.tabular import LABEL, encoded, fitted_to, read_encoded
from saddlesvm.data import Table
from saddlesvm.data.blocks import check_names
from saddlesvm.estimators import persistence
from saddlesvm.estimators.certified_path import CertifiedPath
from saddlesvm.estimators.first_weight import takes_features
from saddlesvm.estimators.leave_one_out import leave_one_out
from saddlesvm.estimators.path import RegularizationPath, ends_for, fit_path, grid_for
from saddlesvm.estimators.path_search import certified_path
from saddlesvm.estimators.persistence import behind_scaler
from saddlesvm.fit.outcome import Outcome

SHOWN = 9  # number of values of C to print


def run(options: argparse.Namespace) -> int:
    """Compute the path, choose a C on it if asked, then print and draw the proven gaps."""
    if options.probability:
        raise ValueError(
            "path fits no probabilities: use train --C auto --probability, which chooses C along such a path"
        )
    task = task_of(options)
    table = read_table(options, options.data, task=task)
    y = labels_of(table)
    encoder = fitted_to(table) if table.encoder is not None else None
    table = table if encoder is None else encoded(encoder, table)
    held_out = None
    if options.validation and encoder is not None:
        held_out = read_encoded(encoder, options, options.validation, table.label_name, task)
    elif options.validation:
        held_out = read_table(options, options.validation, table.n_features, task, table.zero_based)
    if held_out is not None:
        labels_of(held_out)
        check_names(held_out.source, held_out.feature_names, table.source, table.feature_names)
    path = path_asked_for(options, table, y)
    scores, chosen = errors_along(path, table, held_out, options.leave_one_out)
    facts: Facts = {
        "read": described(table) | {"columns": table.columns},
        "path": facts_of(path),
        "proven": proven(path),
    }
    if chosen is not None:
        facts["chosen"] = {"C": chosen} | {f"{name} error there": value for name, value in at(scores, chosen).items()}
    if options.model:
        model = path.model(path.Cs[-1] if chosen is None else chosen)
        notes = {"trained on": str(table.source), "rows": table.n_rows}
        notes |= {} if encoder is None else {LABEL: table.label_name}
        persistence.save(behind_scaler(model, encoder), options.model, notes)
        facts["path"]["model written to"] = options.model
    if options.report:
        write_report(options, table, path, scores, chosen)
        facts["path"]["report written to"] = options.report
    show(facts, options.json)
    return OK if path.outcome is Outcome.CERTIFIED else NOT_CERTIFIED


def path_asked_for(options: argparse.Namespace, table: Table, y: np.ndarray) -> CertifiedPath | RegularizationPath:
    """Every C between two ends; a grid of C from the first weight on where the penalty sets weights to zero."""
    ends: tuple[float, float] | None = options.C or options.lam
    in_lambda = options.lam is not None
    options.C = options.lam = None
    template = make_estimator(options, y)
    if options.every_C or not takes_features(template):
        return certified_path(
            template, table.X, y, ends or ends_for(template, table.X, y, table.sample_weight), options.proven_gap,
            sample_weight=table.sample_weight, in_lambda=in_lambda, watch=narrate if template.verbose else None,
        )  # fmt: skip
    if in_lambda:
        raise ValueError(
            f"a grid with penalty={template.penalty!r} goes over C: give --C LOW,HIGH, not --lambda, or --every-C"
        )
    template.set_params(tol=options.proven_gap)
    given = options.Cs if ends is None else np.geomspace(ends[0], ends[1], options.Cs)
    grid = grid_for(template, table.X, y, given, table.sample_weight)
    return fit_path(template, table.X, y, grid, table.sample_weight)


Scores = dict[str, tuple[np.ndarray, np.ndarray]]


def errors_along(
    path: CertifiedPath | RegularizationPath, table: Table, held_out: Table | None, estimated: bool
) -> tuple[Scores, float | None]:
    """The errors along the path, of validation rows and of leave-one-out, and the C that the first of them prefers."""
    scores: Scores = {}
    if held_out is not None:
        grid = path.grid()
        scores["validation"] = (grid, 1.0 - path.score(held_out.X, labels_of(held_out), grid))
    if estimated:
        grid = path.grid(13)
        found = [leave_one_out(path.model(C), table.X, labels_of(table), table.sample_weight) for C in grid]
        errors = np.array([one.error if one.trusted else np.nan for one in found])
        if np.isfinite(errors).any():
            scores["leave-one-out (estimated)"] = (grid[np.isfinite(errors)], errors[np.isfinite(errors)])
    if not scores:
        return scores, None
    grid, errors = next(iter(scores.values()))
    return scores, float(grid[int(np.argmin(errors))])


def at(scores: Scores, C: float) -> dict[str, float]:
    """Each error at C, between its neighbours on the grid."""
    return {name: float(np.interp(np.log(C), np.log(Cs), errors)) for name, (Cs, errors) in scores.items()}


def narrate(path: CertifiedPath) -> None:
    """A line on standard error for each round of fits."""
    print(
        f"{len(path.knots)} fits, {path.seconds:.1f} s: a relative gap of {path.proven_gap:.2g} is proven for every C; "
        f"{len(path.unproven)} stretches left",
        file=sys.stderr,
    )


def facts_of(path: CertifiedPath | RegularizationPath) -> dict[str, Any]:
    """Facts of the fits."""
    facts: dict[str, Any] = {
        "fits": path.Cs.size,
        "C from": float(path.Cs[0]),
        "C to": float(path.Cs[-1]),
        "seconds": float(np.sum(path.seconds)),
        f"proven relative gap {'for' if path.every_C else 'of'} every C": path.proven_gap,
        "outcome": str(path.outcome),
    }
    if isinstance(path, CertifiedPath):
        facts["not proven"] = [f"C from {low:.4g} to {high:.4g}" for low, high in path.unproven] or None
    else:
        facts |= {
            f"features with a weight at C = {C:.3g}": int(count)
            for C, count in zip(path.Cs, path.n_features_selected, strict=True)
        }
    return facts


def proven(path: CertifiedPath | RegularizationPath) -> dict[str, Any]:
    """The relative gap at some values of C."""
    return {f"relative gap at C = {C:.3g}": path.certificate(C).relative_gap for C in path.grid(SHOWN)}


def write_report(
    options: argparse.Namespace,
    table: Table,
    path: CertifiedPath | RegularizationPath,
    scores: Scores,
    chosen: float | None,
) -> None:
    """Write the HTML report."""
    from saddlesvm.lab.displays import PathDisplay
    from saddlesvm.lab.reports import path_report

    facts = [
        ("rows", f"{table.n_rows:,}"),
        ("features", f"{table.n_features:,}"),
        ("gap asked for", f"{options.proven_gap:g}"),
    ]
    display = PathDisplay(path, scores, chosen, table.feature_names or None)
    path_report(display, str(table.source), facts, command_line()).write(options.report)
