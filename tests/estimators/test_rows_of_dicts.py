"""Rows that are dicts: what a pipeline with scikit-learn's DictVectorizer gives, without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.feature_extraction import DictVectorizer
from sklearn.pipeline import make_pipeline

import saddlesvm as ours
from saddlesvm.models.persistence import load, save

ROWS: list[dict[str, Any]] = [
    {"age": 1.0 + k % 7, "weight": 0.1 * k, "city": "Rome" if k % 3 else "Paris"} for k in range(40)
]
LABELS = np.array([1 if k % 3 and k % 7 > 2 else 0 for k in range(40)])
MACHINES = ["LinearSVC", "LinearSVR", "SVC", "SVR", "NuSVR", "OneClassSVM"]


@pytest.mark.parametrize("name", MACHINES)
def test_they_are_what_a_vectorizer_makes_of_them(name: str, tmp_path: Any) -> None:
    machine = getattr(ours, name)
    own = machine().fit(ROWS, LABELS)
    piped = make_pipeline(DictVectorizer(), machine()).fit(ROWS, LABELS)
    assert own.feature_names_in_.tolist() == ["age", "city=Paris", "city=Rome", "weight"]
    np.testing.assert_array_equal(own.predict(ROWS), piped.predict(ROWS))
    save(own, str(tmp_path / "model"))
    np.testing.assert_array_equal(load(str(tmp_path / "model")).predict(ROWS), own.predict(ROWS))


def test_names_that_the_fit_did_not_have_are_left_out() -> None:
    model = ours.LinearSVR().fit(ROWS, LABELS)
    more = [row | {"height": 5.0, "city": "Oslo"} for row in ROWS]
    fewer = [{name: value for name, value in row.items() if name != "city"} for row in ROWS]
    np.testing.assert_array_equal(model.predict(more), model.predict(fewer))


def test_what_is_no_row_is_refused() -> None:
    with pytest.raises(ValueError, match="row 40 is not a dict but list"):
        ours.LinearSVC().fit([*ROWS, [1.0, 2.0]], [*LABELS, 1])
    with pytest.raises(ValueError, match="trained on dicts or on columns with names"):
        ours.LinearSVC().fit(np.eye(4), [0, 1, 0, 1]).predict(ROWS)
    with pytest.raises(ValueError, match="must be texts, and the values numbers or texts"):
        ours.LinearSVC().fit([{"a": {1: 2}}, {"a": 1.0}], [0, 1])
    model = ours.LinearSVC().fit(ROWS, LABELS)
    with pytest.raises(ValueError, match="make a matrix of them first"):
        ours.leave_one_out(model, ROWS, LABELS)
