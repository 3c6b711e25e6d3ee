"""Sub-problems that a time limit leaves no room to begin: the best intercept, and a certificate that holds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

from saddlesvm import SVC, LinearSVC, NotCertifiedWarning, Outcome
from saddlesvm.multiclass import sub_problems
from saddlesvm.multiclass.fits import sides_of
from saddlesvm.multiclass.sub_problems import Pairs
from saddlesvm.problem.losses import make_loss

LOSSES = ("hinge", "squared_hinge", "logistic")


@pytest.fixture
def no_time(monkeypatch: Any) -> None:
    """No time is left after the first sub-problem."""
    monkeypatch.setattr(sub_problems.SharedTime, "is_over", lambda clock: clock.has_begun)


def data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    return random.normal(size=(60, 4)), random.choice(4, 60, p=[0.1, 0.2, 0.3, 0.4])


def fitted(kind: Any, weights: Any = None, **options: Any) -> Any:
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        return kind(max_time=100.0, random_state=0, **options).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
def test_the_others_have_the_best_intercept_and_a_true_certificate(
    no_time: None, loss: str, multi_class: str, intercept: str
) -> None:
    model = fitted(LinearSVC, loss=loss, multi_class=multi_class, intercept=intercept, intercept_scaling=2.0, C=0.3)
    assert model.outcome_ is Outcome.TIME_LIMIT
    assert model.coef_[0].any() and not model.coef_[1:].any()
    phi, (_, y) = make_loss(loss), data()  # type: ignore[arg-type]
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for k in range(1, len(model.coef_)):
        signs = np.where(y == k, 1.0, -1.0)
        if multi_class == "ovo":
            first, second = pairs[k]
            signs = np.where(y == second, 1.0, -1.0)[(y == first) | (y == second)]

        def objective(b: float, signs: np.ndarray = signs) -> float:
            charged = 0.125 * b * b if intercept == "regularized" else 0.0
            return charged + 0.3 * sum(phi.value(b, sign) for sign in signs)

        claim, b = model.certificates_[k], float(model.intercept_[k])
        best = 0.0 if intercept == "none" else minimize_scalar(objective, bounds=(-5.0, 5.0), method="bounded").x
        assert objective(b) <= objective(float(best)) * (1.0 + 1e-6)
        assert objective(b) <= claim.primal <= objective(b) * (1.0 + 1e-12) and claim.dual == 0.0


@pytest.mark.parametrize("kind", [LinearSVC, SVC])
def test_weights_of_rows_count_and_lambda_is_each_pairs_own(no_time: None, kind: Any) -> None:
    weights = np.random.default_rng(1).uniform(0.0, 3.0, 60)
    # SVC has the hinge only, at whose best intercept the slope is not zero.
    options = {"multi_class": "ovo", "loss": "squared_hinge"} if kind is LinearSVC else {}
    power = 2 if kind is LinearSVC else 1
    sign = 1.0 if kind is LinearSVC else -1.0  # SVC's pairs are positive for the earlier class
    model = fitted(kind, weights, lam=0.01, C=None, intercept="free", **options)
    _, y = data()
    rows = (y == 2) | (y == 3)
    signs, s, b = np.where(y[rows] == 3, 1.0, -1.0), weights[rows], sign * float(model.intercept_[-1])
    paid = (s * np.maximum(0.0, 1.0 - b * signs) ** power).sum() / rows.sum()
    assert model.certificates_[-1].primal == pytest.approx(paid, rel=1e-12)
    if power == 2:
        assert (s * signs * np.maximum(0.0, 1.0 - b * signs)).sum() == pytest.approx(0.0, abs=1e-9 * s.sum())


def test_the_sides_of_pairs_are_those_of_their_rows() -> None:
    _, y = data()
    weights = np.random.default_rng(2).uniform(0.0, 1.0, 60)
    pairs = Pairs(y, np.arange(4))
    listed = [pairs[k] for k in range(len(pairs))]
    for given in (None, weights):
        np.testing.assert_allclose(sides_of(pairs, range(6), given), sides_of(listed, range(6), given), rtol=1e-14)


def test_dual_variables_are_stacked_as_scipy_does() -> None:
    parts = [sparse.csr_array(sparse.random(rows, 7, 0.3, random_state=rows)) for rows in (1, 1, 3, 2)]
    found, expected = sub_problems.stacked_duals(parts), sparse.vstack(parts, format="csr")
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found.toarray(), expected.toarray())
