"""Factors of matrices that rounding made indefinite, and conjugate gradients."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm.solvers.conjugate import conjugate_gradients
from saddlesvm.solvers.linear_algebra import cholesky


def test_cholesky_lifts_a_matrix_that_rounding_made_indefinite() -> None:
    v = np.random.default_rng(0).normal(size=(6, 3))
    singular = np.asfortranarray(v @ v.T)
    factor = np.tril(cholesky(singular))
    assert np.linalg.norm(factor @ factor.T - singular) <= 1e-4 * np.linalg.norm(singular)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        cholesky(np.asfortranarray(-np.eye(3)))


def test_conjugate_gradients_solve_and_say_when_they_do_not() -> None:
    random = np.random.default_rng(0)
    V = random.normal(size=(20, 20))
    A, b = V @ V.T + 0.1 * np.eye(20), random.normal(size=20)
    exact, start = np.linalg.solve(A, b), random.normal(size=20)
    for x, most in ((np.zeros(20), 200), (start, 200)):
        found, _, solved = conjugate_gradients(lambda v: A @ v, lambda v: v, b, x, 1e-12, most)
        assert solved
        assert found == pytest.approx(exact, rel=1e-6)
    found, iterations, solved = conjugate_gradients(
        lambda v: A @ v, np.linalg.inv(A).__matmul__, b, np.zeros(20), 0.1, 9
    )
    assert solved and iterations == 1
    assert found == pytest.approx(exact)
    _, iterations, solved = conjugate_gradients(lambda v: A @ v, lambda v: v, b, np.zeros(20), 1e-12, 3)
    assert iterations == 3 and not solved
