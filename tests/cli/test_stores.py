"""Commands make stores, and train, predict and certify on them."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC, Store
from support import converting, matrix

X = matrix(200, 5)
Y = (X[:, 0] > 0.1).astype(int)


def test_files_become_a_store_that_trains_predicts_and_certifies(run, told, tmp_path):
    text, store, model = tmp_path / "t.svm", tmp_path / "s", tmp_path / "m"
    converting.write(text, "libsvm")
    made = told("convert", text, text, store, "--dtype", "float32")["store"]
    assert made["precision"] == "float32" and made["rows"] == 2 * converting.N
    assert [one["format"] for one in made["made_from"]] == ["libsvm", "libsvm"]
    facts = told("info", store)["store"]
    assert facts["rows"] == 2 * converting.N and facts["classes"]["1"] == 2 * int((converting.Y > 0).sum())
    facts = told("train", store, "--test", store, "--loss", "hinge", "--model", model)
    assert facts["data"]["format"] == "store" and facts["data"]["nonzeros"] == 2 * np.count_nonzero(converting.X)
    assert facts["quality"]["relative_gap"] <= 1e-4
    assert run("predict", model, store)[0] == 0
    assert run("certify", model, store, "--tol", 1e-3)[0] == 0
    assert "6,000" in run("info", store)[1]


def test_the_weights_of_a_store_count(told, tmp_path):
    weights = 1.0 + 2.0 * Y
    Store.create(tmp_path / "s", X, Y, weights)
    told("train", tmp_path / "s", "--loss", "hinge", "--model", tmp_path / "m", "--tol", "1e-6")
    found = told("certify", tmp_path / "m", tmp_path / "s")["quality"]
    ours = LinearSVC(loss="hinge", tol=1e-6, random_state=0).fit(X, Y, weights)
    assert found["relative_gap"] <= 1e-5
    assert found["primal_objective"] == pytest.approx(ours.certificate_.primal, rel=3e-6)


def test_rows_of_a_store_are_scaled_as_those_of_the_fit_were(run, told, tmp_path):
    store, model = tmp_path / "s", tmp_path / "m"
    told("convert", "heart", store)
    trained = told("train", "heart", "--test", store, "--standardize", "--model", model)["quality"]
    assert trained["test_accuracy"] == trained["train_accuracy"]
    assert run("predict", model, store) == run("predict", model, "heart")
    assert told("certify", model, store)["quality"] == told("certify", model, "heart")["quality"]


def test_a_store_that_counts_its_features_otherwise_is_refused(run, told, refusal, tmp_path):
    text, store, model = tmp_path / "t.svm", tmp_path / "s", tmp_path / "m"
    text.write_text("1 1:1 3:3\n-1 2:2\n")
    told("train", text, "--model", model)
    text.write_text("1 0:1 2:3\n-1 1:2\n")
    told("convert", text, store)
    assert "indices count from 0; those of" in refusal("predict", model, store)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["convert", "toy", "s"], "exists already"),
        (["convert", "nothing", "t"], "nothing"),
        (["convert", "toy", "banknote", "t"], "features"),
        (["convert", "toy", "t", "--memory", "much"], "memory"),
        (["convert", "toy", "t", "--label", "x"], "label"),
        (["info", "damaged"], "values.npy"),
        (["train", "s", "--label", "x"], "label"),
        (["train", "s", "--standardize"], "--standardize copies rows"),
    ],
)
def test_bad_usage_is_one_line(refusal, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    Store.create("s", X, Y)
    damaged = Store.create("damaged", X, Y).path / "values.npy"
    damaged.write_bytes(damaged.read_bytes()[:-8])
    assert said in refusal(*words)


def test_a_command_takes_one_store_and_convert_makes_it(refusal, told, tmp_path):
    for name, part in (("a", slice(80)), ("b", slice(80, None))):
        Store.create(tmp_path / name, X[part], Y[part], sample_weight=1.0 + Y[part])
    assert "unexpected" in refusal("train", tmp_path / "a", tmp_path / "b")
    made = told("convert", tmp_path / "a", tmp_path / "b", tmp_path / "both")["store"]
    assert made["rows"] == 200 and made["row_weights"]
