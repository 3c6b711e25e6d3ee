"""What is saved can be read again, and what cannot be is refused before there is a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from saddlesvm import LinearSVC
from saddlesvm.data import DataError, load_bundled
from saddlesvm.models.persistence import load, save


def test_a_chosen_C_is_saved(tmp_path: Path) -> None:
    notes = load_bundled("banknote")
    model = LinearSVC(C="auto", random_state=0).fit(notes.X[::9], notes.y[::9])
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert model.C == "auto" and again.C == model.C_ and again.certificate_ == model.certificate_
    np.testing.assert_array_equal(again.predict(notes.X), model.predict(notes.X))


def test_what_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        save(LinearSVC(), tmp_path / "m")
    with pytest.raises(DataError, match=r"a Pipeline cannot be saved, .*: save its last step"):
        save(make_pipeline(LinearSVC()), tmp_path / "m")
    assert not list(tmp_path.iterdir())
