"""Rows that are dicts, a number or a text by the name of its feature: sparse rows, by scikit-learn's vectorizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction import DictVectorizer


def are_dicts(X: Any) -> bool:
    """Whether X is a list of rows that are dicts."""
    return isinstance(X, (list, tuple)) and bool(X) and isinstance(X[0], Mapping)


def rows_of_dicts(X: Any, names: Any = None) -> tuple[sparse.csr_array, np.ndarray]:
    """The rows as a CSR array, and the names of its columns.

    A number is the value of its feature, a text makes a feature ``name=text`` of value 1; what a row does not name is
    zero.

    Parameters
    ----------
    X : list of dicts
    names : sequence of str, optional
        Of the columns: features with other names are left out, as by DictVectorizer. Those of the rows when left out.

    Raises
    ------
    ValueError
        A row is no dict, or a value is neither a number nor text.
    """
    odd = next((i for i, row in enumerate(X) if not isinstance(row, Mapping)), None)
    if odd is not None:
        raise ValueError(f"row {odd} is not a dict but {type(X[odd]).__name__}: either all rows are dicts, or none")
    maker = DictVectorizer()
    try:
        if names is None:
            made = maker.fit_transform(X)
        else:
            maker.feature_names_ = [str(name) for name in names]
            maker.vocabulary_ = {name: k for k, name in enumerate(maker.feature_names_)}
            made = maker.transform(X)
    except TypeError as error:
        raise ValueError(f"a row that is a dict has numbers or texts by names that are texts: {error}") from None
    return sparse.csr_array(made), np.array(maker.feature_names_, dtype=object)
