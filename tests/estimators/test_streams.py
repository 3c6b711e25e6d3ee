"""Streams: certificates count features that a batch lacks; a horizon lets a model follow drift."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC, Pegasos
from saddlesvm.problem.losses import Hinge
from support import matrix, small_problem
from support.solving import run

WIDE = 5000


def batches(count: int = 8, rows: int = 30) -> list[tuple[sparse.csr_matrix, np.ndarray]]:
    """Rows of 20 of many features, most of which few batches have."""
    random, made = np.random.default_rng(3), []
    for _ in range(count):
        columns = np.sort((random.random((rows, 20)) ** 4 * WIDE).astype(np.int32), axis=1)
        values = random.normal(size=columns.size)
        X = sparse.csr_matrix((values, columns.ravel(), np.arange(0, columns.size + 1, 20)), shape=(rows, WIDE))
        X.sum_duplicates()
        made.append((X, random.integers(0, 3, rows)))
    return made


def test_the_certificate_counts_the_weights_of_features_that_the_rows_lack() -> None:
    model = LinearSVC(solver="pegasos", loss="hinge", lam=0.02, random_state=0, fit_intercept=False)
    for X, y in batches(3):
        model.partial_fit(X, y > 0, classes=[False, True])
    z = np.where(y > 0, 1.0, -1.0) * (X @ model.coef_[0])
    primal = 0.01 * float(model.coef_[0] @ model.coef_[0]) + float(np.maximum(0.0, 1.0 - z).mean())
    assert np.count_nonzero(model.coef_) > np.unique(X.indices).size
    assert primal * (1.0 - 1e-9) <= model.certificate_.primal <= primal * (1.0 + 1e-8)


def test_a_horizon_is_a_floor_under_the_steps() -> None:
    """Batches of all rows leave nothing to chance."""
    problem, horizon = small_problem(Hinge(), C=0.5), 12.0
    solver = Pegasos(batch_size=60, sampling="subset", output="last", horizon=horizon)
    state = run(problem, solver, 40)
    X, y, w = matrix(), problem.y, np.zeros(5)
    lam = 1.0 / (60 * problem.C)
    for t in range(1, state.iteration + 1):
        age = min(float(t), horizon)
        w = (1.0 - 1.0 / age) * w + (y * (y * (X @ w) < 1.0)) @ X / (60 * lam * age)
    np.testing.assert_allclose(state.numbers["scale"][0] * state.w[:-1], w, rtol=1e-9)


def test_a_horizon_follows_labels_that_turn_round() -> None:
    random, right = np.random.default_rng(0), {}
    stream = random.normal(size=(60, 100, 8))
    for horizon in (0.0, 300.0):
        model = LinearSVC(solver=Pegasos(horizon=horizon), loss="hinge", lam=1e-3, random_state=0)
        for k, X in enumerate(stream):
            y = np.where((X @ np.arange(8.0) > 0) == (k < 40), 1, -1)
            right[horizon] = right.get(horizon, 0.0) + (model.score(X, y) if 45 <= k < 50 else 0.0)
            model.partial_fit(X, y, classes=[-1, 1])
    assert right[300.0] > 5 * 0.85
    assert right[0.0] < 5 * 0.5


@pytest.mark.parametrize("horizon", [-1.0, 1.0, np.inf, np.nan])
def test_bad_horizons_are_named(horizon: float) -> None:
    with pytest.raises(ValueError, match="horizon must be a finite number of iterations"):
        LinearSVC(solver=Pegasos(horizon=horizon), loss="hinge").fit(matrix(), np.arange(60) % 2)
