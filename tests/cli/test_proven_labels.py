"""``train --until-proven`` and ``predict --proven``: labels marked as those of the exact optimum."""

from __future__ import annotations

import json

import numpy as np
import pytest

from saddlesvm import LinearSVC, load
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


def test_training_goes_on_until_labels_are_proven(files, run):
    given = ["train", files / "train.csv", "--until-proven", files / "new.csv", "--tol", 0.3, "--loss", "logistic"]
    code, out, _ = run(*given, "--model", files / "m", "--json")
    assert code == 0
    told = json.loads(out)["quality"]
    assert told["test_labels_proven"] == {"proven": 275, "of": 275}
    assert told["test_accuracy"] > 0.9
    part = np.loadtxt(files / "train.csv", delimiter=",")
    new = np.loadtxt(files / "new.csv", delimiter=",")
    exact = LinearSVC(loss="logistic", tol=1e-12, random_state=0).fit(part[:, :-1], part[:, -1])
    predicted = load(files / "m").predict(new[:, :-1])
    np.testing.assert_array_equal(predicted, exact.predict(new[:, :-1]))


def test_what_does_not_go_together_is_said(files, run):
    given = ["train", files / "train.csv", "--until-proven", files / "new.csv"]
    for more, said in (
        (["--loss", "squared"], "linear classifiers"),
        (["--kernel", "rbf"], "linear classifiers"),
        (["--test", files / "train.csv"], "leave --test out"),
        (["--cv", "3"], "--cv"),
    ):
        code, _, err = run(*given, *more)
        assert (code, said in err) == (2, True), err
    run("train", files / "train.csv", "--loss", "squared", "--model", files / "r")
    code, _, err = run("predict", files / "r", files / "new.csv", "--proven", files / "train.csv")
    assert (code, "linear classifiers" in err) == (2, True)
