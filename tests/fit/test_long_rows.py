"""Rows so long that rounding hides every bound: fits end soon, certified where they can be."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.fit.outcome import Outcome

pytestmark = pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")

DAY = 86_400_000_000_000
DAYS = (1_704_067_200_000_000_000 + np.arange(150) * DAY)[:, None]  # in nanoseconds
THIRDS = np.repeat([0, 1, 2], 50)
HIDDEN = (Outcome.LIMITED_BY_ROUNDING, Outcome.NO_PROGRESS)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
def test_a_column_of_nanoseconds_ends_soon(loss: str, intercept: str) -> None:
    model = LinearSVC(loss=loss, intercept=intercept, random_state=0).fit(DAYS, THIRDS == 1)
    assert model.outcome_ in HIDDEN
    # Some 0.6 s: without an intercept the hinge takes 1,286 passes until nothing has changed for long.
    assert model.n_iter_ <= 2_000


def test_three_classes_of_nanoseconds_end_soon() -> None:
    model = LinearSVC(random_state=0).fit(DAYS, THIRDS)
    assert model.outcome_ in HIDDEN
    assert model.n_iter_ <= 1_000


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive", "huber"])
def test_a_regression_on_nanoseconds_ends_soon(loss: str) -> None:
    model = LinearSVR(loss=loss, random_state=0).fit(DAYS, (THIRDS == 1) * 1.0)
    assert model.outcome_ in HIDDEN
    assert model.n_iter_ <= 1_000


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
def test_long_rows_that_overlap_end_soon(label: int, loss: str, intercept: str) -> None:
    iris = load_iris()
    model = LinearSVC(loss=loss, intercept=intercept, random_state=0)
    model.fit(1e15 * iris.data, iris.target == label)
    assert model.outcome_ in HIDDEN
    assert model.n_iter_ <= 1_000


def test_three_classes_of_nanoseconds_end_soon_with_the_hinge_and_a_free_intercept() -> None:
    model = LinearSVC(loss="hinge", intercept="free", random_state=0).fit(DAYS, THIRDS)
    assert model.n_iter_ <= 1_000


def test_a_row_of_zeros_among_long_rows_changes_nothing() -> None:
    X = 1e15 * np.arange(150.0)[:, None]
    model = LinearSVC(loss="hinge", intercept="none", random_state=0).fit(X, X[:, 0] >= X[75, 0])
    assert model.outcome_ in HIDDEN
    assert model.n_iter_ <= 1_000


def test_iris_at_any_scale_is_certified_or_ends_soon() -> None:
    iris = load_iris()
    for power in (-20, 0, 10, 20, 30, 40, 44, 46, 48, 50, 60):
        model = LinearSVC(random_state=0).fit(iris.data * 2.0**power, iris.target)
        # A solver that rounding has stopped makes no pass that repeats its last one.
        assert model.n_iter_ <= 1_000
        if power <= 20:
            assert model.outcome_ is Outcome.CERTIFIED
