"""Squared norms of projections are bounded from above, and tightly; dependent landmarks are dropped."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from saddlesvm.rows import landmarks
from saddlesvm.rows.kernel_errors import kernel_errors, projected_squares
from saddlesvm.rows.kernels import Kernel
from saddlesvm.rows.landmarks import draw_landmarks, make_landmarks


def exact_square(X: np.ndarray, Z: np.ndarray, beta: np.ndarray) -> Fraction:
    """Of ``sum_i beta_i x_i . x`` on the span of the linear functions of Z, by elimination in fractions."""

    def dot(a: np.ndarray, b: np.ndarray) -> Fraction:
        return sum((Fraction(float(p)) * Fraction(float(q)) for p, q in zip(a, b, strict=True)), Fraction(0))

    system = [[dot(a, b) for b in Z] for a in Z]
    values = [sum((Fraction(float(c)) * dot(a, x) for c, x in zip(beta, X, strict=True)), Fraction(0)) for a in Z]
    square = Fraction(0)
    for k, row in enumerate(system):
        square += values[k] ** 2 / row[k]
        for j in range(k + 1, len(Z)):
            factor = system[j][k] / row[k]
            values[j] -= factor * values[k]
            system[j] = [a - factor * b for a, b in zip(system[j], row, strict=True)]
    return square


@pytest.mark.parametrize("spread", [0.0, 3.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_above_the_exact_square_by_rounding_alone(seed: int, spread: float) -> None:
    random = np.random.default_rng(seed)
    X = random.normal(size=(20, 5)) * 10.0 ** random.uniform(-spread, spread, (20, 1))
    beta = random.normal(size=20)
    kernel, errors = Kernel("linear"), kernel_errors(Kernel("linear"), X)
    made = make_landmarks(kernel, X, np.arange(8))
    assert made.rows.size <= 5 and made.least > 0.0
    values = (X[made.rows] @ X.T @ beta)[:, None]
    slips = errors.of_expansion(beta, 2.0**-53)[made.rows, None]
    [found] = projected_squares(made.points, errors.among(made.rows), made.inverse, made.least, values, slips)
    true = exact_square(X, X[made.rows], beta)
    size = float(np.square(np.abs(beta) @ np.linalg.norm(X, axis=1)))
    assert 0 <= Fraction(float(found)) - true <= 1e-9 * size


def test_rows_that_say_the_same_are_one_landmark() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 3, axis=0)
    assert make_landmarks(Kernel("rbf", 0.5), X, np.arange(12)).rows.tolist() == [0, 3, 6, 9]
    assert make_landmarks(Kernel("linear"), X, np.arange(12)).rows.tolist() == [0, 3, 6]


def test_the_smallest_eigenvalue_is_below_that_of_the_matrix() -> None:
    X = np.random.default_rng(1).normal(size=(40, 6))
    for gamma in (0.01, 0.1, 1.0):
        made = make_landmarks(Kernel("rbf", gamma), X, np.arange(40))
        assert 0.0 < made.least <= np.linalg.eigvalsh(Kernel("rbf", gamma)(made.points, made.points))[0]


@pytest.mark.parametrize("kernel", [Kernel("rbf", 0.3), Kernel("poly", 0.2, 2, 1.0)], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_products_of_features_are_projected_kernel_values(
    kernel: Kernel, form: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landmarks, "BLOCK", 16)
    monkeypatch.setattr(landmarks, "PANEL", 3)
    X = np.random.default_rng(2).normal(size=(50, 4))
    chosen = draw_landmarks(kernel, X, np.arange(0, 50, 2), 8, np.random.RandomState(0))
    assert np.unique(chosen).size == chosen.size == 8
    assert (chosen % 2 == 0).all()
    made = make_landmarks(kernel, form(X), chosen)
    between, among = kernel(X, X[made.rows]), kernel(X[made.rows], X[made.rows])
    exact = between @ np.linalg.solve(among, between.T)
    found = made.features(form(X))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.astype(float) @ found.T.astype(float), exact, rtol=0, atol=2e-4 * exact.max())
    known = made.features(form(X), found[:, :4])
    np.testing.assert_allclose(known, found, rtol=0, atol=1e-4 * np.abs(found).max())
    w = np.random.default_rng(3).normal(size=made.rows.size)
    np.testing.assert_allclose(between @ made.coefficients(w), found @ w, rtol=0, atol=2e-3)
    assert draw_landmarks(kernel, X, np.arange(50), 8, np.random.RandomState(1), given=chosen[:3])[:3].tolist() == (
        chosen[:3].tolist()
    )


def test_landmarks_that_are_near_each_other_ask_for_float64() -> None:
    X = np.array([[0.0], [1.0], [1.02]])
    assert not make_landmarks(Kernel("rbf", 1.0), X, np.array([0, 1])).fine
    assert make_landmarks(Kernel("rbf", 1.0), X, np.array([0, 1, 2])).fine


def test_the_value_of_a_single_landmark_may_be_rounding() -> None:
    made = make_landmarks(Kernel("poly", 1.0, 1, -1.0 + 2.0**-50), np.ones((1, 1)), np.array([0]))
    assert (made.rows.tolist(), made.least) == ([0], 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_no_radial_value_is_above_one(seed: int) -> None:
    """Its exponent is a difference of three terms, which may be above zero by their rounding."""
    points = np.random.default_rng(seed).normal(size=(40, 6)) * 4.0
    values = landmarks._Values(Kernel("rbf", gamma=0.5), points, np.float32)(points)
    assert values.dtype == np.float32 and values.max() <= 1.0 and values.diagonal() == pytest.approx(1.0, abs=1e-3)
