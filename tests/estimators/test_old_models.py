"""Model files of the first version, written before estimators registered: they load, and mean what they meant."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from saddlesvm.estimators.persistence import load, save

MODELS = Path(__file__).resolve().parent.parent / "data" / "models"
EXPECTED = json.loads((MODELS / "expected.json").read_text())
ROWS = np.array(EXPECTED.pop("X"))


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_model_of_the_first_version_is_what_it_was(name: str, tmp_path: Path) -> None:
    model = load(MODELS / f"{name}.model")
    scores = (model.decision_function if hasattr(model, "classes_") else model.predict)(ROWS)
    np.testing.assert_allclose(scores, EXPECTED[name]["scores"], rtol=1e-9, atol=1e-9)
    assert model.certificate_.gap == pytest.approx(EXPECTED[name]["gap"], abs=1e-12)
    assert model.notes_ == {"trained on": "twelve rows"}
    save(model, tmp_path / "again", model.notes_)
    again = load(tmp_path / "again")
    assert repr(again) == repr(model)
    assert again.trace_ == model.trace_
