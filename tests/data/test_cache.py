"""A cache beside a data file, used by several processes at once."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.cli import main
from saddlesvm.data import Store, StoreWriter, conversion, read
from saddlesvm.data.blocks import Reading
from saddlesvm.data.conversion import CACHE, cached, from_cache
from saddlesvm.data.errors import BeingWritten, DataError
from saddlesvm.data.store_format import PARTIAL

ROWS = np.random.default_rng(0).normal(size=(40, 3)).round(3)
TWO_SCALES = """
import sys
import numpy as np
from saddlesvm.data import read
for k in range(40):
    scale = 1.0 + (k + int(sys.argv[2])) % 2
    assert np.asarray(read(sys.argv[1], cache=True, scale=scale).X).sum() == scale * float(sys.argv[3]), k
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A CSV file."""
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([ROWS, ROWS[:, 0] > 0]), delimiter=",", fmt="%g")
    return path


def test_another_writer_is_waited_for(table: Path) -> None:
    pytest.importorskip("fcntl")
    target = table.with_name(table.name + CACHE)
    with ThreadPoolExecutor(1) as other:
        with StoreWriter(target) as writer:
            writer.append(ROWS[:1], ROWS[:1, 0])
            reading = other.submit(read, table, cache=True)
            with pytest.raises(TimeoutError):
                reading.result(timeout=0.2)
        found = reading.result(timeout=60.0)
    assert np.array_equal(np.asarray(found.X), ROWS)  # the other's store is of another file: it was replaced


def test_a_store_that_is_replaced_while_its_arrays_are_opened_is_opened_again(table: Path) -> None:
    scales = []

    def use(store: Store) -> np.ndarray:
        if not scales:
            cached(table, Reading(scale=2.0))  # as another process would
        scales.append(store.header["read with"]["scale"])
        return np.array(store.X)

    assert np.array_equal(from_cache(table, Reading(), use), ROWS)
    assert scales == [1.0, 1.0]


def test_a_store_that_is_replaced_before_its_writer_opens_it_is_not_taken(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales = []

    def overtaken(names: list[str], target: Path, how: Reading, *further: Any) -> None:
        scales.append(how.scale)
        write(names, target, how, *further)
        if len(scales) == 1:  # as another process would
            write(names, target, replace(how, scale=2.0), *further)
        if len(scales) == 2:
            target.rename(tmp_path / "moved away")

    write = conversion._write_store
    monkeypatch.setattr(conversion, "_write_store", overtaken)
    assert np.array_equal(from_cache(table, Reading(), lambda store: np.array(store.X)), ROWS)
    assert scales == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("again", [True, False])
def test_a_lock_on_a_folder_that_was_removed_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    fcntl = pytest.importorskip("fcntl")
    folder, locked = tmp_path / f"rows{PARTIAL}", fcntl.flock

    def lock_too_late(handle: int, how: int) -> None:
        folder.rmdir()
        if again:
            folder.mkdir()
        locked(handle, how)

    monkeypatch.setattr(fcntl, "flock", lock_too_late)
    with pytest.raises(BeingWritten, match="by another process"):
        StoreWriter(tmp_path / "rows")
    assert folder.exists() == again


def test_processes_with_different_options_disturb_none_of_each_other(table: Path) -> None:
    whole = float(ROWS.sum())
    words = [sys.executable, "-c", TWO_SCALES, str(table)]
    running = [subprocess.Popen([*words, str(k), repr(whole)], stderr=subprocess.PIPE, text=True) for k in range(3)]
    for process in running:
        said = process.communicate()[1]
        assert process.returncode == 0, said
    assert sorted(path.name for path in table.parent.iterdir()) == [table.name, table.name + CACHE]


def test_training_with_a_cache_beside_another_process(table: Path) -> None:
    command = [sys.executable, "-m", "saddlesvm", "train", str(table), "--cache", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
        assert main(["train", str(table), "--cache", "--json"]) == 0
        _, said = other.communicate()
    assert other.returncode == 0, said


def test_a_converted_store_that_is_replaced_as_it_is_opened_is_opened_again(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, opened = tmp_path / "rows.store", []

    def replaced(path: Path) -> Store:
        opened.append(path)
        if len(opened) == 1:  # as another process would, between the header and the arrays
            write([str(table)], target, Reading(scale=2.0), "error", 1 << 20, True, None)
            raise DataError("labels.npy: holds int64; store.json says int32")
        return Store(path)

    write = conversion._write_store
    monkeypatch.setattr(conversion, "Store", replaced)
    assert np.array_equal(np.array(conversion.convert(table, target).X), 2.0 * ROWS)
    assert len(opened) == 2
