"""Saved models come back as they were, or not at all."""

from __future__ import annotations

import json
import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from saddlesvm import LinearSVC, LinearSVCCV
from saddlesvm.data import DataError, atomic_write
from saddlesvm.data.archives import Archive
from saddlesvm.data.errors import write_page
from saddlesvm.data.model_file import FORMAT_VERSION, is_model, load_model, save_model
from saddlesvm.models.persistence import load, save

ARRAYS = {
    "coef": np.array([[0.1, -2.5, 3e-300]]),
    "intercept": np.array([1.0], dtype=np.float32),
    "classes": np.array(["ano", "ne"]),
    "support": np.array([], dtype=np.int64),
    "flags": np.array([True, False]),
}
META = {"C": 1.0, "loss": "hinge", "seed": None, "options": {"shrinking": True}, "trace": [1, 2.5], "gap": float("inf")}


class _Boom:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os._exit, (1,))


def _saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.saddle"
    save_model(path, "LinearSVC", ARRAYS, META)
    return path


def _rewritten(path: Path, header: Any, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model.json", header if isinstance(header, str) else json.dumps(header))
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return path


def test_a_page_makes_its_folders_or_says_why_not(tmp_path):
    assert write_page(tmp_path / "new" / "page.html", "\u00e9").read_text(encoding="utf-8") == "\u00e9"
    (tmp_path / "file").write_text("kept")
    with pytest.raises(DataError, match=r"file/below/page.html: cannot be written"):
        write_page(tmp_path / "file" / "below" / "page.html", "")


def test_round_trip(tmp_path: Path) -> None:
    kind, loaded, meta = load_model(_saved(tmp_path))
    assert kind == "LinearSVC" and meta == META and list(loaded) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array)


@settings(max_examples=30, deadline=None)
@given(
    array=arrays(
        st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.bool_]), array_shapes(min_dims=0, min_side=0)
    )
)
def test_round_trip_keeps_every_bit(tmp_path_factory: pytest.TempPathFactory, array: np.ndarray[Any, Any]) -> None:
    path = tmp_path_factory.mktemp("model") / "m"
    save_model(path, "k", {"a": array})
    loaded = load_model(path)[1]["a"]
    assert (loaded.dtype, loaded.shape, loaded.tobytes()) == (array.dtype, array.shape, array.tobytes())


def test_text_in_object_arrays_and_numpy_scalars(tmp_path: Path) -> None:
    save_model(
        tmp_path / "m", "k", {"classes": np.array(["a", "bcd"], dtype=object)}, {"C": np.float64(2), "n": np.int64(3)}
    )
    _, loaded, meta = load_model(tmp_path / "m")
    assert loaded["classes"].dtype == np.dtype("<U3") and loaded["classes"].tolist() == ["a", "bcd"]
    assert meta == {"C": 2.0, "n": 3}


def test_same_model_same_bytes_and_numpy_can_open_it(tmp_path: Path) -> None:
    first = _saved(tmp_path).read_bytes()
    assert _saved(tmp_path).read_bytes() == first
    (tmp_path / "m.npz").write_bytes(first)
    with np.load(tmp_path / "m.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["coef"], ARRAYS["coef"])


@pytest.mark.parametrize(
    ("arrays", "meta", "found"),
    [
        ({"a": np.array([_Boom()])}, {}, "type object"),
        ({"a": np.zeros(2, dtype="datetime64[s]")}, {}, "datetime64"),
        ({}, {"solver": _Boom()}, "_Boom"),
    ],
)
def test_what_cannot_be_saved_leaves_the_old_file(tmp_path: Path, arrays: Any, meta: Any, found: str) -> None:
    path = _saved(tmp_path)
    before = path.read_bytes()
    with pytest.raises(DataError, match=found):
        save_model(path, "k", arrays, meta)
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]


def test_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_write(path) as file:
        file.write(b"half of the n")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["m"]


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be written: No such file"):
        save_model(tmp_path / "nowhere" / "m", "k", {})
    with pytest.raises(DataError, match="is a folder"):
        save_model(tmp_path, "k", {})


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need a privilege there")
def test_symbolic_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save_model(tmp_path / "link", "k", {})
    assert (tmp_path / "link").is_symlink() and load_model(tmp_path / "real")[0] == "k"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes there")
def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as other:
        read = other.submit(path.read_bytes)
        with atomic_write(path) as file:
            file.write(b"through the pipe")
        assert read.result() == b"through the pipe"
    assert path.is_fifo() and os.listdir(tmp_path) == ["pipe"]


def test_no_truncation_is_taken_for_a_model(tmp_path: Path) -> None:
    path = _saved(tmp_path)
    data = path.read_bytes()
    for length in range(0, len(data), 37):
        path.write_bytes(data[:length])
        with pytest.raises(DataError, match=r"truncated|damaged"):
            load_model(path)


def test_no_flipped_byte_changes_an_array(tmp_path: Path) -> None:
    path = _saved(tmp_path)
    data = path.read_bytes()
    for position in range(0, len(data), 11):
        path.write_bytes(data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :])
        try:
            _, loaded, meta = load_model(path)
        except DataError:
            continue
        assert meta == META
        assert all(np.array_equal(loaded[name], array) for name, array in ARRAYS.items())


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    with pytest.raises(DataError, match="no such file"):
        load_model(path)
    path.write_text("solver_type L2R_LR\n")
    assert not is_model(path)
    with pytest.raises(DataError, match="not a saved saddlesvm model"):
        load_model(path)
    np.savez(tmp_path / "m.npz", X=np.zeros(3))
    assert not is_model(tmp_path / "m.npz")
    with pytest.raises(DataError, match=r"no model\.json"):
        load_model(tmp_path / "m.npz")
    assert is_model(_saved(tmp_path))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"format": "other"}, "not a saved saddlesvm model"),
        ({"version": FORMAT_VERSION + 1}, f"version {FORMAT_VERSION + 1}; version {FORMAT_VERSION} can be read"),
        ({"version": "1"}, "version '1'; version 1 can be read"),
        ({"kind": 3}, "damaged"),
        ({"meta": None}, "damaged"),
        ({"arrays": ["coef"]}, "damaged.*coef"),
    ],
)
def test_headers_that_do_not_fit(tmp_path: Path, change: dict[str, Any], found: str) -> None:
    header = {"format": "saddlesvm-model", "version": FORMAT_VERSION, "kind": "k", "arrays": [], "meta": {}}
    with pytest.raises(DataError, match=found):
        load_model(_rewritten(tmp_path / "m", {**header, **change}))
    with pytest.raises(DataError, match="damaged"):
        load_model(_rewritten(tmp_path / "m", "{not json"))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "bad.npy", np.array([_Boom()], dtype=object), allow_pickle=True)
    header = {"format": "saddlesvm-model", "version": 1, "kind": "k", "arrays": ["a"], "meta": {}}
    path = _rewritten(tmp_path / "m", header, a=(tmp_path / "bad.npy").read_bytes())
    with pytest.raises(DataError, match="damaged"):
        load_model(path)


class _Derived(LinearSVC):
    pass


def test_what_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    X, y = np.arange(8.0)[:, None], np.arange(8) % 2
    search = LinearSVCCV(Cs=2, cv=2).fit(X, y)
    with pytest.raises(DataError, match=r"a LinearSVCCV cannot be saved, only LinearSVC, .*: save its best_estimator_"):
        save(search, tmp_path / "m")
    with pytest.raises(DataError, match=r"a _Derived cannot be saved, only LinearSVC, LinearSVR, .*SVC"):
        save(_Derived().fit(X, y), tmp_path / "m")
    assert not os.listdir(tmp_path)
    save(search.best_estimator_, tmp_path / "m")
    assert load(tmp_path / "m").C == search.C_


@pytest.mark.parametrize("classes", [2, 3])
def test_an_estimator_comes_back_with_all_it_learned(tmp_path: Path, classes: int) -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % classes
    model = LinearSVC(random_state=0).fit(X, y)
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert set(vars(loaded)) == set(vars(model)) | {"notes_"}
    assert loaded._fitted.data is None  # a file holds no training data
    assert loaded.phases_ == model.phases_
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    again = [one.set_params(warm_start=True, C=2.0, random_state=0).fit(X, y) for one in (model, loaded)]
    np.testing.assert_array_equal(again[0].coef_, again[1].coef_)


@pytest.mark.parametrize("order", ["<", ">"])
def test_text_that_is_none_is_refused(tmp_path: Path, order: str) -> None:
    path = tmp_path / "a.npz"
    text = np.frombuffer(np.array([0x61, 0x110000], f"{order}u4").tobytes(), f"{order}U2")
    np.savez(path, text=text)
    with path.open("rb") as file, pytest.raises(ValueError, match="text with characters that do not exist"):
        Archive(file, expansion=10).read("text")


@pytest.mark.parametrize("part", ["arrays", "facts", "params"])
def test_no_attribute_of_another_name_is_set(tmp_path: Path, part: str) -> None:
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2
    path = tmp_path / "m.model"
    save(LinearSVC().fit(X, y), path)
    kind, arrays, meta = load_model(path)
    if part == "arrays":
        arrays["predict"] = np.zeros(2)
    else:
        meta[part]["predict"] = 1.0
    save_model(path, kind, arrays, meta)
    with pytest.raises(DataError, match=r"damaged|predict") as error:
        load(path)
    assert "\n" not in str(error.value)
