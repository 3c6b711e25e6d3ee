"""Streams: certificates count features that a batch lacks."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from saddlesvm import LinearSVC

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
