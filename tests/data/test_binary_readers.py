"""Readers of arrays: npz, Parquet and idx, and their faults."""

from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from saddlesvm.data import DataError, read
from support.files import X, Y, fails, fails_on, write_parquet


def _idx(path: Path, array: np.ndarray[Any, Any], *, code: int = 8) -> None:
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape)
    data = header + array.astype({8: ">u1", 13: ">f4"}[code]).tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def test_npz_of_images_is_flattened(tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.savez(tmp_path / "t.npz", images=images, label=np.array([3, 1], dtype=np.uint8), split=np.zeros(2))
    table = read(tmp_path / "t.npz")
    assert table.X.dtype == np.uint8
    np.testing.assert_array_equal(table.X, images.reshape(2, 12))
    assert table.y is not None and table.y.tolist() == [3, 1]


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", ">i4", "u4", "i8", "u8", "f2", "f4", ">f4", "f8", "?"])
def test_numbers_of_every_type_are_read_as_they_are(kind: str, tmp_path: Path) -> None:
    for width in (4, 5):
        values = (np.arange(12 * width).reshape(12, width) % 7).astype(kind)
        np.save(tmp_path / "X.npy", values)
        np.savez(tmp_path / "X.npz", X=values)
        for name in ("X.npy", "X.npz"):
            np.testing.assert_array_equal(read(tmp_path / name, label=False).X, values)


def test_damaged_headers_of_npy_are_refused_in_one_line(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    np.save(tmp_path / "X.npy", X)
    whole = (tmp_path / "X.npy").read_bytes()
    fails_on(tmp_path, "o.npy", whole.replace(b", }", b",  "), "not a readable .npy", "header")
    fails_on(tmp_path, "l.npy", whole.replace(f"{X.shape}".encode(), b"(9**99, 3)"[: len(f"{X.shape}")]), "readable")
    fails_on(tmp_path, "s.npy", whole[:-1], "is greater than file size")
    assert not recwarn.list


def test_npz_sums_duplicates_and_sorts(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", data=[1.0, 2.0, 4.0], indices=[2, 0, 2], indptr=[0, 3], shape=(1, 3), y=[1])
    table = read(tmp_path / "t.npz")
    assert table.X.has_canonical_format
    np.testing.assert_array_equal(table.X.toarray(), [[2, 0, 5]])
    sp.save_npz(tmp_path / "c.npz", sp.csc_matrix(X))
    np.testing.assert_array_equal(read(tmp_path / "c.npz", label=False).X.toarray(), X)


def test_faults_of_npz(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    csr: dict[str, Any] = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2], "shape": (2, 2), "y": [0, 1]}
    for change in ({"indices": [0, 7]}, {"indices": [0, -1]}, {"indptr": [0, 5, 2]}, {"indptr": [0, 2]}):
        np.savez(path, **{**csr, **change})
        fails(path, "CSR")
    np.savez(path, weights=X, y=Y)
    fails(path, "'weights', 'y'", "X, x, data, images")
    np.savez(path, X=X, y=Y[:2])
    fails(path, "4 rows", "(2,)")
    np.savez(path, X=np.where(X == 7, np.nan, X), y=Y)
    fails(path, "row 3, feature 1", "nan")
    np.savez(path, X=X[:0], y=Y[:0])
    fails(path, "no rows")
    np.savez(path, X=X.astype(complex), y=Y)
    fails(path, "complex128")
    np.savez(path, X=X.astype(object), y=Y)
    fails(path, "plain arrays")
    np.savez(path, X=X, y=Y)
    fails(path, "no labels", label="target")
    path.write_bytes(path.read_bytes()[:-40])
    fails(path, "not a readable .npz")


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


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
        ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
        ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte"),
        ("t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"),
    ],
)
def test_idx_finds_its_labels(tmp_path: Path, images: str, labels: str) -> None:
    pixels = np.arange(2 * 3 * 3).reshape(2, 3, 3)
    _idx(tmp_path / images, pixels)
    _idx(tmp_path / labels, np.array([7, 2]))
    table = read(tmp_path / images)
    assert (table.format, table.X.dtype) == ("idx", np.uint8)
    np.testing.assert_array_equal(table.X, pixels.reshape(2, 9))
    assert table.y is not None and table.y.tolist() == [7, 2]
    assert table.n_bytes == sum((tmp_path / name).stat().st_size for name in (images, labels))


def test_idx_of_floats_and_its_faults(tmp_path: Path) -> None:
    path, beside = tmp_path / "images-idx3", tmp_path / "labels-idx1"
    _idx(path, X[:, None, :], code=13)
    fails(path, "labels are not beside it")
    assert read(path, n_features=3).y is None
    _idx(beside, Y > 0)
    np.testing.assert_array_equal(read(path).X, X.astype(np.float32))
    fails(beside, "file of images")
    _idx(beside, Y[:3] > 0)
    with pytest.raises(DataError, match=r"has 4 rows and labels of shape \(3,\)"):
        read(path)
    _idx(beside, Y > 0)
    whole = path.read_bytes()
    fails_on(tmp_path, path.name, whole[:-1], "only 47", "4 x 1 x 3")
    fails_on(tmp_path, path.name, whole + b"x", "more than 48")
    fails_on(tmp_path, path.name, whole[:9], "truncated")
    beside.write_bytes(b"\x00\x07\x08\x01abcd")
    path.write_bytes(whole)
    with pytest.raises(DataError, match="starts with 00 07 08 01"):
        read(path)


@pytest.mark.parametrize("name", ["X", "y"])
def test_objects_in_an_archive_are_named(tmp_path: Path, name: str) -> None:
    members = {"X": X, "y": Y}
    np.savez(tmp_path / "t.npz", **(members | {name: members[name].astype(object)}))
    fails(tmp_path / "t.npz", f"its array {name} holds Python objects", ".astype(str)")
