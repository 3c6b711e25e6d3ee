"""One row against many classes."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from saddlesvm.rows import class_rows
from saddlesvm.rows.layouts import as_dense_row, as_rows
from saddlesvm.rows.scores import scores_of_rows
from support import csr

call_dots = njit(lambda X, i, W, classes, count, z: class_rows.dots(X, i, W, classes, count, z))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_row_against_many_classes_equals_plain_algebra(form, dtype):
    random = np.random.default_rng(1)
    values = (random.normal(size=(12, 9)) * (random.random((12, 9)) < 0.6)).astype(dtype)
    X = as_rows(values if form == "dense" else csr(values), 0.7)
    W = class_rows.new_weights(X, 6, dtype)
    coefficients = random.normal(size=(12, 6)) * (random.random((12, 6)) < 0.5)
    members = np.arange(1, 12, 2, dtype=np.int32)
    class_rows.add_combinations(X, members, coefficients, W)
    plain = sum(np.outer(coefficients[i], as_dense_row(X, i)) for i in members)
    rounding = 50 * np.finfo(dtype).eps
    np.testing.assert_allclose(class_rows.by_class(X, W), plain, atol=rounding)
    scores = np.array([[as_dense_row(X, i) @ w for w in plain] for i in range(12)])
    np.testing.assert_allclose(scores_of_rows(X, plain), scores, atol=1e-12)
    classes = np.array([4, 0, 5, 2, 1, 3], dtype=np.int16)
    for count in (1, 4, 5, 6):
        z = np.full(6, np.nan, dtype=dtype)
        call_dots(X, 3, W, classes, count, z)
        np.testing.assert_allclose(z[classes[:count]], scores[3, classes[:count]], atol=10 * rounding)
        assert np.isnan(z[classes[count:]]).all()
