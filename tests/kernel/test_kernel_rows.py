"""Kernel values, the cache of their rows, expansions, gamma."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from saddlesvm.kernel import row_blocks as kernel_rows
from saddlesvm.kernel.mercer import Kernel, expand, resolve_gamma
from saddlesvm.kernel.row_blocks import RowCache, row_source

METRICS = ["linear", "rbf", "poly", "sigmoid"]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(300, 8, n_informative=5, flip_y=0.1, class_sep=0.7, random_state=3)
    return X, np.where(y == 1, 1.0, -1.0)


@pytest.mark.parametrize("shift", [0.0, 1000.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_working_rows_are_kernel_values(data, metric, dtype, shift):
    X = (data[0] + (shift if metric == "rbf" else 0.0)).astype(dtype)
    kernel = Kernel(metric, 0.1, 3, 1.0)
    source = row_source(kernel, X)
    rows, keep = np.array([5, 250, 17]), np.arange(3, 300, 2)
    assert (source.count, source.restrict(keep).count) == (300, keep.size)
    out = np.empty((3, 300), np.float32)
    source.block(rows, out)
    exact = pairwise_kernels(X.astype(float), metric=metric, filter_params=True, gamma=0.1, degree=3, coef0=1.0)
    # float32 holds 24 bits; a product of d terms loses at most d of its last places of the largest term
    np.testing.assert_allclose(out, exact[rows], rtol=0, atol=2**-24 * 16 * X.shape[1] * np.abs(exact).max())
    part = np.empty((2, keep.size), np.float32)
    source.restrict(keep).block(np.array([0, 4]), part)
    np.testing.assert_allclose(part, exact[np.ix_(keep[[0, 4]], keep)], atol=2**-24 * 128 * np.abs(exact).max())


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_powers_are_those_of_scikit_learn(data, degree, form):
    A, B = form(np.abs(data[0][:130])), form(np.abs(data[0][100:]))
    expected = pairwise_kernels(A, B, metric="poly", gamma=0.3, degree=degree, coef0=0.5)
    np.testing.assert_allclose(Kernel("poly", 0.3, degree, 0.5)(A, B), expected, rtol=1e-13)


@pytest.mark.parametrize("density", [0.01, 0.5])
def test_sparse_working_rows_equal_dense_ones(density):
    X = sparse.random(60, 500, density, format="csr", random_state=0)
    given, expected = np.empty((2, 60), np.float32), np.empty((2, 60), np.float32)
    row_source(Kernel("rbf", 0.3), X).block(np.array([7, 11]), given)
    row_source(Kernel("rbf", 0.3), X.toarray()).block(np.array([7, 11]), expected)
    np.testing.assert_allclose(given, expected, atol=1e-5)


class Noted(sparse.csr_array):
    """A matrix that notes how many values are made dense at once."""

    most = 0

    def toarray(self, *arguments, **options):
        Noted.most = max(Noted.most, self.shape[0] * self.shape[1])
        return super().toarray(*arguments, **options)


@pytest.mark.parametrize("allowed", [1, 50, 170, 10_000])
def test_few_sparse_rows_are_made_dense_at_once(allowed, monkeypatch):
    monkeypatch.setattr(kernel_rows, "DENSE_VALUES", allowed)
    X = sparse.random(7, 50, 0.3, format="csr", random_state=0)
    out, Noted.most = np.empty((7, 7)), 0
    kernel_rows.products(Noted(X), sparse.csr_array(X), out)
    np.testing.assert_allclose(out, (X @ X.T).toarray(), rtol=1e-13)
    assert Noted.most == min(7, max(1, allowed // 50)) * 50  # at least a row


def test_large_exponents_are_computed_in_float64():
    X = np.array([[0.0], [1e4], [1e4 + 0.01]])
    out = np.empty((1, 3), np.float32)
    row_source(Kernel("rbf", 1.0), X).block(np.array([1]), out)
    np.testing.assert_allclose(out[0], [0.0, 1.0, np.exp(-1e-4)], rtol=1e-6)


def test_cache_is_bounded_and_drops_the_least_recently_used(data):
    X = data[0]
    exact = rbf_kernel(X, gamma=0.1)
    cache = RowCache(row_source(Kernel("rbf", 0.1), X), 10 * 300 * 4 / 2**20)
    assert cache.capacity == 10
    assert cache.table.nbytes <= 10 * 300 * 4
    cache.fetch(np.arange(8))
    cache.fetch(np.array([0, 1]))
    slots = cache.fetch(np.array([50, 60, 70, 0]))
    np.testing.assert_allclose(cache.table[slots], exact[[50, 60, 70, 0]], atol=1e-5)
    assert cache.evaluations == 11 * 300
    assert cache.touch(np.array([0, 1, 50, 60, 70])) == 5
    assert (cache.slot >= 0).sum() == 10


def test_cache_keeps_shortened_rows_when_points_are_set_aside(data):
    X = data[0]
    exact = rbf_kernel(X, gamma=0.1)
    cache = RowCache(row_source(Kernel("rbf", 0.1), X), 10 * 300 * 4 / 2**20)
    cache.fetch(np.array([3, 4, 100, 250]))
    keep = np.arange(0, 300, 2)
    cache.restrict(keep)
    assert cache.capacity == 20
    slots = cache.slot[[2, 50, 125]]
    assert (slots >= 0).all()
    assert cache.evaluations == 4 * 300
    np.testing.assert_allclose(cache.table[slots], exact[np.ix_([4, 100, 250], keep)], atol=1e-5)
    again = cache.fetch(np.array([2, 7]))
    np.testing.assert_allclose(cache.table[again], exact[np.ix_([4, 14], keep)], atol=1e-5)


@pytest.mark.parametrize("metric", METRICS)
def test_expansion_is_the_kernel_matrix_times_coefficients(data, metric):
    X = data[0]
    kernel = Kernel(metric, 0.1, 2, 0.5)
    coefficients = np.random.default_rng(0).normal(size=(20, 2))
    expected = kernel(X, X[:20]) @ coefficients
    np.testing.assert_allclose(expand(kernel, X, X[:20], coefficients), expected, rtol=1e-10, atol=1e-12)
    sparse_X = sparse.csr_array(X)
    np.testing.assert_allclose(expand(kernel, sparse_X, sparse_X[:20], coefficients), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "definite"),
    [
        (Kernel("poly", 0.5, 2, 0.0), True), (Kernel("poly", 0.5, 2, -0.5), False),
        (Kernel("poly", -0.5, 2, 1.0), False),
        (Kernel("rbf", 0.5), True), (Kernel("rbf", -0.5), False), (Kernel("linear"), True), (Kernel("sigmoid"), False),
    ],
)  # fmt: skip
def test_kernels_that_count_as_definite_have_no_negative_eigenvalue(kernel, definite):
    assert kernel.definite == definite
    if definite:
        X = np.random.default_rng(0).normal(size=(12, 3))
        assert np.linalg.eigvalsh(kernel(X, X))[0] >= -1e-12 * kernel(X, X).trace()


def test_gamma_is_scikit_learns(data):
    X = data[0] + 3.0
    assert resolve_gamma("scale", X) == pytest.approx(1.0 / (8 * X.var()), rel=1e-12)
    assert resolve_gamma("scale", sparse.csr_array(X)) == pytest.approx(1.0 / (8 * X.var()), rel=1e-10)
    counts = np.random.default_rng(0).integers(0, 3, 300)
    repeated = resolve_gamma("scale", np.repeat(X, counts, axis=0))
    assert resolve_gamma("scale", X, counts.astype(float)) == pytest.approx(repeated, rel=1e-12)
    assert resolve_gamma("auto", X) == 1.0 / 8
    assert resolve_gamma("scale", np.ones((3, 2))) == 1.0


def test_a_kernel_function_of_the_wrong_shape_is_named(data):
    with pytest.raises(ValueError, match=r"shape \(300,\) for 300 and 300 rows"):
        Kernel(lambda A, B: np.zeros(len(A)))(data[0], data[0])
