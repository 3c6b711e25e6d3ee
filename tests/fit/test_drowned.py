"""A fit whose every bound drowns in its own rounding ends at once, and says so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.data.door import check_design
from saddlesvm.estimators.fitted import fitted_value
from saddlesvm.fit.outcome import Outcome
from saddlesvm.multiclass.linear_fit import rows_of
from saddlesvm.problem.drowned import every_bound_drowns

pytestmark = pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")

DAY = 86_400_000_000_000
DAYS = (1_704_067_200_000_000_000 + np.arange(150) * DAY)[:, None]  # in nanoseconds
THIRDS = np.repeat([0, 1, 2], 50)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
def test_a_column_of_nanoseconds_ends_at_once(loss: str, intercept: str) -> None:
    model = LinearSVC(loss=loss, intercept=intercept, random_state=0).fit(DAYS, THIRDS == 1)
    assert model.outcome_ is Outcome.LIMITED_BY_ROUNDING
    assert model.n_iter_ <= 300


def test_three_classes_of_nanoseconds_end_at_once() -> None:
    model = LinearSVC(random_state=0).fit(DAYS, THIRDS)
    assert model.outcome_ is Outcome.LIMITED_BY_ROUNDING
    assert model.n_iter_ <= 300


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive", "huber"])
def test_a_regression_on_nanoseconds_ends_at_once(loss: str) -> None:
    model = LinearSVR(loss=loss, random_state=0).fit(DAYS, (THIRDS == 1) * 1.0)
    assert model.outcome_ is Outcome.LIMITED_BY_ROUNDING
    assert model.n_iter_ <= 300


@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
def test_long_rows_of_the_hinge_are_certified_where_a_hyperplane_parts_them(intercept: str) -> None:
    iris = load_iris()
    model = LinearSVC(loss="hinge", intercept=intercept, random_state=0)
    model.fit(1e15 * iris.data, iris.target == 0)
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.n_iter_ <= 60


def test_nanoseconds_in_order_are_certified_with_a_free_intercept() -> None:
    later = DAYS[:, 0] >= DAYS[75, 0]
    model = LinearSVC(loss="hinge", intercept="free", random_state=0).fit(DAYS, later)
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.n_iter_ <= 60
    # The optimum: a margin of half a day, at midnight's rounded numbers of nanoseconds.
    assert model.certificate_.primal == pytest.approx(0.5 * (2.0 / DAY) ** 2, rel=1e-3)


@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("label", [1, 2])
def test_long_rows_that_overlap_end_at_once(label: int, loss: str, intercept: str) -> None:
    iris = load_iris()
    model = LinearSVC(loss=loss, intercept=intercept, random_state=0)
    model.fit(1e15 * iris.data, iris.target == label)
    assert model.outcome_ is Outcome.LIMITED_BY_ROUNDING
    assert model.n_iter_ <= 300


def test_three_classes_of_nanoseconds_end_at_once_with_the_hinge_and_a_free_intercept() -> None:
    model = LinearSVC(loss="hinge", intercept="free", random_state=0).fit(DAYS, THIRDS)
    assert model.n_iter_ <= 300


def test_a_row_of_zeros_among_long_rows_changes_nothing() -> None:
    X = 1e15 * np.arange(150.0)[:, None]
    model = LinearSVC(loss="hinge", intercept="none", random_state=0).fit(X, X[:, 0] >= X[75, 0])
    assert model.outcome_ is Outcome.LIMITED_BY_ROUNDING
    assert model.n_iter_ <= 300


def test_iris_at_any_scale_is_certified_or_ends_soon() -> None:
    iris = load_iris()
    for power in (-20, 0, 10, 20, 30, 40, 44, 46, 48, 50, 60):
        model = LinearSVC(random_state=0).fit(iris.data * 2.0**power, iris.target)
        # A solver that rounding has stopped makes no pass that repeats its last one.
        assert model.n_iter_ <= 1_000
        if power <= 20:
            assert model.outcome_ is Outcome.CERTIFIED


def problem_of(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    """The problem of a fitted model of two classes."""
    posed = fitted_value(model).pose(y, None, len(y))
    rows = rows_of(check_design(X), "regularized", 1.0, 1, None)
    return rows.problem(posed.problems[0], posed.loss, {"C": model.C, "intercept": "regularized"})


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_a_problem_that_can_be_certified_does_not_drown(loss: str) -> None:
    random = np.random.default_rng(0)
    for power in (0, 20, 40):
        X = random.standard_normal((40, 3)) * 2.0**power
        y = (X[:, 0] + 2.0**power * random.standard_normal(40) > 0).astype(int)
        for C in (1e-6, 1.0, 1e6):
            model = LinearSVC(loss=loss, C=C, random_state=0, max_time=1.0).fit(X, y)
            problem = problem_of(model, X, y)
            if model.outcome_ is Outcome.CERTIFIED:
                assert not every_bound_drowns(problem, model.certificate_.primal)
            assert not every_bound_drowns(problem, math.inf)
            assert not every_bound_drowns(problem, 0.0)
