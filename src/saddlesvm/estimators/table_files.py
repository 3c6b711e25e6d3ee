"""Files of tables and texts: read whole, or turned into a store of encoded rows in two passes of bounded memory.

The first pass learns an encoder from the table's parts: counts and sums.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from saddlesvm.data.blocks import position_of
from saddlesvm.data.column_kinds import SAMPLE, Found, Frame, as_text, found_in, joined, kind_of, typed
from saddlesvm.data.conversion import origin_of
from saddlesvm.data.errors import DataError
from saddlesvm.data.frame_files import FrameSource, first_frame, frame_source, taken_label
from saddlesvm.data.store import Store
from saddlesvm.data.store_writer import StoreWriter
from saddlesvm.data.table import Label, Task, is_number, ready_labels, shorten
from saddlesvm.estimators.table import TableEncoder, encoder_of, groups_of, joined_states
from saddlesvm.estimators.table_columns import State

WORD_BYTES = 200  # memory of a word that is counted: its text, its count, and its place in two tables
SHARE = 4  # of the memory, one part goes to the counts of words
FEWEST_WORDS = 1 << 14


class Learner:
    """Learns the state of an encoder from parts of a table.

    The state is that of a fit to all rows at once, but for rounding, as long as a text has no more different words than
    the memory holds. Beyond that the rarest ones are forgotten on the way, and those that are left may have counts that
    are too low (lossy counting: Manku and Motwani, VLDB 2002).

    Parameters
    ----------
    columns : mapping of str to str
        Names and kinds of the columns.
    memory : int
        Bytes; a quarter is for the counts of words.
    """

    def __init__(self, columns: Mapping[str, str], memory: int) -> None:
        self.columns, self.n_rows = dict(columns), 0
        self.groups = groups_of(columns)
        texts = sum(group.counts_words for group in self.groups)
        for group in self.groups:
            group.most = max(FEWEST_WORDS, memory // SHARE // WORD_BYTES // max(1, texts))

    def learn(self, frame: Frame) -> None:
        """Take in some rows.

        Raises
        ------
        DataError
            A column is missing, or a value is not of its column's kind.
        """
        names = list(self.columns)
        for group in self.groups:
            used = [names[place] for place in group.places]
            missing = [name for name in used if name not in frame.columns]
            if missing:
                raise DataError(f"columns are missing: {shorten(missing)}; the table has {shorten(frame.names)}")
            group.learn([typed(frame.columns[name], kind_of(self.columns[name], name), name) for name in used])
        self.n_rows += len(frame)

    def state(self) -> tuple[State, np.ndarray]:
        """The learnt state, as :func:`~saddlesvm.estimators.table.state_of` returns it."""
        if not self.n_rows:
            raise DataError("the table holds no rows; at least one is needed")
        return joined_states(self.columns, [group.learnt(self.n_rows) for group in self.groups])


FRAME_BYTES = 1 << 24  # of a file that is read whole
SAMPLE_BYTES = 1 << 24  # of the rows that tell the kinds, at most
PARTS = 64  # memory over bytes of text of a part: cells, words, and their counts take many times the text
ENCODER = "encoder"  # the field of a store's header with the encoder of its rows
Advance = Callable[[float], Any]


def read(
    source: str | os.PathLike[str],
    *,
    label: Label = None,
    header: bool | Literal["auto"] = "auto",
    drop_columns: Sequence[str | int] = (),
    task: Task | None = None,
) -> tuple[Frame, np.ndarray | None]:
    """Read a table whose columns may be of any kind, without pandas.

    Parameters
    ----------
    source : str or path
        CSV, TSV, JSON lines (plain or compressed), Parquet, Feather, or a folder with a folder of texts for each class.
    label, header, drop_columns, task
        As in :func:`saddlesvm.data.read`.

    Returns
    -------
    frame : Frame
        The columns, for :func:`encoder` and its pipelines.
    y : ndarray of shape (n,) or None
        The labels.

    Raises
    ------
    DataError
        The file cannot be read, or has no such label.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from saddlesvm import table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("city,age,bought\\nUlm,31,yes\\nBonn,,no\\n")
    >>> frame, y = table.read(path)
    >>> frame.names, y.tolist()
    (['city', 'age'], ['yes', 'no'])
    """
    opened = frame_source(os.fspath(source), header=header, drop=drop_columns, label=label)
    return read_all(opened, taken_label(opened, label), task)


def read_all(
    source: FrameSource, label: str | None, task: Task | None = None, advance: Advance | None = None
) -> tuple[Frame, np.ndarray | None]:
    """All rows of a file, and the labels in one of its columns.

    Raises
    ------
    DataError
        As :func:`read`.
    """
    parts = []
    for frame, share in source.frames(FRAME_BYTES):
        parts.append(frame)
        if advance is not None:
            advance(share)
    if not parts:
        raise DataError(f"{source.name}: holds no rows; at least one is needed")
    frame = joined(parts)
    if label is None:
        return frame, None
    y = labels_from(frame.columns[label], label, source.name)
    return frame.without(label), ready_labels(y, len(frame), source.name, task=task)


def labels_from(values: np.ndarray, label: str, source: str, before: int = 0) -> np.ndarray:
    """A column of labels: numbers where all of them are, else text.

    Raises
    ------
    DataError
        A label is missing, or is a list.
    """
    if values.ndim == 2:
        raise DataError(f"{source}: the column {label!r} holds lists; labels must be numbers or text")
    if values.dtype.kind == "f" and not np.isnan(values).any():
        return values
    texts = ["" if one is None else one.strip() for one in as_text(values).tolist()]
    gone = next((row for row, one in enumerate(texts) if one.lower() in _NO_LABEL), None)
    if gone is not None:
        raise DataError(f"{source}: row {before + gone + 1}: the label is missing; every row needs one in {label!r}")
    made = np.array(texts, dtype=str)
    return made.astype(np.float64) if all(map(is_number, set(texts))) else made


_NO_LABEL = frozenset({"", "?", "nan"})


def kinds_of(source: FrameSource, label: str | None, given: Mapping[str, str] | None = None) -> dict[str, Found]:
    """The kinds of a file's columns, from its first rows; the label's left out.

    Parameters
    ----------
    source : FrameSource
    label : str or None
    given : mapping of str to str, optional
        What columns are, by name, or by position in the file.

    Raises
    ------
    DataError
        There is no such column or kind, or no column is left.
    """
    frame = first_frame(source, SAMPLE_BYTES)[:SAMPLE]
    frame = frame if label is None else frame.without(label)
    names = source.names
    places = {key: position_of(key, names, len(names), source.name, "column") for key in given or {}}
    asked = {names[place]: str((given or {})[key]) for key, place in places.items()}
    if label in asked:
        raise DataError(f"{source.name}: {label!r} is the label column: give kinds to the other columns only")
    try:
        return found_in(frame, asked)
    except DataError as error:
        raise DataError(f"{source.name}: {error}") from None


def as_store(
    source: FrameSource,
    target: str | os.PathLike[str],
    label: str | None,
    found: Mapping[str, Found],
    *,
    memory: int,
    overwrite: bool = False,
    dtype: Any = None,
    advance: Advance | None = None,
) -> Store:
    """Encode a file of any size into a store, in two passes: one learns the encoding, the other writes encoded rows.

    The header of the store keeps the encoder, for models that are trained on it.

    Parameters
    ----------
    source : FrameSource
    target : str or path
        The folder to make.
    label : str or None
        The column of the labels.
    found : mapping of str to Found
        What the columns are.
    memory : int
        Approximate bytes for the rows under way, and for the words that are counted.
    overwrite : bool, default=False
    dtype : float32 or float64, optional
        Of the values; float64 by default.
    advance : callable, optional
        Called with the share that is done.

    Raises
    ------
    DataError
        The file cannot be read, or the store cannot be written.
    """
    report, n_bytes = advance or (lambda share: None), max(1 << 14, memory // PARTS)
    learner = Learner({name: str(one.kind) for name, one in found.items()}, memory)
    for frame, share in source.frames(n_bytes):
        with naming(source.name, learner.n_rows):
            learner.learn(frame)
        report(share / 2.0)
    state, idf = learner.state()
    encoder = encoder_of(state, idf)
    with StoreWriter(target, dtype=dtype or np.float64, overwrite=overwrite, label_name=label) as writer:
        for frame, share in source.frames(n_bytes):
            y = None if label is None else labels_from(frame.columns[label], label, source.name, writer.n_rows)
            with naming(source.name, writer.n_rows):
                X = encoder.transform(frame)
            writer.append(X, y)
            report((1.0 + share) / 2.0)
        writer.sources.append(origin_of(Path(source.name), source.format, writer.n_rows, source.n_bytes))
        writer.further[ENCODER] = {"state": state, "idf": idf.tolist(), "label": label}
    return Store(target)


@contextmanager
def naming(name: str, before: int) -> Iterator[None]:
    """Put the name of a file, and the number of its rows before, into errors about a part of it that lack them."""
    try:
        yield
    except DataError as error:
        after = f" (counted from row {before + 1} of the file)" if before else ""
        said = str(error) if str(error).startswith(f"{name}: ") else f"{name}: {error}"
        raise DataError(f"{said}{after}") from None


def stored_encoder(store: Store) -> TableEncoder | None:
    """The encoder of a store's rows; None where they are not those of an encoded table.

    Raises
    ------
    DataError
        The header holds one that this version cannot read.
    """
    noted = store.header.get(ENCODER)
    if noted is None:
        return None
    try:
        return encoder_of(noted["state"], np.array(noted["idf"], dtype=np.float64))
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{store.path}: its encoder cannot be read: {error}") from None
