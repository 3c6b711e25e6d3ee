"""Rows: compiled operations against the plain ones, for every layout, precision, index type and kind of memory."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows import layouts as rows, prefetch
from saddlesvm.rows.csr_checks import all_in_order, first_repeat
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.passes import squared_norms
from saddlesvm.runtime.compiled import INTERPRETED
from support import csr, matrix, shuffled

F32, F64 = np.float32, np.float64
LAYOUTS = ["dense", np.int32, np.int64]
KINDS = [(layout, x, w) for layout in LAYOUTS for x, w in ((F32, F32), (F32, F64), (F64, F64))]

shapes = {"n": st.integers(1, 12), "d": st.integers(1, 19), "seed": st.integers(0, 10**6)}
densities = st.sampled_from([0.0, 0.2, 0.7, 1.0])
biases = st.sampled_from([0.0, 1.0, 2.5])


def laid_out(X: np.ndarray, layout: Any) -> Any:
    return np.ascontiguousarray(X) if layout == "dense" else csr(X, layout)


@pytest.mark.parametrize(("layout", "x_type", "w_type"), KINDS)
@settings(max_examples=15)
@given(**shapes, density=densities, bias=biases)
def test_dot_and_axpy_equal_the_plain_ones(
    layout: Any, x_type: type, w_type: type, n: int, d: int, seed: int, density: float, bias: float
) -> None:
    random = np.random.default_rng(seed)
    X = as_rows(laid_out(matrix(n, d, seed, density).astype(x_type), layout), bias)
    plain = np.array([X.dense_row(i) for i in range(n)])
    members = np.flatnonzero(random.random(n) < 0.7).astype(np.int32)
    w: np.ndarray = random.normal(size=d + 1).astype(w_type)
    c = random.normal(size=n)
    c[random.random(n) < 0.3] = 0.0
    step = (d + n + 4) * np.finfo(w_type).eps

    z = np.full(members.size, np.nan)
    rows.dot_rows(X, members, w, z)
    size = np.abs(plain[members]) @ np.abs(w.astype(F64))
    assert np.all(np.abs(z - plain[members] @ w.astype(F64)) <= step * size)

    moved = w.copy()
    rows.add_rows(X, members, c, moved)
    size = np.abs(w.astype(F64)) + np.abs(c[members]) @ np.abs(plain[members])
    assert moved.dtype == w_type
    assert np.all(np.abs(moved - (w.astype(F64) + c[members] @ plain[members])) <= step * size)


@pytest.mark.parametrize(("layout", "x_type", "w_type"), KINDS)
@pytest.mark.parametrize("bias", [0.0, 2.5])
def test_the_bodies_of_kernels_equal_the_plain_ones(layout: Any, x_type: type, w_type: type, bias: float) -> None:
    """Also where nothing is compiled: rows of up to nine values, of which the unrolled loop takes four at a time."""
    A = matrix(10, 9, 3).astype(x_type)
    A[np.tri(10, 9, -1) == 0] = 0.0
    X, random = as_rows(laid_out(A, layout), bias), np.random.default_rng(3)
    w: np.ndarray = random.normal(size=10).astype(w_type)
    kinds = numba.typeof(X), numba.int64, numba.typeof(w)
    dot, norm = rows._pick_dot(*kinds), rows._pick_squared_norm(*kinds[:2])
    axpy = rows._pick_axpy(*kinds[:2], numba.float64, kinds[2])
    close = 30 * float(np.finfo(w_type).eps)
    for i in range(10):
        plain = X.dense_row(i)
        assert dot(X, i, w) == pytest.approx(plain @ w.astype(F64), rel=close, abs=close)
        assert norm(X, i) == pytest.approx(plain @ plain, rel=1e-14)
        moved = w.copy()
        axpy(X, i, 1.5, moved)
        assert moved == pytest.approx(w + 1.5 * plain, rel=close, abs=close)
        if bias == 0.0:  # the virtual place is not touched, and need not be there
            assert moved[-1] == w[-1]
            short = w[:-1].copy()
            axpy(X, i, 1.5, short)
            assert (short == moved[:-1]).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("x_type", [F32, F64])
def test_numpy_does_for_few_rows_what_kernels_do(layout: Any, x_type: type) -> None:
    """Also for rows that are a piece of a file's, which begin within its arrays."""
    A, random = matrix(12, 6, 4, 0.5).astype(x_type), np.random.default_rng(4)
    X = as_rows(laid_out(A, layout), 2.5).between(3, 11)
    plain = np.column_stack([A[3:11].astype(F64), np.full(8, 2.5)])
    members, w = np.array([0, 2, 3, 7], dtype=np.int32), random.normal(size=7)
    z, norms, moved, factors = np.empty(4), np.empty(4), w.copy(), random.normal(size=4)
    rows.dot_by_blocks(X, members, w, z)
    rows.norms_of(X, members, norms)
    rows.combine_rows(X, members, factors, moved)
    assert z == pytest.approx(plain[members] @ w, rel=1e-13, abs=1e-13)
    assert norms == pytest.approx((plain[members] ** 2).sum(axis=1), rel=1e-13)
    assert moved == pytest.approx(w + factors @ plain[members], rel=1e-13, abs=1e-13)
    assert np.array_equal(as_array(X.float64_matrix()), plain[:, :-1])


def as_array(X: Any) -> np.ndarray:
    return X if isinstance(X, np.ndarray) else X.toarray()


def test_the_longest_row_is_found_in_any_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "AT_ONCE", 4)
    for place in range(11):
        A = np.zeros((11, 6))
        A[place, :5] = A[(place + 5) % 11, :3] = 1.0
        assert as_rows(csr(A)).longest_row == 5
    assert as_rows(csr(np.zeros((0, 6)))).longest_row == 0
    assert as_rows(csr(np.zeros((1, 6)))).longest_row == 0
    assert as_rows(np.zeros((2, 6))).longest_row == 6
    repeated = csr(np.ones((1, 2)))
    repeated.data, repeated.indices, repeated.indptr = np.ones(3), np.array([0, 1, 1]), np.array([0, 3])
    assert as_rows(repeated).longest_row == 2


def test_the_time_of_a_pass_follows_from_what_is_read() -> None:
    assert as_rows(np.zeros((2, 3))).reading_time(30e9) == 8.0
    assert as_rows(np.zeros((2, 3), F32)).reading_time(30e9) == 4.0
    assert as_rows(csr(np.zeros((2, 3)))).reading_time(1e9) == 1.0


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("x_type", [F32, F64])
@settings(max_examples=10)
@given(**shapes, density=densities, bias=biases)
def test_squared_norms_are_exact_in_float64(
    layout: Any, x_type: type, n: int, d: int, seed: int, density: float, bias: float
) -> None:
    X = as_rows(laid_out(matrix(n, d, seed, density).astype(x_type), layout), bias)
    plain = [float(X.dense_row(i) @ X.dense_row(i)) for i in range(n)]
    assert squared_norms(X) == pytest.approx(plain, rel=1e-14)


def test_without_a_bias_the_virtual_place_is_never_touched() -> None:
    for X in (as_rows(matrix(6, 3)), as_rows(csr(matrix(6, 3)))):
        w = np.array([0.0, 0.0, 0.0, 7.0])
        rows.add_rows(X, np.arange(6, dtype=np.int32), np.ones(6), w)
        assert w[-1] == 7.0


def test_empty_rows_see_the_bias_only() -> None:
    dense = matrix(5, 4)
    dense[[0, 3, 4]] = 0.0
    X = as_rows(csr(dense), 2.0)
    z = np.empty(5)
    rows.dot_rows(X, np.arange(5, dtype=np.int32), np.array([1.0, 1.0, 1.0, 1.0, 3.0]), z)
    assert list(z[[0, 3, 4]]) == [6.0, 6.0, 6.0]
    assert list(squared_norms(X)[[0, 3, 4]]) == [4.0, 4.0, 4.0]


def parts(X: rows.Rows) -> list[np.ndarray]:
    return [part for part in X if isinstance(part, np.ndarray)]


@pytest.mark.parametrize("x_type", [F32, F64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_views(layout: Any, x_type: type) -> None:
    given_rows = laid_out(matrix(7, 3).astype(x_type), layout)
    X = as_rows(given_rows, 1.0)
    sources = (
        [given_rows] if isinstance(given_rows, np.ndarray) else [given_rows.data, given_rows.indices, given_rows.indptr]
    )
    for part, source in zip(parts(X), sources, strict=True):
        assert np.shares_memory(part, source)
        assert part.dtype == source.dtype
        assert not part.flags.writeable
        assert source.flags.writeable
    assert (X.n_rows, X.n_features, X.dtype) == (7, 3, np.dtype(x_type))
    assert X.n_values == 21


@pytest.mark.skipif(INTERPRETED, reason="the types that a kernel is compiled for")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_mapped_files_are_read_in_place_and_by_the_same_kernel(layout: Any, tmp_path: Path) -> None:
    in_memory = as_rows(laid_out(matrix(9, 4, density=0.6), layout), 1.0)
    mapped = []
    for k, part in enumerate(parts(in_memory)):
        np.save(tmp_path / f"{k}.npy", part)
        mapped.append(np.load(tmp_path / f"{k}.npy", mmap_mode="r"))
    if layout == "dense":
        X: rows.Rows = as_rows(mapped[0], 1.0)
    else:
        S = csr(np.zeros((9, 4)), layout)
        S.data, S.indices, S.indptr = mapped
        X = as_rows(S, 1.0)
    assert all(np.shares_memory(part, file) for part, file in zip(parts(X), mapped, strict=True))
    w, members = np.arange(5.0), np.arange(9, dtype=np.int32)
    kinds, answers = [], []
    for each in (in_memory, X):
        out = np.empty(9)
        rows.dot_rows(each, members, w, out)
        answers.append(out)
        kinds.append(len(rows.dot_in_turn.signatures))
    assert np.array_equal(answers[0], answers[1])
    assert kinds[0] == kinds[1]


def plain_first_bad_row(indices: np.ndarray, indptr: np.ndarray, d: int) -> int:
    """The same answer by slicing."""
    if indptr[0] != 0 or indptr[-1] > indices.size:
        return -2
    falls = np.flatnonzero(np.diff(indptr) < 0)
    if falls.size:
        return int(-2 - falls[0])
    each = [indices[indptr[i] : indptr[i + 1]] for i in range(indptr.size - 1)]
    outside = [i for i, row in enumerate(each) if ((row < 0) | (row >= d)).any()]
    disorder = [i for i, row in enumerate(each) if (np.diff(row) <= 0).any()]
    return -2 - outside[0] if outside else (disorder[0] if disorder else -1)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@given(**shapes, where=st.integers(0, 10**6), put=st.integers(-2, 40), pointer=st.booleans())
def test_the_quick_check_finds_any_change(
    index: type, n: int, d: int, seed: int, where: int, put: int, pointer: bool
) -> None:
    S = csr(matrix(n, d, seed, 0.6), index)
    assert all_in_order(S.indices, S.indptr, d)
    part = S.indptr if pointer or not S.indices.size else S.indices
    part[where % part.size] = put
    assert all_in_order(S.indices, S.indptr, d) == (plain_first_bad_row(S.indices, S.indptr, d) == -1)


@pytest.mark.parametrize(
    ("indices", "indptr", "answer"),
    [
        ([0, 2, 1, 2], [0, 2, 4], -1),
        ([0, 2, 2, 1], [0, 2, 4], 1),
        ([0, 2, 1, 1], [0, 2, 4], 1),
        ([2, 0, 1, 3], [0, 2, 4], -3),
        ([0, -1, 1, 2], [0, 2, 4], -2),
        ([0, 1, 1, 2], [0, 3, 2, 4], -3),
        ([0, 1], [1, 2], -2),
        ([0, 1], [0, 3], -2),
    ],
)
def test_the_quick_check_of_single_rows(indices: list[int], indptr: list[int], answer: int) -> None:
    arrays = np.array(indices, dtype=np.int32), np.array(indptr, dtype=np.int32)
    assert all_in_order(*arrays, 3) == (answer == -1)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@given(**shapes, where=st.integers(0, 10**6), put=st.integers(-2, 40), pointer=st.booleans())
def test_first_repeat_finds_any_change_in_any_order(
    index: type, n: int, d: int, seed: int, where: int, put: int, pointer: bool
) -> None:
    S = shuffled(csr(matrix(n, d, seed, 0.6), index), seed)
    part = S.indptr if pointer or not S.indices.size else S.indices
    for change in (False, True):
        if change:
            part[where % part.size] = put
        rows_sorted = S.indices.copy()
        if S.indptr[0] == 0 and (np.diff(S.indptr) >= 0).all():
            for start, stop in itertools.pairwise(S.indptr):
                rows_sorted[start:stop].sort()
        expected = plain_first_bad_row(rows_sorted, S.indptr, d)
        assert first_repeat(S.indices, S.indptr, d) == expected
        assert change or expected == -1


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_norms_in_threads_are_those_of_one(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saddlesvm.runtime.threads.WORTH", 1e-9)
    A = np.random.default_rng(0).normal(size=(101, 7))
    X = as_rows(A if layout == "dense" else csr(A))
    assert (squared_norms(X, 3) == squared_norms(X)).all()


@pytest.mark.parametrize("width", [0, 1, 20, 70, 300, 600, 3000])
def test_rows_are_fetched_in_time_and_within_their_array(monkeypatch: Any, width: int) -> None:
    """The bodies that Numba compiles, with a note in place of the instruction."""
    n, fetched = 40, []

    def note(array: np.ndarray, start: int, stop: int) -> None:
        assert 0 <= start <= stop <= array.size
        fetched.append(int(start) // max(width, 1))

    X = as_rows(np.zeros((n, width), F32))
    types = [numba.typeof(part) for part in (X, np.arange(n))]
    monkeypatch.setattr(prefetch, "prefetch_range", note)
    order = np.random.default_rng(0).permutation(n)
    prefetch_row = prefetch._pick_prefetch_row(types[0], types[1], numba.int64, numba.int64)
    for p in range(n):
        prefetch_row(X, order, p, n)
        assert len(fetched) <= p + 1
    assert width == 0 or list(order[n - len(fetched) :]) == fetched
    assert len(fetched) >= n - 16
    prefetch_member, places = prefetch._pick_prefetch_member(types[0], types[1], numba.int64), np.arange(0, n, 2)
    fetched.clear()
    for k in range(places.size):
        prefetch_member(X, places, k)
    assert fetched == [] or width == 0 or fetched == list(places[places.size - len(fetched) :])


@pytest.mark.parametrize("d", [1, 40])
def test_sparse_rows_are_fetched_whole_and_within_their_arrays(monkeypatch: Any, d: int) -> None:
    n, fetched = 30, []

    def note(array: np.ndarray, first: int, last: int) -> None:
        assert 0 <= first <= last <= array.size
        fetched.append((array.dtype.kind, int(first), int(last)))

    X, order = as_rows(csr(np.ones((n, d))), 0.0), np.random.default_rng(0).permutation(n)
    monkeypatch.setattr(prefetch, "prefetch_range_far", note)
    monkeypatch.setattr(prefetch, "prefetch_item", lambda array, i: note(array, i, i + 1))
    prefetch_row = prefetch._pick_prefetch_row(*(numba.typeof(one) for one in (X, order, 0, n)))
    for p in range(n):
        prefetch_row(X, order, p, n)
    for i in order[n // 2 :]:
        assert {("f", i * d, (i + 1) * d), ("i", i * d, (i + 1) * d), ("i", i, i + 1)} <= set(fetched)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_rows_know_their_values(layout: str) -> None:
    A = matrix(30, 7)
    X = as_rows(A if layout == "dense" else csr(A))
    assert X.n_values == 210


class Diagonal(NamedTuple):
    """Rows of a third type."""

    values: np.ndarray
    bias: float


def test_rows_of_a_third_type_are_refused_in_words() -> None:
    X = Diagonal(np.ones(3), 0.0)
    with pytest.raises(
        TypeError,
        match="rows of type Diagonal are not known: give Dense or CSR rows",
    ):
        make_problem(X, np.ones(3), Hinge(), C=1.0)  # type: ignore[arg-type]
