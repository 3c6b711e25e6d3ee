"""Data that are no numbers: the error names the column, the row or the label that is to blame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from saddlesvm import SVC, LinearSVC, LinearSVR, certify

ROWS = 12
Y = np.arange(ROWS) % 2


def frame(**column: Any) -> pd.DataFrame:
    return pd.DataFrame({"size": np.arange(ROWS) / ROWS, **column})


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR, SVC])
@pytest.mark.parametrize(
    ("column", "held"),
    [
        (np.where(Y, "Bern", "Paris"), r"column 'town' of X holds no numbers .*'Paris'"),
        (pd.Categorical(np.where(Y, "Bern", "Paris")), r"column 'town' of X holds no numbers .*'Paris'"),
        (pd.date_range("2020-01-01", periods=ROWS), r"column 'town' of X holds no numbers .dates"),
        (pd.to_timedelta(np.arange(ROWS), unit="D"), r"column 'town' of X holds no numbers .spans of time"),
        (np.array([None, [2]] * 6, dtype=object), r"column 'town' of X holds no numbers .*'list'"),
    ],
)
def test_a_column_that_holds_no_numbers_is_named(kind: Any, column: Any, held: str) -> None:
    with pytest.raises(ValueError, match=held):
        kind().fit(frame(town=column), Y)


def test_it_is_named_by_predict_and_certify_too() -> None:
    model = LinearSVC().fit(frame(town=1.0 * Y), Y)
    with pytest.raises(ValueError, match=r"column 'town' of X holds no numbers .*'3 km'"):
        model.predict(frame(town=["3 km"] * ROWS))
    with pytest.raises(ValueError, match=r"column 'town' of X holds no numbers"):
        certify(frame(town=["3 km"] * ROWS), Y, model.coef_, C=1.0)


def test_text_in_arrays_is_refused_with_advice() -> None:
    with pytest.raises(ValueError, match=r"could not convert string to float: 'good': features must be numbers"):
        LinearSVC().fit([["good", "bad"]] * ROWS, Y)


@pytest.mark.parametrize("made", [np.asarray, sparse.csr_array])
def test_the_place_of_a_value_that_is_not_finite_is_named(made: Any) -> None:
    X = np.eye(ROWS)
    X[7, 3] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN in row 7, column 3 \(from 0\).*SimpleImputer"):
        LinearSVC().fit(made(X), Y)
    X[7, 3], X[7, 4] = 5.0, -np.inf
    with pytest.raises(ValueError, match=r"contains infinity .* in row 7, column 4 \(from 0\): all values"):
        LinearSVC().fit(made(X), Y)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["a", None] * 6, "y holds None in row 1, and every row needs a label"),
        (["a", np.nan] * 6, "y holds nan in row 1, and every row needs a label"),
        (["a", "b", 3] * 4, "y holds 'a' and 3, and labels must be all text or all numbers"),
    ],
)
def test_labels_that_are_no_classes_are_named(labels: list[Any], told: str) -> None:
    with pytest.raises(ValueError, match=f"Unknown label type: {told}"):
        LinearSVC().fit(np.eye(ROWS), np.array(labels, dtype=object))


def test_certify_asks_for_the_strength_that_is_missing() -> None:
    with pytest.raises(ValueError, match="give C or lam"):
        certify(np.eye(ROWS), Y, np.ones(ROWS))


def test_targets_of_words_are_refused_as_targets() -> None:
    with pytest.raises(ValueError, match=r"y must hold numbers, the targets of a regression: .*'Bern'"):
        LinearSVR().fit(np.eye(2), ["Bern", "Paris"])
