"""``predict --proven``: labels marked as those of the exact optimum."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm.data import load_bundled


@pytest.fixture
def files(tmp_path):
    """A fifth of the banknotes to train on, another to predict, as files."""
    notes = load_bundled("banknote")
    for name, part in (("train.csv", slice(0, None, 5)), ("new.csv", slice(1, None, 5))):
        np.savetxt(tmp_path / name, np.column_stack([notes.X[part], notes.y[part]]), delimiter=",", fmt="%.17g")
    return tmp_path


def test_predictions_are_marked(files, run):
    code, _, _ = run("train", files / "train.csv", "--model", files / "m", "--tol", 0.3, "--standardize")
    assert code == 0
    code, out, _ = run("predict", files / "m", files / "new.csv", "--proven", files / "train.csv")
    assert code == 0
    words = [line.split()[-1] for line in out.splitlines()]
    assert set(words) <= {"proven", "open"}
    assert words.count("proven") > 250


def test_regressions_have_no_proven_labels(files, run):
    run("train", files / "train.csv", "--loss", "squared", "--model", files / "r")
    code, _, err = run("predict", files / "r", files / "new.csv", "--proven", files / "train.csv")
    assert (code, "linear classifiers" in err) == (2, True)
