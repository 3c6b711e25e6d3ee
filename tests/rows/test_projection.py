"""Squared norms of projections are bounded from above, and tightly; dependent landmarks are dropped."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from saddlesvm.rows.kernel_errors import kernel_errors, projected_squares
from saddlesvm.rows.kernels import Kernel
from saddlesvm.rows.landmarks import make_landmarks


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
