"""What the formats do not allow is refused: spellings that only Python knows, bytes behind the end, odd indices."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from saddlesvm import load, table
from saddlesvm.data import DataError, convert, read

MARK = b"\xef\xbb\xbf"
TEXT = b"1 1:2 2:3\n-1 1:1\n"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
MODEL = b"solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n0.5 \n1e-3 \n"


def both(path: Path, **options: Any) -> list[Callable[[], Any]]:
    """The two ways to read a file: whole, and some rows at a time."""

    def read_by_blocks() -> Any:
        store = convert(path, path.with_name(f"{uuid.uuid4()}.store"), **options)
        return read(store.path)

    return [lambda: read(path, **options), read_by_blocks]


def refused(path: Path, data: bytes, said: str) -> None:
    path.write_bytes(data)
    for way in both(path):
        with pytest.raises(DataError, match=said) as error:
            way()
        assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("t.libsvm", b"1 1:2\n1 1:1_000\n", "line 2: found '1:1_000'"),
        ("t.libsvm", b"1_0 1:2\n", "label '1_0' is not a number"),
        ("t.libsvm", "1 ١:2\n".encode(), "line 1"),
        ("t.libsvm", "1 1:٢\n".encode(), "line 1"),
        ("t.libsvm", b"1 1.5:2\n", "a whole number and a number"),
        ("t.libsvm", b"1 4294967297:2\n", "the largest allowed"),
        ("t.libsvm", b"1 " + b"9" * 5000 + b":2\n", "found '9"),
        ("t.csv", b"a,b\n1,2\n3_0,4\n", "line 3: column 'a': '3_0' is not a number"),
    ],
)
def test_spellings_that_are_no_numbers(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    refused(tmp_path / name, data, said)


@pytest.mark.parametrize("change", [(b"0.5", b"0_5"), (b"nr_class 2", b"nr_class 0_2"), (b"label 1", b"label 0_1")])
def test_liblinear_models_have_plain_numbers_too(tmp_path: Path, change: tuple[bytes, bytes]) -> None:
    path = tmp_path / "t.model"
    path.write_bytes(MARK + MODEL)
    assert np.abs(load(path).coef_).tolist() == [[0.5, 1e-3]]
    path.write_bytes(MODEL.replace(*change))
    with pytest.raises(DataError):
        load(path)


@pytest.mark.parametrize(("name", "data"), [("t.libsvm", TEXT), ("t.csv", b"2,3,1\n1,0,-1\n"), ("t", TEXT)])
@pytest.mark.parametrize("ending", ["", *COMPRESS])
def test_a_byte_order_mark_is_no_part_of_the_data(tmp_path: Path, name: str, data: bytes, ending: str) -> None:
    path = tmp_path / (f"{name}.{ending}" if ending else name)
    path.write_bytes(COMPRESS.get(ending, bytes)(MARK + data))
    for way in both(path):
        read_back = way()
        X = read_back.X
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        assert X.tolist() == [[2, 3], [1, 0]] and read_back.y.tolist() == [1, -1]


@pytest.mark.parametrize("ending", COMPRESS)
def test_compressed_files_end_where_the_data_end(tmp_path: Path, ending: str) -> None:
    path, packed = tmp_path / f"t.libsvm.{ending}", COMPRESS[ending](TEXT)
    path.write_bytes(packed + packed)
    assert [len(way().y) for way in both(path)] == [4, 4]
    for behind in (b"x", b"left over, and not a little", packed[:5], b"\0" * 3 + b"x"):
        refused(path, packed + behind, "is damaged|is truncated")
    for cut in range(1, len(packed), 5):
        refused(path, packed[:cut], "is damaged|is truncated|is empty|format|line 1")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"indices": np.array([0.5, 1.0])}, "whole numbers"),
        ({"indptr": np.array([0.0, 1.0, 2.0])}, "whole numbers"),
        ({"indices": np.array([0, 2])}, "indices|index values"),
        ({"indices": np.array([0, -1])}, "indices|index values"),
        ({"indptr": np.array([0, 5, 2])}, "do not fit|indptr|index"),
        ({"indptr": np.array([0, 1, 9])}, "index pointer"),
        ({"data": np.ones(3)}, "same size"),
        ({"shape": np.array([2.0, 2.0])}, "whole numbers"),
        ({"shape": np.array([-2, 2])}, "shape"),
    ],
)
def test_sparse_matrices_fit_together(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    parts = {
        "data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array([0, 1, 2]), "shape": np.array([2, 2]),
        "y": np.array([0, 1]),
    }  # fmt: skip
    path = tmp_path / "t.npz"
    np.savez(path, **(parts | change))
    refused(path, path.read_bytes(), said)


@pytest.mark.parametrize("sizes", [(2, 2**31, 2**31), (2**32 - 1,) * 3, (2, 2**20, 2**10)])
def test_idx_headers_promise_no_more_than_the_file_can_hold(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    labels = tmp_path / "t-labels-idx1-ubyte"
    labels.write_bytes(b"\0\0\x08\x01" + struct.pack(">I", sizes[0] if sizes[0] < 99 else 2) + b"\1\2")
    refused(
        tmp_path / "t-images-idx3-ubyte", b"\0\0\x08\x03" + struct.pack(">III", *sizes) + b"few", "header says|of sh"
    )


def test_bombs_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=np.zeros((10_000, 2_000)), y=np.zeros(10_000))
    assert path.stat().st_size < 300_000
    with pytest.raises(DataError, match=r"would expand from .* bytes to"):
        read(path)


@pytest.mark.parametrize("name", ["t.libsvm", "t.csv"])
def test_a_line_of_very_many_columns_is_read(tmp_path: Path, name: str) -> None:
    width = 300_000
    row = [f"{j + 1}:1" for j in range(width)] if name.endswith("libsvm") else ["1"] * width
    separator = " " if name.endswith("libsvm") else ","
    text = "\n".join(separator.join([label, *row]) for label in ("1", "0"))
    (tmp_path / name).write_text(text + "\n")
    found = read(tmp_path / name, label=0 if name.endswith("csv") else None)
    assert found.X.shape == (2, width) and float(found.X.sum()) == 2.0 * width


@pytest.mark.parametrize("pack", COMPRESS.values(), ids=COMPRESS)
@pytest.mark.parametrize(("name", "rows"), [("a.csv", b"1,2,3\n4,5,6\n"), ("a.libsvm", b"1 1:2\n-1 1:3\n")])
@pytest.mark.parametrize("first", [True, False])
def test_a_line_that_only_compression_makes_small_is_refused(
    tmp_path: Path, pack: Callable[[bytes], bytes], name: str, rows: bytes, first: bool
) -> None:
    bomb, sound = pack(b"1" * (20 << 20)), pack(rows)
    path = tmp_path / f"{name}.gz"
    path.write_bytes(bomb + sound if first else sound + bomb)
    with pytest.raises(DataError, match=r"holds a line of more than 8 MB; decompress the file first"):
        read(path)
    with pytest.raises(DataError, match=r"more than 8 MB"):
        convert(path, tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["1", "NA", "2"], "the label is missing"),
        (["1", "None", "2"], "the label is missing"),
        (["a", "", "b"], "the label is missing"),
        (["a", "b\0", "b"], "'y' holds a NUL byte"),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_missing_label_is_no_class(tmp_path: Path, labels: list[str], said: str, ending: str) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": labels})
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    refused(path, path.read_bytes(), said)


def test_none_among_words_is_a_class(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"x,y\n1,none\n2,mild\n3,none\n")
    for way in both(path):
        assert way().y.tolist() == ["none", "mild", "none"]


def test_blocks_agree_on_the_spelling_of_truth(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1,true\n" * 150_000 + "2,FALSE\n3,maybe\n")
    store = convert(path, tmp_path / "t.store", memory=1 << 20)
    assert store.classes.tolist() == read(path).classes.tolist() == ["False", "True", "maybe"]


@pytest.mark.parametrize("ending", ["npz", "parquet"])
def test_labels_beyond_int64_do_not_become_negative(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"t.{ending}"
    y = np.array([2**63, 1], dtype=np.uint64)
    if ending == "npz":
        np.savez(path, X=np.eye(2), y=y)
    else:
        pd.DataFrame({"x": [1.0, 2.0], "y": y}).to_parquet(path)
    for way in both(path):
        with pytest.raises(DataError, match=r"the label 9223372036854775808; whole numbers below 2\^63"):
            way()


def test_a_column_of_lists_is_no_column_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"x": [[1.0, 2.0], [3.0, 4.0]], "y": [0, 1]}).to_parquet(path)
    with pytest.raises(DataError, match="column 'x' holds values of type ndarray"):
        table.read(str(path), label="y")
