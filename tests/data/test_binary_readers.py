"""Readers of arrays: npy and Parquet, and their faults."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saddlesvm.data import read
from support.files import X, Y, fails, fails_on, write_parquet


def test_images_are_flattened(tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.save(tmp_path / "t.npy", images)
    np.save(tmp_path / "y.npy", np.array([[3], [1]], dtype=np.uint8))
    table = read(tmp_path / "t.npy", label=str(tmp_path / "y.npy"))
    assert table.X.dtype == np.uint8
    np.testing.assert_array_equal(table.X, images.reshape(2, 12))
    assert table.y is not None and table.y.tolist() == [3, 1]


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", ">i4", "u4", "i8", "u8", "f2", "f4", ">f4", "f8", "?"])
def test_numbers_of_every_type_are_read_as_they_are(kind: str, tmp_path: Path) -> None:
    for width in (4, 5):
        values = (np.arange(12 * width).reshape(12, width) % 7).astype(kind)
        np.save(tmp_path / "X.npy", values)
        np.testing.assert_array_equal(read(tmp_path / "X.npy", label=False).X, values)


def test_damaged_headers_of_npy_are_refused_in_one_line(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    np.save(tmp_path / "X.npy", X)
    whole = (tmp_path / "X.npy").read_bytes()
    fails_on(tmp_path, "o.npy", whole.replace(b", }", b",  "), "not a readable .npy", "header")
    fails_on(tmp_path, "l.npy", whole.replace(f"{X.shape}".encode(), b"(9**99, 3)"[: len(f"{X.shape}")]), "readable")
    fails_on(tmp_path, "s.npy", whole[:-1], "is greater than file size")
    assert not recwarn.list


def test_faults_of_npy(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    label = str(tmp_path / "y.npy")
    np.save(path, X)
    fails(path, "rows without labels", "label='y.npy'")
    for labels in (Y[:2], np.append(Y, 1), np.stack([Y, Y], axis=1)):
        np.save(label, labels)
        fails(path, "4 rows", f"{labels.shape}", label=label)
    np.save(label, Y)
    for rows, said in (
        (np.where(X == 7, np.nan, X), "row 3, feature 1 is nan"),
        (np.where(X == 7, np.inf, X), "row 3, feature 1 is inf"),
        (X[0], "rows and columns are needed"),
        (X.astype(complex), "complex128"),
        (X.astype(str), "real numbers"),
        (X.astype(object), "plain numbers"),
    ):
        np.save(path, rows)
        fails(path, said, label=label)
    np.save(path, X[:0])
    np.save(label, Y[:0])
    fails(path, "no rows", label=label)


def test_a_zip_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", X=X, y=Y)
    fails(tmp_path / "t.npz", "is a zip file", "numpy.save", "stands before the data")


@pytest.mark.parametrize("name", ["t.npy.gz", "t.parquet.gz"])
def test_compressed_arrays_are_refused(tmp_path: Path, name: str) -> None:
    fails_on(tmp_path, name, gzip.compress(b"\x93NUMPY..PAR1"), "is a compressed", "decompress it first")


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    index = {"__index_level_0__": [5, 6]}
    write_parquet(path, kind=["u", "v"], a=np.array([1, 2], np.float32), b=np.array([True, False]), **index)
    table = read(path, label="kind")
    assert table.X.dtype == np.float32 and table.feature_names == ["a", "b"]
    assert table.y is not None and table.y.tolist() == ["u", "v"]
    np.testing.assert_array_equal(table.X, [[1, 1], [2, 0]])
    fails(path, "column 'kind'", "string")
    write_parquet(path, a=[1.0, None], y=[0, 1])
    fails(path, "row 2: column 'a'", "missing", "--missing drop")
    pq.write_table(pa.table({"a": [1.0, 2.0], "y": ["u", None]}), path)
    fails(path, "row 2: the label is missing; every row needs one in 'y'")
    write_parquet(path, a=[1.0, np.inf], y=[0, 1])
    fails(path, "row 2, column 'a' is inf")
    fails(path, "'a', 'y'", label="target")
    path.write_bytes(path.read_bytes()[:-10])
    fails(path, "Parquet")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    fails_on(tmp_path, "t.parquet", b"PAR1....PAR1", "pip install '.[files]'")
