"""Training of an encoder on a table that is given in parts: the counts and sums of one pass, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from saddlesvm.data.column_kinds import kind_of, typed
from saddlesvm.data.errors import DataError
from saddlesvm.data.frame import Frame
from saddlesvm.data.table import shorten
from saddlesvm.estimators.table_parts import HASHED, Member, made_for, members_of

__all__ = ["Learner"]

WORD_BYTES = 200  # memory of a word that is counted: its text, its count, and its place in two tables
SHARE = 4  # of the memory, one part goes to the counts of words
FEWEST_WORDS = 1 << 14

State = dict[str, Any]


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
        self.members = members_of(columns)
        texts = sum(one.kind.name in ("text", "chars") for one in self.members)
        most = max(FEWEST_WORDS, memory // SHARE // WORD_BYTES // max(1, texts))
        self.parts = [_part_for(one, most) for one in self.members]

    def learn(self, frame: Frame) -> None:
        """Take in some rows.

        Raises
        ------
        DataError
            A column is missing, or a value is not of its column's kind.
        """
        names = list(self.columns)
        for member, part in zip(self.members, self.parts, strict=True):
            used = [names[place] for place in member.places]
            missing = [name for name in used if name not in frame.columns]
            if missing:
                raise DataError(f"columns are missing: {shorten(missing)}; the table has {shorten(frame.names)}")
            part.learn([typed(frame.columns[name], kind_of(self.columns[name], name), name) for name in used])
        self.n_rows += len(frame)

    def state(self) -> tuple[State, np.ndarray]:
        """The learnt state, as :func:`~saddlesvm.estimators.table_saved.state_of` returns it."""
        if not self.n_rows:
            raise DataError("the table holds no rows; at least one is needed")
        members, idf = [], [np.empty(0)]
        for part in self.parts:
            members.append(part.state(self.n_rows))
            if isinstance(part, (_Words, _Hashes)):
                idf.append(part.idf(self.n_rows))
        return {"columns": self.columns, "members": members}, np.concatenate(idf)


def _part_for(member: Member, most: int) -> Any:
    kind = member.kind.name
    if kind in ("text", "chars"):
        return _Words(made_for(member.kind).build_analyzer(), most)
    if kind == "hashed":
        return _Hashes(made_for(member.kind)[0])
    return {"number": _Numbers, "category": _Categories, "date": _Dates, "list": _Width}[kind](len(member.places))


class _Moments:
    """Counts, means and sums of squares around them, of columns with gaps (Chan, Golub and LeVeque 1979)."""

    def __init__(self, width: int) -> None:
        self.count, self.mean, self.squares = np.zeros((3, width))

    def learn(self, columns: list[np.ndarray]) -> None:
        """Take in some rows."""
        values = np.column_stack(columns)
        known = ~np.isnan(values)
        count = known.sum(axis=0)
        mean = np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1)
        squares = (np.where(known, values - mean, 0.0) ** 2).sum(axis=0)
        total = np.maximum(self.count + count, 1)
        apart = mean - self.mean
        self.squares += squares + apart**2 * self.count * count / total
        self.mean += apart * count / total
        self.count += count


class _Numbers(_Moments):
    """Numbers: means fill the gaps, which then have no spread of their own."""

    def state(self, n: int) -> State:
        """Of the imputer, and of the scaler behind it."""
        gaps = np.flatnonzero(self.count < n)
        shares = 1.0 - self.count[gaps] / n
        var = np.concatenate([self.squares / n, shares * (1.0 - shares)])
        mean = np.concatenate([self.mean, shares])
        eps = np.finfo(np.float64).eps
        rounding = n * eps * var + (n * mean * eps) ** 2  # of a constant, as scikit-learn bounds it
        scale = np.where(var > rounding, np.sqrt(var), 1.0)
        return {
            "filled": self.mean.tolist(), "gaps": gaps.tolist(), "seen": n,
            "mean": mean.tolist(), "var": var.tolist(), "scale": scale.tolist(),
        }  # fmt: skip


class _Dates(_Moments):
    """Dates, in days."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.timed = np.zeros(width, dtype=bool)

    def learn(self, columns: list[np.ndarray]) -> None:
        """Take in some rows."""
        super().learn(columns)
        days = np.column_stack(columns)
        self.timed |= (~np.isnan(days) & (np.floor(days) != days)).any(axis=0)

    def state(self, n: int) -> State:
        """Of the parts of dates."""
        spread = np.sqrt(self.squares / np.maximum(self.count, 1))
        spread = np.where(spread > 0.0, spread, 1.0)
        return {"centre": self.mean.tolist(), "spread": spread.tolist(), "timed": self.timed.tolist()}


class _Categories:
    """The different values of each column."""

    def __init__(self, width: int) -> None:
        self.found: list[set[str]] = [set() for _ in range(width)]

    def learn(self, columns: list[np.ndarray]) -> None:
        """Take in some rows."""
        for found, values in zip(self.found, columns, strict=True):
            found.update(values.tolist())

    def state(self, n: int) -> State:
        """Of the one-hot encoder."""
        return {"categories": [sorted(found) for found in self.found]}


class _Width:
    """The length of the lists of a column."""

    def __init__(self, width: int) -> None:
        self.width = 0

    def learn(self, columns: list[np.ndarray]) -> None:
        """Take in some rows."""
        self.width = columns[0].shape[1]

    def state(self, n: int) -> State:
        """Of the lists."""
        return {"width": self.width}


class _Words:
    """In how many rows each n-gram of a text occurs."""

    def __init__(self, analyzer: Any, most: int) -> None:
        self.analyzer, self.most = analyzer, most
        self.counts: Counter[str] = Counter()
        self.words: list[str] = []

    def learn(self, columns: list[np.ndarray]) -> None:
        """Take in some rows."""
        for text in columns[0].tolist():
            self.counts.update(set(self.analyzer(text)))
            while len(self.counts) > self.most:
                least = min(self.counts.values())
                self.counts = Counter({word: count for word, count in self.counts.items() if count > least})

    def state(self, n: int) -> State:
        """Of the vocabulary."""
        if not self.counts:
            raise DataError("a text column holds no words; say --columns NAME=drop or NAME=category")
        self.words = sorted(self.counts)
        return {"words": self.words}

    def idf(self, n: int) -> np.ndarray:
        """Inverse document frequencies in the order of the words, as scikit-learn has them."""
        return _idf(np.array([self.counts[word] for word in self.words], dtype=np.float64), n)


class _Hashes:
    """In how many rows each hash of a text occurs."""

    def __init__(self, hashing: Any) -> None:
        self.hashing, self.counts = hashing, np.zeros(HASHED)

    def learn(self, columns: list[np.ndarray]) -> None:
        """Take in some rows."""
        self.counts += np.bincount(self.hashing.transform(columns[0]).indices, minlength=HASHED)

    def state(self, n: int) -> State:
        """Nothing: hashing needs no vocabulary."""
        return {}

    def idf(self, n: int) -> np.ndarray:
        """Inverse document frequencies of the hashes."""
        return _idf(self.counts, n)


def _idf(counts: np.ndarray, n: int) -> np.ndarray:
    return np.asarray(np.log((1.0 + n) / (1.0 + counts)) + 1.0)
