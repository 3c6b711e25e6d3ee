"""Blocks of mapped files: every row once, and faults named."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows.files import (
    BlockReader,
    is_mapped,
    place_of,
    read_at,
    release_pages,
    stacked_rows,
)
from saddlesvm.rows.layouts import as_rows
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


def test_blocks_hold_the_rows_and_their_norms(tmp_path: Path) -> None:
    X = matrix(50, D, density=0.5).astype(np.float32)
    for file in (mapped(X, tmp_path), mapped_csr(X, tmp_path), X):
        edges = np.array([0, 11, 20, 33, 50])
        with BlockReader(as_rows(file, 1.0), edges, 2, np.zeros(50)) as reader:
            for chunks, then in (([3, 0], [2, 1]), ([2, 1], [0, 1]), ([1, 2], [])):
                block = reader.fetch(chunks, then)
                rows = np.concatenate([np.arange(edges[k], edges[k + 1]) for k in chunks])
                values = block.X.values if hasattr(block.X, "values") else whole(block.X)
                assert np.array_equal(values, X[rows])
                assert np.allclose(reader.norms[block.numbers], (X[rows].astype(float) ** 2).sum(axis=1) + 1.0)


def whole(X: Any) -> np.ndarray:
    """CSR rows as a dense array."""
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.indptr.size - 1, X.n_features)).toarray()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_named(bad: float, tmp_path: Path) -> None:
    X = matrix(N, D)
    X[123, 2] = bad
    with pytest.raises(ValueError, match=r"row 123, column 2 \(from 0\): all values must be finite"):
        LinearSVC(solver="blocks").fit(mapped(X, tmp_path), labels(matrix(N, D), Hinge()))


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    X = matrix(N, D)
    problem = streamed(mapped(X, tmp_path), labels(X, Hinge()), Hinge())
    with (tmp_path / "X.npy").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(OSError, match=r"X\.npy: ends before byte"):
        Blocks().step(problem, Blocks().init(problem, 0), Budget(1))


@pytest.mark.parametrize("form", ["dense", "csr", "in memory"])
def test_each_byte_of_a_sweep_is_read_once_and_a_block_stays_until_the_next_but_one(form: str, tmp_path: Path) -> None:
    X = matrix(50, D, density=0.5).astype(np.float32)
    file = {"dense": mapped, "csr": mapped_csr}[form](X, tmp_path) if form != "in memory" else X
    edges = np.array([0, 11, 20, 33, 50])
    with BlockReader(as_rows(file, 1.0), edges, 1, np.zeros(50)) as reader:
        for k in range(4):
            block = reader.fetch([k], [k + 1] if k < 3 else ())
            if reader.pending:
                reader.pending[1].result()  # the next block is in the other buffer
            assert block.numbers.tolist() == list(range(edges[k], edges[k + 1]))
            values = block.X.values if hasattr(block.X, "values") else whole(block.X)
            assert np.array_equal(values, X[edges[k] : edges[k + 1]])
        stored = np.count_nonzero(X)
        assert reader.bytes_read == (8 * stored + 4 * (50 + 4) if form == "csr" else X.nbytes)
        assert all((column.file is None) == (form == "in memory") for column in reader.columns)
        thread = reader.thread
        assert thread is not None
    assert all(column.file is None for column in reader.columns)
    with pytest.raises(RuntimeError, match="after shutdown"):
        thread.submit(len, ())
    with BlockReader(as_rows(file, 1.0), edges, 1, np.zeros(50)):
        pass


def test_a_read_that_comes_in_pieces_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without `preadv`; each call may bring fewer bytes than were asked for."""
    X = matrix(50, D)
    file = mapped(X, tmp_path)
    for call in ("preadv", "read"):
        if call == "read":
            monkeypatch.delattr(os, "preadv")
        with BlockReader(as_rows(file), np.array([0, 50]), 1, np.zeros(50)) as reader:
            assert np.array_equal(reader.fetch([0]).X.values, X)
        original = read_at
        monkeypatch.setattr("saddlesvm.rows.files.read_at", lambda f, left, at, do=original: do(f, left[:100], at))
        with BlockReader(as_rows(file), np.array([0, 50]), 1, np.zeros(50)) as reader:
            assert np.array_equal(reader.fetch([0]).X.values, X)
        monkeypatch.setattr("saddlesvm.rows.files.read_at", original)


def test_the_system_is_asked_for_the_chunks_that_come_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda file, start, length, advice: asked.append((start, length)))
    file = mapped(matrix(24, D), tmp_path)
    place = place_of(file)
    assert place is not None
    with BlockReader(as_rows(file), np.arange(0, 25, 2), 12, np.zeros(24)) as reader:
        reader.fetch(range(12))
    item = 8 * D
    assert asked == [(place.offset + 2 * chunk * item, 2 * item) for chunk in range(1, 12)]


def test_pages_of_mapped_rows_are_given_back(tmp_path: Path) -> None:
    for file in (mapped(matrix(30, D), tmp_path), mapped_csr(matrix(30, D), tmp_path), matrix(30, D)):
        before = file.sum()
        release_pages(file)
        assert file.sum() == before


def test_neighbouring_rows_are_views() -> None:
    for given in (matrix(30, 5), csr(matrix(30, 5))):
        X = as_rows(given, 1.0)
        some = X.between(4, 9)
        assert [some.dense_row(k).tolist() for k in range(5)] == [X.dense_row(4 + k).tolist() for k in range(5)]
        assert np.shares_memory(some[0], X[0])
        assert some.n_rows == 5


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_copies_of_some_rows_one_after_another(layout: str) -> None:
    X = matrix(30, 5, density=0.4)
    whole = as_rows(X if layout == "dense" else csr(X), 1.0)
    chosen = [np.array([3, 7, 29]), np.array([0]), np.array([11, 12, 13, 5])]
    for given in (chosen, chosen[:1]):
        pieces = [whole.take(some) for some in given]
        stacked = stacked_rows(pieces)
        assert not pieces
        assert type(stacked) is type(whole)
        assert not any(part.flags.writeable for part in stacked if isinstance(part, np.ndarray))
        for place, row in enumerate(np.concatenate(given)):
            assert np.array_equal(stacked.dense_row(place), whole.dense_row(row))
