"""A store gives back what was written, is mapped and never copied, and is refused when anything about it is wrong."""

from __future__ import annotations

import json
import pickle
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

from saddlesvm import LinearSVC, LinearSVR, Store
from saddlesvm.data import DataError, StoreWriter, read
from saddlesvm.problem.losses import Hinge
from support import csr, labels, matrix

N, D = 240, 7
ROWS = matrix(N, D, density=0.6)
Y = labels(ROWS, Hinge()).astype(np.int64)
TEXT = np.where(Y > 0, "yes", "no, never")
ARRAYS = {"dense": ("values", "labels", "weights"), "csr": ("values", "indices", "indptr", "labels", "weights")}


def design(layout: str, dtype: Any = np.float64) -> Any:
    return sp.csr_matrix(ROWS.astype(dtype)) if layout == "csr" else ROWS.astype(dtype)


def dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def make(folder: Path, layout: str = "dense", dtype: Any = np.float64, y: Any = Y, name: str = "a.store") -> Store:
    return Store.create(folder / name, design(layout, dtype), y, np.linspace(0.5, 2.0, N))


def refused(path: Path, *words: str, use: bool = False) -> None:
    """Opening the store, or with `use` reading its rows and labels, is refused in one line with these words."""
    with pytest.raises(DataError) as caught:
        store = Store(path)
        if use:
            _ = store.X, store.y
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in (path.name, *words)), message


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("y", [Y, TEXT, Y * 0.5, None], ids=["whole", "text", "targets", "none"])
def test_a_store_gives_back_what_was_written(tmp_path: Path, layout: str, dtype: Any, y: Any) -> None:
    store = make(tmp_path, layout, dtype, y)
    assert (store.shape, store.layout, store.dtype) == ((N, D), layout, dtype)
    np.testing.assert_array_equal(dense(store.X), ROWS.astype(dtype))
    np.testing.assert_array_equal(store.sample_weight, np.linspace(0.5, 2.0, N))
    if y is None:
        assert store.y is None and store.classes is None
    else:
        np.testing.assert_array_equal(store.y, y)
        assert store.y is not None and store.y.dtype == y.dtype
        np.testing.assert_array_equal(store.classes, np.unique(y))
        assert store.header["labels"]["counts"] == np.unique(y, return_counts=True)[1].tolist()
    assert store.n_values == (np.count_nonzero(ROWS) if layout == "csr" else N * D)
    assert store.header["n_nonzero"] == np.count_nonzero(ROWS)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_the_arrays_are_plain_files_and_mapped_read_only(tmp_path: Path, layout: str) -> None:
    store = make(tmp_path, layout)
    parts = [store.X.data, store.X.indices, store.X.indptr] if layout == "csr" else [store.X]
    for part, name in zip(parts, ARRAYS[layout], strict=False):
        assert isinstance(part, np.memmap) and not part.flags.writeable
        np.testing.assert_array_equal(part, np.load(store.path / f"{name}.npy"))
    assert sorted(file.name for file in store.path.iterdir()) == sorted(
        [*(f"{name}.npy" for name in ARRAYS[layout]), "store.json"]
    )


def test_the_same_data_give_the_same_bytes_in_one_block_or_many(tmp_path: Path) -> None:
    for layout in ("dense", "csr"):
        X = design(layout)
        whole = Store.create(tmp_path / f"{layout}-whole", X, TEXT)
        with StoreWriter(tmp_path / f"{layout}-parts") as writer:
            for start in range(0, N, 50):
                writer.append(X[start : start + 50], TEXT[start : start + 50])
        for file in whole.path.iterdir():
            assert file.read_bytes() == (tmp_path / f"{layout}-parts" / file.name).read_bytes()


def test_a_store_is_pickled_by_its_path(tmp_path: Path) -> None:
    store = make(tmp_path)
    text = pickle.dumps(store)
    assert len(text) < 500
    np.testing.assert_array_equal(pickle.loads(text).X, store.X)


@given(n_bytes=st.integers(1, 20_000))
def test_blocks_follow_each_other_and_keep_their_size(tmp_path_factory: pytest.TempPathFactory, n_bytes: int) -> None:
    folder = tmp_path_factory.mktemp("blocks")
    for layout in ("dense", "csr"):
        store = make(folder, layout, name=layout)
        runs = store.blocks(n_bytes)
        assert [start for start, _ in runs] == [0, *(stop for _, stop in runs[:-1])]
        assert runs[-1][1] == N
        sizes = [
            part.nbytes if layout == "dense" else part.data.nbytes + part.indices.nbytes + 4 * part.shape[0]
            for part in (store.X[start:stop] for start, stop in runs)
        ]
        assert all(size <= n_bytes or stop == start + 1 for size, (start, stop) in zip(sizes, runs, strict=True))
    shutil.rmtree(folder)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_every_truncated_or_missing_file_is_named_without_reading_it(tmp_path: Path, layout: str) -> None:
    for name in ARRAYS[layout]:
        file = make(tmp_path, layout, name=f"{name}.store").path / f"{name}.npy"
        whole = file.read_bytes()
        for cut in (0, 5, 64, 127, 128, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:cut])
            refused(file.parent, file.name)
        file.write_bytes(whole + b"\0")
        refused(file.parent, file.name, "bytes")
        np.save(file, np.zeros(3))
        refused(file.parent, file.name, "holds")
        file.unlink()
        refused(file.parent, file.name, "missing")


@pytest.mark.parametrize(
    "damage",
    [
        lambda indices, indptr: indices.__setitem__(5, D),
        lambda indices, indptr: indices.__setitem__(0, -1),
        lambda indices, indptr: indices.__setitem__(slice(0, 2), indices[1::-1].copy()),
        lambda indices, indptr: indptr.__setitem__(3, indptr[-1] + 1),
        lambda indices, indptr: indptr.__setitem__(3, indptr[2] - 1),
        lambda indices, indptr: indptr.__setitem__(-1, indptr[-2]),
        lambda indices, indptr: indptr.__setitem__(0, 1),
    ],
    ids=["too large", "negative", "out of order", "beyond the end", "falling", "too short", "not from 0"],
)
def test_damaged_indices_are_refused_before_anything_uses_them(tmp_path: Path, damage: Callable[..., Any]) -> None:
    store = make(tmp_path, "csr")
    indices, indptr = (np.load(store.path / f"{name}.npy", mmap_mode="r+") for name in ("indices", "indptr"))
    damage(indices, indptr)
    indices.flush()
    indptr.flush()
    refused(store.path, "indices.npy", "damaged", use=True)
    for use in (lambda: read(store.path), lambda: LinearSVC().fit(Store(store.path)), lambda: store.read(0, 9)):
        with pytest.raises(DataError, match=r"indices\.npy"):
            use()


def test_values_that_are_not_finite_are_refused_by_the_fit(tmp_path: Path) -> None:
    for layout in ("dense", "csr"):
        store = make(tmp_path, layout, name=f"{layout}.store")
        values = np.load(store.path / "values.npy", mmap_mode="r+")
        values.reshape(-1)[11] = np.nan
        values.flush()
        with pytest.raises(ValueError, match=r"NaN|finite"):
            LinearSVC(loss="hinge").fit(Store(store.path))


def test_a_code_without_a_class_is_refused(tmp_path: Path) -> None:
    store = make(tmp_path, y=TEXT)
    codes = np.load(store.path / "labels.npy", mmap_mode="r+")
    for wrong in (2, -1):
        codes[7] = wrong
        codes.flush()
        refused(store.path, "labels.npy", "a code without a class", use=True)


def _every_place(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    places = [path] if path else []
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        places += _every_place(value[key], (*path, key))
    return places


def test_no_damage_to_the_header_gets_past_a_data_error(tmp_path: Path) -> None:
    store = make(tmp_path, "csr", y=TEXT)
    header = store.header
    changes: list[Callable[[Any, Any], Any]] = [
        lambda holder, key: holder.pop(key),
        *(lambda holder, key, new=new: holder.__setitem__(key, new) for new in (None, -1, "x", [], {}, 1e300)),
    ]
    refusals = 0
    for place in _every_place(header):
        for change in changes:
            damaged = json.loads(json.dumps(header))
            holder = damaged
            for key in place[:-1]:
                holder = holder[key]
            change(holder, place[-1])
            (store.path / "store.json").write_text(json.dumps(damaged))
            try:
                again = Store(store.path)
                assert again.X.shape == (N, D) and again.y is not None and again.classes is not None
            except DataError as error:
                assert store.path.name in str(error)
                refusals += 1
    assert refusals > 100


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, ["version 2; version 1 can be read"]),
        ({"format": "else"}, ["does not say 'saddlesvm-store'"]),
        ({"layout": "csc"}, ["its layout is csc"]),
        ({"shape": [N + 1, D]}, ["values.npy"]),
        ({"weights": "yes"}, ["its weights is yes"]),
        ({"n_values": -1}, ["its n_values is -1"]),
    ],
)
def test_what_the_header_says_is_checked(tmp_path: Path, change: dict[str, Any], words: list[str]) -> None:
    path = make(tmp_path).path
    header = json.loads((path / "store.json").read_text()) | change
    (path / "store.json").write_text(json.dumps(header))
    refused(path, *words)


def test_what_is_not_a_store_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "nothing", "no such store")
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "is a file")
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", "no store.json")
    (tmp_path / "folder" / "store.json").write_text("{")
    refused(tmp_path / "folder", "not JSON")
    (tmp_path / "x.partial").mkdir()
    refused(tmp_path / "x.partial", "interrupted")
    for path in (tmp_path / "x.partial", tmp_path / "folder"):
        with pytest.raises(DataError, match=path.name):
            read(path)


def test_a_store_written_by_another_program(tmp_path: Path) -> None:
    """As docs/reference/store-format.md says: plain `numpy.save` and a header, with 64-bit indices."""
    S = csr(ROWS, np.int64)
    for name, array in {"values": S.data, "indices": S.indices, "indptr": S.indptr, "labels": Y}.items():
        np.save(tmp_path / f"{name}.npy", array)
    header = {
        "format": "saddlesvm-store",
        "version": 1,
        "layout": "csr",
        "shape": [N, D],
        "n_values": S.nnz,
        "labels": {"kind": "numbers", "smallest": -1, "largest": 1, "classes": None, "counts": None},
        "weights": False,
    }
    (tmp_path / "store.json").write_text(json.dumps(header))
    np.testing.assert_array_equal(Store(tmp_path).X.toarray(), ROWS)
    table = read(tmp_path)
    ours = LinearSVC(loss="hinge", random_state=0).fit(table.X, table.y)
    theirs = LinearSVC(loss="hinge", random_state=0).fit(csr(ROWS), Y)
    np.testing.assert_array_equal(ours.coef_, theirs.coef_)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_plain_numpy_reads_a_store_from_anywhere(tmp_path: Path, layout: str) -> None:
    folder = make(tmp_path, layout).path
    facts = json.loads((folder / "store.json").read_text())
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ARRAYS[layout]}
    X = arrays["values"]
    if layout == "csr":
        X = sp.csr_matrix((X, arrays["indices"], arrays["indptr"]), shape=facts["shape"])
    np.testing.assert_array_equal(dense(X), ROWS)
    np.testing.assert_array_equal(arrays["labels"], Y)


def test_blocks_that_do_not_fit_together_leave_nothing_behind(tmp_path: Path) -> None:
    X, S = ROWS, sp.csr_matrix(ROWS)
    bad: list[tuple[tuple[Any, ...], tuple[Any, ...], str]] = [
        ((X, Y), (S, Y), "dense and sparse"),
        ((X, Y), (X[:, :3], Y), "3 features"),
        ((X, Y), (X,), "labels"),
        ((X,), (X, Y), "labels"),
        ((X, Y), (X, Y, np.ones(N)), "weights"),
        ((X, Y), (X, Y[1:]), "one for each row|one label for each row"),
        ((X, Y), (X, TEXT), "text and numbers for labels"),
        ((X, TEXT), (X, Y), "text and numbers for labels"),
        ((X, Y), (X, np.where(Y > 0, np.nan, 1.0)), "finite"),
        ((X, Y), (np.where(X.max() > X, X, np.inf), Y), f"row {N + int(X.max(axis=1).argmax()) + 1}"),
        ((X, Y), (X.astype(str), Y), "numbers"),
        ((X, Y, np.ones(N)), (X, Y, -np.ones(N)), "0 or more"),
    ]
    for first, second, words in bad:
        with pytest.raises(DataError, match=words), StoreWriter(tmp_path / "s") as writer:
            writer.append(*first)
            writer.append(*second)
        assert not list(tmp_path.iterdir())
    with pytest.raises(DataError, match="0 rows"), StoreWriter(tmp_path / "s"):
        pass
    with pytest.raises(KeyboardInterrupt), StoreWriter(tmp_path / "s") as writer:
        writer.append(X, Y)
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_sparse_blocks_are_put_in_order_and_widen_the_store(tmp_path: Path) -> None:
    unsorted = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    before = unsorted.copy()
    with StoreWriter(tmp_path / "s", n_features=9) as writer:
        writer.append(unsorted)
        writer.append(sp.csr_matrix(np.eye(6)))
    np.testing.assert_array_equal(unsorted.indices, before.indices)
    store = Store(tmp_path / "s")
    assert store.shape == (7, 9)
    np.testing.assert_array_equal(store.X[:1].toarray(), [[2, 0, 5] + 6 * [0]])
    assert store.matrix(12).shape == (7, 12)
    with pytest.raises(DataError, match="9 features"):
        store.matrix(8)
    empty = Store.create(tmp_path / "empty", sp.csr_matrix((3, 2)), [0, 1, 0])
    assert empty.X.nnz == 0


def test_an_existing_name_is_kept(tmp_path: Path) -> None:
    store = make(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter").write_text("dear")
    for path in (store.path, tmp_path / "mine"):
        with pytest.raises(DataError, match="exists already; remove it, or give another name"):
            Store.create(path, ROWS)
    with pytest.raises(DataError, match="is within a store"):
        Store.create(store.path / "inner", ROWS)
    with pytest.raises(DataError, match="partial"):
        Store.create(tmp_path / "x.partial", ROWS)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.store", "mine"]
    assert len(Store(store.path)) == len(ROWS) and (tmp_path / "mine" / "letter").read_text() == "dear"


def test_two_writers_of_one_name_do_not_disturb_each_other(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="exists already"), StoreWriter(tmp_path / "s") as late:
        late.append(ROWS, Y)
        with StoreWriter(tmp_path / "s") as writer:
            writer.append(ROWS, Y)
            writer.append(ROWS, Y)
    assert len(Store(tmp_path / "s")) == 2 * N
    assert [file.name for file in tmp_path.iterdir()] == ["s"]


def test_what_a_killed_writer_left_is_in_nobodys_way(tmp_path: Path) -> None:
    left = tmp_path / "s.0a1b2c3d.partial"
    left.mkdir()
    (left / "values.npy").write_bytes(b"half")
    Store.create(tmp_path / "s", ROWS)
    refused(left, "interrupted conversion; remove it")


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_estimators_take_mapped_rows_without_a_copy(tmp_path: Path, layout: str, dtype: Any) -> None:
    n, d = 20_000, 200
    X: Any = matrix(n, d).astype(dtype)
    if layout == "csr":
        X = sp.csr_matrix(np.where(np.abs(X) > 1.0, X, 0))
    y = labels(dense(X[:, :5]), Hinge())
    targets = np.asarray(dense(X[:, 0])).ravel().astype(np.float64)
    store = Store.create(tmp_path / "s", X, y)
    size = store.n_bytes
    options: Any = {"solver": "dcd", "max_iter": 3, "tol": 0.0, "random_state": 0}
    for model, goal in ((LinearSVC(loss="hinge", **options), y), (LinearSVR(**options), targets)):
        model.fit(store.X, goal)  # compiled now
        tracemalloc.start()
        model.fit(store.X, goal)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < size / 3
    in_memory = LinearSVC(loss="hinge", **options).fit(X, y)
    mapped = LinearSVC(loss="hinge", **options).fit(store.X, store.y)
    np.testing.assert_array_equal(mapped.coef_, in_memory.coef_)


def test_scores_of_sparse_float32_rows_are_made_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    from saddlesvm.rows import scores

    S = csr(ROWS).astype(np.float32)
    coef, intercept = np.random.default_rng(0).normal(size=(3, D)), np.arange(3.0)
    whole = scores.linear_scores(S, coef, intercept)
    monkeypatch.setattr(scores, "BLOCK_VALUES", 100)
    np.testing.assert_array_equal(scores.linear_scores(S, coef, intercept), whole)
    np.testing.assert_allclose(whole, S.toarray().astype(np.float64) @ coef.T + intercept, rtol=1e-12, atol=1e-12)


def test_an_array_that_the_system_does_not_map_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store.create(tmp_path / "s", np.eye(3), np.arange(3))

    def refuse(*given: object, **options: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(np, "memmap", refuse)
    with pytest.raises(DataError, match=r"values\.npy: cannot be mapped: Cannot allocate memory"):
        _ = Store(store.path).X


@pytest.mark.parametrize("name", ["classes", "counts"])
def test_a_header_without_facts_of_the_labels_is_refused(tmp_path, name):
    store = make(tmp_path)
    header = json.loads((store.path / "store.json").read_text())
    del header["labels"][name]
    (store.path / "store.json").write_text(json.dumps(header))
    refused(store.path, "is damaged", "labels")
