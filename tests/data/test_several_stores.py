"""Several stores as the rows of one fit without a cluster, and matrices that a file holds column by column."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from saddlesvm import LinearSVC, LinearSVR, Store
from saddlesvm.data import DataError
from saddlesvm.data.store import join_stores
from support import matrix

X = matrix(300, 5)
TEXT = np.where(X[:, 0] > 0.0, "up", "down")


def stores(folder: Path, rows: Any, y: Any = TEXT, cut: int = 100) -> list[Store]:
    parts = (slice(None, cut), slice(cut, None))
    return [
        Store.create(folder / f"{k}.store", rows[part], None if y is None else y[part]) for k, part in enumerate(parts)
    ]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X * (X > 0.0))], ids=["dense", "csr"])
def test_stores_in_a_list_are_their_rows_one_below_the_other(tmp_path: Path, rows: Any) -> None:
    given = stores(tmp_path, rows)
    whole = LinearSVC(random_state=0).fit(rows, TEXT)
    for several in (given, [str(one.path) for one in given], (given[0], given[1].path)):
        model = LinearSVC(random_state=0).fit(several)
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        assert (model.predict(several) == whole.predict(rows)).all()
    assert LinearSVC(random_state=0).fit(given, TEXT).score(given, TEXT) == whole.score(rows, TEXT)


def test_labels_given_take_the_place_of_those_of_the_stores(tmp_path: Path) -> None:
    model = LinearSVR(random_state=0).fit(stores(tmp_path, X), X[:, 1])
    np.testing.assert_array_equal(model.coef_, LinearSVR(random_state=0).fit(X, X[:, 1]).coef_)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_stores_that_do_not_fit_are_a_file_as_long_as_they_are_used(
    tmp_path: Path, temporary: Path, sparse: bool
) -> None:
    rows = matrix(30_000, 40)
    y = (rows[:, 0] > 0.0).astype(int)
    given = stores(tmp_path, sp.csr_matrix(rows) if sparse else rows, y, cut=11_000)
    found, labels, weights = join_stores(given, "16M")
    assert (found.toarray() if sparse else found).tobytes() == rows.tobytes()
    assert (labels == y).all() and weights is None
    assert [*temporary.iterdir()]
    del found, labels
    gc.collect()
    assert not [*temporary.iterdir()]
    model = LinearSVC(memory="16M", random_state=0).fit(given)
    assert model.certificate_.relative_gap <= 1e-4
    del model
    gc.collect()
    assert not [*temporary.iterdir()]


def test_stores_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    one, _ = stores(tmp_path, X)
    others = {
        "sparse rows": Store.create(tmp_path / "sparse", sp.csr_matrix(X), TEXT),
        "has 3 features": Store.create(tmp_path / "narrow", X[:, :3], TEXT),
        "has labels and the other has none": Store.create(tmp_path / "plain", X),
        "labels are numbers; those of .* are text": Store.create(tmp_path / "numbers", X, X[:, 0]),
    }
    for words, other in others.items():
        with pytest.raises(DataError, match=words):
            LinearSVC().fit([one, other])


def test_small_types_stay_and_others_become_what_holds_both(tmp_path: Path) -> None:
    half = [Store.create(tmp_path / f"half-{k}", X.astype(np.float16)) for k in range(2)]
    single = Store.create(tmp_path / "single", X.astype(np.float32))
    assert join_stores(half)[0].dtype == np.float16
    assert join_stores([half[0], single])[0].dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32])
def test_rows_of_a_file_that_is_stored_by_columns_give_the_same_model(tmp_path: Path, dtype: Any) -> None:
    rows = (8.0 * matrix(3_000, 8)).astype(dtype)
    y = rows[:, 0] > 0
    np.save(tmp_path / "X.npy", np.asfortranarray(rows))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model, other = (LinearSVC(random_state=0).fit(X, y) for X in (mapped, rows))
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert (model.predict(mapped) == model.predict(rows)).all()
