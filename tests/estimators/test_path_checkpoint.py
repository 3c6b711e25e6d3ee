"""The checkpoint of a path: what was fitted is proven again, not fitted again; nothing in the file is believed."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, Outcome
from saddlesvm.data import load_bundled
from saddlesvm.estimators.automatic_C import AutomaticC
from saddlesvm.fit.checkpoint import Checkpoint

ENDS, GAP = (1e-2, 1e2), 2e-2


@pytest.fixture(scope="module")
def heart():
    table = load_bundled("heart")
    return table.X / np.abs(table.X).max(axis=0), table.y


def stopping_after(records):
    """A callback that stops a path after so many records."""

    def callback(record):
        callback.seen += 1
        return callback.seen >= records

    callback.seen = 0
    return callback


@pytest.mark.parametrize("options", [{"loss": "hinge"}, {"loss": "logistic", "n_jobs": 2}])
def test_a_stopped_path_goes_on_where_it_was(heart, tmp_path, options):
    X, y = heart
    file = tmp_path / "path.ckpt"
    given = {"C": ENDS, "gap": GAP, "random_state": 0, **options}
    with pytest.warns(NotCertifiedWarning):
        stopped = LinearSVC.path(
            X, y, checkpoint=Checkpoint(file, every_steps=1), callbacks=[stopping_after(9)], **given
        )
    assert stopped.outcome is Outcome.INTERRUPTED and file.exists()
    path = LinearSVC.path(X, y, checkpoint=file, **given)
    whole = LinearSVC.path(X, y, **given)
    assert path.outcome is Outcome.CERTIFIED and path.proven_gap <= GAP
    assert len({*stopped.Cs} & {*path.Cs}) >= 2
    for C in np.geomspace(*ENDS, 5):
        assert path.certificate(C).dual <= whole.certificate(C).primal * (1 + 1e-9)
        assert whole.certificate(C).dual <= path.certificate(C).primal * (1 + 1e-9)
    again = LinearSVC.path(X, y, checkpoint=file, **given)
    assert sum(model.n_iter_ for model in again.models) <= sum(model.n_iter_ for model in whole.models)
    finer = LinearSVC.path(X, y, checkpoint=file, **(given | {"gap": 5e-3}))
    assert finer.proven_gap <= 5e-3 and finer.Cs.size >= path.Cs.size


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_several_classes_are_stored(tmp_path, multi_class):
    random = np.random.default_rng(2)
    y = np.array(["a", "b", "c"])[np.arange(90) % 3]
    X = random.normal(size=(90, 3)) + 2.0 * np.eye(3)[np.arange(90) % 3]
    given = {"C": ENDS, "gap": 0.1, "loss": "logistic", "multi_class": multi_class, "random_state": 0}
    first, second = (LinearSVC.path(X, y, checkpoint=tmp_path / "p", **given) for _ in range(2))
    np.testing.assert_array_equal(first.Cs, second.Cs)
    assert second.proven_gap <= 0.1


def test_another_path_is_refused_and_so_is_a_damaged_file(heart, tmp_path):
    X, y = heart
    file = tmp_path / "path.ckpt"
    given = {"C": (0.1, 1.0), "gap": 0.1, "checkpoint": file, "random_state": 0}
    LinearSVC.path(X, y, **given)
    for other, what in (((X + 1e-3, y), "rows"), ((X, y[::-1]), "labels")):
        with pytest.raises(ValueError, match=f"belongs to another path: .*{what}"):
            LinearSVC.path(*other, **given)
    with pytest.raises(ValueError, match="belongs to another path: options"):
        LinearSVC.path(X, y, loss="hinge", **given)
    with pytest.raises(ValueError, match="belongs to another path: weights"):
        LinearSVC.path(X, y, sample_weight=np.full(len(y), 2.0), **given)
    kept = file.read_bytes()
    for damaged in (b"", kept[: len(kept) // 2], kept.replace(b"path checkpoint 1", b"path checkpoint 9")):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="is not a readable checkpoint"):
            LinearSVC.path(X, y, **given)


def test_wrong_numbers_in_the_file_prove_nothing(heart, tmp_path):
    X, y = heart
    file = tmp_path / "path.ckpt"
    given = {"C": (0.1, 1.0), "gap": 0.1, "checkpoint": file, "random_state": 0}
    honest = LinearSVC.path(X, y, **given)
    with np.load(file) as stored:
        arrays = {name: stored[name] for name in stored.files}
    arrays = {name: 3.0 - 2.0 * one if name.endswith((".coef", ".duals")) else one for name, one in arrays.items()}
    np.savez(file.with_suffix(".npz"), **arrays)
    file.with_suffix(".npz").rename(file)
    path = LinearSVC.path(X, y, **given)
    assert path.proven_gap <= 0.1
    for C in (0.1, 0.4, 1.0):
        assert path.certificate(C).dual <= honest.certificate(C).primal * (1 + 1e-9)
        assert honest.certificate(C).dual <= path.certificate(C).primal * (1 + 1e-9)


def test_the_checkpoint_of_automatic_c_is_its_paths(heart, tmp_path):
    X, y = heart
    how = AutomaticC(low=0.1, high=1.0, gap=0.1, size=3)
    first, second = (LinearSVC(C=how, checkpoint=tmp_path / "run", random_state=0).fit(X, y) for _ in range(2))
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    np.testing.assert_array_equal(first.path_.Cs, second.path_.Cs)
    assert second.outcome_ is Outcome.CERTIFIED


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
        ({"C": "auto"}, "short", "inconsistent numbers of samples"),
    ],
)
def test_groups_that_cannot_be_heeded_are_refused(heart, options, groups, message):
    X, y = heart
    given = {"own": np.arange(len(y)) // 10, "one": np.zeros(len(y)), "short": np.arange(5)}[groups]
    with pytest.raises(ValueError, match=message):
        LinearSVC(**options, random_state=0).fit(X, y, groups=given)
