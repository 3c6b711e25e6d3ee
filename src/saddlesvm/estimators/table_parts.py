"""The transformers of a table's columns, a group of columns each: scikit-learn's, and two of our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.column_kinds import Kind, kind_of

__all__ = [
    "ANALYZERS",
    "A_MOMENT",
    "HASHED",
    "HOURS",
    "MONTHS",
    "WEEKDAYS",
    "DateParts",
    "Lists",
    "Member",
    "made_for",
    "members_of",
]

HASHED = 1 << 18  # features of hashed texts
MONTHS, WEEKDAYS, HOURS = 12, 7, 24
A_MOMENT = 1e-6  # hours: more than the rounding of a time of the day, in days since 1970, and less than a second
ANALYZERS = {"text": "word", "chars": "char_wb", "hashed": "word"}
MONTH_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAY_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Member(NamedTuple):
    """A group of columns that one transformer encodes.

    Parameters
    ----------
    name : str
        Of the group in the ``ColumnTransformer``: its kind, and the column where it has one only.
    kind : Kind
    places : list of int
        The columns, by position.
    """

    name: str
    kind: Kind
    places: list[int]

    @property
    def alone(self) -> bool:
        """Whether its transformer takes a single column, of shape (n,)."""
        return self.kind.name in (*ANALYZERS, "list")


def members_of(columns: Mapping[str, str]) -> list[Member]:
    """The groups of columns of given kinds: numbers, categories and dates together, each text and list by itself."""
    together: dict[str, Member] = {}
    alone = []
    for place, (name, text) in enumerate(columns.items()):
        kind = kind_of(text, name)
        if kind.name in (*ANALYZERS, "list"):
            alone.append(Member(f"{kind.name} {name}", kind, [place]))
        elif kind.name != "drop":
            together.setdefault(kind.name, Member(kind.name, Kind(kind.name), [])).places.append(place)
    return [together[name] for name in ("number", "category", "date") if name in together] + alone


def made_for(kind: Kind) -> Any:
    """A fresh transformer for columns of a kind."""
    if kind.name == "number":
        return make_pipeline(SimpleImputer(add_indicator=True, keep_empty_features=True), StandardScaler())
    if kind.name == "category":
        return OneHotEncoder(handle_unknown="ignore")
    if kind.name == "date":
        return DateParts()
    if kind.name == "list":
        return Lists()
    ngrams: dict[str, Any] = {"analyzer": ANALYZERS[kind.name], "ngram_range": (kind.low, kind.high)}
    if kind.name == "hashed":
        hashing = HashingVectorizer(n_features=HASHED, norm=None, alternate_sign=False, **ngrams)
        return make_pipeline(hashing, TfidfTransformer())
    return TfidfVectorizer(**ngrams)


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
