"""Options of ``C="auto"``: its checkpoint, and those of its saved model."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC, Outcome, load, save
from saddlesvm.data import load_bundled
from saddlesvm.estimators.automatic_C import AutomaticC


@pytest.fixture(scope="module")
def heart():
    table = load_bundled("heart")
    return table.X / np.abs(table.X).max(axis=0), table.y


def test_the_checkpoint_of_automatic_c_is_that_of_its_last_fit(heart, tmp_path):
    X, y = heart
    how = AutomaticC(low=0.1, high=1.0, gap=0.1, size=3)
    first, second = (LinearSVC(C=how, checkpoint=tmp_path / "run", random_state=0).fit(X, y) for _ in range(2))
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    assert first.outcome_ is second.outcome_ is Outcome.CERTIFIED
    assert second.C_ == first.C_
    with pytest.raises(ValueError, match="a path has many: leave checkpoint out"):
        LinearSVC(checkpoint=tmp_path / "run").path(X, y, C=(0.1, 1.0))


def test_a_saved_model_has_the_given_options_and_the_chosen_c(heart, tmp_path):
    model = LinearSVC(C="auto", random_state=0).fit(*heart)
    save(model, tmp_path / "heart.model")
    loaded = load(tmp_path / "heart.model")
    # A model file has no seed.
    assert loaded.get_params() == model.get_params() | {"C": model.C_, "random_state": None}
