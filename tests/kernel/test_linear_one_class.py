"""OneClassSVM with the linear kernel: on many rows Newton's method finds the weights, certified like all others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import OneClassSVM, certify_kernel
from saddlesvm.fit.outcome import Outcome
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.mercer import expand

N = 525  # more than the rows whose kernel matrix is held whole


def rows(kind: str) -> np.ndarray:
    random = np.random.default_rng(5)
    shapes = {
        "shifted": random.normal(size=(N, 6)) + 1.0,
        "heavy tails": random.standard_t(3, size=(N, 4)) + 3.0,
        "unscaled": (random.normal(size=(N, 5)) + 1.0) * np.logspace(0.0, -3.0, 5),
        "wide": random.normal(size=(N, 900)) + 0.5,
        "repeated": np.repeat(random.normal(size=(7, 3)) + 2.0, N // 7, axis=0),
    }
    return shapes[kind]


def fitted(X: object, nu: float = 0.2, sample_weight: np.ndarray | None = None, **options: object) -> OneClassSVM:
    return OneClassSVM(kernel="linear", nu=nu, **options).fit(X, sample_weight=sample_weight)


@pytest.mark.parametrize("nu", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["shifted", "heavy tails", "unscaled", "wide", "repeated"])
def test_its_optimum_is_that_of_the_kernel_solver(kind: str, nu: float) -> None:
    X = rows(kind)
    own, other = fitted(X, nu, tol=1e-6), fitted(X, nu, tol=1e-3, solver=Decomposition())
    assert own.outcome_ is other.outcome_ is Outcome.CERTIFIED
    assert own.certificate_.primal >= other.certificate_.dual
    assert other.certificate_.primal >= own.certificate_.dual
    apart = np.sqrt(2.0 * own.certificate_.gap) + np.sqrt(2.0 * other.certificate_.gap)  # strong convexity
    assert np.linalg.norm(own.coef_ - other.coef_) <= apart


@pytest.mark.parametrize("make", [np.float32, sparse.csr_array, sparse.csr_matrix], ids=["float32", "array", "matrix"])
def test_other_forms_of_the_rows_have_the_same_optimum(make: object) -> None:
    X = rows("shifted").astype(np.float32).astype(np.float64)
    own, other = fitted(X, tol=1e-6), fitted(make(X), tol=1e-6)  # type: ignore[operator]
    assert other.outcome_ is Outcome.CERTIFIED
    assert own.certificate_.primal >= other.certificate_.dual
    assert other.certificate_.primal >= own.certificate_.dual


def test_another_proof_of_the_model_says_the_same() -> None:
    X = rows("shifted")
    model = fitted(X)
    again = certify_kernel(model, X)
    assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert again.dual == pytest.approx(model.certificate_.dual, rel=1e-9)


def test_scores_are_those_of_the_support_vectors() -> None:
    X = rows("shifted")
    model = fitted(X)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    expansion = expand(model.kernel_, X, model.support_vectors_, model.dual_coef_[0])
    np.testing.assert_allclose(model.score_samples(X), expansion, rtol=1e-10)
    np.testing.assert_allclose(X @ model.coef_[0] - model.offset_, model.decision_function(X), rtol=1e-7, atol=1e-7)


def test_nu_bounds_the_rows_outside_and_the_support_vectors() -> None:
    model = fitted(rows("shifted"), 0.3, tol=1e-8)
    assert (model.decision_function(rows("shifted")) < -1e-6 * model.offset_).mean() <= 0.3
    assert model.support_.size >= 0.3 * N
    assert model.dual_coef_.sum() == pytest.approx(0.3 * N)
    assert model.dual_coef_.min() > 0.0
    assert model.dual_coef_.max() <= 1.0


def test_a_weight_of_two_is_the_row_twice() -> None:
    X = rows("shifted")
    weights = np.random.default_rng(1).integers(0, 3, N).astype(float)
    weighted, repeated = (
        fitted(X, sample_weight=weights, tol=1e-6),
        fitted(np.repeat(X, weights.astype(int), 0), tol=1e-6),
    )
    assert weighted.certificate_.primal >= repeated.certificate_.dual
    assert repeated.certificate_.primal >= weighted.certificate_.dual
    assert not np.isin(np.flatnonzero(weights == 0.0), weighted.support_).any()


def test_rows_around_the_origin_have_nothing_to_find() -> None:
    X = np.random.default_rng(0).normal(size=(N, 3))
    with pytest.warns(UserWarning, match="w = 0"):
        model = fitted(X, 0.5)
    assert model.outcome_ is Outcome.RULE_MET
    assert np.abs(model.coef_).max() <= 1e-3 * 0.5 * N


def test_an_end_by_its_limit_is_told() -> None:
    with pytest.warns(UserWarning, match="1 epoch"):
        model = fitted(rows("heavy tails"), 0.05, tol=1e-9, max_iter=1)
    assert model.outcome_ is Outcome.EPOCH_LIMIT
    assert model.certificate_.sound
    assert model.n_iter_ == 1
