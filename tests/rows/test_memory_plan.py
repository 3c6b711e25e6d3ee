"""How a problem is cut to its memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows import memory_plan
from saddlesvm.rows.layouts import Dense, Rows, as_rows
from saddlesvm.rows.memory_plan import (
    Burden,
    MemoryPlan,
    available_memory,
    demand_room_for_weights,
    does_not_fit,
    make_plan,
    memory_bytes,
)
from support import csr, labels, matrix
from support.mapped import D, N, mapped


def test_memory_is_read_in_any_unit() -> None:
    assert memory_bytes("512M") == memory_bytes("0.5G") == memory_bytes("524288 KiB") == memory_bytes(2**29) == 2**29
    for bad in ("much", "12 apples", None, True, np.nan, "1M", 0):
        with pytest.raises(ValueError, match="memory must be"):
            memory_bytes(bad)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_a_plan_stays_in_its_memory(layout: str, tmp_path: Path) -> None:
    X = matrix(20_000, 50, density=0.5).astype(np.float32)
    rows = as_rows(X if layout == "dense" else csr(X))
    for memory in (2**24, 2**26, 2**34):
        plan = make_plan(rows, memory, 1)
        edges = plan.edges
        assert edges[0] == 0
        assert edges[-1] == len(X)
        assert (np.diff(edges) > 0).all()
        a_row = (X.nbytes if layout == "dense" else 8 * np.count_nonzero(X)) / len(X) + 8
        assert 2 * plan.per_block * np.diff(edges).max() * a_row < 0.6 * memory
        assert -(-(edges.size - 1) // plan.per_block) >= 8


def test_what_fits_is_trained_on_in_place(tmp_path: Path) -> None:
    X = matrix(N, D)
    file, y = mapped(X, tmp_path), labels(X, Hinge())
    assert not does_not_fit(file, None)
    assert not does_not_fit(X, 1)
    assert does_not_fit(file, X.nbytes)
    assert "blocks" not in LinearSVC(memory="1G").fit(file, y).phases_
    assert "blocks" not in LinearSVC(memory="16M").fit(matrix(N, D), y).phases_
    assert "blocks" in LinearSVC(solver="blocks").fit(X, y).phases_


BURDENS = {
    "one problem": Burden(1),
    "a joint machine": Burden(1, variables=0, classes=7),
    "no variables": Burden(3, variables=0),
    "classes side by side": Burden(12, variables=2, weights=12),
    "pairs of classes": Burden(6, share=0.4, held=2_000_000, kept=0.3),
}


def test_the_burden_of_a_row_is_counted_in_bytes() -> None:
    counted = {name: (one.of_row, one.of_work, one.of_label) for name, one in BURDENS.items()}
    assert counted == {  # float64 variables and a norm; labels of a byte, weights of eight, numbers of rows of four
        "one problem": (16, 48, 13.0),
        "a joint machine": (8, 48 + 48 * 7, 13.0),
        "no variables": (8, 48, 15.0),
        "classes side by side": (200, 48, 112.0),
        "pairs of classes": (56, 48, 6 + 8 + 4 * 6 * 0.4),
    }
    assert Burden(1) == Burden(1, 1, 1.0, 1, 0, 0.12, 1)
    assert Burden(1, classes=2).of_work == 48 + 48 * 2


@pytest.mark.parametrize("name", BURDENS)
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("memory", [2**24, 2**25, 2**27])
def test_two_blocks_and_all_that_is_kept_take_the_memory(name: str, layout: str, memory: int) -> None:
    X = rows_of(layout, 200_000, 8)
    n, size, burden = 200_000, X.nbytes, BURDENS[name]
    variables = n * burden.of_row
    kept = int(n * burden.of_label) + burden.held + (variables if variables <= 0.25 * memory else 0)
    room = min(0.55 * memory, (1.0 - burden.kept) * memory - kept - memory // 5)
    fitting = room / 2 / (size / n + burden.of_work / 2)
    if fitting < 1:
        with pytest.raises(ValueError, match=f"200,000 rows need {kept:,} bytes besides their values; give more"):
            make_plan(X, memory, burden)
        return
    plan = make_plan(X, memory, burden)
    assert (plan.mapped, plan.memory, plan.kept_bytes) == (
        variables > 0.25 * memory,
        memory,
        int(burden.kept * memory),
    )
    of_block = min(int(fitting), n // 8)
    assert plan.per_block == max(24, of_block * size // n // 2**22)
    assert plan.edges.size - 1 == -(-n * plan.per_block // of_block)
    assert make_plan(X, memory, burden, folder="there").folder == "there"


def test_some_memory_is_left_for_all_else() -> None:
    """Of a large memory 96 MB, of a small one a fifth."""
    X = Dense(np.broadcast_to(np.float32(1.0), (20_000_000, 8)), np.float32(0.0))
    plan = make_plan(X, 2**30, Burden(1, held=2**29))
    assert plan.mapped
    room = (1.0 - 0.12) * 2**30 - 20_000_000 * 13 - 2**29 - 96 * 2**20
    of_block = int(room / 2 / (32 + 24))
    assert plan.per_block == 24
    assert plan.edges.size - 1 == -(-20_000_000 * 24 // of_block)


def rows_of(layout: str, n: int, d: int) -> Rows:
    """Rows of ones; sparse ones have up to d values, more in later rows."""
    if layout == "dense":
        return as_rows(np.ones((n, d), dtype=np.float32))
    counts = np.arange(n) * d // n + 1
    pointers = np.concatenate([[0], np.cumsum(counts)])
    indices = np.concatenate([np.arange(count) for count in counts]) if n <= 100 else np.zeros(pointers[-1])
    X = csr(np.ones((2, d), dtype=np.float32))
    X.indptr, X.indices, X.data = pointers, indices.astype(np.int32), np.ones(pointers[-1], dtype=np.float32)
    X._shape = (n, d)
    return as_rows(X)


def test_a_plan_of_few_rows_has_a_chunk_for_each() -> None:
    dense = rows_of("dense", 5, 3)
    assert make_plan(dense, 2**30, 1).edges.tolist() == [0, 1, 2, 3, 4, 5]
    plan = make_plan(dense, None, 1)
    assert plan.memory <= available_memory() // 2 + 2**28  # what is available changes between the two


def test_chunks_of_sparse_rows_have_about_equal_bytes() -> None:
    X = rows_of("csr", 100_000, 8)
    edges = make_plan(X, 2**24, 1).edges
    assert not isinstance(X, Dense)
    weight = X.data.itemsize + X.indices.itemsize
    before = X.indptr[:-1].astype(np.int64) * weight + np.arange(100_000) * (X.indptr.itemsize + 48)
    whole = int(X.indptr[-1]) * weight + 100_000 * (X.indptr.itemsize + 48)
    count = edges.size - 1
    plain = [int(np.searchsorted(before, whole * k / count)) for k in range(1, count)]
    assert edges.tolist() == [0, *plain, 100_000]


@pytest.mark.parametrize("mapped_file", [False, True])
def test_an_array_of_row_variables_begins_with_zeros(mapped_file: bool, tmp_path: Path) -> None:
    plan = MemoryPlan(2**24, np.array([0, 10]), 1, mapped_file, str(tmp_path))
    array = plan.row_array((3, 10))
    assert array.shape == (3, 10)
    assert not array.any()
    array[2, 9] = 1.0
    assert array.sum() == 1.0
    assert isinstance(array.base, np.memmap) == mapped_file
    assert not [*tmp_path.iterdir()]


def test_the_least_of_what_the_system_reports_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"/proc/meminfo": "MemTotal: 90 kB\nMemAvailable:   3 kB\n", "/sys/fs/cgroup/memory.max": "4000\n"}
    monkeypatch.setattr(memory_plan.Path, "read_text", lambda self: told[str(self)])
    monkeypatch.setattr(memory_plan.os, "sysconf", lambda name: {"SC_PHYS_PAGES": 7, "SC_PAGE_SIZE": 1000}[name])
    assert available_memory() == 3 * 1024
    told["/proc/meminfo"] = "MemAvailable: 9 kB"
    assert available_memory() == 4000
    told["/sys/fs/cgroup/memory.max"] = "max\n"
    assert available_memory() == 7000

    def no_file(self: Path) -> str:
        raise OSError

    monkeypatch.setattr(memory_plan.Path, "read_text", no_file)
    assert available_memory() == 7000

    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(memory_plan.os, "sysconf", unknown)
    assert available_memory() == 2**62


def test_weights_that_no_machine_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_plan, "available_memory", lambda: 2**30)
    demand_room_for_weights(2**30 // 8 // 5)
    demand_room_for_weights(2**26 // 8 // 5, 1)
    with pytest.raises(ValueError, match=r"26,843,545 features.* 1 x 26,843,546 weights.* at least 1 GiB.*which 1 GiB"):
        demand_room_for_weights(2**30 // 8 // 5 + 1)
    with pytest.raises(ValueError, match=r"6 x 26,843,545 weights.* at least 2 GiB"):
        demand_room_for_weights(2**30 // 8 // 5, 6)
    monkeypatch.setattr(memory_plan, "available_memory", lambda: 0)
    demand_room_for_weights(2**26 // 8 // 5)


def test_half_of_the_memory_is_for_mapped_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = mapped(matrix(N, D), tmp_path)
    size = as_rows(file).nbytes
    assert not does_not_fit(file, 2 * size)
    assert not does_not_fit(matrix(N, D), 1)  # not mapped
    assert does_not_fit(file, 2 * size - 1)
    monkeypatch.setattr(memory_plan, "available_memory", lambda: 2 * size - 1)
    assert does_not_fit(file, None)
