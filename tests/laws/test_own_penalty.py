"""A block penalty of one's own: its mathematics, and estimators that certify models with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.base import clone

from saddlesvm import LinearSVC, LinearSVR, save
from saddlesvm.estimators.certify import certify_model
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.penalties import ElasticNet, weight_at
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from support import distance_bound, labels, matrix, named
from support.own_penalty import GroupLasso

N, GROUPS = 90, np.repeat(np.arange(4), (1, 2, 3, 2))
PENALTY = GroupLasso(GROUPS, 3.0)
TOL = 1e-6


def data(loss: Loss) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which the last group of features says nothing, and labels or targets."""
    X = matrix(N, GROUPS.size)
    X[:, GROUPS == 3] *= 0.05
    return X, labels(X, loss)


def optimum(X: np.ndarray, y: np.ndarray, C: float) -> float:
    """The least objective of the squared hinge, by proximal gradient steps."""
    w, step = np.zeros(X.shape[1]), 1.0 / (1.0 + 2.0 * C * np.linalg.norm(X, 2) ** 2)
    for _ in range(20_000):
        ahead = np.maximum(0.0, 1.0 - y * (X @ w))
        moved = w - step * (w - 2.0 * C * X.T @ (ahead * y))
        length = PENALTY.lengths(moved)
        w = moved * np.maximum(1.0 - step * PENALTY.l1 / np.maximum(length, 1e-300), 0.0)[GROUPS]
    return PENALTY.value(w) + C * float((np.maximum(0.0, 1.0 - y * (X @ w)) ** 2).sum())


def test_the_weights_are_the_gradient_of_the_conjugate_and_equal_one_by_one() -> None:
    rng = np.random.default_rng(0)
    for scale in (0.3, 4.0):
        v = 5.0 * rng.normal(size=GROUPS.size + 1)
        w = PENALTY.weights(scale * v[:-1])
        assert np.allclose(w, approx_fprime(scale * v[:-1], PENALTY.conjugate, 1e-7), atol=1e-5)
        assert np.allclose(w, [weight_at(PENALTY, v, j, scale) for j in range(w.size)], rtol=1e-14)
        assert np.isclose(PENALTY.value(w) + PENALTY.conjugate(scale * v[:-1]), w @ (scale * v[:-1]))


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic(), EpsilonInsensitive(0.2)], ids=named)
def test_weak_duality_holds_for_random_points(loss: Loss) -> None:
    X, y = data(loss)
    rng = np.random.default_rng(1)
    problem = make_problem(as_rows(X, 1.0), y, loss, C=0.5, intercept="regularized", penalty=PENALTY)
    for _ in range(10):
        w, raw = rng.normal(size=GROUPS.size + 1), rng.uniform(size=N)
        alpha = np.array([low + t * (high - low) for t, one in zip(raw, y, strict=True)
                          for low, high in [np.clip(loss.bounds(one, 1.0), -1.0, 1.0)]])  # fmt: skip
        found = evaluate(problem, Point(w, alpha), given_offset=True).certificate
        assert found.sound
        assert found.primal >= evaluate(problem, Point(alpha=alpha)).certificate.dual


@pytest.mark.parametrize("solver", ["auto", "dcd", "sdca"])
@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_classifiers_are_certified_and_zero_by_groups(solver: str, intercept: str) -> None:
    X, y = data(SquaredHinge())
    model = LinearSVC(penalty=PENALTY, C=0.5, solver=solver, intercept=intercept, tol=TOL, random_state=0).fit(X, y)
    assert model.certificate_.relative_gap <= TOL
    assert certify_model(model, X, y)[0].relative_gap <= 1.01 * TOL
    lengths = PENALTY.lengths(model.coef_[0])
    assert lengths[3] == 0.0 < lengths.max()
    assert all((model.coef_[0] != 0.0)[k == GROUPS].all() for k in np.flatnonzero(lengths))


def test_the_optimum_is_that_of_proximal_gradient_steps() -> None:
    X, y = data(SquaredHinge())
    model = LinearSVC(penalty=PENALTY, C=0.5, fit_intercept=False, tol=TOL).fit(X, y)
    found = model.certificate_
    assert found.dual <= optimum(X, y, 0.5) * (1.0 + 1e-9)
    assert found.primal - optimum(X, y, 0.5) <= found.gap + 1e-9 * found.primal


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_groups_of_one_feature_are_the_elastic_net(form: Any) -> None:
    X, y = data(EpsilonInsensitive(0.2))
    groups = np.arange(X.shape[1])
    own, known = (
        LinearSVR(penalty=one, C=0.5, tol=TOL).fit(form(X), y) for one in (GroupLasso(groups, 2.0), ElasticNet(2.0))
    )
    away = distance_bound(own.certificate_.gap, known.certificate_.gap)
    assert np.linalg.norm(own.coef_ - known.coef_) <= away


def test_the_estimator_is_cloned_and_refuses_in_words() -> None:
    X, y = data(Hinge())
    model = clone(LinearSVC(penalty=PENALTY, loss="hinge", C=0.5))
    assert np.array_equal(model.penalty.groups, GROUPS)
    assert model.fit(X, y).certificate_.relative_gap <= model.tol
    for solver in ("newton", "columns"):
        with pytest.raises(ValueError, match=rf"the solver '{solver}' supports .* not GroupLasso"):
            LinearSVC(penalty=PENALTY, solver=solver).fit(X, y)
    with pytest.raises(ValueError, match="a model with a penalty object cannot be saved"):
        save(model, "never")
    with pytest.raises(ValueError, match="or a penalty object; got 3"):
        LinearSVC(penalty=3).fit(X, y)
