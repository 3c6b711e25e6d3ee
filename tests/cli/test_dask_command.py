"""``saddlesvm train --dask``: workers that read stores themselves, and what is refused before a cluster starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from saddlesvm import LinearSVC, Store
from saddlesvm.cli import main
from saddlesvm.models.persistence import load
from saddlesvm.problem.losses import Hinge
from support import distance_bound, labels, matrix

pytest.importorskip("distributed")


def stores(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Two stores of unequal size; their rows together."""
    X = matrix(120, 5)
    y = labels(X, Hinge()).astype(int)
    Store.create(folder / "a.store", X[:30], y[:30])
    Store.create(folder / "b.store", X[30:], y[30:])
    return X, y


@pytest.mark.filterwarnings("ignore")
def test_the_workers_read_the_stores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = stores(tmp_path)
    kept = str(tmp_path / "kept.model")
    given = ["train", str(tmp_path / "*.store"), "--dask", "local:1", "--C", "10", "--tol", "1e-6", "--model", kept]
    assert main([*given, "--test", str(tmp_path / "a.store")]) == 0
    said = capsys.readouterr().out
    assert "partitions                    2" in said
    model, reference = load(kept), LinearSVC(C=10.0, tol=1e-6).fit(X, y)
    apart = np.linalg.norm(model.coef_ - reference.coef_)
    assert apart <= distance_bound(model.certificate_.gap, reference.certificate_.gap)


def test_what_workers_cannot_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stores(tmp_path)
    (tmp_path / "c.csv").write_text("1,2\n")
    Store.create(tmp_path / "d.store2", matrix(9, 4), np.arange(9) % 2)
    for pattern, words in (("*.stores", "no such file"), ("[ac].*", "is not a store"), ("*.store*", "4 features")):
        assert main(["train", str(tmp_path / pattern), "--dask", "local:1"]) == 2
        assert words in capsys.readouterr().err


def test_options_that_do_not_go_are_refused_before_any_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stores(tmp_path)
    one, pattern = str(tmp_path / "a.store"), str(tmp_path / "*.store")
    for data, options, words in (
        (one, "--n-jobs 2", "--n-jobs does not work with --dask: the number of workers sets the threads"),
        (one, "--checkpoint kept", "--checkpoint does not work with --dask"),
        (one, "--solver dcd", "--solver dcd does not work with --dask; auto, newton, gather, rounds do"),
        (one, "--C auto", "give several values to choose from, as in --C 0.1,1,10"),
        (one, "--kernel rbf", "SVC is fitted without"),
        (one, "--loss squared --cv 3 --C 1", "--cv with --dask is for classification"),
        (one, "--penalty l3", "'l3' is not one of"),
        (one, "--multi-class all", "'all' is not one of"),
        (one, "--memory 1K", "memory must be at least"),
        (one, "--multi-class crammer_singer --intercept free", "no free intercept"),
        (pattern, "--validation 0.2", "--validation is for files"),
        (pattern, "--missing mean", "--missing is for files"),
        (pattern, "--label 0", "--label is for files"),
    ):
        assert main(["train", data, "--dask", "tcp://nowhere:1", *options.split()]) == 2
        assert words in capsys.readouterr().err
    assert main(["train", one, "--solver", "gather"]) == 2
    assert "give --dask" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_row_weights_of_a_store_count_and_a_report_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    X = matrix(120, 5)
    y, weights = labels(X, Hinge()).astype(int), np.random.default_rng(0).integers(1, 5, 120).astype(float)
    Store.create(tmp_path / "w.store", X, y, sample_weight=weights)
    kept, report = str(tmp_path / "kept.model"), tmp_path / "report.html"
    asked = ["train", str(tmp_path / "w.store"), "--dask", "local:1", "--tol", "1e-6", "--solver", "gather"]
    assert main([*asked, "--model", kept, "--report", str(report)]) == 0
    model, reference = load(kept), LinearSVC(tol=1e-6).fit(X, y, weights)
    assert np.linalg.norm(model.coef_ - reference.coef_) <= distance_bound(
        model.certificate_.gap, reference.certificate_.gap
    )
    assert len(model.trace_) == 1 and "How the gap closed" in report.read_text()
    capsys.readouterr()
    assert main([*asked[:4], "--C", "0.1,1", "--cv", "2", "--multi-class", "ovo"]) == 0
    assert "chosen" in capsys.readouterr().out
