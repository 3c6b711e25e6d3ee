"""LIBSVM text models on the command line: what ``info`` and ``predict`` say of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from saddlesvm.cli import main
from saddlesvm.models.persistence import load
from support.libsvm_text import write_libsvm


@pytest.fixture
def irises(tmp_path: Path) -> str:
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X[::2], y[::2], str(tmp_path / "iris.svm"))
    return str(tmp_path / "iris.svm")


@pytest.mark.parametrize("estimator", ["SVC", "NuSVC", "SVR", "OneClassSVM"])
def test_a_model_of_libsvm_is_described_and_predicts_the_same(irises, tmp_path, capsys, estimator) -> None:
    own, other = str(tmp_path / "own"), tmp_path / "libsvm"
    options = ["--set", "nu=0.2"] if estimator in ("NuSVC", "OneClassSVM") else []
    assert main(["train", irises, "--estimator", estimator, *options, "--model", own]) == 0
    capsys.readouterr()
    write_libsvm(load(own), other)
    X = load_iris().data[1::2]
    np.testing.assert_array_equal(load(own).predict(X), load(other).predict(X))
    assert main(["info", str(other), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["model"]["kind"] == estimator and told["notes"]["written_by"].startswith("LIBSVM")
    predictions = []
    for model in (own, str(other)):
        assert main(["predict", model, irises]) == 0
        predictions.append(capsys.readouterr().out)
    assert predictions[0] == predictions[1]
