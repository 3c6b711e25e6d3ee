"""Models of many classes whose dual variables would take too much memory."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC, Outcome, leave_one_out
from saddlesvm.estimators import solve
from support import distance_bound
from support.classes import blobs


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_a_model_without_dual_variables_is_the_same_and_goes_on_from_its_weights(multi_class, monkeypatch):
    X, y = blobs(300, 5, 4)
    options = {"loss": "logistic", "multi_class": multi_class, "tol": 1e-6, "random_state": 0}
    whole = LinearSVC(**options).fit(X, y)
    monkeypatch.setattr(solve, "MOST_DUALS", 1000)
    model = LinearSVC(**options, warm_start=True).fit(X, y)
    assert hasattr(whole, "dual_coef_") and not hasattr(model, "dual_coef_")
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    again = model.set_params(C=2.0).fit(X, y)
    assert again.outcome_ is Outcome.CERTIFIED
    other = LinearSVC(**options, C=2.0).fit(X, y)
    for k, pair in enumerate(zip(again.certificates_, other.certificates_, strict=True)):
        bound = distance_bound(*(one.gap for one in pair))
        assert np.linalg.norm(again.coef_[k] - other.coef_[k]) <= bound
    assert hasattr(LinearSVC(random_state=0, multi_class=multi_class).fit(X, y), "dual_coef_")  # most of these are zero


def test_a_leave_one_out_estimate_says_what_a_model_without_dual_variables_lacks(monkeypatch):
    X, y = blobs(60, 3, 3)
    monkeypatch.setattr(solve, "MOST_DUALS", 100)
    model = LinearSVC(loss="logistic", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="needs dual_coef_, which the model does not have"):
        leave_one_out(model, X, y)
