"""Kernels on the disk are checked before they run; without a compiler the same Python runs slowly."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import config as numba_config

from saddlesvm.runtime import kernel_files
from saddlesvm.runtime.compiled import PLAIN
from saddlesvm.runtime.compiler import dispatcher_of
from saddlesvm.runtime.kernel_files import CheckedCacheFile


class Trap:
    """Says that it was loaded."""

    loaded: list[int] = []  # noqa: RUF012

    def __reduce__(self) -> Any:
        return Trap.loaded.append, (1,)


def cache_file(folder: Path) -> CheckedCacheFile:
    return CheckedCacheFile(str(folder), "kernel", "stamp")


def test_what_was_saved_is_loaded_by_the_same_text_only(tmp_path: Path) -> None:
    file = cache_file(tmp_path)
    file.save("key", {"code": b"machine code"})
    assert cache_file(tmp_path).load("key") == {"code": b"machine code"}
    assert CheckedCacheFile(str(tmp_path), "kernel", "another text").load("key") is None


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_a_damaged_or_foreign_file_is_thrown_away(tmp_path: Path, ending: str) -> None:
    cache_file(tmp_path).save("key", list(range(100)))
    path = next(tmp_path.glob(f"*{ending}"))
    whole = path.read_bytes()
    foreign = pickle.dumps(Trap())
    changes = [whole[:n] for n in range(0, len(whole), 7)]
    changes += [whole[:n] + bytes([whole[n] ^ 4]) + whole[n + 1 :] for n in range(0, len(whole), 5)]
    for change in (*changes, foreign, whole + b"x", b""):
        path.write_bytes(change)
        assert cache_file(tmp_path).load("key") is None
        assert not path.exists()
    cache_file(tmp_path).save("key", "anew")
    assert cache_file(tmp_path).load("key") == "anew"
    assert not Trap.loaded


def test_code_of_strangers_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_file(tmp_path).save("key", "code")
    monkeypatch.setattr(kernel_files, "_is_safe_owner", lambda owner: False)
    assert cache_file(tmp_path).load("key") is None


def test_a_full_disk_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: Any, target: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache_file(tmp_path).save("key", "code")
    assert list(tmp_path.iterdir()) == [] and cache_file(tmp_path).load("key") is None


FITS = """
import warnings; warnings.simplefilter("error")
import numpy as np
from saddlesvm import LinearSVC, LinearSVR
random = np.random.default_rng(0)
X = random.normal(size=(16, 2)); y = X[:, 0] + 0.3 * random.normal(size=16) > 0
for loss in ("hinge", "squared_hinge", "logistic", "smooth_hinge"):
    print(LinearSVC(loss=loss, random_state=0).fit(X, y).certificate_.primal)
for loss in ("squared", "absolute", "epsilon_insensitive"):
    print(LinearSVR(loss=loss, random_state=0).fit(X, X @ [1.0, 2.0]).certificate_.primal)
"""


def test_every_loss_is_certified_without_a_compiler() -> None:
    """The objectives agree with those of compiled code to the gaps that both have proven."""
    found = []
    for disabled in ("1", "0"):
        said = subprocess.run(
            [sys.executable, "-c", FITS],
            env=os.environ | {"NUMBA_DISABLE_JIT": disabled},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert said.returncode == 0, said.stderr
        found.append(np.array(said.stdout.split(), dtype=float))
    assert np.all(np.abs(found[0] - found[1]) <= 1e-4 * np.abs(found[1]))  # tol of the estimators


def tripled(x: float) -> float:
    return 3.0 * x


def test_a_shipped_kernel_serves_where_there_is_no_own_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fresh(cache: str) -> Any:
        monkeypatch.setattr(numba_config, "CACHE_DIR", str(tmp_path / cache))
        return dispatcher_of(tripled, PLAIN, True)

    monkeypatch.setattr(kernel_files.SHIPPING, "into", tmp_path / "shipped")
    assert fresh("maker")(2.0) == 6.0
    monkeypatch.setattr(kernel_files.SHIPPING, "into", None)
    monkeypatch.setattr(kernel_files, "FOLDER", tmp_path / "shipped")
    for fits, hits in ((True, 1), (False, 0)):
        monkeypatch.setattr(kernel_files, "fits_this_processor", lambda fits=fits: fits)
        kernel = fresh(f"user {fits}")
        assert kernel(2.0) == 6.0 and sum(kernel.stats.cache_hits.values()) == hits
    monkeypatch.setattr(kernel_files, "fits_this_processor", lambda: True)
    monkeypatch.setattr(kernel_files, "stamp_of", lambda file: "another text")
    other = fresh("another")
    assert other(2.0) == 6.0 and not sum(other.stats.cache_hits.values())
