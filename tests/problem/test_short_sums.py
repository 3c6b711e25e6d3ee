"""Pulls by short sums: their bound against exact arithmetic, and the proofs of sparse models that rest on it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC
from saddlesvm.estimators.certify import certify_model
from saddlesvm.problem.losses import SquaredHinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.problem.short_sums import pulled_by_short_sums
from saddlesvm.rows.layouts import as_rows


def exact(X, a, C):
    """``C sum_i a_i x_ij`` and the same of the sizes, without rounding."""
    signed = [sum((Fraction(x) * Fraction(y) for x, y in zip(column, a, strict=True)), Fraction(0)) for column in X.T]
    sizes = [
        sum((abs(Fraction(x) * Fraction(y)) for x, y in zip(column, a, strict=True)), Fraction(0)) for column in X.T
    ]
    return [Fraction(C) * one for one in signed], [Fraction(C) * one for one in sizes]


@pytest.mark.parametrize("layout", ["dense", "csr", "narrow"])
@pytest.mark.parametrize("n", [1, 31, 1500])
def test_the_bound_holds(layout, n):
    random = np.random.default_rng(n)
    X = random.normal(size=(n, 3)) * np.array([1.0, 1e-3, 1e3])
    X[random.random(X.shape) < 0.3] = 0.0
    X = X.astype(np.float32) if layout == "narrow" else X
    a = random.normal(size=n)
    members = np.flatnonzero(random.random(n) < 0.9) if n > 1 else np.arange(1)
    given = as_rows(sparse.csr_matrix(X) if layout == "csr" else X, 2.0)
    problem = make_problem(given, np.ones(n), SquaredHinge(), C=7.0, members=members, intercept="regularized")
    near = pulled_by_short_sums(problem, a)
    wide = np.hstack([X.astype(np.float64), np.full((n, 1), 2.0)])[members]
    pulls, sizes = exact(wide, a[members], 7.0)
    for j in range(4):
        assert abs(Fraction(near.pull[j]) - pulls[j]) <= Fraction(near.errors[j])
        assert sizes[j] <= Fraction(near.sizes[j])
        assert near.errors[j] <= 50 * 2.0**-53 * near.sizes[j]  # whatever n is


@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_many_rows_and_a_large_C_are_certified(intercept):
    random = np.random.default_rng(0)
    X = (random.random((8000, 30)) < 0.2).astype(np.float64)
    y = np.where(X[:, :8].sum(axis=1) + random.normal(size=8000) > 1.6, 1, 0)
    model = LinearSVC(penalty="l1", C=1e3, tol=1e-7, intercept=intercept, random_state=0).fit(X, y)
    assert str(model.outcome_) == "certified"
    (again,) = certify_model(model, sparse.csr_matrix(X), y)
    assert again.relative_gap <= 1e-6
