"""``saddlesvm train --dask``: workers that read stores themselves, and what is refused before a cluster starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from saddlesvm import LinearSVC, Store
from saddlesvm.cli.parser import main
from saddlesvm.estimators.persistence import load
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
    assert "2 partitions" in said
    model, reference = load(kept), LinearSVC(C=10.0, tol=1e-6).fit(X, y)
    apart = np.linalg.norm(model.coef_ - reference.coef_)
    assert apart <= distance_bound(model.certificate_.gap, reference.certificate_.gap)


def test_what_workers_cannot_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stores(tmp_path)
    (tmp_path / "c.csv").write_text("1,2\n")
    Store.create(tmp_path / "d.store2", matrix(9, 4), np.arange(9) % 2)
    for pattern, words in (("*.stores", "no store"), ("c.*", "convert makes them"), ("*.store*", "4 features")):
        assert main(["train", str(tmp_path / pattern), "--dask", "local:1"]) == 2
        assert words in capsys.readouterr().err
