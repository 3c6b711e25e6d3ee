"""Tables of numbers, categories, texts and dates as rows of numbers: ``saddlesvm.table.encoder``.

A group of columns has a transformer: one of scikit-learn's, or of the two here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.column_kinds import Found, Kind, found_in, kind_of, typed
from saddlesvm.data.errors import DataError
from saddlesvm.data.frame import frame_of
from saddlesvm.data.table import shorten

__all__ = ["TableEncoder", "encoder", "encoder_for"]

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


class TableEncoder(ColumnTransformer):
    """A ``ColumnTransformer`` that takes tables of any kind, finds their columns by name, and reads their values.

    It takes pandas and polars data frames, Arrow tables, dicts of columns, lists of dicts, and arrays whose columns are
    those of the encoder, in its order. :func:`encoder` makes one for a table.

    Parameters
    ----------
    transformers : list of tuple
        As ``ColumnTransformer``'s, with columns by position in `columns`.
    columns : dict of str to str
        What each column is: number, category, text, chars, hashed, date, list or drop.
    sparse_threshold : float, default=1.0
        As ``ColumnTransformer``'s.

    Attributes
    ----------
    transformers_ : list of tuple
        The fitted transformers.
    """

    def __init__(self, transformers: Any, columns: dict[str, str], *, sparse_threshold: float = 1.0) -> None:
        super().__init__(transformers, sparse_threshold=sparse_threshold)
        self.columns = columns

    def fit(self, X: Any, y: Any = None, **params: Any) -> TableEncoder:
        """Learn categories, vocabulary, means and spreads from the rows of a table."""
        self.fit_transform(X, y, **params)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Learn from the rows of a table, and encode them; a CSR matrix, or an array without categories and texts.

        Raises
        ------
        DataError
            A column is missing, or a value is not of its column's kind.
        """
        return _as_csr(super().fit_transform(self.cells(X), y, **params))

    def transform(self, X: Any, **params: Any) -> Any:
        """Encode the rows of a table; what was not seen in the fit, categories and words, is zero.

        Raises
        ------
        DataError
            A column is missing, or a value is not of its column's kind.
        """
        check_is_fitted(self)
        return _as_csr(super().transform(self.cells(X), **params))

    @property
    def used(self) -> list[str]:
        """The columns that are encoded: all but those to drop."""
        return [name for name, kind in self.columns.items() if kind != "drop"]

    def cells(self, X: Any) -> np.ndarray:
        """The values of a table in the order of `columns`: an object array of shape (n, columns) of numbers and texts.

        Raises
        ------
        DataError
            A column is missing, or a value is not of its column's kind.
        """
        frame = frame_of(X, list(self.columns))
        missing = [name for name in self.used if name not in frame.columns]
        if missing:
            what = "column is" if len(missing) == 1 else "columns are"
            raise DataError(f"the {what} missing: {shorten(missing)}; the table has {shorten(frame.names)}")
        made = np.empty((len(frame), len(self.columns)), dtype=object)
        for place, (name, kind) in enumerate(self.columns.items()):
            if kind != "drop":
                values = typed(frame.columns[name], kind_of(kind, name), name)
                made[:, place] = values if values.ndim == 1 else _rows_of(values)
        return made

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features: ``age``, ``city=Paris``, ``note: great``, ``bought=Mar``.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        found: list[str] = []
        for member in members_of(self.columns):
            found += _names(member, self.named_transformers_[member.name], list(self.columns))
        return np.array(found, dtype=object)


def _rows_of(values: np.ndarray) -> np.ndarray:
    made = np.empty(len(values), dtype=object)
    made[:] = list(values)
    return made


def _as_csr(X: Any) -> Any:
    return X.tocsr() if sparse.issparse(X) else X


def _names(member: Member, transformer: Any, columns: list[str]) -> list[str]:
    """Names of the features of one group of columns."""
    names = [columns[place] for place in member.places]
    kind = member.kind.name
    if kind == "category":
        each = zip(names, transformer.categories_, strict=True)
        return [f"{name}={one or '(missing)'}" for name, categories in each for one in categories]
    if kind == "number":
        gaps = transformer[0].indicator_.features_ if transformer[0].indicator_ is not None else []
        return [*names, *(f"{names[k]} is missing" for k in gaps)]
    if kind == "hashed":
        return [f"{names[0]}: hash {k}" for k in range(transformer[0].n_features)]
    found = transformer.get_feature_names_out(None if kind in ("text", "chars") else names)
    return [f"{names[0]}: {one}" for one in found] if kind in ("text", "chars") else list(found)


def encoder(frame: Any, columns: Mapping[str, str] | None = None) -> TableEncoder:
    """The encoder of a table, not fitted yet: a scikit-learn ``ColumnTransformer`` for a pipeline.

    Parameters
    ----------
    frame : data frame, Arrow table, dict of columns, or list of dicts
        Features without the labels; its first 10,000 rows determine the kind of each column.
    columns : mapping of str to str, optional
        What columns are, where the guess is wrong: ``number``, ``category``, ``text`` (words), ``chars``, ``hashed``,
        ``date``, ``list`` or ``drop``; ``text:1-2`` for words and pairs, ``chars:2-5``, ``date:dmy``.

    Returns
    -------
    TableEncoder
        Numbers are filled in with their mean, with a feature that says where, and scaled; categories become a feature
        each; texts become TF-IDF; dates become the date, the month, the day of the week and the hour.

    Raises
    ------
    DataError
        It is no table, or no column is left to learn from.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.table import encoder
    >>> people = {"age": [31, 45, None, 52], "city": ["Ulm", "Bonn", "Ulm", "Bonn"]}
    >>> made = encoder(people)
    >>> made.columns
    {'age': 'number', 'city': 'category'}
    >>> model = make_pipeline(made, LinearSVC(random_state=0))
    >>> model.fit(people, ["yes", "no", "yes", "no"]).predict(
    ...     {"city": ["Ulm"], "age": [40]}
    ... ).tolist()
    ['yes']
    """
    return encoder_for(found_in(frame_of(frame), columns))


def encoder_for(found: Mapping[str, Found]) -> TableEncoder:
    """The encoder of columns whose kinds are known."""
    columns = {name: str(one.kind) for name, one in found.items()}
    return TableEncoder(transformers_for(columns), columns)


def transformers_for(columns: Mapping[str, str]) -> list[tuple[str, Any, Any]]:
    """Fresh transformers for columns of given kinds, as a ``ColumnTransformer`` takes them."""
    return [(one.name, made_for(one.kind), one.places[0] if one.alone else one.places) for one in members_of(columns)]
