"""Several stores become one, and matrices that a file holds column by column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from saddlesvm import SVC, LinearSVC, Store
from saddlesvm.data import DataError, convert
from support import matrix

X = matrix(300, 5)
TEXT = np.where(X[:, 0] > 0.0, "up", "down")


def stores(folder: Path, rows: Any, y: Any = TEXT, cut: int = 100) -> list[Store]:
    parts = (slice(None, cut), slice(cut, None))
    return [
        Store.create(folder / f"{k}.store", rows[part], None if y is None else y[part]) for k, part in enumerate(parts)
    ]


@pytest.mark.parametrize("rows", [X, sp.csr_matrix(X * (X > 0.0))], ids=["dense", "csr"])
def test_stores_become_one_with_their_rows_one_below_the_other(tmp_path: Path, rows: Any) -> None:
    store = convert([part.path for part in stores(tmp_path, rows)], tmp_path / "whole")
    model, whole = (LinearSVC(random_state=0).fit(*given) for given in ((store,), (rows, TEXT)))
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    assert (model.predict(store) == whole.predict(rows)).all()


def test_a_list_of_stores_is_refused_with_what_to_do(tmp_path: Path) -> None:
    given = stores(tmp_path, X)
    for several in (given, [part.path for part in given]):
        with pytest.raises(ValueError, match="write a single store of them"):
            SVC().fit(several, TEXT)


def test_stores_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    one, _ = stores(tmp_path, X)
    others = {
        "sparse rows": Store.create(tmp_path / "sparse", sp.csr_matrix(X), TEXT),
        "has 3 features": Store.create(tmp_path / "narrow", X[:, :3], TEXT),
        "has labels and the other has none": Store.create(tmp_path / "plain", X),
        "text and numbers for labels": Store.create(tmp_path / "numbers", X, X[:, 0]),
    }
    for words, other in others.items():
        with pytest.raises(DataError, match=words):
            convert([one.path, other.path], tmp_path / "whole")


def test_small_types_stay_and_others_become_what_holds_both(tmp_path: Path) -> None:
    half = [Store.create(tmp_path / f"half-{k}", X.astype(np.float16)) for k in range(2)]
    single = Store.create(tmp_path / "single", X.astype(np.float32))
    assert convert([part.path for part in half], tmp_path / "a").dtype == np.float16
    assert convert([half[0].path, single.path], tmp_path / "b").dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32])
def test_rows_of_a_file_that_is_stored_by_columns_give_the_same_model(tmp_path: Path, dtype: Any) -> None:
    rows = (8.0 * matrix(3_000, 8)).astype(dtype)
    y = rows[:, 0] > 0
    np.save(tmp_path / "X.npy", np.asfortranarray(rows))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model, other = (LinearSVC(random_state=0).fit(X, y) for X in (mapped, rows))
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert (model.predict(mapped) == model.predict(rows)).all()


def test_stores_and_text_count_their_indices_alike(tmp_path: Path) -> None:
    """Index 0 in one source means that text counts from 0; the rows of a store cannot be shifted."""
    zero, later = tmp_path / "zero.svm", tmp_path / "later.svm"
    zero.write_text("1 0:1 2:3\n-1 1:2\n")
    later.write_text("1 1:1 2:3\n")
    from_zero = convert(zero, tmp_path / "from-zero").path
    for number, given in enumerate([(zero, later), (from_zero, later), (later, from_zero)]):
        whole = convert(given, tmp_path / f"whole-{number}").X.toarray().tolist()
        assert sorted(whole) == [[0, 1, 3], [0, 2, 0], [1, 0, 3]]
    from_one = convert(later, tmp_path / "from-one").path
    for given in ((from_one, zero), (zero, from_one), (from_one, from_zero)):
        with pytest.raises(DataError, match=r"indices count from 0; those of .* count from 1"):
            convert(given, tmp_path / "none")
    assert not (tmp_path / "none").exists()
