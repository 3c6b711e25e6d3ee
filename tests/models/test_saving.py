"""What is saved can be read again, and what cannot be is refused before there is a file."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from saddlesvm import LinearSVC
from saddlesvm.data import DataError, load_bundled
from saddlesvm.models.persistence import load, save


def change_meta(path: Path, place: tuple[str | int, ...], value: object) -> None:
    """Write another value at a place of the JSON in a model file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["model.json"])
    node = header["meta"]
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = value
    members["model.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)


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


@pytest.mark.parametrize("factor", [None, "x", [1.0], float("inf")])
def test_class_weights_of_a_file_are_numbers(tmp_path: Path, factor: object) -> None:
    X, y = load_bundled("banknote").X[::9], load_bundled("banknote").y[::9]
    save(LinearSVC(class_weight={0: 2.0}).fit(X, y), tmp_path / "a.model")
    change_meta(tmp_path / "a.model", ("params", "class_weight", "pairs", 0, 1), factor)
    with pytest.raises(DataError, match="is a damaged model file: its factors are"):
        load(tmp_path / "a.model")


def test_a_classifier_has_no_single_target(tmp_path: Path) -> None:
    X = load_bundled("banknote").X[::9]
    save(LinearSVC().fit(X, np.arange(len(X)) % 3), tmp_path / "a.model")
    change_meta(tmp_path / "a.model", ("facts", "single_target"), True)
    with pytest.raises(DataError, match="is a damaged model file: its coef"):
        load(tmp_path / "a.model")
