"""One row against many classes."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba import njit

from saddlesvm.rows import class_rows
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.scores import scores_of_rows
from support import csr

call_dots = njit(lambda X, i, W, classes, count, z: class_rows.dots(X, i, W, classes, count, z))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_row_against_many_classes_equals_plain_algebra(form, dtype):
    random = np.random.default_rng(1)
    values = (random.normal(size=(12, 9)) * (random.random((12, 9)) < 0.6)).astype(dtype)
    X = as_rows(values if form == "dense" else csr(values), 0.7)
    W = np.zeros(X.weights_shape(6), dtype)
    coefficients = random.normal(size=(12, 6)) * (random.random((12, 6)) < 0.5)
    members = np.arange(1, 12, 2, dtype=np.int32)
    class_rows.add_combinations(X, members, coefficients, W)
    plain = sum(np.outer(coefficients[i], X.dense_row(i)) for i in members)
    rounding = 50 * np.finfo(dtype).eps
    np.testing.assert_allclose(X.by_class(W), plain, atol=rounding)
    scores = np.array([[X.dense_row(i) @ w for w in plain] for i in range(12)])
    np.testing.assert_allclose(scores_of_rows(X, plain), scores, atol=1e-12)
    classes = np.array([4, 0, 5, 2, 1, 3], dtype=np.int16)
    for count in (1, 4, 5, 6):
        z = np.full(6, np.nan, dtype=dtype)
        call_dots(X, 3, W, classes, count, z)
        np.testing.assert_allclose(z[classes[:count]], scores[3, classes[:count]], atol=10 * rounding)
        assert np.isnan(z[classes[count:]]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_the_bodies_of_kernels_equal_plain_algebra(form, dtype):
    """Also where nothing is compiled: dense rows meet four classes at a time, and sparse ones all, or those listed."""
    random = np.random.default_rng(2)
    values = (random.normal(size=(5, 9)) * (random.random((5, 9)) < 0.6)).astype(dtype)
    X = as_rows(values if form == "dense" else csr(values), 0.7)
    plain = random.normal(size=(11, 10)).astype(dtype)
    W = np.ascontiguousarray(X.by_class(plain))
    kinds = numba.typeof(X), numba.int64, numba.typeof(W)
    dots = class_rows._pick_dots(*kinds)
    add_row = class_rows._pick_add_row(*kinds[:2], numba.float64, kinds[2], numba.int64)
    rounding = 50 * np.finfo(dtype).eps
    classes = random.permutation(11).astype(np.int16)
    for i in range(5):
        row = X.dense_row(i)
        for count in (0, 1, 3, 4, 9, 11):
            z = np.full(11, np.nan, dtype=dtype)
            dots(X, i, W, classes, count, z)
            np.testing.assert_allclose(z[classes[:count]], (plain @ row)[classes[:count]], rtol=0, atol=10 * rounding)
            assert np.isnan(z[classes[count:]]).all()
        moved = W.copy()
        add_row(X, i, 1.5, moved, 7)
        expected = plain + np.outer(np.arange(11) == 7, 1.5 * row)
        np.testing.assert_allclose(X.by_class(moved), expected, rtol=0, atol=rounding)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_blocks_for_many_classes_have_few_rows(form, monkeypatch):
    values = np.ones((23, 9))
    X = as_rows(values if form == "dense" else csr(values), 0.7)
    assert class_rows.block_rows(X, 10**9) == (64 if X.sparse else 512)
    assert class_rows.block_rows(X, 1) == 4096
    monkeypatch.setattr(class_rows, "FEWEST_ROWS", 4)
    monkeypatch.setattr(class_rows, "BLOCK_VALUES", 8 * (3 + (9 if form == "dense" else 0)))
    assert class_rows.block_rows(X, 3) == 8


def test_combinations_of_rows_are_added_class_by_class():
    random = np.random.default_rng(4)
    alpha = random.normal(size=(12, 5)) * (random.random((12, 5)) < 0.4)
    members = np.arange(1, 12, 2, dtype=np.int32)
    for values in (random.normal(size=(12, 9)), csr(random.normal(size=(12, 9)))):
        X = as_rows(values, 0.7)
        found = np.zeros(X.weights_shape(5))
        class_rows.add_combinations(X, members, alpha, found)
        plain = sum(np.outer(alpha[i], X.dense_row(i)) for i in members)
        np.testing.assert_allclose(X.by_class(found), plain, atol=1e-13)
