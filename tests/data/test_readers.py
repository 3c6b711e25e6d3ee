"""Every format gives the same table; every fault in a file is named in one line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import struct
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.datasets import dump_svmlight_file

from saddlesvm.data import BUNDLED, DataError, convert, load_bundled, read, streams

COMPRESSORS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
X = np.array([[1.5, 0.0, -2.0], [0.0, 0.25, 3.0], [7.0, 1.0, 0.0], [0.0, 0.0, 1e-3]])
Y = np.array([1, -1, 1, -1])
NAMES = ["a", "b", "c"]


def _csv(path: Path, *, header: bool = True, delimiter: str = ",", y: Any = Y) -> None:
    lines = [delimiter.join([*NAMES, "class"])] if header else []
    lines += [delimiter.join([*map(repr, row), str(label)]) for row, label in zip(X.tolist(), y, strict=True)]
    path.write_text("\n".join(lines) + "\n")


def _parquet(path: Path, **columns: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)


def _idx(path: Path, array: np.ndarray[Any, Any], *, code: int = 8) -> None:
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, code, array.ndim, *array.shape)
    data = header + array.astype({8: ">u1", 13: ">f4"}[code]).tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def _write(path: Path, kind: str) -> None:
    if kind == "libsvm":
        dump_svmlight_file(X, Y, str(path), zero_based=False)
    elif kind == "csv":
        _csv(path)
    elif kind == "csv without header":
        _csv(path, header=False)
    elif kind == "tsv":
        _csv(path, delimiter="\t")
    elif kind == "parquet":
        _parquet(path, **dict(zip(NAMES, X.T, strict=True)), label=Y)
    elif kind == "npz":
        np.savez(path, X=X, y=Y)
    else:
        S = sp.csr_matrix(X)
        np.savez(path, data=S.data, indices=S.indices.astype(np.int64), indptr=S.indptr, shape=S.shape, y=Y)


def _fails(path: Path, *words: str, **options: Any) -> None:
    with pytest.raises(DataError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in (path.name, *words)), message


def _fails_on(tmp_path: Path, name: str, content: str | bytes, *words: str, **options: Any) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    _fails(path, *words, **options)


@pytest.mark.parametrize("dtype", [None, np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("libsvm", "t.svm"),
        ("libsvm", "a9a.t"),
        ("csv", "t.csv"),
        ("csv without header", "t.csv"),
        ("csv", "t.txt"),
        ("tsv", "t.tsv"),
        ("tsv", "t.dat"),
        ("parquet", "t.parquet"),
        ("npz", "t.npz"),
        ("sparse npz", "t.npz"),
    ],
)
def test_every_format_gives_the_same_table(tmp_path: Path, kind: str, name: str, dtype: Any) -> None:
    path = tmp_path / name
    _write(path, kind)
    table = read(path, dtype=dtype)
    dense = table.X.toarray() if sp.issparse(table.X) else table.X
    np.testing.assert_array_equal(dense, X.astype(dtype or np.float64))
    np.testing.assert_array_equal(table.y, Y)
    assert table.X.dtype == np.dtype(dtype or np.float64)
    assert table.y is not None and table.y.dtype == np.int64
    assert (table.n_rows, table.n_features, table.n_nonzero) == (4, 3, 7)
    assert table.classes is not None and table.classes.tolist() == [-1, 1]
    assert table.n_bytes == path.stat().st_size
    assert table.source == str(path) and table.seconds > 0
    if sp.issparse(table.X):
        assert table.X.format == "csr" and table.X.has_canonical_format
    else:
        assert table.X.flags.c_contiguous
    named = kind in ("csv", "tsv", "parquet")
    assert table.feature_names == (NAMES if named else None)


@pytest.mark.parametrize("kind", ["libsvm", "csv"])
@pytest.mark.parametrize("ending", list(COMPRESSORS))
def test_compression_is_told_by_content_and_changes_nothing(tmp_path: Path, kind: str, ending: str) -> None:
    plain = tmp_path / f"t.{kind}"
    _write(plain, kind)
    data = COMPRESSORS[ending](plain.read_bytes())
    for name in (f"t.{kind}{ending}", f"u.{kind}"):
        (tmp_path / name).write_bytes(data)
        table = read(tmp_path / name)
        dense = table.X.toarray() if sp.issparse(table.X) else table.X
        np.testing.assert_array_equal(dense, X)
        assert table.n_bytes == len(data)


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
def test_truncated_compressed_file_is_named(tmp_path: Path, ending: str) -> None:
    rows = "".join(f"{i % 2} 1:{i} 2:{i * i % 97}\n" for i in range(2000))
    data = COMPRESSORS[ending](rows.encode())
    _fails_on(tmp_path, f"t.svm{ending}", data[: len(data) // 2], "truncated")
    table = "".join(f"{i},{i * i % 97},{i % 2}\n" for i in range(2000))
    data = COMPRESSORS[ending](table.encode())
    _fails_on(tmp_path, f"t.csv{ending}", data[: len(data) // 2], "truncated")


@settings(max_examples=30, deadline=None)
@given(
    values=arrays(np.float64, (3, 2), elements=st.floats(allow_nan=False, allow_infinity=False)),
    labels=st.lists(st.sampled_from(["yes", "no", "může být", "x,y", 'say "a"']), min_size=3, max_size=3),
)
def test_csv_reads_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, values: np.ndarray[Any, Any], labels: list[str]
) -> None:
    quoted = ['"' + label.replace('"', '""') + '"' for label in labels]
    lines = ["u,v,class"] + [f"{a!r},{b!r},{label}" for (a, b), label in zip(values.tolist(), quoted, strict=True)]
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_text("\n".join(lines), encoding="utf-8")
    table = read(path)
    np.testing.assert_array_equal(table.X, values)
    assert table.y is not None and table.y.tolist() == labels


@pytest.mark.parametrize("label", ["b", 1, -3, "1", "-3"])
def test_label_column_by_name_and_position(tmp_path: Path, label: str | int) -> None:
    path = tmp_path / "t.csv"
    _csv(path)
    table = read(path, label=label)
    np.testing.assert_array_equal(table.y, X[:, 1])
    np.testing.assert_array_equal(table.X, np.column_stack([X[:, [0, 2]], Y]))
    assert (table.feature_names, table.label_name) == (["a", "c", "class"], "b")


def test_text_labels_in_front_without_header(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("setosa;1;2\n virginica ;3;4\n")
    table = read(path, label=0)
    assert table.y is not None and table.y.tolist() == ["setosa", "virginica"]
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n", ["a"]),
        ("1,2\n3,4\n", None),
        ("1,yes\n3,no\n", None),
        ("0,1,label\n1,2,3\n", ["0", "1"]),
        ("\ufeffa,b\r\n1,2\r\n", ["a"]),
        ("\n\na,b\n\n1,2\n\n", ["a"]),
    ],
)
def test_header_is_told_from_rows(tmp_path: Path, text: str, names: list[str] | None) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    assert read(path).feature_names == names


def test_data_without_labels(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    _csv(path)
    assert read(path, n_features=4).y is None
    assert read(path, label=False).n_features == 4
    assert read(path, n_features=3).y is not None
    np.savez(tmp_path / "t.npz", X=X)
    assert read(tmp_path / "t.npz", n_features=3).y is None
    _fails(tmp_path / "t.npz", "no labels", "'X'")
    dump_svmlight_file(X, Y, str(tmp_path / "t.svm"), zero_based=False)
    assert read(tmp_path / "t.svm", label=False).y is None


def test_width_of_the_training_data(tmp_path: Path) -> None:
    for kind, name in (("libsvm", "t.svm"), ("sparse npz", "t.npz")):
        _write(tmp_path / name, kind)
        wide = read(tmp_path / name, n_features=5).X
        assert wide.shape == (4, 5)
        np.testing.assert_array_equal(wide.toarray()[:, :3], X)
    _fails(tmp_path / "t.svm", "line 1", "index 3", "2 features", n_features=2)
    _fails(tmp_path / "t.npz", "3 features", "2 are expected", n_features=2)
    _csv(tmp_path / "t.csv")
    _fails(tmp_path / "t.csv", "3 feature columns", "7 features are expected", n_features=7)


def test_libsvm_comments_query_ids_and_base(tmp_path: Path) -> None:
    path = tmp_path / "t.svm"
    path.write_text("# made by hand\n+1 qid:3 1:2 3:4 # first\n\n-1\n")
    table = read(path)
    np.testing.assert_array_equal(table.X.toarray(), [[2, 0, 4], [0, 0, 0]])
    path.write_text("1 0:2\n2 1:3\n")
    np.testing.assert_array_equal(read(path).X.toarray(), [[2, 0], [0, 3]])
    _fails(path, "line 1", "index 0", "from 1", zero_based=False)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("1 1:abc", "'1:abc'"),
        ("1 1:2 foo", "'foo'"),
        ("1 1.5:2", "'1.5:2'"),
        ("x 1:2", "label 'x'"),
        ("1,2 1:2", "several"),
        ("1:2 2:2", "starts with '1:2'"),
        ("nan 1:2", "label 'nan'"),
        ("1 1:nan", "finite"),
        ("1 1:inf", "finite"),
        ("1 1:1e400", "finite"),
        ("1 2:1 1:1", "ascend"),
        ("1 2:1 2:1", "ascend"),
        ("1 -4:1", "index -4"),
        ("1 99999999999:1", "index 99999999999"),
    ],
)
def test_libsvm_fault_is_named_by_line(tmp_path: Path, line: str, found: str) -> None:
    _fails_on(tmp_path, "t.svm", f"1 1:2\n# a comment\n-1 2:1\n{line}\n1 1:1\n", "line 4", found)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("1,2", "has 2 columns"),
        ("1,2,3,4", "has 4 columns"),
        ("1,abc,0", "column 'b': 'abc'"),
        ("?,2,0", "column 'a': the value is missing"),
        ("1,,0", "column 'b': the value is missing"),
        ("1,NA,0", "column 'b': the value is missing"),
        ("1,inf,0", "column 'b': 'inf'"),
        ("1,1e999,0", "column 'b': '1e999'"),
        ("1,2,", "column 'class': the label is missing"),
        ("1,2,nan", "column 'class': the label is missing"),
        ("1,2,inf", "column 'class': the label is 'inf'"),
    ],
)
def test_csv_fault_is_named_by_line_and_column(tmp_path: Path, line: str, found: str) -> None:
    _fails_on(tmp_path, "t.csv", f"a,b,class\n1,2,0\n\n{line}\n3,4,1\n", "line 4", found)


def test_other_faults_of_tables(tmp_path: Path) -> None:
    good = "a,b,class\n1,2,0\n"
    _fails_on(tmp_path, "t.csv", good, "'a', 'b', 'class'", label="target")
    _fails_on(tmp_path, "t.csv", "1,2,0\n", "must be a position", label="target")
    _fails_on(tmp_path, "t.csv", good, "column 3", "0 to 2", label=3)
    _fails_on(tmp_path, "t.csv", "a,b,a\n1,2,0\n", "2 columns are named 'a'", label="a")
    _fails_on(tmp_path, "t.csv", "a,b,class\n", "no rows")
    _fails_on(tmp_path, "t.csv", "1\n2\n", "no feature")
    _fails_on(tmp_path, "t.csv", "1,x,0\n1,2,0\n", "line 1", "header")
    _fails_on(tmp_path, "t.csv", ",a,class\n0,1,2\n", "column 1 has no name")
    _fails_on(tmp_path, "t.csv", b"a,b\n1,\xff\n", "UTF-8")
    _fails_on(tmp_path, "t.csv", "a,b\n1e39,2\n", "line 2", "float32", dtype=np.float32)
    _fails_on(tmp_path, "t.csv", "a,b\n1,2\n3,x\n", "line 3", "regression", task="regression")


@pytest.mark.parametrize("name", ["t.csv", "t.svm", "t.npz", "t.parquet", "t"])
@pytest.mark.parametrize("content", ["", "  \n\n"])
def test_empty_file(tmp_path: Path, name: str, content: str) -> None:
    _fails_on(tmp_path, name, content, "empty")


def test_faults_of_the_source(tmp_path: Path) -> None:
    _fails(tmp_path / "nope.csv", "no such file", *BUNDLED)
    _fails(tmp_path, "folder")
    _fails_on(tmp_path, "t.json", '{"a": 1, "b": 2}\n', "LIBSVM", "Parquet")
    _fails_on(tmp_path, "t.bin", b"\x80\x04\x95\x00\x00", "LIBSVM", "Parquet")
    _fails_on(tmp_path, "t.svm", "# nothing\n", "no rows")
    _fails_on(tmp_path, "t.svm", "1\n-1\n", "not one feature")
    _fails_on(tmp_path, "t.svm", "1 1:1\n", "starts with its label", label="class")
    _fails_on(tmp_path, "t.svm", "1 1:1\n", "header=True", header=True)
    with pytest.raises(DataError, match="banknote, heart, toy"):
        load_bundled("iris")


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("n_features", 0, "at least 1"),
        ("dtype", np.int64, "float32 and float64"),
        ("scale", 0.0, "not zero"),
        ("scale", np.nan, "finite"),
        ("task", "ranking", "classification"),
    ],
)
def test_options_out_of_range(option: str, value: Any, allowed: str) -> None:
    with pytest.raises(DataError, match=allowed):
        read("toy", **{option: value})


def test_labels_keep_their_kind(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for labels, kind in (
        ([1, 2, 1, 2], "i"),
        (["1.0", "+2", "1", "2"], "i"),
        ([0.5, 1, 2, 3], "f"),
        (list("abab"), "U"),
    ):
        _csv(path, y=labels)
        y = read(path).y
        assert y is not None and y.dtype.kind == kind
    _csv(path)
    y = read(path, task="regression").y
    assert y is not None and y.dtype == np.float64


def test_npz_of_images_is_flattened_and_scaled(tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    np.savez(tmp_path / "t.npz", images=images, label=np.array([3, 1], dtype=np.uint8), split=np.zeros(2))
    table = read(tmp_path / "t.npz", scale=0.5)
    assert table.X.dtype == np.float32
    np.testing.assert_array_equal(table.X, images.reshape(2, 12) / 2)
    assert table.y is not None and table.y.tolist() == [3, 1]


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
        _fails(path, "CSR")
    np.savez(path, weights=X, y=Y)
    _fails(path, "'weights', 'y'", "X, x, data, images")
    np.savez(path, X=X, y=Y[:2])
    _fails(path, "4 rows", "(2,)")
    np.savez(path, X=np.where(X == 7, np.nan, X), y=Y)
    _fails(path, "row 3, feature 1", "nan")
    np.savez(path, X=X[:0], y=Y[:0])
    _fails(path, "0 rows")
    np.savez(path, X=X.astype(complex), y=Y)
    _fails(path, "complex128")
    np.savez(path, X=X.astype(object), y=Y)
    _fails(path, "plain arrays")
    np.savez(path, X=X, y=Y)
    _fails(path, "no labels", label="target")
    path.write_bytes(path.read_bytes()[:-40])
    _fails(path, "not a readable .npz")


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    index = {"__index_level_0__": [5, 6]}
    _parquet(path, kind=["u", "v"], a=np.array([1, 2], np.float32), b=np.array([True, False]), **index)
    table = read(path, label="kind")
    assert table.X.dtype == np.float32 and table.feature_names == ["a", "b"]
    assert table.y is not None and table.y.tolist() == ["u", "v"]
    np.testing.assert_array_equal(table.X, [[1, 1], [2, 0]])
    _fails(path, "column 'kind'", "string")
    _parquet(path, a=[1.0, None], y=[0, 1])
    _fails(path, "column 'a', row 2", "missing")
    _parquet(path, a=[1.0, np.inf], y=[0, 1])
    _fails(path, "column 'a', row 2", "inf")
    _fails(path, "'a', 'y'", label="target")
    path.write_bytes(path.read_bytes()[:-10])
    _fails(path, "Parquet")


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    _fails_on(tmp_path, "t.parquet", b"PAR1....PAR1", 'pip install "saddlesvm[parquet]"')


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
    assert (table.format, table.X.dtype) == ("idx", np.float32)
    np.testing.assert_array_equal(table.X, pixels.reshape(2, 9))
    assert table.y is not None and table.y.tolist() == [7, 2]
    assert table.n_bytes == sum((tmp_path / name).stat().st_size for name in (images, labels))


def test_idx_of_floats_and_its_faults(tmp_path: Path) -> None:
    path, beside = tmp_path / "images-idx3", tmp_path / "labels-idx1"
    _idx(path, X[:, None, :], code=13)
    _fails(path, "labels-idx1[.gz] is not there")
    assert read(path, n_features=3).y is None
    _idx(beside, Y > 0)
    np.testing.assert_array_equal(read(path).X, X.astype(np.float32))
    _fails(beside, "images file")
    _idx(beside, Y[:3] > 0)
    with pytest.raises(DataError, match=r"labels-idx1: has labels of shape \(3,\).*4 images"):
        read(path)
    whole = path.read_bytes()
    _fails_on(tmp_path, path.name, whole[:-1], "only 47", "4 x 1 x 3")
    _fails_on(tmp_path, path.name, whole + b"x", "more than 48")
    _fails_on(tmp_path, path.name, whole[:9], "truncated")
    beside.write_bytes(b"\x00\x07\x08\x01abcd")
    path.write_bytes(whole)
    with pytest.raises(DataError, match="starts with 00 07 08 01"):
        read(path)


@pytest.mark.parametrize(
    ("name", "shape", "counts"),
    [
        ("banknote", (1372, 4), {0: 762, 1: 610}),
        ("heart", (297, 13), {0: 160, 1: 137}),
        ("toy", (2000, 2), {-1: 1000, 1: 1000}),
    ],
)
def test_bundled_sets(name: str, shape: tuple[int, int], counts: dict[int, int]) -> None:
    table = load_bundled(name, dtype=np.float32)
    assert table.X.shape == shape and table.X.dtype == np.float32
    labels, found = np.unique(table.y, return_counts=True)
    assert dict(zip(labels.tolist(), found.tolist(), strict=True)) == counts
    again = read(name)
    np.testing.assert_array_equal(again.X.astype(np.float32), table.X)
    assert table.feature_names is None if name == "toy" else len(table.feature_names or []) == shape[1]


def test_toy_overlaps_as_documented() -> None:
    table = read("toy")
    correct = np.sign(table.X.sum(axis=1)) == table.y
    # binomial: 92.1 % of 2,000 with a standard deviation of 0.6 %
    assert abs(correct.mean() - 0.921) < 4 * 0.006


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes there")
def test_a_pipe_is_refused_with_the_reason(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.svm")
    for open_ in (read, lambda path: convert(path, tmp_path / "store")):
        with pytest.raises(DataError, match="is a pipe or a device"):
            open_(tmp_path / "pipe.svm")


@pytest.mark.parametrize("line", ['3,"4,z', '3,4,"z', '"3,4,z'])
def test_a_quote_that_is_not_closed_swallows_nothing(tmp_path: Path, line: str) -> None:
    text = f"a,b,y\n1,2,x\n\n{line}\n5,6,x\n7,8,z\n"
    _fails_on(tmp_path, "t.csv", text, "line 4: a quote is opened that its line does not close")


@pytest.mark.skipif(not hasattr(threading, "_shutdown_locks_lock"), reason="a lock of some versions of Python")
@pytest.mark.parametrize("packed", [False, True])
def test_an_abandoned_reader_waits_for_no_thread(tmp_path: Path, packed: bool) -> None:
    """The garbage collector may close it in a thread that holds a lock without which no other thread can end."""
    text = b"1 1:0.5\n" * 200_000
    path = tmp_path / "rows"
    path.write_bytes(bz2.compress(text, 1) if packed else text)
    blocks = streams.line_blocks(path, 10_000)
    next(blocks)

    def collect() -> None:
        with threading._shutdown_locks_lock:  # type: ignore[attr-defined]
            blocks.close()

    collector = threading.Thread(target=collect, daemon=True)
    collector.start()
    collector.join(10.0)
    assert not collector.is_alive()
