"""Tables of numbers, categories, texts, dates and lists as rows of numbers, by scikit-learn's own transformers.

A ``ColumnTransformer`` has a transformer for each kind of column, named after it: ``number``, ``category``,
``date:dmy``, ``text:1-2 0``. The kinds of a fitted one can so be read from it.
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
from saddlesvm.runtime.extras import how_to_install

if TYPE_CHECKING:
    import pandas as pd

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
HOURS = 24
ALONE = ("text", "chars", "list")  # kinds whose transformers take one column each
MICROSECONDS_A_DAY = 86_400e6


def encoder(
    frame: pd.DataFrame, columns: Mapping[str, str] | None = None, *, missing: str = "mean"
) -> ColumnTransformer:
    """Choose a transformer for each column of a table, by what it holds.

    Parameters
    ----------
    frame : DataFrame
        Features without the labels, as :func:`saddlesvm.table.read` returns them; the first 10,000 rows determine the
        kind of each column.
    columns : mapping of str to str, optional
        Kinds of columns if the guess is wrong: ``number``, ``category``, ``text`` (words), ``chars``, ``date``,
        ``list`` or ``drop``; ``text:1-2`` for words and pairs, ``chars:2-5``, ``date:dmy``.
    missing : {"mean", "median"}, default="mean"
        What fills gaps between numbers; a feature marks them.

    Returns
    -------
    ColumnTransformer
        Not fitted, for a pipeline. Numbers are filled and scaled, each category becomes a feature, texts become TF-IDF,
        dates the date, the month, the day of the week and the hour. Lists of numbers stay as they are.

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
    kinds = {name: one.kind for name, one in choose_kinds(frame, columns).items()}
    for name, kind in kinds.items():
        is_text = frame[name].dtype.kind not in "iufmM"
        if kind.name == "number" and is_text:
            raise DataError(
                f"column {name!r} holds numbers as text: make numbers of it first (saddlesvm.table.read does), or name "
                f"its kind, columns={{{name!r}: 'category'}}"
            )
    return transformers_for({name: str(kind) for name, kind in kinds.items()}, missing)


def transformers_for(kinds: Mapping[str, str], missing: str = "mean") -> ColumnTransformer:
    """The ``ColumnTransformer`` for columns of given kinds: numbers, categories and dates together, each text alone."""
    groups: dict[str, list[str]] = {}
    for name, text in kinds.items():
        kind = parse_kind(text, name)
        if kind.name != "drop":
            groups.setdefault(f"{kind} {len(groups)}" if kind.name in ALONE else str(kind), []).append(name)
    chosen = []
    for called, names in groups.items():
        kind = parse_kind(called.partition(" ")[0], names[0])
        columns: Any = names[0] if kind.name in ALONE else names
        chosen.append((called, transformer_for(kind, missing), columns))
    return ColumnTransformer(chosen, sparse_threshold=1.0)


def transformer_for(kind: Kind, missing: str = "mean") -> Any:
    """The transformer for columns of a kind."""
    if kind.name == "number":
        imputer = SimpleImputer(strategy=missing, add_indicator=True, keep_empty_features=True)
        return make_pipeline(imputer, StandardScaler())
    if kind.name == "category":
        return OneHotEncoder(handle_unknown="ignore")
    if kind.name == "date":
        return Dates(order=kind.way or "ymd")
    if kind.name == "list":
        return Lists()
    analyzer = "word" if kind.name == "text" else "char_wb"
    return TfidfVectorizer(analyzer=analyzer, ngram_range=(kind.low, kind.high))


def kinds_in(columns: ColumnTransformer) -> dict[str, Kind] | None:
    """The kinds of the columns of a transformer that :func:`transformers_for` made; None for another."""
    kinds: dict[str, Kind] = {}
    for called, _, names in columns.transformers:
        listed = [names] if isinstance(names, str) else names
        try:
            kinds.update((str(name), parse_kind(called.partition(" ")[0], str(name))) for name in listed)
        except (DataError, TypeError):
            return None
    return kinds


def feature_names(columns: ColumnTransformer) -> list[str]:
    """Name the features for people: ``age``, ``city=Paris``, ``note: great``, ``bought=Mar``.

    Parameters
    ----------
    columns : ColumnTransformer
        Of :func:`encoder`, fitted.

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
    made: list[str] = []
    for called, fitted, names in columns.transformers_:
        if called == "remainder":
            continue
        listed = [names] if isinstance(names, str) else list(names)
        kind = called.partition(":")[0].partition(" ")[0]
        if kind == "number":
            gaps = fitted[0].indicator_.features_ if fitted[0].indicator_ is not None else []
            made += [*listed, *(f"{listed[place]} is missing" for place in gaps)]
        elif kind == "category":
            each = zip(listed, fitted.categories_, strict=True)
            made += [f"{name}={one if one != '' else '(missing)'}" for name, found in each for one in found]
        elif kind in ("text", "chars"):
            made += [f"{listed[0]}: {one}" for one in fitted.get_feature_names_out()]
        else:
            made += list(fitted.get_feature_names_out(listed))
    return made


class Dates(TransformerMixin, BaseEstimator):
    """Dates as numbers: the scaled date, month, day of the week, and the hour if there is one.

    Parameters
    ----------
    order : {"ymd", "dmy", "mdy"}, default="ymd"
        Of year, month and day in dates that are text.

    Attributes
    ----------
    scaler_ : StandardScaler
        Of the days since 1970-01-01.
    timed_ : ndarray of shape (k,)
        Whether any date of the column has a time of the day.

    Notes
    -----
    A column becomes 20 features, or 44 with hours. A missing date is zero in all of them.
    """

    def __init__(self, order: str = "ymd") -> None:
        self.order = order

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn mean and spread of each column; X of shape (n, k) holds moments, or texts of them."""
        if hasattr(self, "scaler_"):
            del self.scaler_
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from some rows more."""
        days = self._days(X)
        if not hasattr(self, "scaler_"):
            self.scaler_ = StandardScaler()
            self.timed_ = np.zeros(days.shape[1], dtype=bool)
            self.n_features_in_ = days.shape[1]
        self.scaler_.partial_fit(days)
        self.timed_ = self.timed_ | (~np.isnan(days) & (np.floor(days) != days)).any(axis=0)
        return self

    def transform(self, X: Any) -> sparse.csr_array:
        """The features of dates, shape (n, 20 or 44 for each column)."""
        check_is_fitted(self)
        days = self._days(X)
        scaled = self.scaler_.transform(days)
        places = []
        values = []
        start = 0
        for column, of_date, timed in zip(days.T, scaled.T, self.timed_, strict=True):
            known = ~np.isnan(column)
            moment = np.where(known, column, 0.0)
            whole = np.floor(moment)
            month = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % len(MONTHS)
            weekday = (whole.astype(np.int64) + 3) % len(DAYS)  # 1970-01-01 was a Thursday
            places += [np.full(len(days), start), start + 1 + month, start + 1 + len(MONTHS) + weekday]
            values += [np.where(known, of_date, 0.0), known, known]
            start += 1 + len(MONTHS) + len(DAYS)
            if timed:
                hour = np.floor(HOURS * (moment - whole) + 1e-6)  # less than a second, more than rounding
                places.append(start + hour.astype(np.int64))
                values.append(known)
                start += HOURS
        # each row has the same number of values, so that the row pointers are known; missing dates are zeros
        indptr = np.arange(len(days) + 1, dtype=np.int32) * np.int32(len(places))
        data = np.column_stack(values).astype(np.float64).ravel()
        indices = np.column_stack(places).astype(np.int32).ravel()  # many estimators take no 64-bit indices
        made = sparse.csr_array((data, indices, indptr), shape=(len(days), start))
        made.eliminate_zeros()
        return made

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features, each after its column."""
        names = [f"x{place}" for place in range(self.n_features_in_)] if input_features is None else input_features
        found: list[str] = []
        for name, timed in zip(names, self.timed_, strict=True):
            found += [str(name), *(f"{name}={part}" for part in (*MONTHS, *DAYS))]
            found += [f"{name}={hour}h" for hour in range(HOURS)] if timed else []
        return np.array(found, dtype=object)

    def _days(self, X: Any) -> np.ndarray:
        """Days since 1970-01-01, NaN if one is missing, shape (n, k)."""
        import pandas as pd

        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X)
        kind = Kind("date", way="" if self.order == "ymd" else self.order)
        days = []
        for place, name in enumerate(frame.columns):
            moments = typed_column(frame.iloc[:, place], kind, str(name))
            numbers = moments.astype("datetime64[us]").astype(np.int64) / MICROSECONDS_A_DAY
            days.append(np.where(np.isnat(moments), np.nan, numbers))
        return np.column_stack(days)


class Lists(TransformerMixin, BaseEstimator):
    """A column of lists of numbers, of one length, as a matrix.

    Attributes
    ----------
    width_ : int
        Length of the lists.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Note the length of the lists; X of shape (n,) holds them."""
        self.width_ = _stack(X).shape[1]
        self.n_features_in_ = 1
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The lists as rows, shape (n, width).

        Raises
        ------
        DataError
            Lists of another length, or with missing values.
        """
        check_is_fitted(self)
        made = _stack(X)
        if made.shape[1] != self.width_:
            raise DataError(f"the lists hold {made.shape[1]} numbers; {self.width_} are expected")
        return made

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features: the column's, and the place in the list."""
        name = "x0" if input_features is None else input_features[0]
        return np.array([f"{name}[{place}]" for place in range(self.width_)], dtype=object)


def _stack(X: Any) -> np.ndarray:
    """Lists as a matrix."""
    import pandas as pd

    values = X if isinstance(X, pd.Series) else pd.Series(list(X))
    rows = typed_column(values, Kind("list"), str(values.name))
    return np.array(rows.tolist(), dtype=np.float64).reshape(len(rows), -1)


OURS = ["numpy.dtype", f"{__name__}.Dates", f"{__name__}.Lists"]  # types beyond scikit-learn's that a file may name


def columns_to_bytes(transformer: Any) -> bytes:
    """A fitted transformer, or a pipeline of them, for a file: by skops, without pickle.

    Raises
    ------
    DataError
        skops is not installed, or a type is not among those that :func:`columns_from_bytes` trusts.
    """
    skops = _skops()
    made: bytes = skops.dumps(transformer)
    odd = sorted(set(skops.get_untrusted_types(data=made)) - set(OURS))
    if odd:
        raise DataError(
            f"a step before the model holds {', '.join(odd)}, which a model file cannot: use joblib, or skops"
        )
    return made


def columns_from_bytes(data: bytes) -> Any:
    """The transformer that :func:`columns_to_bytes` wrote.

    Raises
    ------
    DataError
        skops is not installed.
    ValueError
        The bytes are damaged, or name a type that is neither scikit-learn's nor of this module.
    """
    skops = _skops()
    try:
        made = skops.loads(data, trusted=OURS)
    except DataError:
        raise
    except Exception as error:  # skops, zipfile, json and the types themselves raise what they like
        raise ValueError(
            f"its columns cannot be read: {str(error).splitlines()[0] if str(error) else error!r}"
        ) from None
    if not isinstance(made, BaseEstimator) or not hasattr(made, "transform"):
        raise ValueError(f"its columns are a {type(made).__name__}, and no transformer")
    return made


def _skops() -> Any:
    """The functions of ``skops.io``; raises DataError if it is not installed."""
    try:
        import skops.io
    except ImportError:
        raise DataError(f"models of tables with words are saved by skops: {how_to_install('files')}") from None
    return skops.io


def step_before(model: Pipeline) -> Any:
    """What stands before the estimator of a pipeline: its only transformer, or a pipeline of several."""
    return model.steps[0][1] if len(model.steps) == 2 else model[:-1]
