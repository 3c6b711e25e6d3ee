"""The rows that a command trains and tests on: how they are read, split and prepared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.model_selection import train_test_split

from saddlesvm.cli.facts import describe_data
from saddlesvm.cli.show import Facts, make_identifier, progress_bar
from saddlesvm.data import DataError, Table
from saddlesvm.data.model_file import is_model
from saddlesvm.data.reading import Reading
from saddlesvm.estimators.preparation import Preparation
from saddlesvm.estimators.register import Entry, entry_of
from saddlesvm.estimators.training_data import (
    check_class_labels,
    check_targets,
    describe_label,
    labels_of,
    read_training,
)
from saddlesvm.models import persistence
from saddlesvm.models.liblinear_models import is_liblinear

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator


@dataclass
class Rows:
    """The rows of a command, and how they are prepared.

    Parameters
    ----------
    train : Table
        The training rows as numbers.
    validation : Table or None
        Rows that were held out.
    test : Table or None
        Rows of another source.
    preparation : Preparation
        Learned from the training rows.
    facts : dict
        What the command prints about the data.
    """

    train: Table
    validation: Table | None
    test: Table | None
    preparation: Preparation
    facts: Facts


def save_model(model: Estimator, rows: Rows, path: str) -> None:
    """Save a model behind the preparation of its rows, with the names of the features."""
    if rows.train.feature_names:
        model.feature_names_in_ = np.array(rows.train.feature_names, dtype=object)
    notes = {"trained on": str(rows.train.source), "rows": rows.train.n_rows}
    notes |= rows.preparation.notes
    persistence.save(rows.preparation.prepend_to(model), path, notes)


def read_rows(
    data: str,
    reading: Reading,
    entry: Entry,
    *,
    test: str | None,
    validation: float | None,
    standardize: bool = False,
    seed: int = 0,
    quiet: bool = False,
) -> Rows:
    """Read the training rows and the test rows, and prepare them.

    Parameters
    ----------
    data : str
    reading : Reading
    entry : Entry
        The kind of estimator.
    test : str or None
        The source of the test rows.
    validation : float or None
        The share of rows to hold out.
    standardize : bool
        Scale the features.
    seed : int
        Seed of the choice of rows to hold out.
    quiet : bool
        Draw no progress.
    """
    is_classification = entry.task == "classification"
    with progress_bar(f"reading {data}", quiet) as advance:
        whole = read_training(data, reading, advance=advance)
    if is_classification:
        check_class_labels(whole)
    if entry.task == "regression":
        check_targets(whole)
    raw = whole
    held_out = None
    if validation is not None:
        raw, held_out = hold_out(whole, validation, seed, is_classification)

    # Only the training rows teach the preparation: neither held-out rows nor test rows do.
    preparation = Preparation.learn(raw, missing=reading.missing, standardize=standardize)
    train = preparation.apply(raw)
    facts: Facts = {"data": describe_data(whole) | {"label": describe_label(whole, reading.label)}}
    facts["data"]["features"] = train.n_features
    if standardize:
        facts["data"]["standardized"] = True  # numbers of tables with words always are
    for name, value in preparation.facts.items():
        facts["data"][make_identifier(name)] = value
    if held_out is not None:
        facts["data"]["rows_held_out"] = held_out.n_rows
        held_out = preparation.apply(held_out)
    tested = None
    if test is not None:
        tested = preparation.read(test, reading)
        if entry.task != "novelty":
            labels_of(tested)  # an error if it has none
        facts["test_data"] = describe_data(tested)
    return Rows(train, held_out, tested, preparation, facts)


def labels_to_fit(table: Table, entry: Entry) -> np.ndarray:
    """Return the labels of the training rows; zeros for a model that learns without labels."""
    if entry.task == "novelty" and table.y is None:
        return np.zeros(table.n_rows)
    return labels_of(table)


def hold_out(table: Table, share: float, seed: int, is_classification: bool) -> tuple[Table, Table]:
    """Split a table: the rows that stay, and a share of the rows, drawn at random.

    Every class gives the same share if it has enough rows.

    Raises
    ------
    DataError
        The rows are in a store, or too few.
    """
    labels_of(table)  # an error if it has none
    if table.format == "store":
        raise DataError(
            f"{table.source}: --validation would copy rows out of a store: give other rows with "
            "--test"
        )
    n = table.n_rows
    size = max(1, round(share * n))
    if size >= n:
        raise DataError(
            f"{table.source}: --validation {share:g} takes all {n} rows, and none is left to train "
            "on: give a smaller share"
        )
    strata = None
    if is_classification:
        counts = np.unique(np.asarray(table.y), return_counts=True)[1]
        if counts.min() >= 2 and counts.size <= min(size, n - size):
            strata = table.y
    kept, drawn = train_test_split(np.arange(n), test_size=size, random_state=seed, stratify=strata)
    # The rows keep their order.
    kept.sort()
    drawn.sort()
    return table.rows(kept), table.rows(drawn)


def is_saved_model(path: str) -> bool:
    """Return True for a model of ours or of LIBLINEAR."""
    return is_model(path) or is_liblinear(path)


def load_model(path: str) -> tuple[Any, Preparation]:
    """Load a saved model, and the preparation of its rows.

    Raises
    ------
    DataError
        The file is no model, or is damaged.
    """
    if not is_saved_model(path):
        raise DataError(
            f"{path}: is not a model of saddlesvm or LIBLINEAR; the model stands before "
            "the data, and 'saddlesvm train DATA --model FILE' writes one"
        )
    return Preparation.from_model(persistence.load(path), path)


def find_entry(model: Estimator) -> Entry:
    """Return the register's entry for a saved model."""
    entry = entry_of(model)
    assert entry is not None, "only registered kinds are loaded"
    return entry
