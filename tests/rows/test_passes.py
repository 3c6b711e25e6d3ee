"""Passes: in memory, in threads and over files they come to the same, and every row takes part exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import SquaredHinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.problem.sums import sums_of_margins
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import Dense, Rows, as_rows
from saddlesvm.rows.passes import FromFiles, InMemory, Passes
from support.own_place import packed

N, D = 101, 7
EDGES = np.array([0, 9, 10, 40, 77, N])  # of the chunks
MEMBERS = np.flatnonzero(np.arange(N) % 4 > 0).astype(np.int32)


def matrix(layout: str, dtype: Any = np.float64) -> Rows:
    A = np.random.default_rng(0).normal(size=(N, D)).astype(dtype)
    A[A < -0.5] = 0.0
    return as_rows(A if layout == "dense" else sparse.csr_array(A), 0.5)


def reader_of(X: Rows, folder: Path) -> BlockReader:
    """The same rows in files, cut into chunks of different sizes, two a block."""
    parts: dict[str, Any] = {}
    for name, value in X._asdict().items():
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}.npy", value)
            parts[name] = np.load(folder / f"{name}.npy", mmap_mode="r")
    return BlockReader(X._replace(**parts), EDGES, 2, np.empty(N))


@pytest.fixture(params=["one thread", "threads", "files", "own"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("saddlesvm.runtime.threads.WORTH", 1e-9)
    return str(request.param)


def passes_over(X: Rows, place: str, folder: Path) -> Passes:
    if place == "files":
        return FromFiles(reader_of(X, folder), MEMBERS)
    if place == "own":
        return packed(dense(X), MEMBERS)
    return InMemory(X, MEMBERS, D, 3 if place == "threads" else 1)


def dense(X: Rows) -> Dense:
    return X if isinstance(X, Dense) else as_rows(np.ascontiguousarray(as_matrix(X)), X.bias)


def as_matrix(X: Rows) -> np.ndarray:
    """All rows, without the virtual feature."""
    return X.values if hasattr(X, "values") else sparse.csr_array((X.data, X.indices, X.indptr), (N, D)).toarray()


def as_array(X: Rows) -> np.ndarray:
    """The members' rows with the virtual feature."""
    return np.column_stack([as_matrix(X), np.full(N, X.bias)])[MEMBERS].astype(np.float64)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_margins_and_pulls_are_products_with_the_rows(layout: str, place: str, tmp_path: Path) -> None:
    X, random = matrix(layout), np.random.default_rng(1)
    passes = passes_over(X, place, tmp_path)
    w, alpha = random.normal(size=D + 1), random.normal(size=N)
    assert passes.margins(w) == pytest.approx(as_array(X) @ w, rel=1e-12)
    assert passes.pull(alpha) == pytest.approx(alpha[MEMBERS] @ as_array(X), rel=1e-12)


def test_every_row_takes_part_once(place: str, tmp_path: Path) -> None:
    passes = passes_over(matrix("csr"), place, tmp_path)
    seen = [(part.first + part.rows, part.place) for part in passes.each(lambda part: part)]
    assert np.concatenate([rows for rows, _ in seen]).tolist() == MEMBERS.tolist()
    assert all((MEMBERS[where] == rows).all() for rows, where in seen)
    fewer = passes.among(MEMBERS[3:5])
    assert fewer.pull(np.ones(N)) == pytest.approx(as_array(matrix("csr"))[3:5].sum(axis=0), rel=1e-12)


@pytest.mark.parametrize("place", ["files", "own"])
def test_a_part_serves_a_pass_over_other_rows(place: str, tmp_path: Path) -> None:
    others = np.arange(2, N, 3)
    passes = passes_over(matrix("csr"), place, tmp_path)
    seen = [(part.first + part.rows, part.place) for part in passes.each(lambda part: part.among(others))]
    assert np.concatenate([rows for rows, _ in seen]).tolist() == others.tolist()
    assert all((others[where] == rows).all() for rows, where in seen)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_sums_of_a_certificate_are_those_of_memory(dtype: Any, tmp_path: Path) -> None:
    X, random = matrix("dense", dtype), np.random.default_rng(2)
    y, alpha, w = random.choice([-1.0, 1.0], N), random.random(N), random.normal(size=D + 1)
    weights = np.where(np.isin(np.arange(N), MEMBERS), 1.5, 0.0)
    alpha *= y * weights
    options: dict[str, Any] = {"C": 1.0, "weights": weights, "intercept": "regularized"}
    with reader_of(X, tmp_path) as reader:
        streamed = make_problem(FromFiles(reader, np.arange(N)), y, SquaredHinge(), **options)
        found = sums_of_margins(streamed, w, alpha)
    plain = make_problem(X, y, SquaredHinge(), **options)
    assert found == pytest.approx(sums_of_margins(plain, w, alpha), rel=1e-12)


def test_a_certificate_over_a_place_of_ones_own_is_that_of_memory() -> None:
    X, random = dense(matrix("dense")), np.random.default_rng(3)
    y = random.choice([-1.0, 1.0], N)
    plain = make_problem(X, y, SquaredHinge(), C=0.5, intercept="regularized")
    own = make_problem(packed(X, plain.members), y, SquaredHinge(), C=0.5, intercept="regularized")
    point = Point(random.normal(size=D + 1), random.random(N) * y)
    found, known = evaluate(own, point).certificate, evaluate(plain, point).certificate
    assert found.primal == pytest.approx(known.primal, rel=1e-12)
    assert found.dual == pytest.approx(known.dual, rel=1e-12)
