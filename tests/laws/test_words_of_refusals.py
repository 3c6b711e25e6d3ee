"""What is refused is named in words: branches that no other test takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.data import DataError, read
from saddlesvm.data.archives import check_format, parse_json
from saddlesvm.models.model_checks import check_meta

X, Y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1])
STORED: dict[str, Any] = {
    "params": {}, "facts": {"n_features": 1}, "notes": {}, "certificates": [], "trace": [], "outcome": "",
    "kernel": None,
}  # fmt: skip
PROOF = {"primal": 1.0, "dual": 0.5}


REFUSALS: dict[str, Callable[[], Any]] = {
    "its JSON is nested too deeply": lambda: parse_json(b"[" * 200_000 + b"]" * 200_000, 1),
    "its JSON has about 500000 values; 400000 are allowed": lambda: parse_json(b"," * 500_000, 1),
    "m: is a model of version 9; version 2 can be read": lambda: check_format(
        {"format": "f", "version": 9}, "m", "model", "f", 2
    ),
    "is a bundled set, of which the label column is known: leave --label": lambda: read("toy", label=0),
    "sample_weight has 2 entries; X has 3 rows": lambda: LinearSVC().fit(X, Y, [1.0, 2.0]),
    "Sample weights must be 1D array or scalar": lambda: LinearSVC().fit(X, Y, [[1.0], [2.0], [1.0]]),
    "predict_proba needs a loss with probabilities": lambda: LinearSVC().predict_proba,
    "partial_fit needs an online solver, solver='pegasos'; got 'dcd'": lambda: LinearSVC(solver="dcd").partial_fit,
    "partial_fit needs multi_class='ovr'; got 'ovo'": lambda: LinearSVC(multi_class="ovo").partial_fit,
    "its notes is None": lambda: check_meta(STORED | {"notes": None}, ("C",)),
    "its certificates is [{'primal': 1.0}]": lambda: check_meta(STORED | {"certificates": [{"primal": 1.0}]}, ("C",)),
    "its outcome is 'gone'": lambda: check_meta(STORED | {"outcome": "gone"}, ("C",)),
}


@pytest.mark.parametrize("words", REFUSALS)
def test_what_is_refused_is_named(words: str) -> None:
    with pytest.raises((ValueError, DataError, AttributeError)) as caught:
        REFUSALS[words]()
    said = str(caught.value) + str(caught.value.__cause__ or "")
    assert words in said and "\n" not in said


def test_what_is_sound_is_not_refused() -> None:
    check_meta(STORED | {"outcome": "certified", "certificates": [PROOF]}, ("C",))
    check_format({"format": "f", "version": 2}, "m", "model", "f", 2)
    assert parse_json(json.dumps({"a": [1]}).encode(), 9) == {"a": [1]}
    assert callable(LinearSVC(solver="pegasos").partial_fit)
