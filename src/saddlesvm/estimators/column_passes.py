"""Tables larger than memory as a store of encoded rows, in two passes.

scikit-learn's transformers of categories and texts have no ``partial_fit``. The first pass over a file therefore
collects what they would learn (categories, in how many rows each word occurs, means and spreads) and sets it on them;
the second pass encodes.
"""

from __future__ import annotations

import base64
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from saddlesvm.data.conversion import describe_origin
from saddlesvm.data.errors import DataError
from saddlesvm.data.frames import TableFile
from saddlesvm.data.kinds import ChosenKind, as_objects
from saddlesvm.data.store import Store
from saddlesvm.data.store_writer import StoreWriter
from saddlesvm.data.typed_columns import rows_without_gaps
from saddlesvm.estimators.columns import ALONE, Dates, columns_from_bytes, columns_to_bytes, transformers_for

WORD_BYTES = 200  # memory of a word that is counted: its text, its count, and its place in two tables (estimated)
SHARE = 4  # of the memory, one part goes to the counts of words
FEWEST_WORDS = 1 << 14
PARTS = 64  # memory over bytes of text of a part: cells, words and their counts take many times the text (measured)
COLUMNS = "columns"  # the field of a store's header with what encoded its rows

Advance = Callable[[float], Any]


class ColumnLearner:
    """Learns a ``ColumnTransformer`` from parts of a table.

    The result is that of a fit to all rows at once, but for rounding, as long as a text has no more different words
    than the memory holds. Beyond that the rarest words are forgotten on the way, and those that are left may have
    counts that are too low (lossy counting: Manku and Motwani, VLDB 2002).

    Parameters
    ----------
    kinds : mapping of str to str
        Names and kinds of the columns.
    memory : int
        Bytes; a quarter is for the counts of words.
    """

    def __init__(self, kinds: Mapping[str, str], memory: int) -> None:
        self.columns = transformers_for(kinds)
        self.n_rows = 0
        self.first: Any = None
        self.categories: dict[str, set[str]] = {}
        self.words: dict[str, Counter[str]] = {}
        self.analyzers: dict[str, Callable[[str], list[str]]] = {}
        self.scalers: dict[str, StandardScaler] = {}
        for called, transformer, names in self.columns.transformers:
            if isinstance(transformer, OneHotEncoder):
                self.categories.update((name, set()) for name in names)
            elif called.startswith(ALONE[:2]):
                self.words[called] = Counter()
                self.analyzers[called] = transformer.build_analyzer()
            elif isinstance(transformer, Pipeline):
                self.scalers[called] = StandardScaler()
        self.most_words = max(FEWEST_WORDS, memory // SHARE // WORD_BYTES // max(1, len(self.words)))

    def learn(self, frame: Any) -> None:
        """Take in some rows."""
        if not len(frame):
            return
        if self.first is None:
            self.first = frame.iloc[:2]
        for called, transformer, names in self.columns.transformers:
            if called in self.scalers:
                self.scalers[called].partial_fit(frame[names].to_numpy(np.float64))
            elif called in self.words:
                self._count(called, frame[names])
            elif isinstance(transformer, OneHotEncoder):
                for name in names:
                    self.categories[name].update(frame[name].unique().tolist())
            elif called.startswith("date"):
                transformer.partial_fit(frame[names])
            else:
                transformer.fit(frame[names])
        self.n_rows += len(frame)

    def _count(self, called: str, texts: Any) -> None:
        """Count the rows of each word; forget the rarest if the memory does not hold all."""
        counts = self.words[called]
        analyze = self.analyzers[called]
        for text in texts.tolist():
            counts.update(set(analyze(text)))
            while len(counts) > self.most_words:
                least = min(counts.values())
                counts = Counter({word: count for word, count in counts.items() if count > least})
        self.words[called] = counts

    def learnt(self) -> ColumnTransformer:
        """The fitted transformer.

        Raises
        ------
        DataError
            There are no rows, or a text holds no words.
        """
        if not self.n_rows:
            raise DataError("the table holds no rows; at least one is needed")
        learnt = {}
        for called, transformer, names in self.columns.transformers:
            if called in self.scalers:
                learnt[called] = self._numbers(transformer, self.scalers[called], names)
            elif called in self.words:
                learnt[called] = self._text(transformer, self.words[called], names)
            elif isinstance(transformer, OneHotEncoder):
                learnt[called] = _categories(transformer, {name: sorted(self.categories[name]) for name in names})
            else:
                learnt[called] = transformer
        return self._assemble(learnt)

    def _numbers(self, transformer: Pipeline, seen: StandardScaler, names: list[str]) -> Pipeline:
        """Set means, gaps and spreads: gaps are filled with the mean, and so have no spread of their own."""
        import pandas as pd

        imputer, scaler = transformer[0], transformer[1]
        counts = np.broadcast_to(seen.n_samples_seen_, seen.mean_.shape).astype(np.float64)
        mean = np.nan_to_num(seen.mean_)
        var = np.nan_to_num(seen.var_) * counts / self.n_rows
        gaps = np.flatnonzero(counts < self.n_rows)
        # a fit to two rows with the same gaps makes every attribute; the numbers are set afterwards
        rows = np.zeros((2, mean.size))
        rows[1, gaps] = np.nan
        transformer.fit(pd.DataFrame(rows, columns=names))
        imputer.statistics_ = mean
        shares = 1.0 - counts[gaps] / self.n_rows
        scaler.mean_ = np.concatenate([mean, shares])
        scaler.var_ = np.concatenate([var, shares * (1.0 - shares)])
        eps = np.finfo(np.float64).eps
        rounding = self.n_rows * eps * scaler.var_ + (self.n_rows * scaler.mean_ * eps) ** 2
        scaler.scale_ = np.where(scaler.var_ > rounding, np.sqrt(scaler.var_), 1.0)
        scaler.n_samples_seen_ = self.n_rows
        return transformer

    def _text(self, transformer: Any, counts: Counter[str], name: str) -> Any:
        """Set the vocabulary and the inverse document frequencies."""
        if not counts:
            raise DataError(f"the text column {name!r} holds no words; say --columns {name}=drop or {name}=category")
        words = sorted(counts)
        transformer.vocabulary_ = {word: place for place, word in enumerate(words)}
        transformer.fixed_vocabulary_ = False
        frequencies = np.array([counts[word] for word in words], dtype=np.float64)
        transformer.idf_ = np.log((1.0 + self.n_rows) / (1.0 + frequencies)) + 1.0
        return transformer

    def _assemble(self, learnt: Mapping[str, Any]) -> ColumnTransformer:
        """Fit the whole to two rows, for its own attributes, and put the learnt transformers in."""
        import pandas as pd

        rows = self.first
        given = self.columns.transformers
        plain = pd.DataFrame(np.zeros(rows.shape), columns=rows.columns)
        columns = ColumnTransformer(
            [(called, "passthrough", [names] if isinstance(names, str) else names) for called, _, names in given],
            sparse_threshold=1.0,
        ).fit(plain)
        columns.transformers = [(called, learnt[called], names) for called, _, names in given]
        rest = [one for one in columns.transformers_ if one[0] not in learnt]
        columns.transformers_ = [*columns.transformers, *rest]
        columns.sparse_output_ = any(
            called in self.words or isinstance(one, (OneHotEncoder, Dates)) for called, one in learnt.items()
        )
        start = 0
        for called, transformer, names in columns.transformers_:
            if called in learnt:
                width = transformer.transform(rows[names]).shape[1]
                columns.output_indices_[called] = slice(start, start + width)
                start += width
        columns.output_indices_["remainder"] = slice(0, 0)
        return columns


def _categories(transformer: OneHotEncoder, found: Mapping[str, list[str]]) -> OneHotEncoder:
    """Set the categories of each column, by a fit to rows that have them all."""
    import pandas as pd

    longest = max(map(len, found.values()))
    rows = {name: as_objects(one + [one[-1]] * (longest - len(one))) for name, one in found.items()}
    return transformer.fit(pd.DataFrame(rows, dtype=object))


def convert_table(
    file: TableFile,
    target: str | os.PathLike[str],
    label: str | None,
    found: Mapping[str, ChosenKind],
    *,
    memory: int,
    missing: str | None = None,
    overwrite: bool = False,
    dtype: Any = None,
    advance: Advance | None = None,
) -> Store:
    """Encode a file of any size into a store, in two passes: one learns the encoding, the other writes encoded rows.

    The header of the store keeps what encoded them, for models that are trained on it.

    Parameters
    ----------
    file : TableFile
    target : str or path
        The folder to make.
    label : str or None
        The column of the labels.
    found : mapping of str to ChosenKind
        What the columns are.
    memory : int
        Approximate bytes for the rows under way, and for the words that are counted.
    missing : {"error", "drop", "mean"}, optional
        What happens to gaps; numbers are filled with the mean by default.
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
    if missing == "median":
        raise DataError(f"{file.name}: --missing median needs all rows in memory: give mean, or leave --memory out")
    report = advance or (lambda share: None)
    n_bytes = max(1 << 14, memory // PARTS)
    kinds = {name: one.kind for name, one in found.items()}
    learner = ColumnLearner({name: str(kind) for name, kind in kinds.items()}, memory)
    seen = 0
    for frame, _, share in file.read_typed(n_bytes, kinds):
        kept = rows_without_gaps(frame, kinds, missing, file.name, seen)
        learner.learn(frame if kept is None else frame[kept])
        seen += len(frame)
        report(share / 2.0)
    columns = learner.learnt()
    with StoreWriter(target, dtype=dtype or np.float64, overwrite=overwrite, label_name=label) as writer:
        for frame, y, share in file.read_typed(n_bytes, kinds, label):
            kept = rows_without_gaps(frame, kinds, missing, file.name, 0)
            if kept is not None:
                frame = frame[kept]
                y = None if y is None else y[kept]
            if len(frame):
                encoded = columns.transform(frame)
                writer.append(encoded.tocsr() if hasattr(encoded, "tocsr") else encoded, y)
            report((1.0 + share) / 2.0)
        writer.sources.append(describe_origin(Path(file.name), file.format, writer.n_rows, file.n_bytes))
        writer.further[COLUMNS] = base64.b64encode(columns_to_bytes(columns)).decode("ascii")
    return Store(target)


def stored_columns(store: Store) -> ColumnTransformer | None:
    """What encoded the rows of a store; None if they are not those of a table.

    Raises
    ------
    DataError
        The header holds one that cannot be read.
    """
    noted = store.header.get(COLUMNS)
    if noted is None:
        return None
    try:
        return columns_from_bytes(base64.b64decode(noted, validate=True))
    except (ValueError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{store.path}: {error}") from None
