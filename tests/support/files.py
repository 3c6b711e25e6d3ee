"""Small data files in every format, and readers that must refuse a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from saddlesvm.data import DataError, read

X = np.array([[1.5, 0.0, -2.0], [0.0, 0.25, 3.0], [7.0, 1.0, 0.0], [0.0, 0.0, 1e-3]])
Y = np.array([1, -1, 1, -1])
NAMES = ["a", "b", "c"]


def write_csv(path: Path, *, header: bool = True, delimiter: str = ",", y: Any = Y) -> None:
    lines = [delimiter.join([*NAMES, "class"])] if header else []
    lines += [delimiter.join([*map(repr, row), str(label)]) for row, label in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join(lines) + "\n")


def write_parquet(path: Path, **columns: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)


def write(path: Path, kind: str) -> None:
    if kind == "libsvm":
        dump_svmlight_file(X, Y, str(path), zero_based=False)
    elif kind == "csv":
        write_csv(path)
    elif kind == "csv without header":
        write_csv(path, header=False)
    elif kind == "tsv":
        write_csv(path, delimiter="\t")
    elif kind == "parquet":
        write_parquet(path, **dict(zip(NAMES, X.T, strict=True)), label=Y)
    elif kind == "npz":
        np.savez(path, X=X, y=Y)
    else:
        S = sp.csr_matrix(X)
        np.savez(path, data=S.data, indices=S.indices.astype(np.int64), indptr=S.indptr, shape=S.shape, y=Y)


def fails(path: Path, *words: str, **options: Any) -> None:
    with pytest.raises(DataError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in (path.name, *words)), message


def fails_on(tmp_path: Path, name: str, content: str | bytes, *words: str, **options: Any) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    fails(path, *words, **options)
