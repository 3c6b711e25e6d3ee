"""What the command line does to data before a fit, and prints beside predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from saddlesvm import SVC, LinearSVC
from saddlesvm.data import DataError, Store, convert, load_bundled, read
from saddlesvm.models.persistence import load, save

# Models of named columns are asked about arrays here.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
HEART = load_bundled("heart")


def test_labels_that_begin_with_a_minus_have_weights(run: Any, tmp_path: Path) -> None:
    code, _, err = run("train", "toy", "--class-weight", "-1=1,1=5", "--model", tmp_path / "m")
    assert code == 0, err
    assert load(tmp_path / "m").class_weight == {-1: 1.0, 1: 5.0}
    toy = load_bundled("toy")
    alone = LinearSVC(class_weight={1: 5.0}, random_state=0).fit(toy.X, toy.y)
    assert load(tmp_path / "m").certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-4)


def test_probabilities_beside_predictions(run: Any, tmp_path: Path) -> None:
    assert run("train", "heart", "--loss", "logistic", "--model", tmp_path / "m")[0] == 0
    code, out, err = run("predict", tmp_path / "m", "heart", "--probabilities")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "labels 0 1" and len(lines) == HEART.n_rows + 1
    found = np.array([line.split() for line in lines[1:]], dtype=float)
    model = load(tmp_path / "m")
    np.testing.assert_allclose(found[:, 1:], model.predict_proba(HEART.X), rtol=1e-8)
    assert np.array_equal(found[:, 0], model.classes_[found[:, 1:].argmax(axis=1)])
    run("train", "heart", "--model", tmp_path / "plain")
    code, out, err = run("predict", tmp_path / "plain", "heart", "--probabilities")
    assert (code, out) == (2, "") and "train it with --loss logistic" in err
    assert run("predict", tmp_path / "plain", "heart", "--probabilities", "--scores")[0] == 2


def test_scaled_features_are_those_of_the_model(run: Any, tmp_path: Path) -> None:
    code, out, err = run("train", "heart", "--standardize", "--C", "0.1", "--model", tmp_path / "m", "--json")
    assert code == 0, err
    again = load(tmp_path / "m")
    model = make_pipeline(StandardScaler(), LinearSVC(C=0.1, random_state=0)).fit(HEART.X, HEART.y)
    np.testing.assert_allclose(again.decision_function(HEART.X), model.decision_function(HEART.X), atol=1e-2)
    assert json.loads(out)["quality"]["train_accuracy"] == again.score(HEART.X, HEART.y)
    code, out, _ = run("predict", tmp_path / "m", "heart")
    assert code == 0 and np.array_equal(np.array(out.split(), dtype=int), again.predict(HEART.X))
    code, out, err = run("certify", tmp_path / "m", "heart", "--tol", "1e-3")
    assert code == 0, err
    assert "standardized                  yes" in run("info", tmp_path / "m")[1]
    Store.create(tmp_path / "h.store", HEART.X, HEART.y)
    code, _, err = run("train", tmp_path / "h.store", "--standardize")
    assert code == 2 and "--standardize copies rows" in err


def test_sparse_features_are_divided_only(run: Any, tmp_path: Path) -> None:
    lines = [f"{1 if k % 3 else -1} {1 + k % 5}:{k % 7 + 1} 7:{100 * (k % 3)}" for k in range(60)]
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    code, _, err = run("train", tmp_path / "rows.svm", "--standardize", "--model", tmp_path / "m")
    assert code == 0, err
    scaler = load(tmp_path / "m")[0]
    assert not scaler.with_mean
    code, out, _ = run("predict", tmp_path / "m", tmp_path / "rows.svm")
    assert code == 0 and len(out.split()) == 60


def test_a_pipeline_with_a_scaler_is_saved(tmp_path: Path) -> None:
    X = HEART.X.astype(np.float32)
    for scaler in (StandardScaler(), StandardScaler(with_mean=False), StandardScaler(with_std=False)):
        model = make_pipeline(scaler, SVC()).fit(X, HEART.y)
        save(model, tmp_path / "m", notes={"a": 1})
        again = load(tmp_path / "m")
        assert np.array_equal(again.decision_function(X), model.decision_function(X))
        assert again.notes_ == {"a": 1} and again[0].get_params() == scaler.get_params()
    model = make_pipeline(StandardScaler(), StandardScaler(), LinearSVC()).fit(X, HEART.y)
    save(model, tmp_path / "m")
    assert np.array_equal(load(tmp_path / "m").decision_function(X), model.decision_function(X))


def test_models_of_kernel_values_predict_in_python(run: Any, tmp_path: Path) -> None:
    save(SVC(kernel="precomputed").fit(rbf_kernel(HEART.X), HEART.y), tmp_path / "m")
    code, _, err = run("predict", tmp_path / "m", "heart")
    assert code == 2 and "takes values of a kernel: predict with it in Python" in err


TABLE = "id,name,a,b,kind,note\n1,x,1,2,u,p\n2,y,2,1,v,q\n3,z,1.5,3,u,r\n4,w,2.5,1,v,s\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("drop", [("id", "name", "note"), ("0", 1, -1), ["id", "name", "5"]])
def test_columns_are_left_out(ending: str, drop: Any, tmp_path: Path) -> None:
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        path.write_text(TABLE)
    else:
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        (tmp_path / "t.csv").write_text(TABLE)
        pd.read_csv(tmp_path / "t.csv").to_parquet(path)
    table = read(path, drop_columns=drop)
    assert table.feature_names == ["a", "b"] and table.label_name == "kind"
    assert table.y is not None and table.y.tolist() == ["u", "v", "u", "v"]
    np.testing.assert_array_equal(table.X, [[1, 2], [2, 1], [1.5, 3], [2.5, 1]])
    alone = read(path, drop_columns=[*drop, "kind"], label=False)
    np.testing.assert_array_equal(alone.X, table.X)
    expected = read(path, drop_columns=[*drop, "kind"], n_features=2)
    assert expected.y is None
    if ending == "csv":
        store = convert(path, tmp_path / "s.store", drop_columns=drop)
        assert store.header["feature_names"] == ["a", "b"] and store.shape == (4, 2)
    with pytest.raises(DataError, match=r"has no column 'nick'"):
        read(path, drop_columns=["nick", "id"])
    with pytest.raises(DataError, match="drop_columns names the label column"):
        read(path, drop_columns=drop, label=-1)
    with pytest.raises(DataError, match="drop_columns applies to CSV, TSV, Parquet and Feather; this is bundled"):
        read("heart", drop_columns=["age"])


def test_a_saved_row_index_and_headerless_tables(tmp_path: Path) -> None:
    (tmp_path / "i.csv").write_text(",a,b,kind\n0,1,2,1\n1,2,1,0\n")
    with pytest.raises(DataError, match="column 1 has no name"):
        read(tmp_path / "i.csv")
    assert read(tmp_path / "i.csv", drop_columns=[0]).feature_names == ["a", "b"]
    (tmp_path / "h.csv").write_text("x,1,2,1\ny,2,1,0\n")
    table = read(tmp_path / "h.csv", drop_columns=[0])
    assert table.X.tolist() == [[1, 2], [2, 1]] and table.feature_names is None
    assert read(tmp_path / "h.csv", drop_columns=[0], label=1).X.tolist() == [[2, 1], [1, 0]]


def test_the_command_leaves_columns_out(run: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    drop = ("--columns", "id=drop,name=drop,note=drop")
    code, out, err = run("train", tmp_path / "t.csv", *drop, "--model", tmp_path / "m", "--json")
    assert code == 0 and json.loads(out)["data"]["features"] == 2, err
    code, out, err = run("predict", tmp_path / "m", tmp_path / "t.csv", *drop)
    assert code == 0 and out.split() == ["u", "v", "u", "v"], err
    code, out, err = run("convert", tmp_path / "t.csv", tmp_path / "t.store", *drop, "--json")
    assert code == 0 and Store(tmp_path / "t.store").shape == (4, 2), err
    assert run("train", tmp_path / "t.csv", "--columns", "id=")[0] == 2
