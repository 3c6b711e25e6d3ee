"""Encode tables of numbers, categories, texts, dates and lists by scikit-learn's transformers.

A ``ColumnTransformer`` has a transformer for each kind of column, named after it: ``number``,
``category``, ``date:dmy``, ``text:1-2 0``. So the kinds can be read from a fitted transformer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.errors import DataError
from saddlesvm.data.kinds import Kind, choose_kinds, parse_kind
from saddlesvm.data.typed_columns import typed_column
from saddlesvm.runtime.data_types import LabelsLike, Matrix, RowsLike
from saddlesvm.runtime.extras import how_to_install

if TYPE_CHECKING:
    from types import ModuleType

    import pandas as pd

    from saddlesvm.estimators.base import Estimator

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOURS = 24
SINGLE = ("text", "chars", "list")  # kinds whose transformers take one column each
MICROSECONDS_PER_DAY = 86_400e6
FIRST_WEEKDAY = 3  # of 1970-01-01, a Thursday
HOUR_ROUNDING = 1e-6  # hours: less than a second, more than the rounding of days
# Types beyond scikit-learn's that a file may name.
TRUSTED_TYPES = ["numpy.dtype", f"{__name__}.Dates", f"{__name__}.Lists"]


def encoder(
    frame: pd.DataFrame, columns: Mapping[str, str] | None = None, *, missing: str = "mean"
) -> ColumnTransformer:
    """Choose a transformer for each column of a table, by what it holds.

    Parameters
    ----------
    frame : DataFrame
        Features without the labels, as :func:`saddlesvm.table.read` returns them; the first 10,000
        rows determine the kind of each column.
    columns : mapping of str to str, optional
        Kinds of columns if the guess is wrong: ``number``, ``category``, ``text`` (words),
        ``chars``, ``date``, ``list`` or ``drop``; ``text:1-2`` for words and pairs, ``chars:2-5``,
        ``date:dmy``.
    missing : {"mean", "median"}, default="mean"
        What fills gaps between numbers; a feature marks them.

    Returns
    -------
    ColumnTransformer
        Not fitted, for a pipeline. Numbers are filled and scaled, each category becomes a feature,
        texts become TF-IDF, dates the date, the month, the day of the week and the hour. Lists of
        numbers stay as they are.

    Raises
    ------
    DataError
        No column is left to learn from, or a column holds numbers as text.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.table import encoder
    >>> people = pd.DataFrame(
    ...     {"age": [31, 45, None, 52], "city": ["Ulm", "Bonn", "Ulm", "Bonn"]}
    ... )
    >>> model = make_pipeline(encoder(people), LinearSVC(random_state=0))
    >>> model.fit(people, ["yes", "no", "yes", "no"]).predict(people[:1]).tolist()
    ['yes']
    """
    kinds = {name: choice.kind for name, choice in choose_kinds(frame, columns).items()}
    for name, kind in kinds.items():
        is_text = frame[name].dtype.kind not in "iufmM"
        if kind.name == "number" and is_text:
            raise DataError(
                f"column {name!r} holds numbers as text: make numbers of it first "
                "(saddlesvm.table.read does), or name its kind, "
                f"columns={{{name!r}: 'category'}}"
            )
    return transformers_for({name: str(kind) for name, kind in kinds.items()}, missing)


def transformers_for(kinds: Mapping[str, str], missing: str = "mean") -> ColumnTransformer:
    """Return the ``ColumnTransformer`` for columns of given kinds.

    Numbers, categories and dates have a transformer for all their columns; texts and lists have
    a transformer for each column.
    """
    groups: dict[str, list[str]] = {}
    for name, text in kinds.items():
        kind = parse_kind(text, name)
        if kind.name == "drop":
            continue
        # A number makes the group of a single column unique.
        group = f"{kind} {len(groups)}" if kind.name in SINGLE else str(kind)
        groups.setdefault(group, []).append(name)
    transformers = []
    for group, names in groups.items():
        kind = kind_of_group(group, names[0])
        columns: Any = names[0] if kind.name in SINGLE else names
        transformers.append((group, transformer_for(kind, missing), columns))
    return ColumnTransformer(transformers, sparse_threshold=1.0)


def kind_of_group(group: str, column: str) -> Kind:
    """Return the kind after which a group of columns is named."""
    return parse_kind(group.partition(" ")[0], column)


def transformer_for(kind: Kind, missing: str = "mean") -> BaseEstimator:
    """Return the transformer for columns of a kind."""
    if kind.name == "number":
        # A missing number becomes the mean or the median; a further column says where it was.
        imputer = SimpleImputer(strategy=missing, add_indicator=True, keep_empty_features=True)
        return make_pipeline(imputer, StandardScaler())
    if kind.name == "category":
        # A category that the training rows did not have is zero in all columns.
        return OneHotEncoder(handle_unknown="ignore")
    if kind.name == "date":
        return Dates(order=kind.way or "ymd")
    if kind.name == "list":
        return Lists()
    analyzer = "word" if kind.name == "text" else "char_wb"
    return TfidfVectorizer(analyzer=analyzer, ngram_range=(kind.low, kind.high))


def kinds_in(columns: ColumnTransformer) -> dict[str, Kind] | None:
    """Return the kinds of columns if :func:`transformers_for` made their transformer, else None."""
    kinds: dict[str, Kind] = {}
    for group, _, names in columns.transformers:
        listed = [names] if isinstance(names, str) else names
        try:
            for name in listed:
                kinds[str(name)] = kind_of_group(group, str(name))
        except (DataError, TypeError):
            return None
    return kinds


def feature_names(columns: ColumnTransformer) -> list[str]:
    """Return names of features for people, such as ``age``, ``city=Paris`` and ``note: great``.

    Parameters
    ----------
    columns : ColumnTransformer
        A fitted :func:`encoder`.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import pandas as pd
    >>> from saddlesvm.table import encoder, feature_names
    >>> people = pd.DataFrame({"age": [31, 45, 52], "city": ["Ulm", "Bonn", "Ulm"]})
    >>> feature_names(encoder(people).fit(people))
    ['age', 'city=Bonn', 'city=Ulm']
    """
    features: list[str] = []
    for group, fitted, names in columns.transformers_:
        if group == "remainder":
            continue
        listed = [names] if isinstance(names, str) else list(names)
        kind = group.partition(":")[0].partition(" ")[0]
        if kind == "number":
            features += listed
            # A further feature marks the gaps of each column that has some.
            indicator = fitted[0].indicator_
            if indicator is not None:
                features += [f"{listed[k]} is missing" for k in indicator.features_]
        elif kind == "category":
            for name, categories in zip(listed, fitted.categories_, strict=True):
                features += [f"{name}={category or '(missing)'}" for category in categories]
        elif kind in ("text", "chars"):
            features += [f"{listed[0]}: {ngram}" for ngram in fitted.get_feature_names_out()]
        else:
            features += list(fitted.get_feature_names_out(listed))
    return features


class Dates(TransformerMixin, BaseEstimator):
    """Dates as numbers: the scaled date, month, day of the week, and the hour if it is known.

    Parameters
    ----------
    order : {"ymd", "dmy", "mdy"}, default="ymd"
        Order of year, month and day in dates that are text.

    Attributes
    ----------
    scaler_ : StandardScaler
        Scaler of the days since 1970-01-01.
    timed_ : ndarray of shape (k,)
        True for each column in which any date has a time of the day.

    Notes
    -----
    A column becomes 20 features, or 44 with hours. A missing date is zero in all of them.
    """

    def __init__(self, order: str = "ymd") -> None:
        self.order = order

    def fit(self, X: RowsLike, y: LabelsLike | None = None) -> Self:
        """Learn mean and spread of each column; X of shape (n, k) holds moments or texts."""
        if hasattr(self, "scaler_"):
            del self.scaler_
        return self.partial_fit(X)

    def partial_fit(self, X: RowsLike, y: LabelsLike | None = None) -> Self:
        """Learn from some more rows."""
        days = self._days(X)
        if not hasattr(self, "scaler_"):
            self.scaler_ = StandardScaler()
            self.timed_ = np.zeros(days.shape[1], dtype=bool)
            self.n_features_in_ = days.shape[1]
        self.scaler_.partial_fit(days)
        # Days with a fraction have a time.
        has_time = ~np.isnan(days) & (np.floor(days) != days)
        self.timed_ = self.timed_ | has_time.any(axis=0)
        return self

    def transform(self, X: RowsLike) -> sparse.csr_array:
        """Return the features of dates, shape (n, 20 or 44 for each column)."""
        check_is_fitted(self)
        days = self._days(X)
        scaled = self.scaler_.transform(days)
        places = []
        values = []
        start = 0
        for column, scaled_column, timed in zip(days.T, scaled.T, self.timed_, strict=True):
            is_known = ~np.isnan(column)
            moment = np.where(is_known, column, 0.0)
            whole = np.floor(moment)
            months = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
            month = months % len(MONTHS)
            weekday = (whole.astype(np.int64) + FIRST_WEEKDAY) % len(DAYS)
            # The scaled date, and a 1 for the month and for the day of the week.
            places.append(np.full(len(days), start))
            places.append(start + 1 + month)
            places.append(start + 1 + len(MONTHS) + weekday)
            values += [np.where(is_known, scaled_column, 0.0), is_known, is_known]
            start += 1 + len(MONTHS) + len(DAYS)
            if timed:
                hour = np.floor(HOURS * (moment - whole) + HOUR_ROUNDING)
                places.append(start + hour.astype(np.int64))
                values.append(is_known)
                start += HOURS

        # Each row has the same number of values, and so the row pointers are known; missing dates
        # are zeros, which are removed. Many estimators do not take indices of 64 bits.
        indptr = np.arange(len(days) + 1, dtype=np.int32) * np.int32(len(places))
        data = np.column_stack(values).astype(np.float64).ravel()
        indices = np.column_stack(places).astype(np.int32).ravel()
        features = sparse.csr_array((data, indices, indptr), shape=(len(days), start))
        features.eliminate_zeros()
        return features

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names of the features, each after its column."""
        names = input_features
        if names is None:
            names = [f"x{k}" for k in range(self.n_features_in_)]
        features: list[str] = []
        for name, timed in zip(names, self.timed_, strict=True):
            features.append(str(name))
            features += [f"{name}={part}" for part in (*MONTHS, *DAYS)]
            if timed:
                features += [f"{name}={hour}h" for hour in range(HOURS)]
        return np.array(features, dtype=object)

    def _days(self, X: RowsLike) -> np.ndarray:
        """Return days since 1970-01-01, NaN if a date is missing, shape (n, k)."""
        import pandas as pd

        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
        kind = Kind("date", way="" if self.order == "ymd" else self.order)
        days = []
        for k, name in enumerate(frame.columns):
            moments = typed_column(frame.iloc[:, k], kind, str(name))
            numbers = moments.astype("datetime64[us]").astype(np.int64) / MICROSECONDS_PER_DAY
            days.append(np.where(np.isnat(moments), np.nan, numbers))
        return np.column_stack(days)


class Lists(TransformerMixin, BaseEstimator):
    """A column of lists of numbers, of the same length, as a matrix.

    Attributes
    ----------
    width_ : int
        Length of the lists.
    """

    def fit(self, X: RowsLike, y: LabelsLike | None = None) -> Self:
        """Note the length of the lists, which X of shape (n,) holds."""
        self.width_ = _stack_lists(X).shape[1]
        self.n_features_in_ = 1
        return self

    def transform(self, X: RowsLike) -> np.ndarray:
        """Return the lists as rows, shape (n, width).

        Raises
        ------
        DataError
            Lists of another length, or with missing values.
        """
        check_is_fitted(self)
        rows = _stack_lists(X)
        if rows.shape[1] != self.width_:
            raise DataError(f"the lists hold {rows.shape[1]} numbers; {self.width_} are expected")
        return rows

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names of the features: the name of the column, and the position in the list."""
        name = "x0" if input_features is None else input_features[0]
        return np.array([f"{name}[{k}]" for k in range(self.width_)], dtype=object)


def _stack_lists(X: Matrix) -> np.ndarray:
    """Return lists as a matrix."""
    import pandas as pd

    values = X if isinstance(X, pd.Series) else pd.Series(list(X))
    rows = typed_column(values, Kind("list"), str(values.name))
    return np.array(rows.tolist(), dtype=np.float64).reshape(len(rows), -1)


def columns_to_bytes(transformer: object) -> bytes:
    """Return a fitted transformer, or a pipeline of them, as bytes of skops, without pickle.

    Raises
    ------
    DataError
        skops is not installed, or :func:`columns_from_bytes` does not trust a type.
    """
    skops = _import_skops()
    data: bytes = skops.dumps(transformer)
    # A model file loads trusted types only: refuse now what it could not load.
    unknown = sorted(set(skops.get_untrusted_types(data=data)) - set(TRUSTED_TYPES))
    if unknown:
        raise DataError(
            f"a step before the model holds {', '.join(unknown)}, which a model file cannot hold: "
            "save it with joblib or skops"
        )
    return data


def columns_from_bytes(data: bytes) -> ColumnTransformer:
    """Return the transformer that :func:`columns_to_bytes` wrote.

    Raises
    ------
    DataError
        skops is not installed.
    ValueError
        The bytes are damaged, or name a type that is neither scikit-learn's nor of this module.
    """
    skops = _import_skops()
    try:
        transformer = skops.loads(data, trusted=TRUSTED_TYPES)
    except DataError:
        raise
    except Exception as error:
        # skops, zipfile, json and the types themselves may raise anything.
        reason = str(error).splitlines()[0] if str(error) else repr(error)
        raise ValueError(f"its columns cannot be read: {reason}") from None
    if not isinstance(transformer, BaseEstimator) or not hasattr(transformer, "transform"):
        raise ValueError(f"its columns are a {type(transformer).__name__}, not a transformer")
    return transformer


def _import_skops() -> ModuleType:
    """Return ``skops.io``; raises DataError if it is not installed."""
    try:
        import skops.io
    except ImportError:
        raise DataError(
            f"models of tables with words are saved by skops: {how_to_install('files')}"
        ) from None
    return skops.io


def step_before(model: Pipeline) -> BaseEstimator:
    """Return the transformer before the estimator of a pipeline, or a pipeline of several."""
    if len(model.steps) == 2:
        return model.steps[0][1]
    return model[:-1]


def prepend_step(before: object, model: Estimator) -> Pipeline | Estimator:
    """Return a pipeline of a transformer and a model; the model alone without a transformer."""
    if before is None:
        return model
    pipeline = make_pipeline(before, model)
    if hasattr(model, "notes_"):
        pipeline.notes_ = model.notes_
    return pipeline
