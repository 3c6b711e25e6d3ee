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
from saddlesvm.rows.passes import FromFiles, InMemory, Passes, sample_rows, sampled_norms, squared_norms
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
    return InMemory(X, MEMBERS, 3 if place == "threads" else 1)


def dense(X: Rows) -> Dense:
    return X if isinstance(X, Dense) else as_rows(np.ascontiguousarray(as_matrix(X)), X.bias)


def as_matrix(X: Rows) -> np.ndarray:
    """All rows, without the virtual feature."""
    return X.values if hasattr(X, "values") else sparse.csr_array((X.data, X.indices, X.indptr), (N, D)).toarray()


def as_array(X: Rows) -> np.ndarray:
    """The members' rows with the virtual feature."""
    return whole(X)[MEMBERS]


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_another_virtual_feature_has_its_value(layout: str, place: str, tmp_path: Path) -> None:
    X, w = matrix(layout), np.random.default_rng(1).normal(size=D + 1)
    passes = passes_over(X, place, tmp_path)
    assert passes.with_feature(2.5).margins(w) == pytest.approx(as_array(X._replace(bias=2.5)) @ w, rel=1e-12)
    assert passes.margins(w) == pytest.approx(as_array(X) @ w, rel=1e-12)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_margins_and_pulls_are_products_with_the_rows(layout: str, place: str, tmp_path: Path) -> None:
    X, random = matrix(layout), np.random.default_rng(1)
    passes = passes_over(X, place, tmp_path)
    w, alpha = random.normal(size=D + 1), random.normal(size=N)
    assert passes.margins(w) == pytest.approx(as_array(X) @ w, rel=1e-12)
    assert passes.pull(alpha) == pytest.approx(alpha[MEMBERS] @ as_array(X), rel=1e-12)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_pulls_of_classes_are_products_with_the_rows(layout: str, place: str, tmp_path: Path) -> None:
    X, random = matrix(layout), np.random.default_rng(4)
    alpha = random.normal(size=(N, 3)) * (random.random((N, 3)) < 0.5)
    passes = passes_over(X, place, tmp_path)
    found = passes.pull(alpha)
    assert found.shape == (3, D + 1)
    assert found.flags.c_contiguous
    assert found == pytest.approx(alpha[MEMBERS].T @ as_array(X), rel=1e-12, abs=1e-12)


def test_norms_are_of_the_members(place: str, tmp_path: Path) -> None:
    passes = passes_over(matrix("csr"), place, tmp_path)
    if place == "files":  # known once their block was read, for all rows
        [*passes.each(lambda part: None)]
        assert passes.norms() == pytest.approx((whole(matrix("csr")) ** 2).sum(axis=1), rel=1e-12)
    else:
        assert passes.norms() == pytest.approx((as_array(matrix("csr")) ** 2).sum(axis=1), rel=1e-12)
    assert passes.shape == (N, D)
    if place != "files":
        assert passes.with_feature(3.0).margins(np.eye(D + 1)[D]).tolist() == [3.0] * MEMBERS.size


def whole(X: Rows) -> np.ndarray:
    """All rows with the virtual feature."""
    return np.column_stack([as_matrix(X), np.full(N, X.bias)]).astype(np.float64)


def test_the_rows_of_files_are_read_block_by_block_and_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = FromFiles(reader_of(matrix("dense"), tmp_path), MEMBERS)
    asked, fetch = [], passes.reader.fetch

    def noted(now: range, then: range) -> Any:
        asked.append(([*now], [*then]))
        return fetch(now, then=then)

    monkeypatch.setattr(passes.reader, "fetch", noted)
    assert len([*passes.each(lambda part: part)]) == 3
    assert asked == [([0, 1], [2, 3]), ([2, 3], [4]), ([4], [])]
    passes.part(2, again=True)
    passes.part(1, again=True)
    assert asked[3:] == [([4], [0, 1]), ([2, 3], [4])]


def test_parts_in_threads_are_cut_by_the_size_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saddlesvm.runtime.threads.WORTH", 1e-9)
    X = as_rows(np.ones((4_000, 2)))
    parts = {}
    for threads in (2, 3, 20):
        passes = InMemory(X, np.arange(4_000, dtype=np.int32), threads)
        parts[threads] = [(part.place.start, part.place.stop) for part in passes.each(lambda part: part)]
        assert passes.select(passes.members[:9]).threads == threads
    assert parts[2] == parts[3] == parts[20]
    assert len(parts[2]) > 2
    assert 4_000 * 2 / len(parts[2]) >= 16 * 3  # stored values of a part per feature
    assert np.ptp([stop - start for start, stop in parts[2]]) <= 1


def test_a_sample_of_rows_is_evenly_spread() -> None:
    X = as_rows(np.arange(2_000.0)[:, None], 0.0)
    rows = sample_rows(X)
    assert (rows[0], rows[-1], rows.size) == (0, 1_999, 256)
    assert np.ptp(np.diff(rows)) <= 1
    assert sampled_norms(X).tolist() == (rows.astype(float) ** 2).tolist()
    assert sample_rows(as_rows(np.ones((3, 1)))).tolist() == [0, 1, 2]
    assert squared_norms(X.between(0, 5)).tolist() == [0.0, 1.0, 4.0, 9.0, 16.0]
    assert squared_norms(X.between(0, 0)).size == 0


def test_every_row_takes_part_once(place: str, tmp_path: Path) -> None:
    passes = passes_over(matrix("csr"), place, tmp_path)
    seen = [(part.first + part.rows, part.place) for part in passes.each(lambda part: part)]
    assert np.concatenate([rows for rows, _ in seen]).tolist() == MEMBERS.tolist()
    assert all((MEMBERS[where] == rows).all() for rows, where in seen)
    fewer = passes.select(MEMBERS[3:5])
    assert fewer.pull(np.ones(N)) == pytest.approx(as_array(matrix("csr"))[3:5].sum(axis=0), rel=1e-12)


@pytest.mark.parametrize("place", ["files", "own"])
def test_a_part_serves_a_pass_over_other_rows(place: str, tmp_path: Path) -> None:
    others = np.arange(2, N, 3)
    passes = passes_over(matrix("csr"), place, tmp_path)
    seen = [(part.first + part.rows, part.place) for part in passes.each(lambda part: part.move_to(others))]
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
