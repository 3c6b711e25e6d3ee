"""Files to convert, in every format."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from saddlesvm.data import Store
from saddlesvm.problem.losses import Hinge
from support import labels, matrix

N, D = 3_000, 12
X = np.round(matrix(N, D, density=0.7), 6)  # so that 16 digits are all of it
Y = labels(X, Hinge()).astype(np.int64)
TEXT = np.where(Y > 0, "ham", "spam, eggs")


def write_csv(path: Path, X: np.ndarray, y: Any, delimiter: str = ",") -> None:
    lines = [delimiter.join([*(f"f{k}" for k in range(X.shape[1])), "class"])]
    lines += [delimiter.join([*map(repr, row), f'"{one}"']) for row, one in zip(X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join(lines) + "\n")


def write_idx(path: Path, array: np.ndarray) -> None:
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))


def write(path: Path, kind: str) -> None:
    if kind == "libsvm":
        dump_svmlight_file(X, Y, str(path), zero_based=False)
    elif kind == "libsvm from 0":
        dump_svmlight_file(X, Y, str(path), zero_based=True)
    elif kind == "csv":
        write_csv(path, X, Y)
    elif kind == "tsv of text":
        write_csv(path, X, TEXT, "\t")
    elif kind == "targets":
        write_csv(path, X, X @ np.ones(D))
    elif kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        columns = {f"f{k}": X[:, k] for k in range(D)} | {"class": TEXT}
        pq.write_table(pa.table(columns), path, row_group_size=700)
    elif kind == "npz":
        np.savez_compressed(path, X=X.astype(np.float32), y=Y)
    elif kind == "npz by columns":
        np.savez(path, X=np.asfortranarray(X), y=TEXT)
    elif kind == "sparse npz":
        S = sp.csr_matrix(X)
        np.savez(path, data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=Y)
    elif kind == "images":
        write_idx(path, np.arange(N * 64).reshape(N, 8, 8) % 251)
        write_idx(path.with_name("labels-idx1.gz"), Y > 0)
    elif kind == "store":
        Store.create(path, sp.csr_matrix(X), TEXT, np.linspace(0.5, 1.0, N))


def dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
