"""What only some systems have (``/proc``, ``sched_*``, ``preadv``, ``fcntl``) is hidden: all goes on without it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, Store
from saddlesvm.data import StoreWriter, errors
from saddlesvm.lab import machine
from saddlesvm.rows import files, memory_plan
from saddlesvm.runtime import kernel_files
from saddlesvm.runtime.threads import usable_cores
from support import matrix

ONLY_SOMEWHERE = ("sched_getaffinity", "preadv", "posix_fadvise", "sysconf", "getuid")


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A system without what :data:`ONLY_SOMEWHERE` names, ``fcntl``, ``/proc`` and folders that can be opened.

    pytest makes its own folder first: it needs some of them.
    """
    for name in ONLY_SOMEWHERE:
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    read_text, opened = Path.read_text, os.open

    def no_system_files(path: Path, *given: Any, **options: Any) -> str:
        if path.is_relative_to("/proc") or path.is_relative_to("/sys"):
            raise FileNotFoundError(path)
        return read_text(path, *given, **options)

    def no_folders(path: Any, *given: Any, **options: Any) -> int:
        if isinstance(path, (str, os.PathLike)) and os.path.isdir(path):
            raise PermissionError(path)
        return opened(path, *given, **options)

    monkeypatch.setattr(Path, "read_text", no_system_files)
    monkeypatch.setattr(os, "open", no_folders)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Store:
    X = matrix(60_000, 40).astype(np.float32)
    return Store.create(tmp_path_factory.mktemp("stores") / "rows.store", X, np.where(X @ np.arange(40.0) > 0, 1, -1))


def test_memory_and_cores_are_guessed(elsewhere: None) -> None:
    assert memory_plan.available_memory() == 2**62
    assert usable_cores() == os.cpu_count()
    assert machine.processor()
    assert kernel_files._is_safe_owner(12345)


def test_a_file_is_read_from_a_position(elsewhere: None, tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(200)))
    handle = os.open(path, os.O_RDONLY)
    buffer = bytearray(30)
    assert files.read_at(handle, memoryview(buffer), 190) == 10
    assert buffer[:10] == bytes(range(190, 200))
    assert files.read_at(handle, memoryview(buffer), 200) == 0
    os.close(handle)


def test_stores_and_models_are_written(elsewhere: None, tmp_path: Path) -> None:
    with StoreWriter(tmp_path / "rows.store") as writer:
        writer.append(np.eye(3), [1, -1, 1])
    assert Store(tmp_path / "rows.store").shape == (3, 3)
    with errors.atomic_write(tmp_path / "file") as file:
        file.write(b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"


def test_a_fit_block_by_block_is_the_same(rows: Store, request: pytest.FixtureRequest) -> None:
    options: dict[str, Any] = {"memory": "16M", "solver": "blocks", "C": 1e-3, "tol": 1e-2, "random_state": 0}
    here = LinearSVC(**options).fit(rows)
    request.getfixturevalue("elsewhere")
    there = LinearSVC(**options).fit(Store(rows.path))
    assert set(there.phases_) == {"blocks"}
    np.testing.assert_array_equal(here.coef_, there.coef_)
