"""Rows that are no arrays: Arrow columns and lists, DLPack, slices; stores that grow, narrow and go into pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC, Store
from saddlesvm.data import DataError, convert, read
from saddlesvm.data.door import opened
from saddlesvm.rows.files import is_mapped

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 5)).astype(np.float32)
Y = np.where(X[:, 0] + 0.3 * RANDOM.normal(size=60) > 0, "yes", "no")


def test_lists_of_arrow_are_rows_without_a_copy() -> None:
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    column = pa.FixedSizeListArray.from_arrays(X.ravel(), 5)
    expected = LinearSVC(random_state=0).fit(X, Y).coef_
    table = pa.table({"vector": column})
    rows, names = opened(table)
    assert np.shares_memory(rows, X) and names is None
    lists = pl.DataFrame({"vector": X.tolist()}, schema={"vector": pl.List(pl.Float32)})
    for given in (table, column, pa.chunked_array([column]), table.to_batches()[0], lists, table.to_pandas()):
        model = LinearSVC(random_state=0).fit(given, Y)
        np.testing.assert_array_equal(model.coef_, expected)
        assert model.predict(given).tolist() == model.predict(X).tolist()
    for bad, words in (([[1.0, 2.0], [3.0]], "lists of 2 and, in row 2, 1 numbers"), ([[1.0, None]], "1 gaps"),
                       ([[1.0], None], "row 2: the list is missing"), ([["a"]], "lists of string")):  # fmt: skip
        with pytest.raises(DataError, match=words):
            opened(pa.table({"v": pa.array(bad)}))


def test_columns_of_arrow_keep_their_names() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({f"f{k}": X[:, k] for k in range(5)})
    model = LinearSVC(random_state=0).fit(table, Y)
    assert model.feature_names_in_.tolist() == table.column_names and model.score(table, Y) > 0.8
    np.testing.assert_array_equal(model.coef_, LinearSVC(random_state=0).fit(X, Y).coef_)
    with pytest.raises(DataError, match="the same names in another order"):
        model.predict(table.select(["f1", "f0", "f2", "f3", "f4"]))
    with pytest.raises(DataError, match=r"column 'w' is of type string.*encode it first"):
        LinearSVC().fit(pa.table({"w": ["a", "b"]}), [0, 1])


class Sliced:
    """Rows as HDF5 and zarr have them."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows, self.shape, self.dtype, self.most = rows, rows.shape, rows.dtype, 0

    def __getitem__(self, part: slice) -> np.ndarray:
        assert isinstance(part, slice)
        self.most = max(self.most, self.rows[part].nbytes)
        return self.rows[part]


def test_rows_by_slices_are_read_and_mapped_where_they_are_large() -> None:
    model = LinearSVC(random_state=0).fit(Sliced(X), Y)
    np.testing.assert_array_equal(model.coef_, LinearSVC(random_state=0).fit(X, Y).coef_)
    large = Sliced(np.ones((1 << 18, 33), dtype=np.float32))
    rows, _ = opened(large, "64M")
    assert is_mapped(rows) and large.most <= 1 << 24 and rows[-1].sum() == 33.0
    path = Path(str(rows.filename))
    assert path.exists()
    del rows
    assert not path.exists()


def test_dlpack_is_taken_without_a_copy() -> None:
    class OnlyDLPack:
        def __dlpack__(self, **options: Any) -> Any:
            return X.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return X.__dlpack_device__()

    assert np.shares_memory(opened(OnlyDLPack())[0], X)


@pytest.mark.parametrize("rows", [X, sparse.csr_matrix(X * (abs(X) > 0.5))], ids=["dense", "csr"])
def test_a_store_grows_and_narrows(rows: Any, tmp_path: Path) -> None:
    store = Store.create(tmp_path / "s.store", rows[:40], Y[:40])
    grown = store.append(rows[40:], Y[40:]).verify()
    whole = Store.create(tmp_path / "w.store", rows, Y)
    same = {"arrays", "shape", "labels", "n_nonzero", "row_norms"}
    assert {name: grown.header[name] for name in same} == {name: whole.header[name] for name in same}
    assert len(store) == 40 and store.X.shape[0] == 40  # what was open before
    for columns in (slice(1, 3), [1, -3]):
        narrow = grown.narrow(tmp_path / "n.store", columns, overwrite=True).verify()
        assert abs(narrow.X - rows[:, [1, 2]]).max() == 0.0 and (narrow.y == Y).all()
    for columns, words in (
        ([9], "no column 9"),
        ([], "chooses none"),
        ([1, 1], "a column twice"),
        (["a"], "column 'a'"),
    ):
        with pytest.raises(DataError, match=words):
            grown.narrow(tmp_path / "m.store", columns)
    with pytest.raises(DataError, match="labels must be given with every block"):
        grown.append(rows)
    assert len(Store(tmp_path / "s.store")) == 60


def test_a_store_of_named_columns_narrows_by_name(tmp_path: Path) -> None:
    store = convert("banknote", tmp_path / "b.store")
    names = store.header["feature_names"]
    assert store.narrow(tmp_path / "n.store", names[2:0:-1]).header["feature_names"] == names[2:0:-1]


def test_a_store_is_rows_of_a_pipeline(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "s.store", X, Y)
    model = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(store, store.y)
    np.testing.assert_array_equal(model[-1].coef_, clone(model).fit(X, Y)[-1].coef_)
    with pytest.raises(TypeError, match="holds sparse rows: give its X"):
        np.asarray(Store.create(tmp_path / "c.store", sparse.csr_matrix(X)))


def test_files_of_arrays_and_lists(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    table = read(tmp_path / "X.npy", label=str(tmp_path / "y.npy"))
    assert is_mapped(table.X) and table.y is not None and table.y.tolist() == Y.tolist()
    np.testing.assert_array_equal(convert(tmp_path / "X.npy", tmp_path / "s", label=str(tmp_path / "y.npy")).X, X)
    with pytest.raises(DataError, match=r"name the .npy file that holds them"):
        read(tmp_path / "X.npy")
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"not a readable .npy"):
        read(tmp_path / "o.npy", label=False)
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    made = pa.table({"v": pa.FixedSizeListArray.from_arrays(X.ravel(), 5), "y": Y})
    feather.write_feather(made, str(tmp_path / "t.feather"), compression="uncompressed")
    parquet.write_table(made, tmp_path / "t.parquet")
    for name in ("t.feather", "t.parquet"):
        found = read(tmp_path / name)
        np.testing.assert_array_equal(found.X, X)
        assert found.feature_names == [f"v[{k}]" for k in range(5)] and found.label_name == "y"
        np.testing.assert_array_equal(convert(tmp_path / name, tmp_path / f"{name}.store").X, X)
