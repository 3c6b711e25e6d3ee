"""Prepare the data of a model, learnt from the training rows, the same for all data of the model.

Tables with words are encoded by a ``ColumnTransformer``. In tables of numbers, gaps are filled and,
if that is asked for, values are scaled by a ``StandardScaler``. What was learnt is a step before
the model in a pipeline.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from saddlesvm.data import DataError, Table
from saddlesvm.data.column_positions import check_names
from saddlesvm.data.data_table import ready_labels, shorten
from saddlesvm.data.frames import TableFile, choose_label, open_table, read_frame
from saddlesvm.data.reading import DEFAULT_READING, STANDARD_INPUT, Reading
from saddlesvm.data.typed_columns import rows_without_gaps
from saddlesvm.estimators.columns import (
    feature_names,
    kinds_in,
    prepend_step,
    step_before,
    transformers_for,
)
from saddlesvm.estimators.training_data import (
    Advance,
    read_standard_input,
    read_training,
)

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator

LABEL_NOTE = "label column"  # the note of a model with the name of its labels
NOTE = "missing values"  # the note of a model with what it does about gaps
WORDS_SHOWN = 8  # words of each class that have the largest weights


@dataclass
class Preparation:
    """How rows are prepared for a model.

    Attributes
    ----------
    before : transformer or None
        The fitted step before the model in a pipeline.
    missing : str or None
        What happens to gaps in a table with words.
    kinds : dict of str to str
        Kinds of the columns of a table with words; empty for other data.
    label : str or None
        The column of the labels in the training data.
    source : str
        The name of the training data, or of the file of the model.
    n_features : int or None
        Features of a matrix, as it is read.
    names : list of str, or None
        Names of these features.
    zero_based : bool or None
        True if the indices of the training data counted from 0.
    left_out : int
        Rows of the training data that were left out.
    encoded : tuple or None
        The training rows and their encoding, until they are used: both come from the same pass.
    """

    before: Any = None
    missing: str | None = None
    kinds: dict[str, str] = field(default_factory=dict)
    label: str | None = None
    source: str = ""
    n_features: int | None = None
    names: list[str] | None = None
    zero_based: bool | None = None
    left_out: int = 0
    encoded: tuple[Any, Any] | None = None

    @classmethod
    def learn(
        cls,
        table: Table,
        *,
        missing: str | None = None,
        standardize: bool = False,
    ) -> Preparation:
        """Learn from the training rows.

        Parameters
        ----------
        table : Table
            Of :func:`read_training`, without rows that are held out.
        missing : {"error", "drop", "mean", "median"}, optional
            An error by default; in tables with words, numbers are filled with the mean by default.
        standardize : bool, default=False
            Scale numbers; numbers of tables with words are always scaled.

        Raises
        ------
        DataError
            There are gaps that may not be, or a feature without any value.
        """
        preparation = cls(
            label=table.label_name,
            source=table.source,
            zero_based=table.zero_based,
            names=table.feature_names,
        )
        if table.kinds is not None:
            preparation._learn_columns(table, missing)
            return preparation
        preparation.n_features = table.n_features
        if standardize:
            preparation.before = _fit_scaler(table)
        return preparation

    def _learn_columns(self, table: Table, missing: str | None) -> None:
        """Learn the encoding of a table with words, and encode its rows on the way."""
        assert table.kinds is not None
        self.kinds = table.kinds
        self.missing = missing
        kept = rows_without_gaps(table.X, self.kinds, missing, table.source)
        frame = table.X
        if kept is not None:
            frame = frame[kept]
        if not len(frame):
            raise DataError(f"{table.source}: every row has missing values: no row is left")
        self.before = transformers_for(table.kinds, "median" if missing == "median" else "mean")
        self.encoded = (table.X, self.before.fit_transform(frame))
        self.n_features = len(self.before.get_feature_names_out())

    @classmethod
    def from_model(cls, model: Estimator, source: str = "the model") -> tuple[object, Preparation]:
        """Return the estimator of a loaded model, and the preparation of its data.

        Raises
        ------
        DataError
            The steps before the estimator are not made for files.
        """
        before = None
        estimator = model
        if isinstance(model, Pipeline):
            before = step_before(model)
            estimator = model[-1]
        if getattr(estimator, "kernel", None) == "precomputed":
            raise DataError(f"{source}: takes values of a kernel: predict with it in Python")
        notes = getattr(estimator, "notes_", {})
        preparation = cls(
            before=before,
            label=notes.get(LABEL_NOTE),
            source=source,
            zero_based=notes.get("zero_based"),
            n_features=estimator.n_features_in_,
        )
        # Tables with words: only an encoder made here tells the kinds of its columns.
        if isinstance(before, ColumnTransformer):
            kinds = kinds_in(before)
            if kinds is None:
                raise DataError(
                    f"{source}: its ColumnTransformer was made by hand: predict with it in Python"
                )
            preparation.kinds = kinds
            preparation.missing = notes.get(NOTE, {}).get("how")
            return estimator, preparation
        if before is not None and not isinstance(before, StandardScaler):
            kind = type(before).__name__
            raise DataError(
                f"{source}: its rows go through a {kind} first: predict with it in Python"
            )
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None:
            preparation.names = list(names)
        return estimator, preparation

    @property
    def notes(self) -> dict[str, object]:
        """The notes for a model file."""
        notes: dict[str, Any] = {}
        if self.kinds:
            notes[LABEL_NOTE] = self.label
            if self.missing is not None:
                notes[NOTE] = {"how": self.missing, "values": []}
        if self.zero_based is not None:
            notes["zero_based"] = self.zero_based
        return notes

    @property
    def facts(self) -> dict[str, Any]:
        """What was done to gaps, in words."""
        if self.missing == "drop":
            return {"rows left out for missing values": self.left_out}
        return {}

    @property
    def columns(self) -> list[str] | None:
        """The columns of a table with words, and their kinds, in words; None for other data."""
        return [f"{name}: {kind}" for name, kind in self.kinds.items()] or None

    def feature_names(self) -> list[str] | None:
        """Return names of the features for people, if rows are encoded."""
        return feature_names(self.before) if self.kinds else None

    def prepend_to(self, model: Estimator) -> Pipeline | Estimator:
        """Return the model to use and to save: a pipeline if there is a step before it."""
        return prepend_step(self.before, model)

    def apply(self, table: Table, *, every_row: bool = False) -> Table:
        """Return a table with its rows prepared: `X` is a matrix.

        Parameters
        ----------
        table : Table
        every_row : bool, default=False
            True if rows with gaps may not be left out.

        Raises
        ------
        DataError
            There are gaps that may not be, or no row is left.
        """
        if self.kinds:
            return self._encode(table, every_row)
        if self.before is None:
            return table
        return replace(table, X=self.before.transform(table.X), known_nonzero=None)

    def _encode(self, table: Table, every_row: bool) -> Table:
        """Return a table with words, encoded; its columns stay in `frame`."""
        # The training rows were encoded while their columns were learnt.
        is_training = self.encoded is not None and self.encoded[0] is table.X
        how = self.missing
        if how == "drop" and every_row:
            how = "error"
        kept = rows_without_gaps(table.X, self.kinds, how, table.source)
        if kept is not None:
            self.left_out = self.left_out or int((~kept).sum())
            if not kept.any():
                raise DataError(f"{table.source}: every row has missing values: no row is left")
            table = table.rows(np.flatnonzero(kept))
        if is_training and self.encoded is not None:
            X = self.encoded[1]
            self.encoded = None
        else:
            X = self.before.transform(table.X)
        if sparse.issparse(X):
            X = X.tocsr()
        return replace(table, X=X, frame=table.X, kinds=None)

    def read(
        self,
        source: str,
        reading: Reading = DEFAULT_READING,
        *,
        every_row: bool = False,
        advance: Advance | None = None,
    ) -> Table:
        """Read other data of the model, and prepare them.

        Parameters
        ----------
        source, advance
            As in :func:`read_training`.
        reading : Reading
            The label column is the label column of the training data by default. Kinds of columns
            and what is done about missing values are known already: `columns` and `missing` are
            ignored.
        every_row : bool, default=False
            True if rows with missing values may not be left out.

        Raises
        ------
        DataError
            The data cannot be read, or have other features than the model.
        """
        # Numbers: a matrix, of the width that the model knows.
        if not self.kinds:
            table = read_training(
                source,
                replace(reading, columns=(), missing=None),
                n_features=self.n_features,
                zero_based=self.zero_based,
                advance=advance,
            )
            return self.apply(self.check_features(table), every_row=every_row)
        if source == STANDARD_INPUT:

            def read_copy(path: str) -> Table:
                return self.read(path, reading, every_row=every_row, advance=advance)

            return read_standard_input(read_copy)
        label = reading.label
        file = open_table(source, header=reading.header, drop=reading.drop_columns, label=label)
        column = choose_label(file, label, list(self.kinds), self.label)
        self._check_columns(file, column)
        frame, y = read_frame(file, self.kinds, column)
        if y is not None:
            y = ready_labels(y, len(frame), source)
        table = Table(frame, y, None, column, source, file.format, file.n_bytes, 0.0)
        return self._encode(table, every_row)

    def check_features(self, table: Table) -> Table:
        """Return a table of numbers with the features of the model.

        Raises
        ------
        DataError
            The table has other features than the model, or counts them from another number.
        """
        if table.n_features != self.n_features:
            raise DataError(
                f"{table.source}: has {table.n_features} features; {self.source} has "
                f"{self.n_features} features"
            )
        check_names(table.source, table.feature_names, self.source, self.names)
        # The rows of a store cannot be read again; with --index-base the user decides about text.
        bases = {table.zero_based, self.zero_based}
        if table.format == "store" and bases == {False, True}:
            raise DataError(
                f"{table.source}: indices count from {int(not table.zero_based)}; those of "
                f"{self.source} count from {int(not self.zero_based)}"
            )
        return table

    def _check_columns(self, file: TableFile, label: str | None) -> None:
        """Raise DataError if a table lacks columns of the model, and report further columns."""
        missing = [name for name in self.kinds if name not in file.names]
        if missing:
            raise DataError(
                f"{file.name}: lacks columns of the model: {shorten(missing)}; its columns are "
                f"{shorten(file.names)}"
            )
        known = {*self.before.feature_names_in_, label}
        unknown = [name for name in file.names if name not in known]
        if unknown:
            message = (
                f"{file.name}: the model does not know these columns, which are left out: "
                f"{shorten(unknown)}"
            )
            print(message, file=sys.stderr)


def _fit_scaler(table: Table) -> StandardScaler:
    """Return the scaler of a table; sparse rows are divided only, so that zeros stay zero."""
    if table.format == "store":
        raise DataError(
            f"{table.source}: --standardize copies rows, but the rows of a store stay in its "
            "files: scale them before the store is made"
        )
    scaler = StandardScaler(with_mean=not sparse.issparse(table.X))
    return scaler.fit(table.X, sample_weight=table.sample_weight)


def strongest_words(model: Estimator, preparation: Preparation) -> dict[str, Any]:
    """Return the words and categories with the largest weights for each class, in words."""
    names = preparation.feature_names()
    if names is None or not hasattr(model, "top_features"):
        return {}
    words = {}
    for label, best in model.top_features(WORDS_SHOWN, names).items():
        words[f"for {label}"] = ", ".join(f"{name} {weight:+.3g}" for name, weight in best)
    return words
