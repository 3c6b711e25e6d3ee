"""Commands over several stores, side by side or by a pattern: the rows one below the other, as one store has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from saddlesvm import LinearSVC, Store
from saddlesvm.data.inputs import joined
from saddlesvm.estimators.persistence import load
from support import matrix

Run = Callable[..., tuple[int, str, str]]
X = matrix(200, 5)
Y = (X[:, 0] > 0.1).astype(int)


@pytest.fixture
def stores(tmp_path: Path) -> list[Path]:
    """Two stores of unequal size, with row weights."""
    for name, part in (("a", slice(80)), ("b", slice(80, None))):
        Store.create(tmp_path / f"{name}.store", X[part], Y[part], sample_weight=1.0 + Y[part])
    return [tmp_path / "a.store", tmp_path / "b.store"]


@pytest.mark.parametrize("spread", [True, False], ids=["side by side", "pattern"])
def test_several_stores_are_trained_on_as_python_does(run: Run, stores: list[Path], spread: bool) -> None:
    kept = stores[0].with_name("kept.model")
    given = stores if spread else [stores[0].with_name("*.store")]
    code, said, _ = run("train", *given, "--tol", "1e-6", "--model", kept, "--test", stores[1], "--json")
    assert code == 0
    model, whole = load(kept), LinearSVC(tol=1e-6).fit(*joined(stores))
    assert model.coef_.tobytes() == whole.coef_.tobytes() and model.intercept_ == whole.intercept_
    facts = json.loads(said)
    assert facts["read"]["rows"] == 200 and "a.store" in facts["read"]["source"]
    assert facts["quality"]["test accuracy"] == whole.score(X[80:], Y[80:])


def test_a_model_of_several_stores_is_used_on_them(run: Run, stores: list[Path]) -> None:
    kept, proof = (str(stores[0].with_name(name)) for name in ("kept.model", "proof.json"))
    assert run("train", *stores, "--loss", "logistic", "--model", kept)[0] == 0
    code, said, _ = run("predict", kept, *stores)
    assert code == 0 and np.mean(np.array(said.split(), dtype=int) == load(kept).predict(X)) == 1.0
    assert run("certify", kept, *stores, "--tol", "1e-3")[0] == 0
    assert run("prove", kept, *stores, "-o", proof)[0] == 0
    assert run("verify", proof, *stores)[0] == 0
    assert run("path", *stores, "--C", "0.1,1", "--validation", stores[1])[0] == 0


def test_sparse_stores_are_as_wide_as_the_model(run: Run, tmp_path: Path) -> None:
    rows = sp.csr_matrix(X * (X > 0.0))
    for name, width in (("wide", 5), ("one", 3), ("two", 3)):
        Store.create(tmp_path / name, rows[:, :width], Y)
    kept = tmp_path / "kept.model"
    assert run("train", tmp_path / "wide", tmp_path / "one", "--model", kept)[0] == 0
    code, said, _ = run("predict", kept, tmp_path / "one", tmp_path / "two")
    assert code == 0 and len(said.split()) == 400


@pytest.mark.parametrize("name", ["label", "scale", "header", "missing"])
def test_options_of_files_are_refused(run: Run, stores: list[Path], name: str) -> None:
    value = {"label": "0", "scale": "2", "header": "no", "missing": "mean"}[name]
    code, _, said = run("train", *stores, f"--{name}", value)
    assert code == 2 and f"--{name} is for files" in said


def test_rows_that_do_not_go_together_are_refused(run: Run, stores: list[Path]) -> None:
    other = stores[0].with_name("other")
    Store.create(other, X[:, :3], Y, sample_weight=np.ones(200))
    code, _, said = run("train", *stores, other)
    assert code == 2 and "has 3 features" in said
    assert "copies rows" in run("train", *stores, "--validation", "0.2")[2]


def test_rows_left_out_of_each_store_are_left_out_by_the_model(run: Run, tmp_path: Path) -> None:
    made = []
    for name, lines in (("a", "1,2,0\n,3,1\n2,1,1\n"), ("b", "3,2,1\n1,1,0\n,,0\n,2,1\n")):
        (tmp_path / f"{name}.csv").write_text(lines)
        made.append(tmp_path / f"{name}.store")
        assert run("convert", tmp_path / f"{name}.csv", made[-1], "--missing", "drop")[0] == 0
    kept = tmp_path / "kept.model"
    assert run("train", *made, "--model", kept)[0] == 0
    code, _, said = run("predict", kept, tmp_path / "a.csv")
    assert code == 2 and "row 2 has missing values, and the model was trained without such rows" in said
