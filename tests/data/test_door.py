"""Rows that are no arrays: Arrow columns and lists, DLPack, slices; stores that grow, narrow and go into pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import array_api_strict as xp
import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from saddlesvm import SVC, LinearSVC, LinearSVR, Store
from saddlesvm.data import DataError, convert, door, read
from saddlesvm.data.door import check_design
from saddlesvm.data.inputs import open_rows
from saddlesvm.rows.files import is_mapped

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 5)).astype(np.float32)
Y = np.where(X[:, 0] + 0.3 * RANDOM.normal(size=60) > 0, "yes", "no")


def test_lists_of_arrow_are_rows_without_a_copy() -> None:
    pa, pl = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    column = pa.FixedSizeListArray.from_arrays(X.ravel(), 5)
    expected = LinearSVC(random_state=0).fit(X, Y).coef_
    table = pa.table({"vector": column})
    rows, names = open_rows(table)
    assert np.shares_memory(rows, X) and names is None
    lists = pl.DataFrame({"vector": X.tolist()}, schema={"vector": pl.List(pl.Float32)})
    for given in (table, column, pa.chunked_array([column]), table.to_batches()[0], lists, table.to_pandas()):
        model = LinearSVC(random_state=0).fit(given, Y)
        np.testing.assert_array_equal(model.coef_, expected)
        assert model.predict(given).tolist() == model.predict(X).tolist()
    for bad, words in (([[1.0, 2.0], [3.0]], "lists of 2 and, in row 2, 1 numbers"), ([[1.0, None]], "1 missing"),
                       ([[1.0], None], "row 2: the list is missing"), ([["a"]], "lists of string")):  # fmt: skip
        with pytest.raises(DataError, match=words):
            open_rows(pa.table({"v": pa.array(bad)}))


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


def test_dlpack_is_taken_without_a_copy() -> None:
    class OnlyDLPack:
        def __dlpack__(self, **options: Any) -> Any:
            return X.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return X.__dlpack_device__()

    assert np.shares_memory(open_rows(OnlyDLPack())[0], X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_an_array_library_keep_their_type_and_place(dtype: str) -> None:
    rows = xp.asarray(X.astype(dtype))
    checked = check_design(rows, LinearSVC(), reset=True).X
    assert type(checked) is np.ndarray and checked.dtype == dtype and np.shares_memory(checked, np.from_dlpack(rows))


@pytest.mark.filterwarnings("ignore:You are comparing a array_api_strict dtype")  # scikit-learn 1.6 does, in r2_score
@pytest.mark.parametrize("dispatch", [False, True], ids=["asarray", "dispatch"])
@pytest.mark.parametrize(
    "made", [LinearSVC(random_state=0), LinearSVR(random_state=0), SVC()], ids=lambda m: type(m).__name__
)
def test_the_arrays_of_a_library_give_the_model_that_numpy_gives(
    made: Any, dispatch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X, y and weights through the array API, whether or not scikit-learn dispatches; results are NumPy's."""
    if dispatch:  # scikit-learn asks for both before it dispatches; older ones do not bring the module with them
        pytest.importorskip("sklearn.externals.array_api_compat")
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    y = X[:, 0] if isinstance(made, LinearSVR) else (Y == "yes").astype(np.int64)
    weights = np.linspace(0.5, 2.0, len(y))
    expected = clone(made).fit(X, y, weights)
    with config_context(array_api_dispatch=dispatch):
        given = xp.asarray(X), xp.asarray(y), xp.asarray(weights)
        model = clone(made).fit(*given)
        assert model.score(*given) == expected.score(X, y, weights)
        for name in ("predict", "decision_function"):
            if hasattr(model, name):
                result = getattr(model, name)(given[0])
                assert type(result) is np.ndarray
                np.testing.assert_array_equal(result, getattr(expected, name)(X))


def test_labels_of_several_columns_of_an_array_library() -> None:
    several = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(np.int64)
    for made, y in ((LinearSVC(random_state=0), several), (LinearSVR(random_state=0), X[:, :2])):
        model = clone(made).fit(xp.asarray(X), xp.asarray(y))
        np.testing.assert_array_equal(model.coef_, clone(made).fit(X, y).coef_)


def test_an_array_that_is_not_handed_out_is_converted_by_scikit_learn() -> None:
    class Held:
        """Rows whose DLPack export fails, as of tensors that record gradients."""

        shape, dtype = X.shape, X.dtype

        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("held")

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return X.astype(dtype or X.dtype)

    expected = LinearSVC(random_state=0).fit(X, Y)
    np.testing.assert_array_equal(LinearSVC(random_state=0).fit(Held(), Y).coef_, expected.coef_)


def test_frames_of_polars_keep_their_type_and_names() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({f"f{k}": X[:, k] for k in range(5)})
    expected = LinearSVC(random_state=0).fit(X, Y)
    assert check_design(frame, LinearSVC(), reset=True).X.dtype == np.float32
    for rows in (frame, frame.lazy()):
        model = LinearSVC(random_state=0).fit(rows, pl.Series(Y))
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        assert model.feature_names_in_.tolist() == frame.columns
        assert model.predict(rows).tolist() == expected.predict(X).tolist()


@pytest.mark.parametrize("library", ["h5py", "zarr"])
def test_data_sets_in_files_are_rows(library: str, tmp_path: Path) -> None:
    module = pytest.importorskip(library)

    def stored(name: str, values: np.ndarray) -> Any:
        if library == "zarr":
            return module.create_array(tmp_path / name, data=values)
        return module.File(tmp_path / name, "w").create_dataset("values", data=values)

    rows, y = stored("X", X), stored("y", (Y == "yes").astype(np.int8))
    model = LinearSVC(random_state=0).fit(rows, y)
    expected = LinearSVC(random_state=0).fit(X, (Y == "yes").astype(np.int8))
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.score(rows, y) == expected.score(X, y[:])


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


def test_a_design_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibration estimates the scores of the rows left out; it takes over what the fit found of them."""
    asked = []
    monkeypatch.setattr(door, "check_norms", lambda norms, *_: asked.append(norms) or norms)
    model = LinearSVC(loss="logistic", random_state=0).fit(X, Y)
    assert len(asked) == 1
    design = check_design(X, model)
    assert check_design(design) is design and design.norms() is design.norms()
    assert len(asked) == 2
