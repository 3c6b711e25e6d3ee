"""``saddlesvm info``: what a model, a store or a data file holds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from saddlesvm.cli import OK
from saddlesvm.cli.command import declare
from saddlesvm.cli.options import IMPORT, JSON, READING_OPTIONS, take_reading
from saddlesvm.cli.values import DATA
from saddlesvm.data.reading import Reading

if TYPE_CHECKING:
    from saddlesvm.cli.show import Facts
    from saddlesvm.data import Store

CLASSES_SHOWN = 1_000  # classes up to which a store's are listed (guessed)


@declare(
    "saddlesvm info data.csv",
    "saddlesvm info data.model",
)
@click.argument("source", type=DATA, metavar="MODEL|DATA")
@IMPORT
@READING_OPTIONS
@JSON
def command(*, source: str, as_json: bool, **given: Any) -> int:
    """Describe a model or a data set."""
    from saddlesvm.cli.rows import is_saved_model
    from saddlesvm.cli.show import show
    from saddlesvm.data import Store
    from saddlesvm.data.store import is_store

    if os.path.isfile(source) and is_saved_model(source):
        facts = describe_saved_model(source)
    elif is_store(source):
        facts = {"store": describe_store(Store(source), source)}
    else:
        facts = describe_rows(source, take_reading(given))
    show(facts, as_json)
    return OK


def describe_saved_model(path: str) -> Facts:
    """Return facts of a model, and of the columns that it was trained on."""
    from saddlesvm.cli.facts import describe_model
    from saddlesvm.cli.rows import load_model
    from saddlesvm.estimators.preparation import strongest_words

    model, preparation = load_model(path)
    facts = describe_model(model, path)
    if preparation.columns is not None:
        facts["columns"] = {"columns": preparation.columns}
        facts["strongest"] = strongest_words(model, preparation)
    elif preparation.before is not None:
        facts["model"]["standardized"] = True
    return facts


def describe_store(store: Store, path: str) -> dict[str, object]:
    """Return facts of a store, from its header alone."""
    from saddlesvm.rows.small_types import type_name

    header = store.header
    facts: dict[str, Any] = {
        "folder": os.fspath(path),
        "layout": store.layout,
        "rows": store.shape[0],
        "features": store.shape[1],
        "values_stored": store.n_values,
        "nonzeros": header.get("n_nonzero"),
        "precision": type_name(store.dtype),
        "bytes": store.n_bytes,
        "row_weights": bool(header["weights"]),
    }
    facts |= describe_labels(header["labels"])
    facts["written_by"] = header.get("written by")
    sources = []
    for source in header.get("sources") or ():
        line = {name: source[name] for name in ("format", "rows", "bytes")}
        sources.append({"file": source["path"], **line})
    facts["made_from"] = sources or None
    return facts


def describe_labels(labels: Any) -> dict[str, Any]:
    """Return facts of the labels in a store's header: the classes, or the range of targets."""
    if labels is None:
        return {}
    classes = labels["classes"]
    if classes is not None and len(classes) <= CLASSES_SHOWN:
        sizes = zip(classes, labels["counts"], strict=True)
        return {"classes": {str(label): count for label, count in sizes}}
    # Too many classes to list, or targets: the range says enough.
    if labels["kind"] == "numbers":
        return {"targets_from": labels["smallest"], "targets_to": labels["largest"]}
    return {}


def describe_rows(source: str, reading: Reading) -> Facts:
    """Return facts of a data file, and what would make a fit on it hard."""
    import numpy as np

    from saddlesvm.cli.facts import describe_data
    from saddlesvm.data.door import Design
    from saddlesvm.estimators.scale_hint import scale_hint
    from saddlesvm.estimators.training_data import read_training

    table = read_training(source, reading)
    facts: Facts = {"data": describe_data(table)}
    has_words = table.kinds is not None
    if has_words:
        return facts

    X = table.X
    norms = np.sqrt(Design(X).norms())
    facts["rows"] = {
        "smallest_norm": float(norms.min()),
        "median_norm": float(np.median(norms)),
        "largest_norm": float(norms.max()),
        "nonzeros_a_row": table.n_nonzero / table.n_rows,
    }
    hints = scale_hint(X)
    if hints:
        facts["features"] = {"hint": hints}
    return facts
