"""Compiled kernels: what becomes of their text, and what processes that compile at once may not do to each other."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core.caching import IndexDataCacheFile
from scipy import sparse

from saddlesvm.problem.losses import Logistic, Loss, SmoothHinge, SquaredHinge
from saddlesvm.rows.layouts import as_rows, dot_in_turn
from saddlesvm.runtime import kernel_files
from saddlesvm.runtime.compiled import PLAIN
from saddlesvm.runtime.kernel_files import KernelCache, ProcessNames
from saddlesvm.solvers.smoothed import Answers, SmoothedTerms, respond


def optimised(kernel: Any, *arguments: Any) -> str:
    """What the compiler makes of a kernel for such arguments."""
    anew = njit(kernel.py_func, **PLAIN)
    anew(*arguments)
    return "".join(anew.inspect_llvm().values())


@pytest.mark.parametrize("loss", [SquaredHinge(), SmoothHinge(), Logistic()], ids=lambda loss: type(loss).__name__)
def test_the_terms_of_all_rows_are_vector_instructions(loss: Loss) -> None:
    y, z, alpha, bend = np.ones((4, 10))
    terms = SmoothedTerms(loss, y, np.empty(0), np.empty(0), 0.0, False)
    text = optimised(respond, terms, z, Answers(alpha, bend, np.zeros(4)))
    assert re.search(r"fmul[\w ]* <\d+ x double>", text)


def test_operations_on_rows_are_no_calls() -> None:
    X = as_rows(sparse.csr_matrix(np.eye(3)))
    text = optimised(dot_in_turn, X, np.arange(3), np.ones(4), np.empty(3))
    assert not re.search(r"^\s.*\b(call|invoke)\b.*of_csr", text, re.MULTILINE)


def cache_file(folder: Path) -> IndexDataCacheFile:
    """Numba's files of a kernel, under names of one's own."""
    file = IndexDataCacheFile(str(folder), "kernel", "stamp")
    file._data_name_pattern = ProcessNames(file._data_name_pattern)
    return file


def test_kernels_name_their_files_by_the_process() -> None:
    cache: Any = KernelCache(dot_in_turn.py_func)
    assert cache._choose_index(())  # what its first look for code does
    name = cache._cache_file._data_name(1)
    assert name.endswith(".nbc") and kernel_files.TOKEN in name


def test_a_lost_index_never_leads_to_anothers_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes read the same empty index; what the second one writes does not replace the first one's code."""
    first, second = cache_file(tmp_path), cache_file(tmp_path)
    monkeypatch.setattr(second, "_load_index", dict)
    first.save("for floats", "code for floats")
    with monkeypatch.context() as other:
        other.setattr(kernel_files, "TOKEN", "another")
        second.save("for doubles", "code for doubles")
    monkeypatch.undo()
    assert first.load("for doubles") == "code for doubles"
    assert first.load("for floats") is None  # the index has forgotten it: it is compiled again
    with (tmp_path / "kernel.nbi").open("wb") as index:  # and the other order: the first one's index is the last
        pickle.dump(first._version, index, protocol=-1)
        index.write(pickle.dumps(("stamp", {"for floats": ProcessNames(first._data_name_pattern).format(number=1)})))
    assert first.load("for floats") == "code for floats"


def test_compiled_kernels_come_from_the_cache(tmp_path: Path) -> None:
    """A second process loads what the first one compiled."""
    words = (
        "import numpy as np; from saddlesvm.rows.layouts import as_rows, norms_in_turn; "
        "norms_in_turn(as_rows(np.ones((2, 3))), np.arange(2), np.zeros(2)); "
        "print(sum(norms_in_turn.stats.cache_hits.values()))"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", words], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert [int(hits) for hits in said] == [0, 1]
