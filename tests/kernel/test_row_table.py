"""A kernel matrix whose rows are computed when they are needed: the same values, whoever computes them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from saddlesvm.kernel.kernel_errors import kernel_errors
from saddlesvm.kernel.mercer import Kernel, gram
from saddlesvm.kernel.row_table import ABSENT, NEEDED, RowTable, holds

KERNELS = [Kernel("linear"), Kernel("rbf", 0.3), Kernel("poly", 0.2, 3, 1.0), Kernel("sigmoid", 0.1, 3, 0.5)]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("features", [3, 80])
def test_rows_are_those_of_the_matrix(kernel: Kernel, features: int) -> None:
    """Row by row in compiled code for a radial kernel of few features, else in a block; both within the bounds."""
    X = np.random.default_rng(0).normal(size=(60, features))
    made, points = RowTable(kernel, X), np.array([7, 3, 55])
    first = holds(made.table, 7, 0)
    assert first == (features == 3 and kernel.metric == "rbf")
    assert made.table.marks[NEEDED] == (ABSENT if first else 7)
    made.fetch(points)
    assert made.evaluations == 3 * 60
    options = {"gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    right = pairwise_kernels(X, metric=kernel.metric, filter_params=True, **options)
    unit, one = np.finfo(np.float64).eps, np.eye(60)
    for point in points:
        bound = 2.0 * kernel_errors(kernel, X).bound_expansion(one[point], unit)
        assert (np.abs(made.values[made.slots[point]] - right[point]) <= bound).all()
    assert np.allclose(made.table.diagonal, right.diagonal(), rtol=1e-12)
    assert np.allclose(made.sums(np.array([7, 20]), np.array([2.0, -1.0])), 2.0 * right[7] - right[20])


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_sparse_rows_are_computed_in_blocks(kernel: Kernel) -> None:
    X = sparse.random(50, 400, 0.01, format="csr", random_state=0)
    made = RowTable(kernel, X)
    assert not holds(made.table, 4, 0)
    made.fetch(np.array([4]))
    assert holds(made.table, 4, 0)
    assert np.allclose(made.values[made.slots[4]], gram(kernel, X)[4], rtol=1e-12, atol=1e-14)


def test_the_whole_matrix_is_in_the_order_of_the_points() -> None:
    X = np.random.default_rng(1).normal(size=(20, 2))
    made = RowTable(KERNELS[1], X)
    made.fetch(np.array([9, 2]))
    assert not made.is_whole
    assert np.array_equal(made.whole(), gram(KERNELS[1], X))
    assert made.is_whole


def test_values_beyond_every_number_are_left_to_the_checked_function() -> None:
    X = np.full((3, 1), 1e120)
    made = RowTable(Kernel("poly", 1.0, 3), X)
    assert not holds(made.table, 0, 0)
    with pytest.raises(ValueError, match="not finite"), np.errstate(all="ignore"):
        made.fetch(np.array([0]))


def test_segments_of_rows_are_those_of_the_matrix() -> None:
    X = np.random.default_rng(2).normal(size=(30, 4))
    kernel = KERNELS[1]
    bounds = np.array([0, 7, 18, 30])
    table = RowTable(kernel, X, bounds).table
    right = gram(kernel, X)
    for point, segment in ((3, 2), (20, 0), (3, 0), (29, 1), (3, 2)):
        assert holds(table, point, segment)
        place = table.slots[point, segment]
        own = slice(bounds[segment], bounds[segment + 1])
        assert np.allclose(table.values[place : place + own.stop - own.start], right[point, own], rtol=1e-12)
    assert (table.slots >= 0).sum() == 4  # nothing is computed twice, or before it is needed
