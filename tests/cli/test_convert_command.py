"""The command line converts, trains from the store and says what is wrong in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, Store
from support.converting import N, X, Y, write


def test_the_command_line_converts_trains_predicts_and_certifies(run: Any, tmp_path: Path) -> None:
    write(tmp_path / "t.svm", "libsvm")
    store, model = tmp_path / "s", tmp_path / "m"
    code, out, err = run("convert", tmp_path / "t.svm", tmp_path / "t.svm", store, "--dtype", "float32")
    assert code == 0, err
    assert "6,000" in out and "float32" in out and "libsvm" in out
    code, out, _ = run("info", store, "--json")
    facts = json.loads(out)
    assert code == 0 and facts["store"]["rows"] == 2 * N and facts["store"]["classes"]["1"] == 2 * int((Y > 0).sum())
    code, out, err = run("train", store, "--test", store, "--loss", "hinge", "--model", model, "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["read"]["format"] == "store" and facts["read"]["non-zeros"] == 2 * np.count_nonzero(X)
    assert facts["quality"]["relative gap"] <= 1e-4
    assert run("predict", model, store)[0] == 0
    assert run("certify", model, store, "--tol", 1e-3)[0] == 0


def test_the_command_line_counts_the_weights_of_a_store(run: Any, tmp_path: Path) -> None:
    weights = np.where(Y > 0, 3.0, 1.0)
    Store.create(tmp_path / "s", X, Y, weights)
    run("train", tmp_path / "s", "--loss", "hinge", "--model", tmp_path / "m", "--tol", "1e-6")
    code, out, _ = run("certify", tmp_path / "m", tmp_path / "s", "--json")
    said = json.loads(out)["quality"]
    ours = LinearSVC(loss="hinge", tol=1e-6, random_state=0).fit(X, Y, weights)
    assert code == 0 and said["relative gap"] <= 1e-5
    assert said["primal objective"] == pytest.approx(ours.certificate_.primal, rel=3e-6)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["convert", "toy", "s"], "exists already"),
        (["convert", "nothing", "t"], "nothing"),
        (["convert", "toy", "banknote", "t"], "features"),
        (["convert", "toy", "t", "--memory", "much"], "memory"),
        (["convert", "toy", "t", "--label", "x"], "label"),
        (["info", "damaged"], "values.npy"),
        (["train", "damaged.partial"], "interrupted"),
        (["train", "s", "--scale", "2"], "scale when converting"),
        (["train", "s", "--label", "x"], "label"),
    ],
)
def test_bad_usage_is_one_line(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Store.create("s", X, Y)
    damaged = Store.create("damaged", X, Y).path / "values.npy"
    damaged.write_bytes(damaged.read_bytes()[:-8])
    (tmp_path / "damaged.partial").mkdir()
    code, out, err = run(*arguments)
    assert code == 2 and out == ""
    assert len(err.strip().splitlines()) == 1 and said in err
