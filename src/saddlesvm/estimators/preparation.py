"""Data for the command line: read for a training, prepared for a model, and read again for a saved model.

Rows are prepared as the training rows teach: tables with words by a ``ColumnTransformer``; numbers by filling gaps and,
if that is asked for, by a ``StandardScaler``. What was learnt stands before the model in a pipeline.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from saddlesvm.data import BUNDLED, DataError, Store, Table, convert, read
from saddlesvm.data.blocks import WHOLE, find_format
from saddlesvm.data.column_positions import LABEL_NAMES, check_names
from saddlesvm.data.frames import TABLE_FORMATS, choose_label, find_kinds, holds_words, open_table, read_frame
from saddlesvm.data.kinds import ChosenKind, Kind, parse_kind
from saddlesvm.data.missing_values import NOTE, Filling
from saddlesvm.data.readers import read_stores
from saddlesvm.data.reading import DEFAULT_READING, Reading
from saddlesvm.data.table import Label, Task, ready_labels, shorten
from saddlesvm.data.typed_columns import rows_without_gaps
from saddlesvm.estimators.column_passes import convert_table, stored_columns
from saddlesvm.estimators.columns import feature_names, kinds_in, step_before, transformers_for
from saddlesvm.problem.losses import LOSSES, make_loss, traits_of
from saddlesvm.rows.memory_plan import available_memory, memory_bytes

STANDARD_INPUT = "-"
CALLED = "standard input"
IN_MEMORY = 12  # memory over bytes of a file that is held at once: columns, and their encoding (estimated)
STORE_MEMORY = "256M"  # bytes that the rows take at most on their way into a store
PART_BYTES = 1 << 26  # of a file that is read for a model and encoded as it is read
LABEL = "label column"  # the note of a model with the name of its labels
WORDS_SHOWN = 8  # of each class, those that speak most for it
ONE_ROW_EACH = 50  # classes from which on it is odd if most of them have one row only (guessed)

Advance = Callable[[float], Any]


def read_training(
    source: str | Sequence[str],
    reading: Reading = DEFAULT_READING,
    *,
    task: Task | None = None,
    pairwise: bool = False,
    n_features: int | None = None,
    zero_based: bool | None = None,
    advance: Advance | None = None,
) -> Table:
    """Read the rows to train on.

    Parameters
    ----------
    source : str or sequence of str
        A file, a bundled set, "-" for standard input; or several stores.
    reading : Reading
        A table with words that needs more than `reading.memory` is encoded into a store, which
        lives as long as the table. :meth:`Preparation.learn` treats missing values.
    task : {"classification", "regression"}, optional
        As in :func:`saddlesvm.data.read`.
    pairwise : bool, default=False
        Whether the rows are values of a kernel.
    n_features : int, optional
        The number of features of a model; the rows are then a table of numbers.
    zero_based : bool, optional
        How the indices of other data of the same model count, if `reading.index_base` is "auto".
    advance : callable, optional
        Called with the share that was read.

    Returns
    -------
    Table
        `X` is a matrix, or the rows of a store, or, for a table with words, a data frame.

    Raises
    ------
    DataError
        The data cannot be read so.
    """
    if not isinstance(source, str):
        return with_columns(read_stores(list(source), task, reading.memory, n_features))
    if source == STANDARD_INPUT:

        def read_copy(path: str) -> Table:
            return read_training(
                path,
                reading,
                task=task,
                pairwise=pairwise,
                n_features=n_features,
                zero_based=zero_based,
                advance=advance,
            )

        return _from_standard_input(read_copy)
    check_columns_apply(source, reading)
    if n_features is None and is_table_with_words(source, reading):
        if reading.scale != 1.0:
            raise DataError(
                f"{source}: has columns of words, whose numbers are scaled by their spread: leave --scale out"
            )
        return _read_table(source, reading, task, advance)
    counts_from_zero = reading.index_base
    if reading.index_base == "auto" and zero_based is not None:
        counts_from_zero = zero_based
    table = read(
        source,
        label=reading.label,
        header=reading.header,
        drop_columns=reading.drop_columns,
        scale=reading.scale,
        n_features=n_features,
        task=task,
        missing="error" if reading.missing in (None, "error") else "keep",
        zero_based=counts_from_zero,
        advance=advance,
    )
    table = with_columns(table)
    return kernel_values(table) if pairwise and n_features is None else table


def check_columns_apply(source: str, reading: Reading) -> None:
    """Raise DataError if kinds of columns are given for a source that is no table."""
    if reading.columns:
        form = find_format(source)
        if form not in TABLE_FORMATS:
            kind = "a bundled set of numbers" if form == "bundled" else form
            raise DataError(f"{source}: is {kind}; --columns is for tables ({', '.join(TABLE_FORMATS)}): leave it out")


def is_table_with_words(source: str, reading: Reading) -> bool:
    """Return True if the source has columns of words, or kinds of columns are given."""
    if reading.columns:
        return True
    return holds_words(source, reading.header, reading.drop_columns, reading.label)


def _read_table(source: str, reading: Reading, task: Task | None, advance: Advance | None) -> Table:
    """Read a table with words: a data frame, or the rows of a store if it needs too much memory."""
    began = time.perf_counter()
    file = open_table(source, header=reading.header, drop=reading.drop_columns, label=reading.label)
    column = choose_label(file, reading.label)
    found = find_kinds(file, column, dict(reading.columns))
    learnt = {name: str(one.kind) for name, one in found.items() if one.kind.name != "drop"}
    facts = facts_of_columns(found)
    if reading.memory is None:
        memory = available_memory() // 2
    else:
        memory = memory_bytes(reading.memory)
    if IN_MEMORY * file.n_bytes > memory:
        # Encode the table into a store, which is removed when nothing refers to it any more.
        folder = tempfile.mkdtemp(prefix="saddlesvm-")
        store = convert_table(
            file,
            Path(folder, "rows.store"),
            column,
            found,
            memory=memory,
            missing=reading.missing,
            advance=advance,
        )
        weakref.finalize(store, shutil.rmtree, folder, ignore_errors=True)
        table = with_columns(_table_of_store(store, task))
        return replace(
            table,
            column_facts=facts,
            source=source,
            format=file.format,
            n_bytes=file.n_bytes,
            label_name=column,
        )
    kinds = {name: one.kind for name, one in found.items()}
    frame, y = read_frame(file, kinds, column, advance)
    if y is not None:
        y = ready_labels(y, len(frame), source, task=task)
    seconds = time.perf_counter() - began
    table = Table(frame, y, None, column, source, file.format, file.n_bytes, seconds)
    return replace(table, kinds=learnt, column_facts=facts)


def _table_of_store(store: Any, task: Task | None) -> Table:
    """The table of an open store."""
    y = None if store.y is None else ready_labels(store.y, len(store), str(store.path), task=task)
    return Table(
        store.matrix(None), y, None, store.header.get("label_name"), str(store.path), "store", store.n_bytes, 0.0,
        known_nonzero=store.header.get("n_nonzero"), sample_weight=store.sample_weight, stores=(store,),
    )  # fmt: skip


def read_any(source: str, reading: Reading) -> Table:
    """Read data to describe them: as :func:`read_training`, but missing values are kept."""
    return read_training(source, replace(reading, missing="keep"))


def read_numbers(source: str | Sequence[str], reading: Reading, n_features: int, task: Task | None = None) -> Table:
    """Read rows of numbers as they are, with so many features."""
    return read_training(source, reading, n_features=n_features, task=task)


def with_columns(table: Table) -> Table:
    """The table of stores, with what encoded their rows.

    Raises
    ------
    DataError
        The rows of several stores were not encoded alike.
    """
    if not table.stores:
        return table
    found = [stored_columns(store) for store in table.stores]
    if found[0] is None and not any(found):
        return table
    names = [None if one is None else feature_names(one) for one in found]
    if any(one != names[0] for one in names):
        raise DataError(f"{table.source}: their rows are not encoded alike; convert the tables into one store")
    kinds = {name: str(kind) for name, kind in (kinds_in(found[0]) or {}).items()}
    return replace(table, before=found[0], column_facts=[f"{name}: {kind}" for name, kind in kinds.items()])


def columns_of_store(store: Store) -> list[str] | None:
    """The columns of the table that a store was made of, and their kinds, in words; None for other rows."""
    return with_columns(_table_of_store(store, None)).column_facts


def facts_of_columns(found: Mapping[str, ChosenKind]) -> list[str]:
    """The kind of each column, and the reason, in words."""
    return [f"{name}: {one.kind}" + (f" ({one.why})" if one.why else "") for name, one in found.items()]


def _from_standard_input(use: Callable[[str], Table]) -> Table:
    """Read what comes on standard input, by way of a temporary file: the readers read data more than once."""
    if sys.stdin is None:
        raise DataError(f"{CALLED}: is closed")
    handle, path = tempfile.mkstemp(prefix="saddlesvm-")
    try:
        with os.fdopen(handle, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return replace(use(path), source=CALLED)
    except DataError as error:
        raise DataError(str(error).replace(path, CALLED)) from None
    finally:
        os.unlink(path)


def labels_of(table: Table) -> np.ndarray:
    """The labels of a table; raises DataError if it has none."""
    if table.y is None:
        raise DataError(f"{table.source}: no labels found; name their column with --label")
    return table.y


def check_classes(table: Table) -> None:
    """Raise DataError if the labels are no classes: numbers with fractions, or nearly a class for each row."""
    y = table.y
    if y is None:
        return
    column = "" if table.label_name is None else f" in the column {table.label_name!r}"
    losses = ", ".join(name for name in LOSSES if traits_of(make_loss(name)).task == "regression")
    advice = f"for a regression name its loss, --loss with one of {losses}; for classes name their column with --label"
    if y.dtype.kind == "f" and (y == np.floor(y)).all():
        raise DataError(
            f"{table.source}: has whole labels{column} of 2^53 or more, which numbers of 64 bits take for one "
            "another: write them as text, with a letter before the digits"
        )
    if y.dtype.kind == "f":
        raise DataError(
            f"{table.source}: has {np.unique(y).size:,} different numbers with fractions for labels{column}, from "
            f"{y.min():g} to {y.max():g}: {advice}"
        )
    counts = np.unique(y, return_counts=True)[1]
    alone = int((counts == 1).sum())
    if alone >= ONE_ROW_EACH and alone > table.n_rows / 2:
        raise DataError(
            f"{table.source}: has {counts.size:,} different labels{column}, and {alone:,} of {table.n_rows:,} rows "
            f"have one of their own: {advice}"
        )


def label_words(table: Table, label: Label) -> str | None:
    """The column that was taken for the labels, in words; None if the format leaves no choice."""
    if table.y is None or table.format not in TABLE_FORMATS or table.source in BUNDLED:
        return None
    name = str(table.label_name)
    words = f"column {name!r}"
    number = name.removeprefix("column ")
    if name.startswith("column ") and number.isdigit():
        words = f"{name} (--label {int(number) - 1})"
    if label is not None:
        return words
    how = "by its name" if name.lower() in LABEL_NAMES else "the last one"
    return f"{words}, {how} (--label takes another)"


def kernel_values(table: Table, training_rows: int | None = None) -> Table:
    """The table as a dense matrix of kernel values, shape (rows, training rows).

    A line of LIBSVM's format for them is ``LABEL 0:NUMBER 1:K(x, x_1) 2:K(x, x_2) ...``, with the number of the row.

    Parameters
    ----------
    table : Table
    training_rows : int, optional
        Of the model; those of the table, whose matrix is square, by default.

    Raises
    ------
    DataError
        Another number of values a row, or training rows that are not numbered from 1 on.
    """
    if table.kinds is not None:
        raise DataError(f"{table.source}: has columns of words; --kernel precomputed takes values of a kernel")
    count = table.n_rows if training_rows is None else training_rows
    values = table.X.toarray() if sparse.issparse(table.X) else np.asarray(table.X)
    if table.zero_based and values.shape[1] == count + 1:
        if training_rows is None and not np.array_equal(values[:, 0], np.arange(1, count + 1)):
            raise DataError(f"{table.source}: the numbers of the rows (0:NUMBER) must be 1, 2, ..., {count}")
        values = values[:, 1:]
    if values.shape[1] != count:
        raise DataError(
            f"{table.source}: has {values.shape[1]} kernel values a row; {count} are needed, one for each training row"
        )
    return replace(table, X=np.ascontiguousarray(values), feature_names=None, known_nonzero=None)


@dataclass
class Preparation:
    """What the training rows taught about the preparation of rows, the same for all data of a model.

    Attributes
    ----------
    before : transformer or None
        Fitted; what stands before the model in a pipeline.
    filling : Filling
        What happens to gaps in a matrix of numbers.
    missing : str or None
        What happens to gaps in a table with words.
    kinds : dict of str to Kind
        Of the columns of a table with words; empty for other data.
    label : str or None
        The column of the labels in the training data.
    source : str
        Where the training rows, or the model, came from.
    n_features : int or None
        Of the rows of a matrix, as they are read.
    names : list of str, or None
        Theirs.
    zero_based : bool or None
        How the indices of the training data counted.
    pairwise : bool
        Whether rows are values of a kernel.
    left_out : int
        Rows of the training data that were left out.
    told : dict
        What was done to gaps of the training data, in words.
    encoded : tuple or None
        The training rows and their encoding, until they are asked for: both come from one pass.
    """

    before: Any = None
    filling: Filling = field(default_factory=Filling)
    missing: str | None = None
    kinds: dict[str, Kind] = field(default_factory=dict)
    label: str | None = None
    source: str = ""
    n_features: int | None = None
    names: list[str] | None = None
    zero_based: bool | None = None
    pairwise: bool = False
    left_out: int = 0
    told: dict[str, Any] = field(default_factory=dict)
    encoded: tuple[Any, Any] | None = None

    @classmethod
    def learn(
        cls, table: Table, *, missing: str | None = None, standardize: bool = False, pairwise: bool = False
    ) -> Preparation:
        """Learn from the training rows.

        Parameters
        ----------
        table : Table
            Of :func:`read_training`, without rows that are held out.
        missing : {"error", "drop", "mean", "median"}, optional
            An error by default; in tables with words, numbers are filled with the mean by default.
        standardize : bool, default=False
            Scale numbers; those of tables with words are scaled in any case.
        pairwise : bool, default=False
            Whether rows are values of a kernel.

        Raises
        ------
        DataError
            There are gaps that may not be, or a feature without any value.
        """
        made = cls(
            label=table.label_name, source=table.source, zero_based=table.zero_based, pairwise=pairwise,
            names=table.feature_names, n_features=None if table.kinds is not None else table.n_features,
        )  # fmt: skip
        if table.kinds is not None:
            made.kinds = {name: parse_kind(kind, name) for name, kind in table.kinds.items()}
            made.missing = missing
            kept = rows_without_gaps(table.X, made.kinds, missing, table.source, 0)
            frame = table.X if kept is None else table.X[kept]
            if not len(frame):
                raise DataError(f"{table.source}: every row has missing values: none is left")
            made.before = transformers_for(table.kinds, "median" if missing == "median" else "mean")
            made.encoded = (table.X, made.before.fit_transform(frame))
            made.n_features = len(made.before.get_feature_names_out())
            return made
        if table.before is not None:
            made.before = table.before
            made.kinds = kinds_in(table.before) or {}
            return made
        made.filling = Filling.learn_from_table(missing or "error", table)
        if standardize:
            filled = Filling(made.filling.how, made.filling.values).fill_table(table)
            made.before = _scaler_of(filled)
        return made

    @classmethod
    def of_saved(cls, model: Any, source: str = "the model") -> tuple[Any, Preparation]:
        """The estimator of a model that was loaded, and the preparation of its data.

        Raises
        ------
        DataError
            The steps before the estimator are not made for files.
        """
        before = step_before(model) if isinstance(model, Pipeline) else None
        estimator = model[-1] if isinstance(model, Pipeline) else model
        notes = getattr(estimator, "notes_", {})
        made = cls(
            before=before, label=notes.get(LABEL), source=source, zero_based=notes.get("zero_based"),
            pairwise=getattr(estimator, "kernel", None) == "precomputed", n_features=estimator.n_features_in_,
        )  # fmt: skip
        if isinstance(before, ColumnTransformer):
            kinds = kinds_in(before)
            if kinds is None:
                raise DataError(f"{source}: its ColumnTransformer was made by hand: predict with it in Python")
            made.kinds = kinds
            made.missing = notes.get(NOTE, {}).get("how")
            return estimator, made
        if before is not None and not isinstance(before, StandardScaler):
            kind = type(before).__name__
            raise DataError(f"{source}: its rows go through a {kind} first: predict with it in Python")
        names = getattr(estimator, "feature_names_in_", None)
        made.names = None if names is None else list(names)
        made.filling = Filling.from_notes(notes)
        if made.pairwise:
            made.n_features = made.n_features if "rows" in notes else None
        return estimator, made

    @classmethod
    def of_stores(cls, stores: Sequence[Store]) -> Preparation:
        """The preparation of rows that workers read from stores, where they were prepared."""
        before = stored_columns(stores[0])
        return cls(
            before=before, kinds=(kinds_in(before) or {}) if before is not None else {},
            filling=Filling.from_stores(stores), label=stores[0].header.get("label_name"),
            zero_based=stores[0].zero_based, n_features=stores[0].shape[1],
        )  # fmt: skip

    @property
    def notes(self) -> dict[str, Any]:
        """The notes for a model file."""
        noted: dict[str, Any] = dict(self.filling.notes)
        if self.kinds:
            noted[LABEL] = self.label
            if self.missing is not None:
                noted[NOTE] = {"how": self.missing, "values": []}
        if self.zero_based is not None:
            noted["zero_based"] = self.zero_based
        return noted

    @property
    def facts(self) -> dict[str, Any]:
        """What was done to gaps, in words."""
        if self.kinds:
            return {"rows left out for missing values": self.left_out} if self.missing == "drop" else {}
        return self.told

    @property
    def columns(self) -> list[str] | None:
        """The columns of a table with words, and their kinds, in words; None for other data."""
        return [f"{name}: {kind}" for name, kind in self.kinds.items()] or None

    def feature_names(self) -> list[str] | None:
        """Names of the features for people, if rows are encoded."""
        return feature_names(self.before) if self.kinds else None

    def behind(self, model: Any) -> Any:
        """The model as it is to be used and saved: a pipeline if something stands before it."""
        if self.before is None:
            return model
        made = make_pipeline(self.before, model)
        if hasattr(model, "notes_"):
            made.notes_ = model.notes_
        return made

    def apply(self, table: Table, *, every_row: bool = False) -> Table:
        """A table with its rows prepared: `X` is a matrix.

        Parameters
        ----------
        table : Table
        every_row : bool, default=False
            Whether rows with gaps may not be left out.

        Raises
        ------
        DataError
            There are gaps that may not be, or no row is left.
        """
        if self.kinds and hasattr(table.X, "iloc"):
            return self._encode(table, every_row)
        if self.kinds:
            return table
        table = self.filling.fill_table(table, every_row)
        if not self.told and not sparse.issparse(table.X) and table.format != "store":
            self.told = self.filling.facts
        if self.before is None or table.format == "store":
            return table
        return replace(table, X=self.before.transform(table.X), known_nonzero=None)

    def _encode(self, table: Table, every_row: bool) -> Table:
        """A table with words, encoded; its columns stay in `frame`."""
        # The training rows were encoded while their columns were learnt.
        ready = None
        if self.encoded is not None and self.encoded[0] is table.X:
            ready = self.encoded
        how = "error" if self.missing == "drop" and every_row else self.missing
        kept = rows_without_gaps(table.X, self.kinds, how, table.source, 0)
        if kept is not None:
            self.left_out = self.left_out or int((~kept).sum())
            if not kept.any():
                raise DataError(f"{table.source}: every row has missing values: none is left")
            table = table.rows(np.flatnonzero(kept))
        if ready is None:
            X = self.before.transform(table.X)
        else:
            X = ready[1]
            self.encoded = None
        return replace(table, X=X.tocsr() if sparse.issparse(X) else X, frame=table.X, kinds=None)

    def read(
        self,
        source: str | Sequence[str],
        reading: Reading = DEFAULT_READING,
        *,
        task: Task | None = None,
        every_row: bool = False,
        advance: Advance | None = None,
    ) -> Table:
        """Read other data of the model, and prepare them.

        Parameters
        ----------
        source, task, advance
            As in :func:`read_training`.
        reading : Reading
            The label column is that of the training data by default. Kinds of columns and what is
            done about missing values are known already: `columns` and `missing` are ignored.
        every_row : bool, default=False
            Whether rows with missing values may not be left out.

        Raises
        ------
        DataError
            The data cannot be read, or have other features than the model.
        """
        if not self.kinds:
            width = self.n_features
            if width is not None and self.pairwise and self.zero_based is True:
                width += 1  # the numbers of the rows
            table = read_training(
                source,
                replace(reading, columns=(), missing=self.filling.how),
                task=task,
                n_features=width,
                zero_based=self.zero_based,
                advance=advance,
            )
            return self.apply(self.checked(table), every_row=every_row)
        if not isinstance(source, str):
            return self._same_encoding(with_columns(read_stores(list(source), task)))
        if source == STANDARD_INPUT:

            def read_copy(path: str) -> Table:
                return self.read(path, reading, task=task, every_row=every_row, advance=advance)

            return _from_standard_input(read_copy)
        if find_format(source) == "store":
            return self._same_encoding(with_columns(read(source, task=task)))
        return self._read_encoded(source, reading, task, every_row, advance)

    def checked(self, table: Table) -> Table:
        """A table of numbers, as values of a kernel if the model takes them; raises DataError for other features."""
        if self.pairwise:
            return kernel_values(table, self.n_features or table.n_features - (table.zero_based is True))
        if table.n_features != self.n_features:
            raise DataError(
                f"{table.source}: has {table.n_features} features; {self.source} has {self.n_features} features"
            )
        check_names(table.source, table.feature_names, self.source, self.names)
        return table

    def _read_encoded(
        self,
        source: str,
        reading: Reading,
        task: Task | None,
        every_row: bool,
        advance: Advance | None,
    ) -> Table:
        """Read a table with words, and encode it part by part."""
        began = time.perf_counter()
        label = reading.label
        file = open_table(source, header=reading.header, drop=reading.drop_columns, label=label)
        column = choose_label(file, label, list(self.kinds), self.label)
        missing = [name for name in self.kinds if name not in file.names]
        extra = [name for name in file.names if name not in self.before.feature_names_in_ and name != column]
        if missing:
            raise DataError(
                f"{source}: lacks columns of the model: {shorten(missing)}; its columns are {shorten(file.names)}"
            )
        if extra:
            said = f"{source}: the model does not know these columns, which are left out: {shorten(extra)}"
            print(said, file=sys.stderr)
        parts = []
        n_bytes = WHOLE if file.n_bytes < PART_BYTES else PART_BYTES
        for frame, y, share in file.read_typed(n_bytes, self.kinds, column):
            if y is not None:
                y = ready_labels(y, len(frame), source, task=task)
            part = Table(frame, y, None, column, source, file.format, file.n_bytes, 0.0)
            if len(frame):
                parts.append(self._encode(part, every_row))
            if advance is not None:
                advance(share)
        if not parts:
            raise DataError(f"{source}: holds no rows; at least one is needed")
        X = [part.X for part in parts]
        y = None if column is None else np.concatenate([part.y for part in parts if part.y is not None])
        seconds = time.perf_counter() - began
        whole = sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.vstack(X)
        return replace(parts[0], X=whole, y=y, seconds=seconds, frame=None)

    def _same_encoding(self, table: Table) -> Table:
        """A store whose rows were encoded as the model's are."""
        if table.before is None or feature_names(table.before) != feature_names(self.before):
            raise DataError(f"{table.source}: its rows are not encoded as those of the model; give the table itself")
        return table


def _scaler_of(table: Table) -> StandardScaler:
    """The scaler of the rows of a table; sparse rows are divided only, so that zeros stay."""
    if table.format == "store":
        raise DataError(f"{table.source}: --standardize copies rows; those of a store stay in their files")
    return StandardScaler(with_mean=not sparse.issparse(table.X)).fit(table.X, sample_weight=table.sample_weight)


def strongest_words(model: Any, preparation: Preparation) -> dict[str, Any]:
    """The words and categories that speak most for each class of a linear model, in words."""
    names = preparation.feature_names()
    if names is None or not hasattr(model, "top_features"):
        return {}
    return {
        f"for {label}": ", ".join(f"{name} {weight:+.3g}" for name, weight in best)
        for label, best in model.top_features(WORDS_SHOWN, names).items()
    }


def make_store(
    sources: Sequence[str],
    path: str,
    reading: Reading = DEFAULT_READING,
    *,
    dtype: Any = None,
    n_features: int | None = None,
    overwrite: bool = False,
    advance: Advance | None = None,
) -> Store:
    """Write files of any size into one store; a table with words is encoded on its way.

    Parameters
    ----------
    sources : sequence of str
        Several files of numbers, or one table with words.
    path : str
        The folder to make.
    reading : Reading
        As in :func:`read_training`; `memory` is 256 MiB by default.
    dtype, n_features, overwrite
        As in :func:`saddlesvm.data.convert`.
    advance : callable, optional
        Called with the share that was read.

    Raises
    ------
    DataError
        The files cannot be read, or several have words, each of which would have an encoding of its own.
    """
    memory = memory_bytes(STORE_MEMORY if reading.memory is None else reading.memory)
    if not any(is_table_with_words(source, reading) for source in sources):
        how: Any = reading.missing or "error"
        return convert(
            sources,
            path,
            label=reading.label,
            header=reading.header,
            drop_columns=reading.drop_columns,
            dtype=dtype,
            n_features=n_features,
            overwrite=overwrite,
            memory=memory,
            missing=how,
            scale=reading.scale,
            zero_based=reading.index_base,
            advance=advance,
        )
    first = sources[0]
    if len(sources) > 1:
        raise DataError(
            f"{first}: has columns of words, whose encoding is learnt from one file: convert each such file alone"
        )
    if n_features is not None or reading.scale != 1.0:
        option = "--scale" if n_features is None else "--n-features"
        raise DataError(f"{first}: has columns of words, which {option} does not work with: leave it out")
    file = open_table(first, header=reading.header, drop=reading.drop_columns, label=reading.label)
    column = choose_label(file, reading.label)
    return convert_table(
        file,
        path,
        column,
        find_kinds(file, column, dict(reading.columns)),
        memory=memory,
        missing=reading.missing,
        overwrite=overwrite,
        dtype=dtype,
        advance=advance,
    )
