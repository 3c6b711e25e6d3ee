"""Blocks of rows as they come to a worker: other types are converted or refused by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from saddlesvm.cluster.partition import as_matrix
from saddlesvm.cluster.sources import part_tasks


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


def test_rows_in_memory_are_refused_in_words() -> None:
    with pytest.raises(ValueError, match="For data in memory use saddlesvm"):
        part_tasks(np.eye(4), None, None)
