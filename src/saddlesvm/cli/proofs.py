"""``saddlesvm prove``, ``saddlesvm verify`` and ``saddlesvm forget``."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.cli.display import show
from saddlesvm.cli.reading import check_features, labels_of, read_table
from saddlesvm.data import DataError, Table
from saddlesvm.data.atomic import atomic_write
from saddlesvm.data.blocks import dropped_positions, label_position
from saddlesvm.data.streams import open_text
from saddlesvm.estimators import persistence, register
from saddlesvm.estimators.accountable import Accountable
from saddlesvm.estimators.persistence import parted
from saddlesvm.estimators.proofs import verified
from saddlesvm.fit.outcome import Outcome


def prove(options: argparse.Namespace) -> int:
    """``saddlesvm prove``: write the proof of a saved model."""
    model, table = linear_model(options)
    if options.scale != 1.0:
        raise DataError(f"{options.model}: prove takes no --scale, as the checker reads the file: scale its numbers")
    found = model.proof(table.X, labels_of(table), table.sample_weight, read=how_read(options, table))
    text = json.dumps(found, indent=1)
    with atomic_write(options.output) as file:
        file.write(text.encode())
    high, low, gap = (float.fromhex(one) for one in found["claim"])
    bounds = {"objective at most": high, "least possible at least": low, "gap at most": gap}
    show({"proven": bounds, "done": {"proof written to": options.output, "bytes": len(text)}}, options.json)
    return OK


def linear_model(options: argparse.Namespace) -> tuple[Any, Table]:
    """A saved linear model, and the data."""
    model, scaler = parted(persistence.load(options.model))
    if not isinstance(model, Accountable) or scaler is not None:
        kind = type(model).__name__ if scaler is None else "linear model behind a scaler"
        advice = "" if scaler is None else ": scale the data first, and train on the scaled numbers"
        raise DataError(f"{options.model}: is a {kind}; a linear model on the numbers of the data is needed{advice}")
    return model, training_table(options, model)


def training_table(options: argparse.Namespace, model: Any) -> Table:
    """The data that a model was trained on."""
    entry = register.entry_of(model)
    task = "regression" if entry is not None and entry.task == "regression" else None
    table = read_table(options, options.data, model.n_features_in_, task, model.notes_.get("zero_based"))
    check_features(model, options.model, table)
    return table


def forget(options: argparse.Namespace) -> int:
    """``saddlesvm forget``: write the model of the data without some rows."""
    model, table = linear_model(options)
    model.forget(options.rows, table.X, labels_of(table), table.sample_weight)
    persistence.save(model, options.output, model.notes_)
    worth = {"relative gap": model.certificate_.relative_gap, "outcome": str(model.outcome_)}
    worth |= {"digest": getattr(model, "digest_", None), "log": model.log_.tolist()[-1]}
    show({"quality": worth, "done": {"model written to": options.output}}, options.json)
    return OK if model.outcome_ is Outcome.CERTIFIED else NOT_CERTIFIED


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
    """``saddlesvm verify``: check a proof with the checker, over data of any format."""
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
    table = read_table(options, options.data, width, task, based)
    try:
        said = verified(proof, table.X, labels_of(table))
    except ValueError as error:
        show({"verified": {"refused": str(error)}}, options.json)
        return NOT_CERTIFIED
    show({"verified": {"result": said}}, options.json)
    return OK
