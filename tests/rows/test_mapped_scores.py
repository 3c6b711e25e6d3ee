"""Scores of rows that are mapped from files: those of rows in memory, without the files' pages staying in memory."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from saddlesvm import Store
from saddlesvm.rows import scores
from saddlesvm.rows.scores import linear_scores
from support import matrix

X = matrix(700, 30)
W, INTERCEPT = matrix(3, 30), np.arange(3.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_mapped_rows_have_the_scores_of_rows_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse: bool, dtype: type
) -> None:
    rows = X.astype(np.float32 if sparse and dtype is np.float16 else dtype)
    given = sp.csr_matrix(rows) if sparse else rows
    monkeypatch.setattr(scores, "MAPPED_VALUES", 1_000)
    found = linear_scores(Store.create(tmp_path / "rows.store", given).X, W, INTERCEPT)
    np.testing.assert_allclose(found, linear_scores(given, W, INTERCEPT), rtol=1e-13, atol=1e-13)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_the_pages_of_scored_rows_do_not_stay_in_memory(tmp_path: Path) -> None:
    def resident() -> int:
        """Kilobytes of mapped files in memory."""
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))

    store = Store.create(tmp_path / "rows.store", np.ones((100_000, 80)))  # 64 MB
    before = resident()
    linear_scores(store.X, W[:, :1] * np.ones(80), INTERCEPT)
    assert resident() - before < 20_000, sys.platform
