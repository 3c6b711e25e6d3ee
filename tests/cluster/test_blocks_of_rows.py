"""Blocks of rows as they come to a worker: other types are converted or refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from saddlesvm.cluster.partition import as_matrix
from saddlesvm.cluster.sources import part_tasks
from saddlesvm.data import Store


def test_types_with_kernels_are_used_in_place() -> None:
    for dtype in (np.float32, np.float64):
        X = np.eye(4, dtype=dtype)
        assert as_matrix(X) is X
        assert as_matrix(X.astype(np.int8)).dtype == np.int8
        assert as_matrix(X.astype(np.int32)).dtype == np.float64


@pytest.mark.parametrize("made", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_complex_numbers_are_refused(made: type) -> None:
    with pytest.raises(ValueError, match="Complex data not supported"):
        as_matrix(made(np.eye(4) * 1j))


def test_a_column_of_text_is_named() -> None:
    with pytest.raises(ValueError, match=r"column 'town' of X holds no numbers .*'Bern'"):
        as_matrix(pd.DataFrame({"size": [1.0, 2.0], "town": ["Bern", "Paris"]}))


def test_one_path_or_store_is_to_be_put_into_a_list(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "rows.store", np.eye(4), np.arange(4) % 2)
    for given in ("stores/*.store", tmp_path, store):
        with pytest.raises(ValueError, match="Put it into a list"):
            part_tasks(given, None, None)
    with pytest.raises(ValueError, match="For data in memory use saddlesvm"):
        part_tasks(np.eye(4), None, None)
