"""`certify` and `prove` say whether the data are those of the fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC, LinearSVR, cli, load, save
from saddlesvm.cli import NOT_CERTIFIED, OK
from saddlesvm.data import load_bundled
from saddlesvm.data.data_mark import describe_difference, mark_data
from saddlesvm.estimators.certify import compare_with_fit


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit code of a command, and the facts that it prints for programs."""
    code = cli.main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_model_of_some_rows_says_so_of_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, proof = str(tmp_path / "a.model"), str(tmp_path / "proof.json")
    told(capsys, "train", "heart", "--validation", "0.2", "--C", "0.01", "--model", model)
    for command in (["certify", model, "heart"], ["prove", model, "heart", "-o", proof]):
        code, facts = told(capsys, *command)
        assert code == NOT_CERTIFIED
        assert next(iter(facts)) == "found"
        assert facts["found"]["data"].startswith("not the rows of the fit: the model was fitted to ")
        assert "says nothing about the fit" in facts["found"]["result"]


@pytest.mark.parametrize("options", [[], ["--standardize"], ["--C", "auto"], ["--memory", "64M"]])
def test_a_model_knows_its_own_rows(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "a.model")
    told(capsys, "train", "heart", "--loss", "logistic", *options, "--model", model)
    code, facts = told(capsys, "certify", model, "heart")
    assert code == OK
    assert facts["found"]["data"] == "the rows of the fit"
    assert next(iter(facts)) == "found"


def test_rows_labels_and_their_order_have_a_mark_whatever_their_type() -> None:
    notes = load_bundled("banknote")
    X, y = notes.X, notes.y.astype(int)
    mark = mark_data(X, y)
    for same in (X.astype(np.float32), np.asfortranarray(X), sparse.csr_array(X)):
        assert describe_difference(mark, same, y.astype(np.float32)) == ""
        assert describe_difference(mark, same, y.tolist()) == ""
    words = np.array(["true", "forged"])[y]
    assert describe_difference(mark_data(X, words), X, words.astype(object)) == ""
    assert "1,371" in describe_difference(mark, X[:-1], y[:-1])
    assert "order" in describe_difference(mark, X[::-1], y)
    assert "labels" in describe_difference(mark, X, 1 - y)
    assert describe_difference(mark_data(X), X[:, :3])


def test_saved_models_and_streams(tmp_path: Path) -> None:
    notes = load_bundled("banknote")
    model = LinearSVR(loss="squared").fit(notes.X, notes.X[:, :2])
    save(model, tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert compare_with_fit(again, notes.X, notes.X[:, :2]) == ""
    assert compare_with_fit(again, notes.X, notes.X[:, 1:3])
    stream = LinearSVC(solver="pegasos", random_state=0).fit(notes.X, notes.y)
    stream.partial_fit(notes.X[:100], notes.y[:100])
    assert compare_with_fit(stream, notes.X[:10], notes.y[:10]) == ""


def test_whole_labels_beyond_2_53_in_a_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{i}.5,{2**53 + i % 3}" for i in range(12)]
    (tmp_path / "a.csv").write_text("\n".join(["x,label", *lines]))
    assert cli.main(["train", str(tmp_path / "a.csv")]) == 2
    assert "2^53 or more" in capsys.readouterr().err
