"""What all readers share: the same table from every format, compression, empty files, options, bundled sets."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from saddlesvm.data import BUNDLED, DataError, convert, load_bundled, read, streams
from support.files import NAMES, X, Y, fails, fails_on, write, write_csv

COMPRESSORS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


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
    write(path, kind)
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
    write(plain, kind)
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
    fails_on(tmp_path, f"t.svm{ending}", data[: len(data) // 2], "truncated")
    table = "".join(f"{i},{i * i % 97},{i % 2}\n" for i in range(2000))
    data = COMPRESSORS[ending](table.encode())
    fails_on(tmp_path, f"t.csv{ending}", data[: len(data) // 2], "truncated")


@pytest.mark.parametrize("name", ["t.csv", "t.svm", "t.npz", "t.parquet", "t"])
@pytest.mark.parametrize("content", ["", "  \n\n"])
def test_empty_file(tmp_path: Path, name: str, content: str) -> None:
    fails_on(tmp_path, name, content, "empty")


def test_faults_of_the_source(tmp_path: Path) -> None:
    fails(tmp_path / "nope.csv", "no such file", *BUNDLED)
    fails(tmp_path, "folder")
    fails_on(tmp_path, "t.jsonl", '{"a": 1, "b": 2}\n', "no format known here", "fit a data frame that pandas read")
    fails_on(tmp_path, "t.bin", b"\x80\x04\x95\x00\x00", "LIBSVM", "Parquet")
    fails_on(tmp_path, "t.svm", "# nothing\n", "no rows")
    fails_on(tmp_path, "t.svm", "1\n-1\n", "not one feature")
    fails_on(tmp_path, "t.svm", "1 1:1\n", "starts with its label", label="class")
    fails_on(tmp_path, "t.svm", "1 1:1\n", "header=True", header=True)
    with pytest.raises(DataError, match="banknote, heart, toy"):
        load_bundled("iris")


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("n_features", 0, "at least 1"),
        ("dtype", np.int64, "float32 and float64"),
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
        write_csv(path, y=labels)
        y = read(path).y
        assert y is not None and y.dtype.kind == kind


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
        with pytest.raises(DataError, match="is a pipe; data are read more than once"):
            open_(tmp_path / "pipe.svm")


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
