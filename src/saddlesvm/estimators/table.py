"""Tables of numbers, categories, texts and dates as rows of numbers: ``saddlesvm.table.encoder``.

Columns of one kind have a transformer: :mod:`saddlesvm.estimators.table_columns` has the kinds.

Model files hold an encoder as a state: plain numbers and words, by the groups of columns. An encoder is made of it by
scikit-learn's own constructors and a fit to two made-up rows, after which the learnt numbers are put in. Nothing of a
file is executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.column_kinds import Found, Kind, found_in, frame_of, kind_of, objects, typed
from saddlesvm.data.errors import DataError
from saddlesvm.data.table import shorten
from saddlesvm.estimators import table_columns as kinds

GROUPS: dict[str, type[kinds.Columns]] = {
    "number": kinds.Numbers, "category": kinds.Categories, "date": kinds.Dates,
    "text": kinds.Words, "chars": kinds.Characters, "hashed": kinds.Hashes, "list": kinds.Vectors,
}  # fmt: skip


def groups_of(columns: Mapping[str, str]) -> list[kinds.Columns]:
    """The groups of columns of given kinds: numbers, categories and dates together, each text and list by itself."""
    together: dict[str, list[int]] = {name: [] for name, one in GROUPS.items() if not one.alone}
    alone: list[kinds.Columns] = []
    for place, (name, text) in enumerate(columns.items()):
        kind = kind_of(text, name)
        if kind.name in together:
            together[kind.name].append(place)
        elif kind.name != "drop":
            alone.append(GROUPS[kind.name](f"{kind.name} {name}", kind, [place]))
    return [GROUPS[name](name, Kind(name), places) for name, places in together.items() if places] + alone


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
                made[:, place] = values if values.ndim == 1 else objects(values)
        return made

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features: ``age``, ``city=Paris``, ``note: great``, ``bought=Mar``.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        found: list[str] = []
        columns = list(self.columns)
        for group in groups_of(self.columns):
            names = [columns[place] for place in group.places]
            found += group.features(self.named_transformers_[group.name], names)
        return np.array(found, dtype=object)


def _as_csr(X: Any) -> Any:
    return X.tocsr() if sparse.issparse(X) else X


def encoder(frame: Any, columns: Mapping[str, str] | None = None) -> TableEncoder:
    """The encoder of a table, not fitted yet: a scikit-learn ``ColumnTransformer`` for a pipeline.

    Parameters
    ----------
    frame : data frame, Arrow table, dict of columns, or list of dicts
        Features without the labels; its first 10,000 rows determine the kind of each column.
    columns : mapping of str to str, optional
        Kinds of columns, where the guess is wrong: ``number``, ``category``, ``text`` (words), ``chars``, ``hashed``,
        ``date``, ``list`` or ``drop``; ``text:1-2`` for words and pairs, ``chars:2-5``, ``date:dmy``.

    Returns
    -------
    TableEncoder
        Missing numbers are filled with the mean and marked by a feature, and numbers are scaled. Each category becomes
        a feature. Texts become TF-IDF. Dates become the date, the month, the day of the week and the hour.

    Raises
    ------
    DataError
        The data are not a table, or no column is left to learn from.

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
    return [(one.name, one.transformer(), one.place) for one in groups_of(columns)]


IDF = "encoder_idf"  # the array of a model file with the inverse document frequencies of all texts, one after the other


def state_of(encoder: TableEncoder) -> tuple[kinds.State, np.ndarray]:
    """The learnt state of a fitted encoder: a state, and the inverse document frequencies of its texts.

    Raises
    ------
    DataError
        A transformer is not as :func:`saddlesvm.table.encoder` makes them.
    """
    check_is_fitted(encoder)
    states = []
    for group in groups_of(encoder.columns):
        fitted, fresh = encoder.named_transformers_.get(group.name), group.transformer()
        if type(fitted) is not type(fresh) or repr(clone(fitted).set_params(**group.restored)) != repr(fresh):
            raise DataError(
                f"the transformer {group.name!r} of the table's encoder is {fitted!r}; only those that "
                "saddlesvm.table.encoder makes can be saved"
            )
        states.append(group.state(fitted))
    return joined_states(encoder.columns, states)


def joined_states(
    columns: Mapping[str, str], states: list[tuple[kinds.State, np.ndarray]]
) -> tuple[kinds.State, np.ndarray]:
    """The state of an encoder, and its frequencies, from those of the groups of its columns."""
    frequencies = np.concatenate([np.empty(0), *(idf for _, idf in states)])
    return {"columns": dict(columns), "members": [one for one, _ in states]}, frequencies


def taken_state(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> tuple[kinds.State, np.ndarray] | None:
    """The state of an encoder among the contents of a model file, which is taken out; None where there is none."""
    state, idf = meta.pop("encoder", None), arrays.pop(IDF, None)
    return None if state is None else (state, np.empty(0) if idf is None else idf)


def encoder_of(state: Any, idf: np.ndarray) -> TableEncoder:
    """The fitted encoder of a state.

    Raises
    ------
    ValueError
        It is no state of an encoder.
    """
    columns = state.get("columns") if isinstance(state, dict) else None
    fine = isinstance(columns, dict) and all(isinstance(one, str) for item in columns.items() for one in item)
    kinds.needs(fine and isinstance(state.get("members"), list), "the columns")
    assert isinstance(columns, dict)
    groups = groups_of(columns)
    kinds.needs(len(groups) == len(state["members"]) > 0 and idf.ndim == 1 and idf.dtype == np.float64, "the groups")
    kinds.needs(bool(np.isfinite(idf).all() and (idf > 0.0).all()), "the frequencies of words")
    made, sample = [], np.zeros((2, len(columns)), dtype=object)
    for group, one in zip(groups, state["members"], strict=True):
        kinds.needs(isinstance(one, dict), group.name)
        transformer, sample[:, group.places] = group.sample(one)
        made.append((group.name, transformer, group.place))
    encoder = TableEncoder(made, columns)
    ColumnTransformer.fit_transform(encoder, sample)
    for group, one in zip(groups, state["members"], strict=True):
        idf = group.put(encoder.named_transformers_[group.name], one, idf)
    kinds.needs(idf.size == 0, "the frequencies of words")
    encoder.sparse_output_ = any(group.sparse for group in groups)
    return encoder.set_params(transformers=transformers_for(columns))
