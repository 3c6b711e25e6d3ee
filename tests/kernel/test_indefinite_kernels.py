"""Kernels that are not positive semi-definite: nothing is called certified, and no dual bound is claimed."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import load_iris

from saddlesvm import SVC, SVR, NotCertifiedWarning, NuSVC, NuSVR, OneClassSVM, certify_kernel
from saddlesvm.kernel import definiteness
from saddlesvm.kernel.definiteness import evidence_against, make_symmetric
from saddlesvm.kernel.mercer import Kernel, gram
from saddlesvm.models.persistence import load, save

X, y = load_iris(return_X_y=True)
X, y = X[:100], y[:100]
Z = (X - X.mean(axis=0)) / X.std(axis=0)
G = X @ X.T
LABELS = np.where(y == 1, 1.0, -1.0)


def own_tanh(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.tanh(0.25 * A @ B.T + 1.0)


INDEFINITE = {
    "minus a product": ("precomputed", -G),
    "a product less the identity": ("precomputed", G - 5.0 * np.eye(100)),
    "tanh": ("precomputed", np.tanh(0.25 * Z @ Z.T + 1.0)),
    "a distance": ("precomputed", np.linalg.norm(Z[:, None] - Z[None], axis=2)),
    "sigmoid": ("sigmoid", Z),
    "poly": ("poly", Z),
    "function": (own_tanh, Z),
}
DEFINITE = {
    "product": ("precomputed", G),
    "product in float32": ("precomputed", G.astype(np.float32)),
    "product of few features": ("precomputed", Z[:, :1] @ Z[:, :1].T),
    "product of large values": ("precomputed", 1e12 * G),
    "zero": ("precomputed", np.zeros((100, 100))),
    "radial in float32": ("precomputed", gram(Kernel("rbf", 1.0), Z).astype(np.float32)),
    "function": (lambda A, B: A @ B.T, Z),
    "power": ("poly", X),
}
MODELS = [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM(nu=0.3), SVC(max_iter=1)]


def made(model: Any, kernel: Any, coef0: float) -> Any:
    return type(model)(**model.get_params() | {"kernel": kernel, "coef0": coef0, "gamma": 0.25, "max_time": 5.0})


def objective(K: np.ndarray, beta: np.ndarray) -> float:
    """That of SVC with C = 1 and no offset."""
    return float(0.5 * beta @ K @ beta + np.maximum(0.0, 1.0 - LABELS * (K @ beta)).sum())


@pytest.mark.parametrize("name", INDEFINITE)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_nothing_is_certified_and_all_words_say_so(name: str, model: Any) -> None:
    kernel, rows = INDEFINITE[name]
    found = made(model, kernel, -1.0 if name == "poly" else 1.0)
    with pytest.warns(NotCertifiedWarning, match="not positive semi-definite: (row|rows|its matrix)"):
        found.fit(rows, y)
    assert str(found.outcome_) != "certified" and found.certificate_.dual == -np.inf
    assert found.certificate_.relative_gap == found.certificate_.excess == np.inf
    assert "no dual bound" in str(found.certificate_)
    assert pickle.loads(pickle.dumps(found)).certificate_ == found.certificate_
    if type(model) is SVC and model.max_iter == -1 and name != "minus a product":
        assert str(found.outcome_) == "stationary" and found.fit_status_ == 1
    K = gram(found.kernel_, rows)
    lowest = np.linalg.eigh(K)[1][:, 0]
    assert min(objective(K, t * lowest) for t in (-1e6, 1e6)) < found.certificates_[0].primal


@pytest.mark.parametrize("name", DEFINITE)
def test_a_definite_kernel_is_certified_whatever_its_rounding(name: str) -> None:
    kernel, rows = DEFINITE[name]
    assert not evidence_against(Kernel(kernel, 0.25, 3, 1.0), rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotCertifiedWarning)
        found = made(SVC(C=1e-12 if "large" in name else 1.0), kernel, 1.0).fit(rows, y)
    assert str(found.outcome_) == "certified" and found.certificate_.dual > -np.inf


@pytest.mark.parametrize("rank", [1, 3, 40, 200])
def test_drawn_matrices_are_told_apart(rank: int) -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        factor = random.normal(size=(60, rank)) * 10.0 ** random.uniform(-3, 3)
        K = factor @ factor.T
        assert not evidence_against(Kernel("precomputed"), K)
        v = random.normal(size=60)
        v /= np.linalg.norm(v)
        shifted = K - (v @ K @ v + 1e-3 * np.trace(K)) * np.outer(v, v)
        assert evidence_against(Kernel("precomputed"), 0.5 * (shifted + shifted.T))


@pytest.mark.parametrize("kind", ["eigenvalue", "diagonal", "pair"])
def test_evidence_is_found_outside_of_the_rows_that_are_decomposed(kind: str) -> None:
    n, random = 2 * definiteness.DECOMPOSED, np.random.default_rng(0)
    factor = random.normal(size=(n, 5))
    K = factor @ factor.T
    outside = np.setdiff1d(np.arange(n), definiteness.choose_rows(n, definiteness.DECOMPOSED, None))
    i, j = outside[3], outside[40]
    if kind == "diagonal":
        K[i, i] = -1e-3
    elif kind == "pair":
        K[i, j] = K[j, i] = 1.1 * np.sqrt(K[i, i] * K[j, j])
    else:
        v = random.normal(size=n)
        K += 50.0 * np.eye(n) - 80.0 * np.outer(v, v) / (v @ v)  # a part of half the rows is still definite
    K = 0.5 * (K + K.T)
    words = {"diagonal": f"row {i} has", "pair": "have k(x, z)^2 >", "eigenvalue": "eigenvalue"}
    assert words[kind] in evidence_against(Kernel("precomputed"), K)
    assert not evidence_against(Kernel("precomputed"), factor @ factor.T)


def test_support_vectors_are_looked_at_first() -> None:
    n, support = 3000, np.array([7, 11, 2999])
    chosen = definiteness.choose_rows(n, 100, support)
    assert np.isin(support, chosen).all() and chosen.size <= 100
    assert definiteness.choose_rows(n, 100, np.arange(n)).size <= 100


@pytest.mark.parametrize("model", [SVC(), NuSVC(nu=0.3), SVR(), NuSVR(), OneClassSVM(nu=0.3)], ids=repr)
@pytest.mark.parametrize("half", [np.tril, np.triu])
def test_a_matrix_with_half_of_it_filled_is_refused(model: Any, half: Any) -> None:
    with pytest.raises(ValueError, match=r"must be symmetric.*fill the other half"):
        made(model, "precomputed", 0.0).fit(half(G), y)


def test_a_matrix_that_is_not_symmetric_is_refused_wherever_that_is() -> None:
    for i, j in [(0, 1), (5, 1999), (1500, 1400)]:
        K = np.ones((2000, 2000))
        K[i, j] = 2.0
        with pytest.raises(ValueError, match=rf"row {min(i, j)}, column {max(i, j)} has .* \(K \+ K.T\) / 2"):
            make_symmetric(K)
    for K in (G, G.astype(np.float32)):
        assert make_symmetric(K) is K
        off = K * (1.0 + 1e-7 * np.triu(np.ones_like(K)))
        np.testing.assert_array_equal(make_symmetric(off), make_symmetric(off).T)
    with pytest.raises(ValueError, match="square"):
        certify_kernel(SVC(kernel="precomputed").fit(G, y), G[:50], y)
    with pytest.raises(ValueError, match="symmetric"):
        certify_kernel(SVC(kernel="precomputed").fit(G, y), np.tril(G), y)


def test_models_from_elsewhere_have_no_bound_either() -> None:
    other = sklearn.svm.SVC(kernel="sigmoid", coef0=1.0).fit(Z, y)
    with pytest.warns(NotCertifiedWarning, match="no dual bound.*not positive semi-definite"):
        assert certify_kernel(other, Z, y).dual == -np.inf


def test_a_negative_gap_of_an_indefinite_kernel_is_no_failure_of_the_arithmetic() -> None:
    """Model and dual point of kernel Pegasos differ: without convexity the dual value may be the larger one."""
    rows = 2.0 * np.random.default_rng(3).normal(size=(20, 2))
    model = SVC(kernel="sigmoid", gamma=2.0, C=90.0, intercept="none", solver="kernel-pegasos", random_state=0)
    with pytest.warns(NotCertifiedWarning, match="the gap is -.*not positive semi-definite"):
        model.fit(rows, np.tile([0, 1], 10))
    assert model.trace_[-1]["gap"] < 0.0
    assert str(model.outcome_) == "no_progress" and model.certificate_.dual == -np.inf


def test_several_pairs_and_saved_models_keep_the_missing_bound(tmp_path: Path) -> None:
    rows, labels = load_iris(return_X_y=True)
    with pytest.warns(NotCertifiedWarning, match="stationary"):
        model = SVC(kernel="sigmoid").fit((rows - rows.mean(axis=0)) / rows.std(axis=0), labels)
    assert [one.dual for one in model.certificates_] == [-np.inf] * 3
    save(model, tmp_path / "a.model")
    assert load(tmp_path / "a.model").certificate_ == model.certificate_
    assert str(load(tmp_path / "a.model").outcome_) == "stationary"
