"""A method that is missing with some options says what to do; an outcome is text."""

from __future__ import annotations

import json
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from saddlesvm import SVC, LinearSVC, Outcome


@pytest.mark.parametrize(
    ("model", "name", "words"),
    [
        (LinearSVC(), "predict_proba", "needs a loss with probabilities"),
        (LinearSVC(), "predict_log_proba", "needs a loss with probabilities"),
        (LinearSVC(multi_class="ovo", loss="logistic"), "predict_proba", "needs multi_class='ovr'"),
        (LinearSVC(), "partial_fit", "solver='pegasos'"),
        (LinearSVC(solver="pegasos", penalty="l1"), "partial_fit", "penalty='l2'"),
    ],
)
def test_a_missing_method_says_what_it_needs(model: Any, name: str, words: str) -> None:
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
        getattr(model, name)
    # Python shows the reason above the error.
    assert words in str(caught.value.__cause__)


def test_an_outcome_is_text() -> None:
    for outcome in Outcome:
        assert outcome == outcome.value == str(outcome) == f"{outcome}"
        assert json.loads(json.dumps({"outcome": outcome})) == {"outcome": outcome.value}
        assert pickle.loads(pickle.dumps(outcome)) is outcome
    model = LinearSVC(random_state=0).fit([[0.0], [1.0]], [0, 1])
    assert model.outcome_ == "certified"
    assert model.outcome_ != "time_limit"


def test_labels_of_arrow_warn_of_nothing() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = (X[:, 0] > 0).astype(int)
    words = pyarrow.array(np.array(["a", "b"])[y].tolist())
    numbers = [pyarrow.array(y), pyarrow.array(y * 1.0), pyarrow.array(y == 1)]
    chunked = pyarrow.chunked_array([y[:20], y[20:]])
    for given in (*numbers, chunked, words, words.dictionary_encode()):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = LinearSVC(random_state=0).fit(X, given)
        assert model.score(X, np.asarray(given)) > 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVC(random_state=0).fit(X, words)
