"""The commands that say more of a model than a fit does: ``saddlesvm path``, ``prove`` and ``verify``."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.checker import describe
from saddlesvm.cli import NOT_CERTIFIED, OK, reading
from saddlesvm.cli.asked import make_estimator, task_of
from saddlesvm.cli.console import command_line
from saddlesvm.cli.display import Facts, described, show
from saddlesvm.cli.train import read_parts
from saddlesvm.data import DataError, Table
from saddlesvm.data.blocks import dropped_positions, label_position
from saddlesvm.data.errors import atomic_write
from saddlesvm.data.streams import open_text
from saddlesvm.estimators import persistence, register
from saddlesvm.estimators.certified_path import CertifiedPath
from saddlesvm.estimators.certify import compare_with_fit, describe_finding
from saddlesvm.estimators.leave_one_out import leave_one_out
from saddlesvm.estimators.linear import LinearEstimator
from saddlesvm.estimators.path import RegularizationPath, ends_for, fit_path, grid_for, takes_features
from saddlesvm.estimators.path_search import certified_path
from saddlesvm.estimators.preparation import Preparation, labels_of
from saddlesvm.estimators.proofs import verified
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate


def prove(options: argparse.Namespace) -> int:
    """Write a proof of a linear model, for others to check.

    Options
    -------
    MODEL : text
        A saved linear model.
    DATA : text
        The data that it was trained on.
    output : PATH, required
        Write the proof, JSON, to this file.

    Examples
    --------
    saddlesvm prove data.model data.csv -o proof.json
    saddlesvm prove data.model data.csv --label outcome --drop-columns name -o proof.json
    """
    model, table = linear_model(options)
    if options.scale != 1.0:
        raise DataError(f"{options.model}: prove takes no --scale, as the checker reads the file: scale its numbers")
    y = labels_of(table)
    difference = compare_with_fit(model, table.X, y)
    found = model.proof(table.X, y, table.sample_weight, read=how_read(options, table))
    text = json.dumps(found, indent=1)
    with atomic_write(options.output) as file:
        file.write(text.encode())
    high, low, gap = (float.fromhex(one) for one in found["claim"])
    bounds = {"objective at most": high, "least possible at least": low, "gap at most": gap}
    done = {"proof written to": options.output, "bytes": len(text)}
    finding = describe_finding(model, difference, Certificate(high, low))
    show({"found": finding, "proven": bounds, "done": done}, options.json)
    return NOT_CERTIFIED if difference else OK


def linear_model(options: argparse.Namespace) -> tuple[Any, Table]:
    """A saved linear model, and the data."""
    model, preparation = Preparation.of_saved(persistence.load(options.model), options.model)
    if not isinstance(model, LinearEstimator) or preparation.before is not None:
        what = type(model).__name__
        advice = ""
        if preparation.columns is not None:
            what, advice = "linear model behind a table's encoder", ": encode the table first, and train on that"
        elif preparation.before is not None:
            what, advice = "linear model behind a scaler", ": scale the data first, and train on the scaled numbers"
        raise DataError(f"{options.model}: is a {what}; a linear model on the numbers of the data is needed{advice}")
    return model, training_table(options, model, preparation)


def training_table(options: argparse.Namespace, model: Any, preparation: Preparation) -> Table:
    """The data that a model was trained on."""
    entry = register.entry_of(model)
    task = "regression" if entry is not None and entry.task == "regression" else None
    table = reading.read_prepared(options, preparation, options.data, task)
    if preparation.filling.count:
        raise DataError(
            f"{options.data}: has missing values, which --missing {preparation.filling.how} treated as the model was "
            "trained: fill in the data first, and train on that"
        )
    return table


def how_read(options: argparse.Namespace, table: Table) -> dict[str, Any]:
    """The checker's options for reading a text file as it was read here; empty for other formats."""
    if table.format == "libsvm":
        return {"zero_based": bool(table.zero_based)}
    if table.format != "csv" or not Path(options.data).is_file():
        return {}
    with open_text(Path(options.data)) as file:
        first = next(line for line in file if line.strip())
    cells = [cell.strip() for cell in next(csv.reader([first], delimiter=max(";\t,", key=first.count)))]
    names = None if table.feature_names is None else cells
    dropped = dropped_positions(options.drop_columns, names, len(cells), options.data)
    label = label_position(options.label, names, len(cells), None, options.data, dropped)
    return {"label": label, "drop": sorted(dropped), "header": names is not None}


def verify(options: argparse.Namespace) -> int:
    """Check a proof in fractions, with nothing of a fit.

    Options
    -------
    PROOF : text
        A proof that 'saddlesvm prove' made.
    DATA : text
        The data that it is about.

    Examples
    --------
    saddlesvm verify proof.json data.csv
    saddlesvm verify proof.json data.parquet --json
    """
    try:
        proof = json.loads(Path(options.proof).read_bytes())
        problem, how = proof["problem"], proof["read"]
        task = None if problem["classes"] else "regression"
        width = int(problem["features"])
        if isinstance(how.get("label"), int) and options.label is None:
            options.label, options.drop_columns = how["label"], tuple(map(int, how["drop"]))
        based = bool(how["zero_based"]) if "zero_based" in how else None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DataError(f"{options.proof}: is not a proof of this package: {type(error).__name__}: {error}") from None
    table = reading.read_table(options, options.data, n_features=width, task=task, zero_based=based)
    try:
        said = verified(proof, table.X, labels_of(table))
    except ValueError as error:
        show({"verified": {"refused": str(error)}}, options.json)
        return NOT_CERTIFIED
    show({"verified": {"result": said}, "problem": describe(proof, table.n_rows)}, options.json)
    return OK


GAPS_SHOWN = 9  # number of values of C to print


def traced(options: argparse.Namespace) -> int:
    """Fit every C between two ends with a proof, and choose one.

    Options
    -------
    C : two_ends, LOW,HIGH
        The ends; 1e-3,1e3 by default.
    lam : two_ends, LOW,HIGH
        The same in lambda.
    validation : str, DATA
        Rows to measure the error along the path on.
    model : text
        Write the model of the chosen C here.
    every_C : flag
        Prove every C between the ends, with --penalty l1 or elasticnet too.
    leave_one_out : flag
        Estimate the error from the training rows alone.

    Examples
    --------
    saddlesvm path heart --leave-one-out --report heart-path.html
    saddlesvm path data.csv --C 0.01,100 --gap 1e-3 --model data.model
    """
    if options.probability:
        raise ValueError(
            "path fits no probabilities: use train --C auto --probability, which chooses C along such a path"
        )
    task = task_of(options)
    options.test, options.validation = options.validation, None
    whole, (table, _, held_out), preparation = read_parts(options, task, task or "classification")
    y = labels_of(table)
    path = path_asked_for(options, table, y)
    scores, chosen = errors_along(path, table, held_out, options.leave_one_out)
    facts: Facts = {
        "read": described(table) | preparation.facts | {"columns": whole.column_facts},
        "path": facts_of_path(path),
        "proven": proven(path),
    }
    if chosen is not None:
        facts["chosen"] = {"C": chosen} | {f"{name} error there": value for name, value in at(scores, chosen).items()}
    if options.model:
        model = path.model(path.Cs[-1] if chosen is None else chosen)
        notes = {"trained on": str(table.source), "rows": table.n_rows}
        persistence.save(preparation.behind(model), options.model, notes | preparation.notes)
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


def facts_of_path(path: CertifiedPath | RegularizationPath) -> dict[str, Any]:
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
    return {f"relative gap at C = {C:.3g}": path.certificate(C).relative_gap for C in path.grid(GAPS_SHOWN)}


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
