"""Proven leave-one-out bounds contain what the exact model without a row says, in fractions."""

from __future__ import annotations

import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, leave_one_out
from support.exact_left_out import draw, exact_margins, judge

MODELS = 25  # `python -m support.exact_left_out 500` judges more


def test_no_bound_of_drawn_models_is_false() -> None:
    total: Counter[str] = Counter()
    for seed in range(MODELS):
        total += judge(seed)
    assert total["false"] == 0
    assert total["false errors"] == 0
    assert total["judged"] > 0.9 * total["rows"]


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("power", [-4, 10, 22])
def test_bounds_of_the_squared_loss_hold_where_a_row_has_most_of_a_direction(intercept: str, power: int) -> None:
    random = np.random.default_rng([8, power + 4])
    X = np.round(random.standard_normal((8, 2)) * 4) / 4
    X[0, 0] = 64.0
    y = np.round(X @ [5.0, -2.0] + random.standard_normal(8) * 3, 1)
    model = LinearSVR(loss="squared", C=2.0**power, intercept=intercept, random_state=0).fit(X, y)
    found = leave_one_out(model, X, y)
    exact = list(exact_margins(model, X, y))
    for value, low, high in zip(exact, found.low, found.high, strict=True):
        assert value is not None
        assert Fraction(low) <= value <= Fraction(high)
    assert (found.high - found.low <= 1e-3 * (1.0 + np.abs(found.margins))).all()


def test_bounds_with_a_free_intercept_contain_the_exact_margins() -> None:
    total: Counter[str] = Counter()
    for seed in range(120):
        model, _, _ = draw(np.random.default_rng([51, seed]))
        if model.intercept == "free" and model.loss not in ("squared", "hinge"):
            total += judge(seed)
    assert total["rows"] > 50
    assert total["false"] == 0
    assert total["false errors"] == 0
    assert total["finite"] >= 0.3 * total["rows"]  # of some eight rows hardly any bend


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "smooth_hinge"])
def test_nothing_is_proven_of_the_only_row_of_a_class_with_a_free_intercept(loss: str) -> None:
    X, y = np.random.default_rng(0).standard_normal((20, 3)), np.arange(20) == 3
    for weights in (None, np.where(np.arange(20) % 5 == 1, 0.0, 1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = LinearSVC(loss=loss, intercept="free", random_state=0).fit(X, y, weights)
            found = leave_one_out(model, X, y, weights)
        assert not np.isfinite(found.low[3])
        finite = np.isfinite(found.high - found.low)
        assert not finite[3]
        assert finite.sum() >= 18


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "smooth_hinge"])
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
def test_rows_of_zeros_cause_no_warning(loss: str, intercept: str) -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        X = random.standard_normal((20, 3))
        X[::5] = 0.0
        X[random.random(X.shape) < 0.3] = 0.0
        y = np.where(random.standard_normal(20) > 0.0, 1, -1)
        C = 10.0 ** random.integers(-8, 9)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", NotCertifiedWarning)
            model = LinearSVC(loss=loss, intercept=intercept, C=C, random_state=0, max_time=2.0)
            model.fit(X, y)
            found = leave_one_out(model, X, y)
        assert not np.isnan([found.low, found.high, found.margins]).any()
