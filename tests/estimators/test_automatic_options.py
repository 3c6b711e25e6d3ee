"""Options of ``C="auto"``: its checkpoint, and rows in groups, which are left out whole."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR, Outcome
from saddlesvm.data import load_bundled
from saddlesvm.estimators.automatic_C import AutomaticC


@pytest.fixture(scope="module")
def heart():
    table = load_bundled("heart")
    return table.X / np.abs(table.X).max(axis=0), table.y


def test_the_checkpoint_of_automatic_c_is_that_of_its_last_fit(heart, tmp_path):
    X, y = heart
    how = AutomaticC(low=0.1, high=1.0, gap=0.1, size=3)
    first, second = (LinearSVC(C=how, checkpoint=tmp_path / "run", random_state=0).fit(X, y) for _ in range(2))
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    assert first.outcome_ is second.outcome_ is Outcome.CERTIFIED
    assert second.C_ == first.C_
    with pytest.raises(ValueError, match="a path has many: leave checkpoint out"):
        LinearSVC.path(X, y, C=(0.1, 1.0), checkpoint=tmp_path / "run")


@pytest.mark.parametrize("count", [4, 25])
def test_groups_are_left_out_whole(heart, count):
    X, y = heart
    groups = np.arange(len(y)) % count
    copies = np.repeat(np.arange(len(y)), 2)  # each row twice: rows left out alone would be known all the same
    how = AutomaticC(low=0.01, high=1.0, gap=0.1, size=3)
    model = LinearSVC(C=how, random_state=0).fit(
        X[copies], y[copies], groups=np.array([f"g{k}" for k in groups[copies]])
    )
    assert model.choice_.by_folds and model.choice_.estimates == []
    folds = [groups == k for k in range(count)] if count <= 10 else None
    if folds:
        for k, C in enumerate(model.choice_.Cs):
            wrong = [
                1.0 - LinearSVC(C=2.0 * C, random_state=0).fit(X[~out], y[~out]).score(X[out], y[out]) for out in folds
            ]
            assert model.choice_.errors[k] == pytest.approx(np.mean(wrong), abs=0.03)
    target = LinearSVR(C=how, random_state=0).fit(X, X[:, 0], groups=groups)
    assert target.choice_.by_folds


@pytest.mark.parametrize(
    ("options", "groups", "message"),
    [
        ({"C": 1.0}, "own", "groups are for C='auto'"),
        ({"C": "auto"}, "one", "groups holds 1 group only"),
        ({"C": "auto", "probability": True}, "own", "groups are left out whole"),
        ({"C": "auto"}, "short", "groups has 5 names for"),
        ({"C": "auto"}, "classes", "only if the group of row 0 is left out"),
    ],
)
def test_groups_that_cannot_be_heeded_are_refused(heart, options, groups, message):
    X, y = heart
    given = {"own": np.arange(len(y)) // 10, "one": np.zeros(len(y)), "short": np.arange(5), "classes": y}[groups]
    with pytest.raises(ValueError, match=message):
        LinearSVC(**options, random_state=0).fit(X, y, groups=given)
