"""Blocks of mapped files: every row once, and faults named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows.files import BlockReader, chosen_rows, is_mapped, place_of, stacked_rows
from saddlesvm.rows.layouts import as_dense_row, as_rows
from saddlesvm.solvers import Blocks
from saddlesvm.solvers.base import Budget
from support import csr, labels, matrix
from support.mapped import D, N, mapped, mapped_csr, streamed


def test_a_mapped_array_is_found_in_its_file(tmp_path: Path) -> None:
    X = np.arange(60.0).reshape(12, 5)
    file = mapped(X, tmp_path)
    for view, first in ((file, 0), (np.asarray(file), 0), (file[3:], 15), (np.asarray(file)[2:7], 10)):
        place = place_of(view)
        assert place is not None
        with open(place.path, "rb") as opened:
            opened.seek(place.offset)
            assert np.frombuffer(opened.read(8))[0] == X.ravel()[first]
    private = np.load(tmp_path / "X.npy", mmap_mode="c")
    assert place_of(X) is place_of(file[:, ::2]) is place_of(private) is None
    assert is_mapped(file)
    assert is_mapped(mapped_csr(X, tmp_path))
    assert not is_mapped(X)


def test_blocks_hold_the_rows_and_their_margins(tmp_path: Path) -> None:
    X = matrix(50, D, density=0.5).astype(np.float32)
    w = np.arange(D + 1.0)
    for file in (mapped(X, tmp_path), mapped_csr(X, tmp_path), X):
        edges = np.array([0, 11, 20, 33, 50])
        with BlockReader(as_rows(file, 1.0), edges, 2, np.zeros(50), 2) as reader:
            for chunks, then in (([3, 0], [2, 1]), ([2, 1], [0, 1]), ([1, 2], [])):
                block = reader.fetch(chunks, [w], then, [w])
                rows = np.concatenate([np.arange(edges[k], edges[k + 1]) for k in chunks])
                values = block.X.values if hasattr(block.X, "values") else whole(block.X)
                assert np.array_equal(values, X[rows])
                assert np.allclose(block.margins_of(w), X[rows].astype(float) @ w[:-1] + w[-1], rtol=1e-12, atol=1e-12)
                assert np.allclose(block.gather(reader.norms), (X[rows].astype(float) ** 2).sum(axis=1) + 1.0)


def whole(X: Any) -> np.ndarray:
    """CSR rows as a dense array."""
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.indptr.size - 1, X.n_features)).toarray()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_named(bad: float, tmp_path: Path) -> None:
    X = matrix(N, D)
    X[123, 2] = bad
    with pytest.raises(ValueError, match="row 123"):
        LinearSVC(solver="blocks").fit(mapped(X, tmp_path), labels(matrix(N, D), Hinge()))


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    X = matrix(N, D)
    problem = streamed(mapped(X, tmp_path), labels(X, Hinge()), Hinge())
    with (tmp_path / "X.npy").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(OSError, match=r"X\.npy: ends before byte"):
        Blocks().step(problem, Blocks().init(problem, 0), Budget(1))


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_copies_of_some_rows_one_after_another(layout: str) -> None:
    X = matrix(30, 5, density=0.4)
    whole = as_rows(X if layout == "dense" else csr(X), 1.0)
    chosen = [np.array([3, 7, 29]), np.array([0]), np.array([11, 12, 13, 5])]
    stacked = stacked_rows([chosen_rows(whole, some) for some in chosen])
    assert type(stacked) is type(whole)
    for place, row in enumerate(np.concatenate(chosen)):
        assert np.array_equal(as_dense_row(stacked, place), as_dense_row(whole, row))
