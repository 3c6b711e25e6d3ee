"""Learning that goes on: partial_fit, warm starts, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC, NotCertifiedWarning, Outcome, Pegasos
from support.estimating import two_blobs


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    return two_blobs()


def test_partial_fit_learns_from_batches(blobs):
    X, y = blobs
    model = LinearSVC(solver=Pegasos(batch_size=4), loss="hinge", lam=1e-2, random_state=0)
    for _ in range(10):
        for part in np.array_split(np.arange(300), 3):
            model.partial_fit(X[part], y[part], classes=["no", "yes"])
    assert model.score(X, y) > 0.8
    assert model.certificate_.gap >= 0.0
    assert not hasattr(LinearSVC(), "partial_fit")


def streamed(**options):
    return LinearSVC(**({"solver": "pegasos", "loss": "hinge", "random_state": 0} | options))


def test_partial_fit_takes_the_elastic_net():
    random = np.random.default_rng(4)
    X = random.normal(size=(600, 20))
    y = np.where(X[:, 0] - X[:, 1] + 0.1 * random.normal(size=600) > 0.0, 1, 0)
    options = {"penalty": "elasticnet", "l1_ratio": 0.6, "lam": 0.1, "loss": "logistic"}
    model = streamed(**options)
    for _ in range(20):
        for part in np.array_split(np.arange(600), 3):
            model.partial_fit(X[part], y[part], classes=[0, 1])
    whole = LinearSVC(tol=1e-6, **options).fit(X, y)
    assert np.array_equal(model.coef_ != 0.0, whole.coef_ != 0.0)
    assert model.coef_ == pytest.approx(whole.coef_, abs=0.05)
    last = model.certificate_  # of the last part's own problem
    alone = LinearSVC(tol=1e-6, **options).fit(X[part], y[part]).certificate_
    assert last.dual <= alone.primal <= last.primal * (1 + 1e-6)
    assert not hasattr(streamed(penalty="l1"), "partial_fit")
    with pytest.raises(ValueError, match="'pegasos' needs a square in the penalty"):
        streamed(penalty="elasticnet", l1_ratio=1.0).partial_fit(X, y, classes=[0, 1])


def test_partial_fit_multiplies_class_weights_in(blobs):
    X, y = blobs
    by_class = streamed(class_weight={"no": 100.0, "yes": 0.5})
    by_row = streamed()
    for part in np.array_split(np.arange(300), 3):
        by_class.partial_fit(X[part], y[part], classes=["no", "yes"])
        by_row.partial_fit(X[part], y[part], ["no", "yes"], sample_weight=np.where(y[part] == "no", 100.0, 0.5))
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)


def test_partial_fit_after_fit_begins_anew(blobs):
    X, y = blobs
    other = np.where(X[:, 0] > 0, "a", "b")
    fresh = streamed().partial_fit(X[:, :4], other, classes=["a", "b"])
    model = streamed(tol=0.5).partial_fit(X, y, classes=["no", "yes"]).fit(X, y)
    model.partial_fit(X[:, :4], other, classes=["a", "b"])
    np.testing.assert_array_equal(model.coef_, fresh.coef_)
    assert model.n_features_in_ == 4
    assert model.n_iter_ == 1
    assert not {"dual_coef_", "outcome_", "trace_"} & set(vars(model))
    assert model.fit(X, y).partial_fit(X, y).classes_.tolist() == ["no", "yes"]


def test_partial_fit_that_fails_leaves_no_trace(blobs):
    X, y = blobs
    model = streamed()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.partial_fit(X, y[:-1], classes=["no", "yes"])
    model.partial_fit(X[:20], y[:20], classes=["no", "yes"])
    fresh = streamed().partial_fit(X[:20], y[:20], classes=["no", "yes"])
    np.testing.assert_array_equal(model.coef_, fresh.coef_)


@pytest.mark.parametrize(
    ("options", "calls", "message"),
    [
        ({}, [["no", "yes"], ["no", "maybe", "yes"]], r"classes are \['no', 'yes'\] since the first call .* got"),
        ({}, [None], "classes must be given in the first call"),
        ({}, [["no"]], "at least two labels"),
        ({}, [["maybe", "no"]], "y holds 'yes', which is not among the classes"),
        ({"class_weight": "balanced"}, [["no", "yes"]], "class_weight='balanced' needs all labels at once"),
        ({"class_weight": {"no": 0.0}}, [["no", "yes"]], "class_weight must hold positive finite factors"),
    ],
)
def test_bad_calls_of_partial_fit_are_named(blobs, options, calls, message):
    model = streamed(**options)
    with pytest.raises(ValueError, match=message):
        for classes in calls:
            model.partial_fit(*blobs, classes=classes)


def test_warm_start_continues(blobs):
    X, y = blobs
    model = LinearSVC(loss="hinge", warm_start=True, tol=1e-6, random_state=0).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ <= cold


@pytest.mark.parametrize("widths", [(6, 3), (3, 6)])
def test_warm_start_with_other_features_begins_anew(blobs, widths):
    X, y = blobs
    model = LinearSVC(solver="newton", warm_start=True, random_state=0)
    for C, width in zip((1.0, 0.5), widths, strict=True):
        model.set_params(C=C).fit(X[:, :width], y)
    cold = LinearSVC(C=0.5, solver="newton", random_state=0).fit(X[:, :width], y)
    np.testing.assert_array_equal(model.coef_, cold.coef_)


def test_checkpoint_is_written_and_continued(tmp_path, blobs):
    X, y = blobs
    path = tmp_path / "run.ckpt"
    with pytest.warns(NotCertifiedWarning):
        LinearSVC(solver="dcd", tol=1e-9, max_iter=3, random_state=0, checkpoint=path).fit(X, y)
    model = LinearSVC(solver="dcd", tol=1e-9, random_state=0, checkpoint=path).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    undisturbed = LinearSVC(solver="dcd", tol=1e-9, random_state=0).fit(X, y)
    gaps = model.certificate_.gap + undisturbed.certificate_.gap
    assert abs(model.certificate_.primal - undisturbed.certificate_.primal) <= gaps
    with pytest.raises(ValueError, match="belongs to another fit"):
        LinearSVC(solver="dcd", C=2.0, checkpoint=path).fit(X, y)
