"""The kinds of a table's columns, a class each: how columns are encoded, counted, saved and exported.

A kind that is added derives from :class:`Columns`, and is named in :data:`saddlesvm.estimators.table.GROUPS`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data.column_kinds import Kind

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
        """The features as nodes of a :class:`~saddlesvm.estimators.onnx.Graph`."""
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
        return [graph.op("Div", graph.op("Sub", both, scaler.mean_[None, :]), scaler.scale_[None, :])]


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
