"""Encode tables larger than memory into a store, in two passes.

scikit-learn's transformers of categories and texts have no ``partial_fit``. So the first pass over
a file collects what they would learn (categories, in how many rows each word occurs, means and
spreads) and sets it on them; the second pass encodes.
"""

from __future__ import annotations

import base64
import os
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from saddlesvm.data.errors import DataError
from saddlesvm.data.frames import TableFile
from saddlesvm.data.kinds import ChosenKind
from saddlesvm.data.store import Store
from saddlesvm.data.store_writer import StoreWriter
from saddlesvm.data.typed_columns import as_objects, rows_without_gaps
from saddlesvm.estimators.columns import columns_from_bytes, columns_to_bytes, transformers_for

# Bytes of memory of a word that is counted: its text, its count, its place in two tables; a guess.
WORD_BYTES = 200
COUNTS_SHARE = 4  # one part of so many of the memory is for the counts of words; a guess
FEWEST_WORDS = 1 << 14  # words that are counted in any memory; a guess
LEAST_PART_BYTES = 1 << 14  # bytes of text that are read at a time in any memory; a guess
# Memory over bytes of text of a part: cells, words and their counts take many times the text.
# Measured.
PARTS = 64
NOTE = "missing values"  # the field of a store's header, and of a model's notes, about gaps
COLUMNS = "columns"  # the field of a store's header with what encoded its rows

Advance = Callable[[float], Any]


class ColumnLearner:
    """Learns a ``ColumnTransformer`` from parts of a table.

    The result is that of a fit to all rows at once, except for rounding, if a text has no more
    different words than the memory holds. Otherwise the rarest words are forgotten on the way, and
    other words may have counts that are too low (lossy counting: Manku and Motwani, VLDB 2002).

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
        # What must be learnt part by part: the categories of a column, counts of words, means and
        # scales.
        for group, transformer, names in self.columns.transformers:
            if isinstance(transformer, OneHotEncoder):
                self.categories.update((name, set()) for name in names)
            elif isinstance(transformer, TfidfVectorizer):
                self.words[group] = Counter()
                self.analyzers[group] = transformer.build_analyzer()
            elif isinstance(transformer, Pipeline):
                self.scalers[group] = StandardScaler()
        # All text columns share the memory for counted words.
        n_words = memory // COUNTS_SHARE // WORD_BYTES // max(1, len(self.words))
        self.most_words = max(FEWEST_WORDS, n_words)

    def learn(self, frame: Any) -> None:
        """Learn from some rows."""
        if not len(frame):
            return
        # Two rows are enough to give the whole its attributes, see `_assemble`.
        if self.first is None:
            self.first = frame.iloc[:2]
        for group, _, names in self.columns.transformers:
            if group in self.scalers:
                self.scalers[group].partial_fit(frame[names].to_numpy(np.float64))
            elif group in self.words:
                self._count_words(group, frame[names])
            else:
                for name in names:
                    self.categories[name].update(frame[name].unique().tolist())
        self.n_rows += len(frame)

    def _count_words(self, group: str, texts: Any) -> None:
        """Count the rows of each word, and forget the rarest if the memory does not hold all."""
        counts = self.words[group]
        analyze = self.analyzers[group]
        for text in texts.tolist():
            # A word counts once for each text, as in an inverse document frequency.
            counts.update(set(analyze(text)))
            while len(counts) > self.most_words:
                least = min(counts.values())
                counts = Counter({word: count for word, count in counts.items() if count > least})
        self.words[group] = counts

    def finish(self) -> ColumnTransformer:
        """Return the fitted transformer.

        Raises
        ------
        DataError
            There are no rows, or a text holds no words.
        """
        if not self.n_rows:
            raise DataError("the table holds no rows; at least one is needed")
        fitted = {}
        for group, transformer, names in self.columns.transformers:
            if group in self.scalers:
                fitted[group] = self._set_numbers(transformer, self.scalers[group], names)
            elif group in self.words:
                fitted[group] = self._set_words(transformer, self.words[group], names)
            else:
                categories = {name: sorted(self.categories[name]) for name in names}
                fitted[group] = _set_categories(transformer, categories)
        return self._assemble(fitted)

    def _set_numbers(
        self, transformer: Pipeline, seen: StandardScaler, names: list[str]
    ) -> Pipeline:
        """Set means, gaps and spreads: gaps are filled with the mean, and so add no spread."""
        import pandas as pd

        counts = np.broadcast_to(seen.n_samples_seen_, seen.mean_.shape).astype(np.float64)
        mean = np.nan_to_num(seen.mean_)
        var = np.nan_to_num(seen.var_) * counts / self.n_rows
        gaps = np.flatnonzero(counts < self.n_rows)
        # A fit to two rows with the same gaps makes every attribute; their values are set below.
        rows = np.zeros((2, mean.size))
        rows[1, gaps] = np.nan
        transformer.fit(pd.DataFrame(rows, columns=names))
        imputer = transformer[0]
        scaler = transformer[1]
        imputer.statistics_ = mean
        # The features that mark gaps are 1 in a share of the rows.
        shares = 1.0 - counts[gaps] / self.n_rows
        scaler.mean_ = np.concatenate([mean, shares])
        scaler.var_ = np.concatenate([var, shares * (1.0 - shares)])
        # As scikit-learn: a column whose variance is rounding only is not scaled.
        eps = np.finfo(np.float64).eps
        rounding = self.n_rows * eps * scaler.var_ + (self.n_rows * scaler.mean_ * eps) ** 2
        scaler.scale_ = np.where(scaler.var_ > rounding, np.sqrt(scaler.var_), 1.0)
        scaler.n_samples_seen_ = self.n_rows
        return transformer

    def _set_words(
        self, transformer: TfidfVectorizer, counts: Counter[str], name: str
    ) -> TfidfVectorizer:
        """Set the vocabulary and the inverse document frequencies."""
        if not counts:
            raise DataError(
                f"the text column {name!r} holds no words; "
                f"say --columns {name}=drop or {name}=category"
            )
        words = sorted(counts)
        transformer.vocabulary_ = {word: position for position, word in enumerate(words)}
        transformer.fixed_vocabulary_ = False
        frequencies = np.array([counts[word] for word in words], dtype=np.float64)
        # The inverse document frequency of TfidfVectorizer: ln((1 + n) / (1 + df)) + 1.
        transformer.idf_ = np.log((1.0 + self.n_rows) / (1.0 + frequencies)) + 1.0
        return transformer

    def _assemble(self, fitted: Mapping[str, object]) -> ColumnTransformer:
        """Fit a whole to two rows, for its attributes, and put the fitted transformers into it."""
        import pandas as pd

        rows = self.first
        given = self.columns.transformers
        # A ColumnTransformer fitted with stand-ins has all attributes; then the fitted parts
        # replace these.
        stand_ins = [
            (group, "passthrough", [names] if isinstance(names, str) else names)
            for group, _, names in given
        ]
        columns = ColumnTransformer(stand_ins, sparse_threshold=1.0)
        columns.fit(pd.DataFrame(np.zeros(rows.shape), columns=rows.columns))
        columns.transformers = [(group, fitted[group], names) for group, _, names in given]
        rest = [triple for triple in columns.transformers_ if triple[0] not in fitted]
        columns.transformers_ = [*columns.transformers, *rest]
        columns.sparse_output_ = any(
            isinstance(transformer, (TfidfVectorizer, OneHotEncoder))
            for transformer in fitted.values()
        )

        # The features of each transformer follow each other.
        start = 0
        for group, transformer, names in columns.transformers_:
            if group in fitted:
                width = transformer.transform(rows[names]).shape[1]
                columns.output_indices_[group] = slice(start, start + width)
                start += width
        columns.output_indices_["remainder"] = slice(0, 0)
        return columns


def _set_categories(
    transformer: OneHotEncoder, categories: Mapping[str, list[str]]
) -> OneHotEncoder:
    """Set the categories of each column, by a fit to rows that have them all."""
    import pandas as pd

    longest = max(map(len, categories.values()))
    rows = {}
    for name, values in categories.items():
        # Repeat the last one, so that all columns are equally long.
        rows[name] = as_objects(values + [values[-1]] * (longest - len(values)))
    return transformer.fit(pd.DataFrame(rows, dtype=object))


def convert_table(
    file: TableFile,
    target: str | os.PathLike[str],
    label: str | None,
    chosen: Mapping[str, ChosenKind],
    *,
    memory: int,
    missing: str | None = None,
    overwrite: bool = False,
    dtype: object = None,
    advance: Advance | None = None,
) -> Store:
    """Encode a file of any size into a store: a pass learns the encoding, a second writes the rows.

    The header of the store keeps what encoded the rows, for models that are trained on them.

    Parameters
    ----------
    file : TableFile
    target : str or path
        The folder to make.
    label : str or None
        The column of the labels.
    chosen : mapping of str to ChosenKind
        Kinds of the columns.
    memory : int
        Approximate bytes for the rows under way, and for the words that are counted.
    missing : {"error", "drop", "mean"}, optional
        What happens to gaps; numbers are filled with the mean by default.
    overwrite : bool, default=False
    dtype : float32 or float64, optional
        Type of the values; float64 by default.
    advance : callable, optional
        Called with the share that is done.

    Raises
    ------
    DataError
        The file cannot be read, or the store cannot be written.
    """
    if missing == "median":
        raise DataError(
            f"{file.name}: --missing median needs all rows in memory: give mean, "
            "or leave --memory out"
        )
    report = advance or (lambda share: None)
    n_bytes = max(LEAST_PART_BYTES, memory // PARTS)
    kinds = {name: choice.kind for name, choice in chosen.items()}

    # The first pass learns the encoding.
    learner = ColumnLearner(kinds, memory)
    n_seen = 0
    for frame, _, share in file.read_typed(n_bytes, kinds):
        kept = rows_without_gaps(frame, kinds, missing, file.name, n_seen)
        learner.learn(frame if kept is None else frame[kept])
        n_seen += len(frame)
        report(share / 2.0)
    columns = learner.finish()

    # The second pass writes encoded rows.
    with StoreWriter(
        target, dtype=dtype or np.float64, overwrite=overwrite, label_name=label
    ) as writer:
        for frame, y, share in file.read_typed(n_bytes, kinds, label):
            kept = rows_without_gaps(frame, kinds, missing, file.name, 0)
            if kept is not None:
                frame = frame[kept]
                y = None if y is None else y[kept]
            if len(frame):
                encoded = columns.transform(frame)
                writer.append(encoded.tocsr() if sparse.issparse(encoded) else encoded, y)
            report((1.0 + share) / 2.0)
        writer.sources.append(
            {
                "path": file.name,
                "format": file.format,
                "rows": writer.n_rows,
                "bytes": file.n_bytes,
            }
        )
        if missing is not None:
            writer.further[NOTE] = missing
        writer.further[COLUMNS] = base64.b64encode(columns_to_bytes(columns)).decode("ascii")
    return Store(target)


def stored_columns(store: Store) -> ColumnTransformer | None:
    """Return what encoded the rows of a store; None if they were not rows of a table.

    Raises
    ------
    DataError
        The header's entry cannot be read.
    """
    text = store.header.get(COLUMNS)
    if text is None:
        return None
    try:
        return columns_from_bytes(base64.b64decode(text, validate=True))
    except DataError:
        raise
    except (ValueError, TypeError) as error:
        raise DataError(f"{store.path}: {error}") from None
