"""The kinds of a table's columns, a class each: how columns are encoded, counted, saved and exported.

A kind that is added derives from :class:`Columns`, and is named in :data:`saddlesvm.estimators.table.GROUPS`.

Texts become TF-IDF of words or of characters, or of hashed words; dates become their parts.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.column_kinds import Kind
from saddlesvm.data.errors import DataError

LONGEST_LIST = 1 << 24  # numbers
State = dict[str, Any]


class Columns(ABC):
    """A group of columns of one kind, which one transformer encodes.

    A state is a dict that JSON holds, with the numbers and words that the transformer has learnt.

    Parameters
    ----------
    name : str
        Of the group in the ``ColumnTransformer``: its kind, and the column where it has one only.
    kind : Kind
    places : list of int
        The columns, by position.

    Attributes
    ----------
    alone : bool
        Whether the transformer takes a single column, of shape (n,).
    sparse : bool
        Whether most features are zero, those of texts; else the cells are numbers.
    in_onnx : bool
        Whether ONNX has such an encoding.
    counts_words : bool
        Whether the counts of a large table are limited by the memory.
    restored : dict
        Parameters in which a transformer from a state differs from a fresh one, with the fresh one's values.
    most : int
        Words that are counted at most.
    """

    alone = sparse = counts_words = False
    in_onnx = True
    restored: ClassVar[State] = {}

    def __init__(self, name: str, kind: Kind, places: list[int]) -> None:
        self.name, self.kind, self.places, self.most = name, kind, places, 0

    @property
    def place(self) -> Any:
        """The columns, as a ``ColumnTransformer`` takes them."""
        return self.places[0] if self.alone else self.places

    @abstractmethod
    def transformer(self) -> Any:
        """A fresh transformer."""

    def features(self, fitted: Any, names: list[str]) -> list[str]:
        """Names of the features; `names` are those of the columns."""
        return list(fitted.get_feature_names_out(names))

    @abstractmethod
    def learn(self, columns: list[np.ndarray]) -> None:
        """Count some rows of a large table."""

    @abstractmethod
    def learnt(self, n: int) -> tuple[State, np.ndarray]:
        """The state and the inverse document frequencies that the counts of n rows give."""

    @abstractmethod
    def state(self, fitted: Any) -> tuple[State, np.ndarray]:
        """The state and the inverse document frequencies of a fitted transformer."""

    @abstractmethod
    def sample(self, state: State) -> tuple[Any, Any]:
        """A transformer for a state, and two made-up rows that it is to be fitted to.

        Raises
        ------
        ValueError
            It is no state of such a transformer.
        """

    def put(self, fitted: Any, state: State, idf: np.ndarray) -> np.ndarray:
        """Put the numbers of a state into the transformer, and return the frequencies that are left for others.

        Raises
        ------
        ValueError
            It is no state of such a transformer.
        """
        return idf

    def cell_width(self, fitted: Any) -> int | None:
        """Numbers of a cell in the inputs of an ONNX model; None for a text.

        Raises
        ------
        ValueError
            ONNX has no such encoding.
        """
        if not self.in_onnx:
            column, kind = self.name.partition(" ")[2], self.kind.name
            raise ValueError(f"column {column!r}: ONNX has no counterpart for the kind {kind!r}; text has one")
        return None if self.sparse else 1

    def exported(self, graph: Any, fitted: Any, columns: list[Any]) -> list[Any]:
        """The features as nodes of a :class:`~saddlesvm.estimators.table_onnx.Graph`."""
        raise NotImplementedError


def needs(fine: bool, what: str) -> None:
    """Raise ValueError unless a state is fine."""
    if not fine:
        raise ValueError(f"its encoder of a table does not hold {what} as this package writes them")


def finite(given: Any, count: int, what: str) -> np.ndarray:
    """Numbers of a state as an array of shape (count,)."""
    fine = isinstance(given, list) and len(given) == count
    needs(fine and all(type(one) in (int, float) and math.isfinite(one) for one in given), what)
    return np.array(given, dtype=np.float64)


def texts(given: Any, what: str) -> list[str]:
    """Different texts of a state, at least one."""
    needs(isinstance(given, list) and all(isinstance(one, str) for one in given), what)
    needs(len(set(given)) == len(given) > 0, what)
    return list(given)


class Moments(Columns):
    """Counts, means and sums of squares around them, of columns with gaps (Chan, Golub and LeVeque 1979)."""

    def __init__(self, name: str, kind: Kind, places: list[int]) -> None:
        super().__init__(name, kind, places)
        self.count, self.mean, self.squares = np.zeros((3, len(places)))

    def learn(self, columns: list[np.ndarray]) -> None:
        """Count some rows."""
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


class Numbers(Moments):
    """Numbers: gaps are filled with the mean, with a feature that says where, and all are scaled."""

    def transformer(self) -> Any:
        """An imputer and a scaler."""
        return make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler())

    def features(self, fitted: Any, names: list[str]) -> list[str]:
        """The columns, and those with gaps again."""
        missing = fitted[0].indicator_.features_ if fitted[0].indicator_ is not None else []
        return [*names, *(f"{names[k]} is missing" for k in missing)]

    def learnt(self, n: int) -> tuple[State, np.ndarray]:
        """Means fill the gaps, which then have no spread of their own."""
        missing = np.flatnonzero(self.count < n)
        shares = 1.0 - self.count[missing] / n
        var = np.concatenate([self.squares / n, shares * (1.0 - shares)])
        mean = np.concatenate([self.mean, shares])
        eps = np.finfo(np.float64).eps
        rounding = n * eps * var + (n * mean * eps) ** 2  # of a constant, as scikit-learn bounds it
        scale = np.where(var > rounding, np.sqrt(var), 1.0)
        return {
            "filled": self.mean.tolist(), "gaps": missing.tolist(), "seen": n,
            "mean": mean.tolist(), "var": var.tolist(), "scale": scale.tolist(),
        }, np.empty(0)  # fmt: skip

    def state(self, fitted: Any) -> tuple[State, np.ndarray]:
        """Of the imputer, and of the scaler behind it."""
        imputer, scaler = fitted
        missing = [] if imputer.indicator_ is None else imputer.indicator_.features_.tolist()
        kept = {name: getattr(scaler, f"{name}_").tolist() for name in ("mean", "var", "scale")}
        seen = int(np.max(scaler.n_samples_seen_))
        return {"filled": imputer.statistics_.tolist(), "gaps": missing, "seen": seen, **kept}, np.empty(0)

    def sample(self, state: State) -> tuple[Any, Any]:
        """Zeros, with the gaps."""
        rows, missing = np.zeros((2, len(self.places))), state.get("gaps")
        fine = isinstance(missing, list) and all(type(one) is int and 0 <= one < rows.shape[1] for one in missing)
        needs(fine and missing == sorted(set(missing or [])), self.name)
        rows[1, missing] = np.nan
        return self.transformer(), rows

    def put(self, fitted: Any, state: State, idf: np.ndarray) -> np.ndarray:
        """Means and scales."""
        imputer, scaler = fitted
        wide = len(imputer.statistics_) + len(state["gaps"])
        imputer.statistics_ = finite(state.get("filled"), len(imputer.statistics_), "number")
        for name in ("mean", "var", "scale"):
            setattr(scaler, f"{name}_", finite(state.get(name), wide, "number"))
        needs(bool((scaler.scale_ > 0.0).all() and (scaler.var_ >= 0.0).all()), "number")
        needs(type(state.get("seen")) is int and state["seen"] > 0, "number")
        scaler.n_samples_seen_ = state["seen"]
        return idf

    def exported(self, graph: Any, fitted: Any, columns: list[Any]) -> list[Any]:
        """Gaps filled in, with features that say where, and all scaled."""
        imputer, scaler = fitted
        X = graph.op("Concat", *(graph.in_float64(one) for one in columns), axis=1)
        missing = graph.op("IsNaN", X)
        parts = [graph.op("Where", missing, imputer.statistics_[None, :], X)]
        if imputer.indicator_ is not None and imputer.indicator_.features_.size:
            with_missing = imputer.indicator_.features_.astype(np.int64)
            parts.append(graph.op("Gather", graph.in_float64(missing), with_missing, axis=1))
        both = graph.op("Concat", *parts, axis=1)
        return [(both - scaler.mean_[None, :]) / scaler.scale_[None, :]]


class Categories(Columns):
    """Categories: a feature for each, and zeros for one that the fit did not see."""

    sparse = True
    restored: ClassVar[State] = {"categories": "auto"}

    def __init__(self, name: str, kind: Kind, places: list[int]) -> None:
        super().__init__(name, kind, places)
        self.found: list[set[str]] = [set() for _ in places]

    def transformer(self) -> Any:
        """A one-hot encoder."""
        return OneHotEncoder(handle_unknown="ignore")

    def features(self, fitted: Any, names: list[str]) -> list[str]:
        """``city=Paris``."""
        each = zip(names, fitted.categories_, strict=True)
        return [f"{name}={one or '(missing)'}" for name, categories in each for one in categories]

    def learn(self, columns: list[np.ndarray]) -> None:
        """Note the values of some rows."""
        for found, values in zip(self.found, columns, strict=True):
            found.update(values.tolist())

    def learnt(self, n: int) -> tuple[State, np.ndarray]:
        """The values."""
        return {"categories": [sorted(found) for found in self.found]}, np.empty(0)

    def state(self, fitted: Any) -> tuple[State, np.ndarray]:
        """The categories."""
        return {"categories": [found.tolist() for found in fitted.categories_]}, np.empty(0)

    def sample(self, state: State) -> tuple[Any, Any]:
        """The first category of each column."""
        found = state.get("categories")
        needs(isinstance(found, list) and len(found) == len(self.places), self.name)
        categories = [np.array(texts(one, self.name), dtype=object) for one in found or []]
        rows = np.array([[one[0] for one in categories]] * 2, dtype=object)
        return self.transformer().set_params(categories=categories), rows

    def exported(self, graph: Any, fitted: Any, columns: list[Any]) -> list[Any]:
        """A feature for each category."""
        return [graph.categories(*both) for both in zip(columns, fitted.categories_, strict=True)]


class Lists(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A column of lists of numbers, of one length, as a matrix.

    Attributes
    ----------
    width_ : int
        Length of the lists.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Note the length of the lists; X of shape (n,) holds arrays."""
        self.width_ = _stacked(X, None).shape[1]
        self.n_features_in_ = 1
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The lists as rows, shape (n, width).

        Raises
        ------
        ValueError
            Lists of another length, or with missing values.
        """
        check_is_fitted(self)
        return _stacked(X, self.width_)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features: the column's, and the place in the list."""
        name = "x0" if input_features is None else input_features[0]
        return np.array([f"{name}[{k}]" for k in range(self.width_)], dtype=object)


def _stacked(X: Any, width: int | None) -> np.ndarray:
    made = np.array([np.asarray(one, dtype=np.float64) for one in X])
    found = made.shape[1] if made.ndim == 2 else 0
    if width is not None and found != width:
        raise ValueError(f"the lists hold {found} numbers; {width} are expected")
    if not np.isfinite(made).all():
        raise ValueError(
            f"the list of row {int(np.argmin(np.isfinite(made).all(axis=1))) + 1} is missing or not finite"
        )
    return made


class Vectors(Columns):
    """Lists of numbers, as they are."""

    alone = True
    length = 0

    def transformer(self) -> Any:
        """The lists as a matrix."""
        return Lists()

    def learn(self, columns: list[np.ndarray]) -> None:
        """Note the length of the lists."""
        self.length = columns[0].shape[1]

    def learnt(self, n: int) -> tuple[State, np.ndarray]:
        """The length."""
        return {"width": self.length}, np.empty(0)

    def state(self, fitted: Any) -> tuple[State, np.ndarray]:
        """The length."""
        return {"width": fitted.width_}, np.empty(0)

    def sample(self, state: State) -> tuple[Any, Any]:
        """Zeros."""
        width = state.get("width")
        needs(type(width) is int and 0 < width <= LONGEST_LIST, self.name)
        rows = np.empty((2, 1), dtype=object)
        rows[0, 0] = rows[1, 0] = np.zeros(width or 1)
        return Lists(), rows

    def cell_width(self, fitted: Any) -> int | None:
        """The length of the lists."""
        return int(fitted.width_)

    def exported(self, graph: Any, fitted: Any, columns: list[Any]) -> list[Any]:
        """The numbers."""
        return [graph.in_float64(columns[0])]


HASHED = 1 << 18  # features of hashed texts


class Texts(Columns):
    """The common part of texts: each is a column by itself."""

    alone = sparse = True
    analyzer = "word"

    @property
    def ngrams(self) -> dict[str, Any]:
        """What is counted, as scikit-learn's vectorizers take it."""
        return {"analyzer": self.analyzer, "ngram_range": (self.kind.low, self.kind.high)}


class Words(Texts):
    """TF-IDF of words; a part of a table counts in how many rows each occurs."""

    counts_words = True
    restored: ClassVar[State] = {"vocabulary": None}

    def __init__(self, name: str, kind: Kind, places: list[int]) -> None:
        super().__init__(name, kind, places)
        self.counts: Counter[str] = Counter()

    def transformer(self) -> Any:
        """TF-IDF."""
        return TfidfVectorizer(**self.ngrams)

    def features(self, fitted: Any, names: list[str]) -> list[str]:
        """``note: great``."""
        return [f"{names[0]}: {one}" for one in fitted.get_feature_names_out()]

    def learn(self, columns: list[np.ndarray]) -> None:
        """Count the words of some rows; the rarest are forgotten where the memory does not hold all."""
        words = self.transformer().build_analyzer()
        for text in columns[0].tolist():
            self.counts.update(set(words(text)))
            while len(self.counts) > self.most:
                least = min(self.counts.values())
                self.counts = Counter({word: count for word, count in self.counts.items() if count > least})

    def learnt(self, n: int) -> tuple[State, np.ndarray]:
        """The vocabulary."""
        if not self.counts:
            raise DataError("a text column holds no words; say --columns NAME=drop or NAME=category")
        words = sorted(self.counts)
        return {"words": words}, _idf(np.array([self.counts[word] for word in words], dtype=np.float64), n)

    def state(self, fitted: Any) -> tuple[State, np.ndarray]:
        """The vocabulary."""
        return {"words": sorted(fitted.vocabulary_, key=fitted.vocabulary_.__getitem__)}, fitted.idf_

    def sample(self, state: State) -> tuple[Any, Any]:
        """Empty texts."""
        vocabulary = {word: k for k, word in enumerate(texts(state.get("words"), self.name))}
        return self.transformer().set_params(vocabulary=vocabulary), np.full((2, 1), "", dtype=object)

    def put(self, fitted: Any, state: State, idf: np.ndarray) -> np.ndarray:
        """The frequencies of the words."""
        count = len(fitted.vocabulary_)
        needs(count <= idf.size, self.name)
        fitted.idf_ = idf[:count]
        return idf[count:]

    def exported(self, graph: Any, fitted: Any, columns: list[Any]) -> list[Any]:
        """TF-IDF."""
        return [graph.in_float64(graph.submodel(fitted, columns[0]))]


class Characters(Words):
    """TF-IDF of the n-grams of characters within words."""

    analyzer = "char_wb"
    in_onnx = False


class Hashes(Texts):
    """TF-IDF of hashed words, which needs no vocabulary."""

    in_onnx = False

    def __init__(self, name: str, kind: Kind, places: list[int]) -> None:
        super().__init__(name, kind, places)
        self.counts = np.zeros(HASHED)

    def transformer(self) -> Any:
        """Hashes and their TF-IDF."""
        hashing = HashingVectorizer(n_features=HASHED, norm=None, alternate_sign=False, **self.ngrams)
        return make_pipeline(hashing, TfidfTransformer())

    def features(self, fitted: Any, names: list[str]) -> list[str]:
        """``note: hash 7``."""
        return [f"{names[0]}: hash {k}" for k in range(fitted[0].n_features)]

    def learn(self, columns: list[np.ndarray]) -> None:
        """Count in how many of some rows each hash occurs."""
        self.counts += np.bincount(self.transformer()[0].transform(columns[0]).indices, minlength=HASHED)

    def learnt(self, n: int) -> tuple[State, np.ndarray]:
        """The frequencies."""
        return {}, _idf(self.counts, n)

    def state(self, fitted: Any) -> tuple[State, np.ndarray]:
        """The frequencies."""
        return {}, fitted[-1].idf_

    def sample(self, state: State) -> tuple[Any, Any]:
        """Empty texts."""
        return self.transformer(), np.full((2, 1), "", dtype=object)

    def put(self, fitted: Any, state: State, idf: np.ndarray) -> np.ndarray:
        """The frequencies."""
        needs(idf.size >= HASHED, self.name)
        fitted[-1].idf_ = idf[:HASHED]
        return idf[HASHED:]


def _idf(counts: np.ndarray, n: int) -> np.ndarray:
    """Inverse document frequencies, as scikit-learn has them."""
    return np.asarray(np.log((1.0 + n) / (1.0 + counts)) + 1.0)


MONTHS, WEEKDAYS, HOURS = 12, 7, 24
A_MOMENT = 1e-6  # hours: more than the rounding of a time of the day, in days since 1970, and less than a second
MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class DateParts(TransformerMixin, BaseEstimator):
    """Dates as numbers: time since the mean date, month, day of the week, and the hour where there is one.

    Attributes
    ----------
    centre_, spread_ : ndarray of shape (k,)
        Mean and standard deviation of each column, in days since 1970-01-01.
    timed_ : ndarray of shape (k,)
        Whether any date of the column has a time of the day.

    Notes
    -----
    A column becomes 20 features: the date, brought to mean 0 and variance 1; one for each month and each day of the
    week. A column with times of the day has one more for each hour. A missing date is zero in all.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn mean and spread of each column; X of shape (n, k) holds days since 1970-01-01, NaN where missing."""
        days = _days(X)
        known = ~np.isnan(days)
        counts = np.maximum(known.sum(axis=0), 1)
        self.centre_ = np.where(known, days, 0.0).sum(axis=0) / counts
        self.spread_ = _positive(np.sqrt((np.where(known, days - self.centre_, 0.0) ** 2).sum(axis=0) / counts))
        self.timed_ = (known & (np.floor(days) != days)).any(axis=0)
        self.n_features_in_ = days.shape[1]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features of dates, shape (n, 20 or 44 for each column)."""
        check_is_fitted(self)
        days = _days(X)
        return np.hstack([self._column(column, k) for k, column in enumerate(days.T)])

    def _column(self, days: np.ndarray, k: int) -> np.ndarray:
        known = ~np.isnan(days)
        whole = np.floor(np.where(known, days, 0.0))
        month = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % MONTHS
        weekday = (whole + 3.0) % WEEKDAYS  # 1970-01-01 was a Thursday
        parts = [
            ((np.where(known, days, self.centre_[k]) - self.centre_[k]) / self.spread_[k])[:, None],
            (month[:, None] == np.arange(MONTHS)) & known[:, None],
            (weekday[:, None] == np.arange(WEEKDAYS)) & known[:, None],
        ]
        if self.timed_[k]:
            hour = np.floor(HOURS * (np.where(known, days, 0.0) - whole) + A_MOMENT)
            parts.append((hour[:, None] == np.arange(HOURS)) & known[:, None])
        return np.hstack([part.astype(np.float64) for part in parts])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features, those of the columns before them."""
        names = [f"x{k}" for k in range(self.n_features_in_)] if input_features is None else input_features
        found = []
        for name, timed in zip(names, self.timed_, strict=True):
            found += [f"{name}", *(f"{name}={part}" for part in (*MONTH_NAMES, *DAY_NAMES))]
            found += [f"{name}={hour}h" for hour in range(HOURS)] if timed else []
        return np.array(found, dtype=object)


def _days(X: Any) -> np.ndarray:
    return np.asarray(X, dtype=np.float64)


def _positive(spread: np.ndarray) -> np.ndarray:
    return np.where(spread > 0.0, spread, 1.0)


class Dates(Moments):
    """Dates, in days since 1970-01-01."""

    def __init__(self, name: str, kind: Kind, places: list[int]) -> None:
        super().__init__(name, kind, places)
        self.timed = np.zeros(len(places), dtype=bool)

    def transformer(self) -> Any:
        """The parts of dates."""
        return DateParts()

    def learn(self, columns: list[np.ndarray]) -> None:
        """Count some rows."""
        super().learn(columns)
        days = np.column_stack(columns)
        self.timed |= (~np.isnan(days) & (np.floor(days) != days)).any(axis=0)

    def learnt(self, n: int) -> tuple[State, np.ndarray]:
        """Mean and spread."""
        spread = _positive(np.sqrt(self.squares / np.maximum(self.count, 1)))
        return _state(self.mean, spread, self.timed), np.empty(0)

    def state(self, fitted: Any) -> tuple[State, np.ndarray]:
        """Mean and spread."""
        return _state(fitted.centre_, fitted.spread_, fitted.timed_), np.empty(0)

    def sample(self, state: State) -> tuple[Any, Any]:
        """The first day of 1970, at noon where there are times."""
        timed = state.get("timed")
        needs(isinstance(timed, list) and len(timed) == len(self.places), self.name)
        needs(all(isinstance(one, bool) for one in timed or []), self.name)
        return DateParts(), np.array([[0.5 if one else 0.0 for one in timed or []]] * 2)

    def put(self, fitted: Any, state: State, idf: np.ndarray) -> np.ndarray:
        """Mean and spread."""
        width = len(fitted.centre_)
        fitted.centre_, fitted.spread_ = (finite(state.get(name), width, "date") for name in ("centre", "spread"))
        needs(bool((fitted.spread_ > 0.0).all()), "date")
        return idf

    def exported(self, graph: Any, fitted: Any, columns: list[Any]) -> list[Any]:
        """As :class:`DateParts`, from days since 1970."""
        made = []
        for k, column in enumerate(columns):
            given = graph.in_float64(column)
            missing = graph.op("IsNaN", given)
            known = graph.in_float64(graph.op("Not", missing))
            days, centre = graph.op("Where", missing, np.array([[0.0]]), given), fitted.centre_[None, [k]]
            made.append((graph.op("Where", missing, centre, given) - centre) / fitted.spread_[None, [k]])
            whole = graph.op("Floor", days)
            made += [_one_hot(month_of(whole), MONTHS, known), _one_hot((whole + 3.0) % WEEKDAYS, WEEKDAYS, known)]
            if fitted.timed_[k]:
                hour = graph.op("Floor", (days - whole) * HOURS + A_MOMENT)
                made.append(_one_hot(hour, HOURS, known))
        return made


def _state(centre: np.ndarray, spread: np.ndarray, timed: np.ndarray) -> State:
    return {"centre": centre.tolist(), "spread": spread.tolist(), "timed": timed.tolist()}


def _one_hot(place: Any, count: int, known: Any) -> Any:
    graph = place.graph
    same = graph.op("Equal", graph.op("Round", place), np.arange(count, dtype=np.float64)[None, :])
    return same.as_float64() * known


def month_of(day: Any) -> Any:
    """The month, from 0, of days since 1970-01-01: arithmetic of years that begin in March, in eras of 400 years.

    The method of H. Hinnant, "chrono-compatible low-level date algorithms" (2021).
    """
    in_era = (day + 719_468.0) % 146_097.0
    leaps = in_era // 36_524.0 - in_era // 1_460.0
    year = (in_era + leaps - in_era // 146_096.0) // 365.0
    of_year = in_era - (year * 365.0 + year // 4.0 - year // 100.0)
    from_march = (of_year * 5.0 + 2.0) // 153.0
    return (from_march + 2.0) % MONTHS
