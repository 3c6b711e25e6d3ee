"""Commands make stores, and use several as one: side by side or by a pattern, the rows one below the other."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from saddlesvm import LinearSVC, Store
from saddlesvm.data.store import join_stores
from saddlesvm.models.persistence import load
from support import converting, matrix

X = matrix(200, 5)
Y = (X[:, 0] > 0.1).astype(int)


@pytest.fixture
def stores(tmp_path):
    """Two stores of unequal size, with row weights."""
    for name, part in (("a", slice(80)), ("b", slice(80, None))):
        Store.create(tmp_path / f"{name}.store", X[part], Y[part], sample_weight=1.0 + Y[part])
    return [tmp_path / "a.store", tmp_path / "b.store"]


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


@pytest.mark.parametrize("spread", [True, False], ids=["side by side", "pattern"])
def test_several_stores_are_trained_on_as_python_does(told, stores, spread):
    kept = stores[0].with_name("kept.model")
    given = stores if spread else [stores[0].with_name("*.store")]
    facts = told("train", *given, "--tol", "1e-6", "--model", kept, "--test", stores[1])
    model, whole = load(kept), LinearSVC(tol=1e-6).fit(*join_stores(stores))
    assert model.coef_.tobytes() == whole.coef_.tobytes() and model.intercept_ == whole.intercept_
    assert facts["data"]["rows"] == 200 and "a.store" in facts["data"]["source"]
    assert facts["quality"]["test_accuracy"] == whole.score(X[80:], Y[80:])


def test_a_model_of_several_stores_is_used_on_them(run, stores):
    kept, proof = (str(stores[0].with_name(name)) for name in ("kept.model", "proof.json"))
    assert run("train", *stores, "--loss", "logistic", "--model", kept)[0] == 0
    code, said, _ = run("predict", kept, *stores)
    assert code == 0 and np.mean(np.array(said.split(), dtype=int) == load(kept).predict(X)) == 1.0
    assert run("certify", kept, *stores, "--tol", "1e-3")[0] == 0
    assert run("prove", kept, *stores, "-o", proof)[0] == 0
    assert run("verify", proof, *stores)[0] == 0
    assert run("path", *stores, "--C", "0.1,1", "--test", stores[1])[0] == 0


def test_sparse_stores_are_as_wide_as_the_model(run, tmp_path):
    rows = sp.csr_matrix(X * (X > 0.0))
    for name, width in (("wide", 5), ("one", 3), ("two", 3)):
        Store.create(tmp_path / name, rows[:, :width], Y)
    kept = tmp_path / "kept.model"
    assert run("train", tmp_path / "wide", tmp_path / "one", "--model", kept)[0] == 0
    code, said, _ = run("predict", kept, tmp_path / "one", tmp_path / "two")
    assert code == 0 and len(said.split()) == 400


@pytest.mark.parametrize("words", ["--label 0", "--header no", "--missing mean", "--index-base 1"])
def test_options_of_files_are_refused(refusal, stores, words):
    assert f"{words.split()[0]} is for files" in refusal("train", *stores, *words.split())


def test_rows_that_do_not_go_together_are_refused(refusal, stores):
    other = stores[0].with_name("other")
    Store.create(other, X[:, :3], Y, sample_weight=np.ones(200))
    assert "has 3 features" in refusal("train", *stores, other)
    assert "--validation would copy" in refusal("train", *stores, "--validation", "0.2")
    said = refusal("train", "toy", "heart")
    assert "toy: is not a store" in said and "saddlesvm convert" in said
    assert "nowhere/*.store: no such file" in refusal("train", "nowhere/*.store")


def test_rows_left_out_of_a_store_are_left_out_by_the_model(run, refusal, tmp_path):
    pytest.importorskip("pandas")
    made = []
    for name, lines in (("a", "1,2,0\n,3,1\n2,1,1\n"), ("b", "3,2,1\n1,1,0\n,,0\n,2,1\n")):
        (tmp_path / f"{name}.csv").write_text(lines)
        made.append(tmp_path / f"{name}.store")
        assert run("convert", tmp_path / f"{name}.csv", made[-1], "--missing", "drop")[0] == 0
    kept = tmp_path / "kept.model"
    assert run("train", made[0], "--model", kept)[0] == 0
    assert "row 2: column 'column 1': the value is missing" in refusal("predict", kept, tmp_path / "a.csv")
    assert "their rows are not encoded alike" in refusal("train", *made)


def test_folds_of_a_store_leave_its_rows_in_their_files(run, monkeypatch, tmp_path):
    from sklearn.model_selection import GridSearchCV

    # A grid search would copy the rows of each fold.
    monkeypatch.setattr(GridSearchCV, "fit", lambda *_, **__: pytest.fail("the rows were copied"))
    Store.create(tmp_path / "s", X, Y)
    assert run("train", tmp_path / "s", "--C", "0.1,1", "--cv", "2")[0] == 0
