"""LIBSVM text models on the command line: ``train --libsvm``, and what ``info`` and ``predict`` say of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from saddlesvm.cli.parser import main
from saddlesvm.estimators.persistence import load


@pytest.fixture
def irises(tmp_path: Path) -> str:
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X[::2], y[::2], str(tmp_path / "iris.svm"))
    return str(tmp_path / "iris.svm")


@pytest.mark.parametrize("estimator", ["SVC", "NuSVC", "SVR", "OneClassSVM"])
def test_a_written_model_predicts_the_same(irises, tmp_path, capsys, estimator) -> None:
    own, other = str(tmp_path / "own"), str(tmp_path / "libsvm")
    options = ["--nu", "0.2"] if estimator in ("NuSVC", "OneClassSVM") else []
    assert main(["train", irises, "--estimator", estimator, *options, "--model", own, "--libsvm", other, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"]["LIBSVM model written to"] == other
    X = load_iris().data[1::2]
    np.testing.assert_array_equal(load(own).predict(X), load(other).predict(X))
    assert main(["info", other, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["model"]["kind"] == estimator and told["notes"]["written by"].startswith("LIBSVM")


def test_models_that_libsvm_has_not_are_refused_before_the_fit(irises, tmp_path, capsys) -> None:
    path = tmp_path / "libsvm"
    assert main(["train", irises, "--estimator", "SVC", "--kernel", "laplacian", "--libsvm", str(path)]) == 2
    assert "LIBSVM has no kernel 'laplacian'" in capsys.readouterr().err
    assert not path.exists()
