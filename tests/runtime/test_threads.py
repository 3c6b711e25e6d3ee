"""Work shared by threads: whoever is free takes the next piece, the pieces define the answers, nobody waits in vain."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.passes import InMemory
from saddlesvm.runtime import threads
from saddlesvm.runtime.threads import MOST_PIECES, WORTH, OneThread, Schedule, count_pieces, run_pieces, run_shares
from support import csr, matrix


@pytest.mark.parametrize("count", [1, 2, 5, 30])
@pytest.mark.parametrize("most", [1, 2, 4])
def test_every_piece_is_done_once_and_answered_in_order(count: int, most: int) -> None:
    done = []
    assert run_pieces(lambda k: done.append(k) or k * k, count, most) == [k * k for k in range(count)]  # type: ignore[func-returns-value]
    assert sorted(done) == list(range(count))


def test_one_thread_does_all_where_no_other_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()
    with ThreadPoolExecutor(1) as occupied:
        occupied.submit(free.wait)
        monkeypatch.setattr(threads, "_helpers", lambda: occupied)
        here = threading.current_thread()
        assert run_pieces(lambda k: threading.current_thread() is here, 6, 2) == [True] * 6
        free.set()


def test_a_piece_that_fails_ends_the_work_with_its_error() -> None:
    def work(k: int) -> int:
        if k == 3:
            raise MemoryError("no room")
        return k

    with pytest.raises(MemoryError, match="no room"):
        run_pieces(work, 8, 3)


def test_no_piece_is_no_work_for_several_threads() -> None:
    """A matrix of no rows, whose change is empty, must not wait for a piece."""
    assert run_pieces(lambda k: k, 0, 3) == []
    assert run_shares(len, [], 0, 3) == []


@pytest.mark.parametrize("shares", [1, 2, 3, 7])
def test_shares_are_neighbouring_parts_that_make_up_all(shares: int) -> None:
    found = run_shares(list, range(7), shares, 2)
    assert len(found) == shares
    assert [part for share in found for part in share] == list(range(7))


def test_how_many_pieces_there_are() -> None:
    assert count_pieces(1.9 * WORTH) == 1
    assert count_pieces(2.0 * WORTH) == 8
    assert count_pieces(1e9) == MOST_PIECES


@pytest.mark.parametrize("sparse", [False, True])
def test_sums_come_out_the_same_for_any_number_of_threads(sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORTH", 1e-12)
    A = matrix(500, 9, density=0.5 if sparse else 1.0)
    X, alpha = as_rows(csr(A) if sparse else A, 1.0), np.random.default_rng(1).random(500)
    members = np.arange(500, dtype=np.int32)
    plain = np.column_stack([A, np.ones(500)])

    def sums(count: int) -> list[np.ndarray]:
        passes = InMemory(X, members, count)
        return [passes.pull(alpha), passes.margins(np.arange(10.0))]

    one, two, five = sums(1), sums(2), sums(5)
    expected = [alpha @ plain, plain @ np.arange(10.0)]
    for first, second, fifth, truth in zip(one, two, five, expected, strict=True):
        np.testing.assert_array_equal(second, fifth)
        np.testing.assert_allclose(second, truth, rtol=1e-11, atol=1e-11 * np.abs(truth).max())
        np.testing.assert_allclose(first, truth, rtol=1e-11, atol=1e-11 * np.abs(truth).max())


def test_overlapping_fits_give_the_threads_of_the_blas_back_once():
    with threadpool_limits(2, user_api="blas"):
        first, second = OneThread(), OneThread()
        first.__enter__()
        second.__enter__()
        first.__exit__()
        # The second one is still at work.
        assert blas_threads() == {1}
        second.__exit__()
        assert blas_threads() == {2}


def test_fits_side_by_side_leave_the_blas_one_thread():
    with threadpool_limits(2, user_api="blas"):
        with Schedule(2, threading.Event()) as schedule:
            assert schedule.add(blas_threads).result() == {1}
        assert blas_threads() == {2}


def blas_threads() -> set[int]:
    """How many threads the BLAS libraries of this process have."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
