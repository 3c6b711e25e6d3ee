"""Every format becomes the store that `read` would have made a table of; a killed conversion leaves nothing of it."""

from __future__ import annotations

import bz2
import gzip
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from saddlesvm import Store
from saddlesvm.data import DataError, convert, read
from support.converting import TEXT, D, N, X, Y, dense, write, write_csv

LEAST = 1 << 20  # bytes of memory: cuts the files of these tests into several blocks
KINDS = {
    "libsvm": "t.svm",
    "libsvm from 0": "t.svm",
    "csv": "t.csv",
    "tsv of text": "t.tsv",
    "targets": "t.csv",
    "parquet": "t.parquet",
    "npz": "t.npz",
    "npz by columns": "t.npz",
    "sparse npz": "t.npz",
    "images": "images-idx3.gz",
    "store": "t.store",
}


def same(store: Store, table: Any) -> None:
    assert sp.issparse(store.X) == sp.issparse(table.X)
    assert store.X.dtype == table.X.dtype
    np.testing.assert_array_equal(dense(store.X), dense(table.X))
    if table.y is None:
        assert store.y is None
    else:
        assert store.y is not None and store.y.dtype == table.y.dtype
        np.testing.assert_array_equal(store.y, table.y)
    assert store.header["feature_names"] == table.feature_names
    assert store.header["label_name"] == table.label_name


@pytest.mark.parametrize("dtype", [None, np.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_every_format_becomes_what_read_makes_of_it(tmp_path: Path, kind: str, dtype: Any) -> None:
    path = tmp_path / KINDS[kind]
    write(path, kind)
    shares: list[float] = []
    store = convert(path, tmp_path / "s", memory=LEAST, advance=shares.append, dtype=dtype)
    table = read(path) if kind == "store" else read(path, dtype=dtype)
    assert store.dtype == dtype or table.X.dtype
    same(store, read(path, dtype=dtype) if kind != "store" or dtype is None else read(store.path))
    np.testing.assert_array_equal(dense(store.X), dense(table.X).astype(store.dtype))
    assert shares == sorted(shares) and len(shares) > 2 and shares[-1] == 1.0
    assert [source["rows"] for source in store.header["sources"]] == [N]
    same(store, read(store.path))


@pytest.mark.parametrize("kind", ["libsvm", "csv", "npz", "images", "store"])
def test_labels_may_be_left_out(tmp_path: Path, kind: str) -> None:
    path = tmp_path / KINDS[kind]
    write(path, kind)
    store = convert(path, tmp_path / "s", memory=LEAST, label=False)
    assert store.y is None
    same(store, read(path, label=False))
    assert read(store.path, n_features=store.shape[1]).y is None


def test_compressed_text_and_images(tmp_path: Path) -> None:
    write(tmp_path / "t.svm", "libsvm")
    (tmp_path / "t.bz2").write_bytes(bz2.compress((tmp_path / "t.svm").read_bytes()))
    same(convert(tmp_path / "t.bz2", tmp_path / "s"), read(tmp_path / "t.svm"))
    write(tmp_path / "images-idx3.gz", "images")
    images = convert(tmp_path / "images-idx3.gz", tmp_path / "i", memory=LEAST)
    same(images, read(tmp_path / "images-idx3.gz"))
    same(convert(images.path, tmp_path / "j"), read(images.path))


def test_files_follow_each_other(tmp_path: Path) -> None:
    parts = [(X[:1000, :5], Y[:1000]), (X[1000:], Y[1000:])]
    for k, (rows, y) in enumerate(parts):
        dump_svmlight_file(rows, y, str(tmp_path / f"{k}.svm"), zero_based=False)
    store = convert([tmp_path / "0.svm", tmp_path / "1.svm"], tmp_path / "s")
    want = np.vstack([np.hstack([X[:1000, :5], np.zeros((1000, D - 5))]), X[1000:]])
    np.testing.assert_array_equal(dense(store.X), want)
    np.testing.assert_array_equal(store.y, Y)
    assert [source["rows"] for source in store.header["sources"]] == [1000, 2000]
    assert convert(tmp_path / "0.svm", tmp_path / "wide", n_features=40).shape == (1000, 40)
    with pytest.raises(DataError, match=r"1\.svm: line 1: index .*5 features are expected"):
        convert([tmp_path / "0.svm", tmp_path / "1.svm"], tmp_path / "x", n_features=5)
    assert not (tmp_path / "x").exists() and not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("n_features", [3, 9])
def test_a_width_that_dense_rows_do_not_have_leaves_no_store(tmp_path, n_features):
    with pytest.raises(DataError, match=f"got rows of 4 features; {n_features} are expected"):
        convert("banknote", tmp_path / "s", n_features=n_features)
    assert list(tmp_path.iterdir()) == []


def test_weights_of_a_store_stay_with_it_and_count(tmp_path: Path) -> None:
    write(tmp_path / "t.store", "store")
    store = convert([tmp_path / "t.store", tmp_path / "t.store"], tmp_path / "s", memory=LEAST)
    np.testing.assert_array_equal(store.sample_weight, np.tile(np.linspace(0.5, 1.0, N), 2))
    table = read(tmp_path / "t.store")
    np.testing.assert_array_equal(table.sample_weight, np.linspace(0.5, 1.0, N))


def test_text_late_among_labels_that_are_numbers_is_refused(tmp_path: Path) -> None:
    late = np.where(np.arange(N) == N - 1, "unknown", Y.astype(str))
    write_csv(tmp_path / "t.csv", X, late)
    with pytest.raises(DataError, match=r"has text and numbers for labels .*write them all as text"):
        convert(tmp_path / "t.csv", tmp_path / "s", memory=LEAST)
    assert not (tmp_path / "s").exists()


def test_many_different_labels_are_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from saddlesvm.data import label_column

    monkeypatch.setattr(label_column, "TEXTS_KEPT", 100)
    monkeypatch.setattr(label_column, "CLASSES_LISTED", 100)
    write_csv(tmp_path / "t.csv", X, X[:, 0])
    store = convert(tmp_path / "t.csv", tmp_path / "s", memory=LEAST)
    same(store, read(tmp_path / "t.csv"))
    assert store.classes is None and store.header["labels"]["classes"] is None
    write_csv(tmp_path / "u.csv", X, np.array([f"row {k}" for k in range(N)]))
    with pytest.raises(DataError, match="more than 100 different texts"):
        convert(tmp_path / "u.csv", tmp_path / "x", memory=LEAST)


def test_index_zero_may_come_late(tmp_path: Path) -> None:
    (tmp_path / "t.svm").write_text("1 1:1 3:2\n" * 40_000 + "0 0:5\n")
    same(convert(tmp_path / "t.svm", tmp_path / "s", memory=LEAST), read(tmp_path / "t.svm"))
    single = convert(tmp_path / "t.svm", tmp_path / "f", memory=LEAST, dtype=np.float32)
    assert single.X.dtype == np.float32  # read again with the same options


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["t.svm", "t.csv"], "dense rows"),
        (["t.csv", "narrow.csv"], "3 features"),
        (["t.svm", "t.store"], "one has weights"),
        (["t.csv", "bad.csv"], "bad.csv: line 3"),
        (["t.svm", "bad.svm"], "bad.svm: line 2"),
        (["t.svm", "cut.gz"], "cut.gz: is truncated"),
        (["t.svm", "missing"], "no such file"),
        (["t.csv", "text.csv"], "text and numbers for labels"),
        ([], "no data file"),
    ],
)
def test_what_does_not_go_together_leaves_nothing_behind(tmp_path: Path, names: list[str], words: str) -> None:
    for kind in ("libsvm", "csv", "store"):
        write(tmp_path / KINDS[kind], kind)
    write_csv(tmp_path / "narrow.csv", X[:, :3], Y)
    (tmp_path / "bad.csv").write_text((tmp_path / "t.csv").read_text().split("\n")[0] + "\n" + "1," * D + "1\n1,x\n")
    (tmp_path / "bad.svm").write_text("1 1:1\n1 1:x\n")
    (tmp_path / "cut.gz").write_bytes(gzip.compress((tmp_path / "t.svm").read_bytes())[:5000])
    write_csv(tmp_path / "text.csv", X[:2], np.array(["one", "two"]))
    before = sorted(file.name for file in tmp_path.iterdir())
    with pytest.raises(DataError, match=words):
        convert([tmp_path / name for name in names], tmp_path / "s")
    assert sorted(file.name for file in tmp_path.iterdir()) == before


@pytest.mark.parametrize("kind", ["libsvm", "csv", "npy"])
def test_memory_is_bounded_however_large_the_file(tmp_path: Path, kind: str) -> None:
    rows = np.tile(X, (25, 3))
    y = np.tile(Y, 25)
    path = tmp_path / (KINDS | {"npy": "t.npy"})[kind]
    if kind == "libsvm":
        text = "".join(f"{one} " + " ".join(f"{k + 1}:{v:.5g}" for k, v in enumerate(row) if v) + "\n"
                       for one, row in zip(Y.tolist(), np.tile(X, (1, 3)).tolist(), strict=True))  # fmt: skip
        path.write_text(text * 25)
    elif kind == "csv":
        path.write_text("".join(",".join(f"{v:.2g}" for v in row) + "\n" for row in X.tolist()) * 25)
    else:
        np.save(path, rows)
        np.save(tmp_path / "y.npy", y)
    how: dict[str, Any] = {"memory": LEAST} | ({"label": str(tmp_path / "y.npy")} if kind == "npy" else {})
    convert(path, tmp_path / "warm", **how)
    tracemalloc.start()
    store = convert(path, tmp_path / "s", **how)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    columns = 16 * len(store)  # labels and row pointers
    assert peak < 3 * LEAST + columns < store.n_bytes


def folder_size(folder: Path) -> int:
    try:
        return sum(file.stat().st_size for file in folder.iterdir())
    except OSError:
        return 0


def test_a_conversion_killed_at_any_moment_leaves_no_store(tmp_path: Path) -> None:
    path, target = tmp_path / "t.csv", tmp_path / "s"
    write_csv(path, np.tile(X, (10, 1)), np.tile(TEXT, 10))
    whole = convert(path, tmp_path / "whole")
    random = np.random.default_rng(7)
    partial = tmp_path / "s.partial"
    command = [sys.executable, "-m", "saddlesvm", "convert", "--memory", "16M", str(path), str(target)]
    for goal in random.integers(0, int(1.1 * whole.n_bytes), 2).tolist():
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and folder_size(partial) < goal and not target.exists():
                pass
            process.send_signal(signal.SIGKILL)
        assert process.returncode in (0, -signal.SIGKILL)
        if target.exists():
            same(Store(target), read(path))
            target.rename(tmp_path / f"done {goal}")
        for name in (target, partial):
            with pytest.raises(DataError):
                Store(name)
    store = convert(path, target)
    same(store, read(path))
    assert not partial.exists()


def test_files_of_a_store_count_indices_alike(tmp_path: Path) -> None:
    (tmp_path / "a.svm").write_text("1 1:2 3:4\n-1 2:5\n")
    (tmp_path / "b.svm").write_text("1 0:7\n")
    want = [[0, 2, 0, 4], [0, 0, 5, 0], [7, 0, 0, 0]]
    for names, rows in (("ab", want), ("ba", [want[2], *want[:2]])):
        store = convert([tmp_path / f"{name}.svm" for name in names], tmp_path / names)
        assert dense(store.X).tolist() == rows


def test_labels_of_different_columns_are_not_put_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("u,kind\n1,0\n2,1\n")
    (tmp_path / "b.csv").write_text("u,price\n1,9.5\n2,8.5\n")
    with pytest.raises(DataError, match=r"b.csv: the labels are from the column 'price'; .*'kind'"):
        convert([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "s")


def test_no_store_is_written_within_a_store(tmp_path: Path) -> None:
    store = convert("banknote", tmp_path / "s")
    with pytest.raises(DataError, match="is within a store"):
        convert("banknote", store.path / "t")


def test_more_features_than_a_store_may_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="too many for a store"):
        Store.create(tmp_path / "s", sp.csr_matrix(([1.0], [0], [0, 1]), shape=(1, 2**62)))
    assert not (tmp_path / "s").exists()
