"""Factors of matrices that rounding made indefinite, and conjugate gradients."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm.solvers.equations import conjugate_gradients
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
    exact = np.linalg.solve(A, b)
    found, solved = conjugate_gradients(lambda v: A @ v, lambda v: v, b, 200, 1e-12)
    assert solved
    assert found == pytest.approx(exact, rel=1e-6)
    found, solved = conjugate_gradients(lambda v: A @ v, np.linalg.inv(A).__matmul__, b, 1, 0.1)
    assert solved
    assert found == pytest.approx(exact)
    _, solved = conjugate_gradients(lambda v: A @ v, lambda v: v, b, 3, 1e-12)
    assert not solved
