"""Tables of numbers, categories, texts and dates as rows of numbers: ``saddlesvm.table.encoder``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.column_kinds import Found, found_in, kind_of, typed
from saddlesvm.data.errors import DataError
from saddlesvm.data.frame import frame_of
from saddlesvm.data.table import shorten
from saddlesvm.estimators.table_parts import Member, made_for, members_of

__all__ = ["TableEncoder", "encoder", "encoder_for"]


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
