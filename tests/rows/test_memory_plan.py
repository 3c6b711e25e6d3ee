"""How a problem is cut to its memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import does_not_fit, make_plan, memory_bytes
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
