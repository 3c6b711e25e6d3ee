"""What a linear one-class machine claims of its published model: recomputed in rational numbers, after every end."""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from saddlesvm import NotCertifiedWarning, OneClassSVM
from saddlesvm.models.persistence import load, save

NU = (0.05, 0.3, 0.9, 1.0)


def exact_primal(model: OneClassSVM, X: np.ndarray, weights: np.ndarray) -> Fraction:
    """The objective of the sum of the support vectors, of numbers as they are stored."""
    multipliers = [Fraction(float(one)) for one in model.dual_coef_[0]]
    vectors = [[Fraction(float(x)) for x in row] for row in model.support_vectors_]
    w = [sum((a * row[j] for a, row in zip(multipliers, vectors, strict=True)), Fraction(0)) for j in range(X.shape[1])]
    rho, s = Fraction(float(model.offset_[0])), [Fraction(float(one)) for one in weights]
    scores = [sum((a * Fraction(float(x)) for a, x in zip(w, row, strict=True)), Fraction(0)) for row in X]
    paid = sum((one * max(Fraction(0), rho - z) for one, z in zip(s, scores, strict=True)), Fraction(0))
    return sum((a * a for a in w), Fraction(0)) / 2 + paid - Fraction(model.nu) * rho * sum(s)


def problem(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    shape = int(random.integers(513, 700)), int(random.integers(1, 4))
    X = (random.normal(size=shape) + random.choice([0.0, 0.1, 1.0, -5.0])) * 10.0 ** random.integers(-3, 4)
    return X.astype(random.choice([np.float32, np.float64])), random.integers(0, 3, shape[0]).astype(np.float64)


def fitted(X: np.ndarray, weights: np.ndarray | None, **options: object) -> OneClassSVM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        return OneClassSVM(kernel="linear", **options).fit(X, sample_weight=weights)


@pytest.mark.parametrize("seed", range(16))
def test_the_published_model_is_as_good_as_told_after_every_end(seed: int) -> None:
    X, weights = problem(seed)
    for steps in (1, 2, 5, -1):
        model = fitted(X, weights, nu=NU[seed % len(NU)], tol=10.0 ** -(2 + seed % 7), max_iter=steps)
        told = model.certificate_
        assert told.dual <= exact_primal(model, X, weights) <= told.primal
        assert model.dual_coef_.size == 0 or np.all((model.dual_coef_ > 0.0) & (model.dual_coef_ <= weights.max()))


def test_a_run_cut_short_claims_what_is_so_of_ordinary_rows() -> None:
    X = np.random.default_rng(0).normal(size=(700, 3))
    for steps in range(1, 8):
        model = fitted(X, None, nu=0.1, max_iter=steps)
        assert exact_primal(model, X, np.ones(700)) <= model.certificate_.primal


def test_no_weights_are_published_where_these_are_the_optimum(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(2000, 3))
    model = fitted(X, None, nu=0.5)
    assert model.certificate_.primal <= 1e-20 * 0.5 * 2000 * np.linalg.norm(X, axis=1).max() ** 2
    assert not model.coef_.any()
    assert (model.predict(X) == 1).all()
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
