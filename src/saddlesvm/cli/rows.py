"""The rows that a command trains and tests on: read, some held out, and prepared as the training rows teach."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from saddlesvm.cli.facts import describe_data
from saddlesvm.cli.options import Reading
from saddlesvm.cli.show import Facts, as_identifier, progress_bar
from saddlesvm.data import DataError, Table
from saddlesvm.estimators.preparation import Preparation, check_classes, label_words, labels_of, read_training
from saddlesvm.estimators.register import Entry, entry_of
from saddlesvm.models import persistence


@dataclass
class Rows:
    """The rows of a command, and what was learned to prepare them.

    Parameters
    ----------
    raw : Table
        The training rows as they were read; those with words are a data frame.
    train : Table
        The same as numbers.
    validation : Table or None
        Rows held out.
    test : Table or None
        Rows of another source.
    preparation : Preparation
        Learned from the training rows.
    facts : dict
        What to say of the data.
    """

    raw: Table
    train: Table
    validation: Table | None
    test: Table | None
    preparation: Preparation
    facts: Facts

    @property
    def has_words(self) -> bool:
        """Whether the rows as they were read are a data frame, and no matrix."""
        return self.raw.kinds is not None

    def name_features(self, model: Any) -> None:
        """Let a fitted model know the names of its features, if the data have any."""
        if self.train.feature_names:
            model.feature_names_in_ = np.array(self.train.feature_names, dtype=object)

    def notes(self) -> dict[str, Any]:
        """What the file of a model tells of its data."""
        own = {"trained on": str(self.train.source), "rows": self.train.n_rows}
        return own | self.preparation.notes


def read_rows(
    data: str | list[str],
    reading: Reading,
    entry: Entry,
    *,
    test: str | None,
    validation: float | None,
    standardize: bool = False,
    pairwise: bool = False,
    seed: int = 0,
    quiet: bool = False,
) -> Rows:
    """Read the training rows and those to test on, and prepare them.

    Parameters
    ----------
    data : str or list of str
        A source, or several stores.
    reading : Reading
    entry : Entry
        The kind of estimator.
    test : str or None
        Another source.
    validation : float or None
        The share of rows to hold out.
    standardize, pairwise : bool
        Scale the features; the values are those of a kernel.
    seed : int
        Of the rows that are held out.
    quiet : bool
        Draw no progress.
    """
    task: Any = "regression" if entry.task == "regression" else None
    with progress_bar(f"reading {data}", quiet) as advance:
        whole = read_training(data, task=task, pairwise=pairwise, advance=advance, **vars(reading))
    if entry.task == "classification":
        check_classes(whole)
    raw, apart = whole, None
    if validation is not None:
        raw, apart = hold_out(whole, validation, seed, entry.task == "classification", pairwise)

    preparation = Preparation.learn(raw, missing=reading.missing, standardize=standardize, pairwise=pairwise)
    train = preparation.apply(raw)
    tested = None
    if test is not None:
        tested = preparation.read(test, task=task, **vars(reading))
        if entry.task != "novelty":
            labels_of(tested)

    facts: Facts = {"data": describe_data(whole) | {"label": label_words(whole, reading.label)}}
    facts["data"]["features"] = train.n_features
    if standardize:
        facts["data"]["standardized"] = True  # numbers of tables with words always are
    facts["data"] |= {as_identifier(name): value for name, value in preparation.facts.items()}
    if whole.kinds is not None:
        facts["data"]["features"] = train.n_features
    if apart is not None:
        facts["data"]["rows_held_out"] = apart.n_rows
    if tested is not None:
        facts["test_data"] = describe_data(tested)
    held_out = None if apart is None else preparation.apply(apart)
    return Rows(raw, train, held_out, tested, preparation, facts)


def labels_to_fit(table: Table, entry: Entry) -> np.ndarray:
    """The labels of the training rows; zeros for a model that learns without any."""
    if entry.task == "novelty" and table.y is None:
        return np.zeros(table.n_rows)
    return labels_of(table)


def hold_out(table: Table, share: float, seed: int, classes: bool, pairwise: bool = False) -> tuple[Table, Table]:
    """The table without, and with, a share of its rows drawn at random; of every class alike if there are enough.

    Rows of a kernel's values (`pairwise`) keep those between them and the rows that stay.

    Raises
    ------
    DataError
        The rows are those of a store, or too few.
    """
    labels_of(table)
    if table.format == "store":
        raise DataError(f"{table.source}: --validation copies rows; those of a store stay in their files: use --test")
    n = table.n_rows
    size = max(1, round(share * n))
    if size >= n:
        raise DataError(
            f"{table.source}: --validation {share:g} takes all {n} rows, and none is left to train on: give a smaller "
            "share"
        )
    counts = np.unique(np.asarray(table.y), return_counts=True)[1] if classes else np.zeros(0)
    can_stratify = classes and counts.min() >= 2 and counts.size <= min(size, n - size)
    kept, apart = train_test_split(
        np.arange(n), test_size=size, random_state=seed, stratify=table.y if can_stratify else None
    )
    kept.sort()
    apart.sort()
    parts = [table.rows(kept), table.rows(apart)]
    if pairwise:
        parts = [dataclasses.replace(part, X=part.X[:, kept]) for part in parts]
    return parts[0], parts[1]


def load_model(path: str) -> tuple[Any, Preparation]:
    """A saved model, and the preparation of its rows."""
    model, preparation = Preparation.of_saved(persistence.load(path), path)
    return model, preparation


def kind_of(model: Any) -> Entry:
    """The registered kind of a saved model."""
    entry = entry_of(model)
    assert entry is not None, "only registered kinds are loaded"
    return entry
