"""Bounds for every C of a path: fits at values of C between the path's own never contradict them."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR

CASES = [
    (LinearSVC, {"loss": "logistic"}), (LinearSVC, {"loss": "squared_hinge", "fit_intercept": False}),
    (LinearSVC, {"loss": "hinge"}), (LinearSVC, {"loss": "logistic", "multi_class": "ovo"}),
    (LinearSVR, {"loss": "squared"}), (LinearSVR, {"loss": "huber"}),
]  # fmt: skip


def drawn(seed, n=60, d=4):
    """Rows, and targets that a linear model explains in part."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, X @ [2.0, -1.0, 0.5, 0.0] + random.normal(size=n)


@pytest.mark.parametrize(("kind", "options"), CASES, ids=lambda one: str(one)[:60])
def test_fits_at_any_C_are_within_the_bounds(kind, options):
    X, target = drawn(0)
    asked, _ = drawn(1)
    y = target
    if kind is LinearSVC:
        y = np.digitize(target, [-0.7, 0.7]) if options.get("multi_class") == "ovo" else (target > 0).astype(int)
    path = kind.path(X, y, C=(0.05, 5.0), gap=1e-3, random_state=0, **options)
    low, high = path.decision_bounds(asked)
    bands, edges = path.decision_bands(asked), path.band_edges()
    assert len(bands) == len(edges) - 1
    constant = path.is_constant(asked) if kind is LinearSVC else np.zeros(len(asked), dtype=bool)
    labels = []
    for C in np.exp(np.random.default_rng(2).uniform(np.log(0.05), np.log(5.0), 20)):
        model = kind(C=C, tol=1e-9, random_state=0, **options)
        model.fit(X, y)
        scores = asked @ np.atleast_2d(model.coef_).T + model.intercept_
        scores = scores[:, 0] if scores.shape[1] == 1 else scores
        slip = np.sqrt(2.0 * max(one.gap for one in model.certificates_)) * 10.0
        assert ((low - slip <= scores) & (scores <= high + slip)).all()
        near = bands[int(np.clip(np.searchsorted(edges, C) - 1, 0, len(bands) - 1))]
        least, most = (one.reshape(scores.shape) for one in near)
        assert ((least - slip <= scores) & (scores <= most + slip)).all()
        labels.append(model.predict(asked))
    if kind is LinearSVC:
        assert (np.array(labels)[:, constant] == labels[0][constant]).all()
        assert constant.any() or options["loss"] == "hinge"


def test_what_paths_cannot_bound_is_said():
    X, target = drawn(0)
    y = (target > 0).astype(int)
    elastic = LinearSVC.path(X, y, C=(0.5, 1.0), penalty="elasticnet", random_state=0)
    with pytest.raises(ValueError, match="penalty='l2'"):
        elastic.decision_bounds(X)
    with pytest.raises(ValueError, match="a regression has no labels"):
        LinearSVR.path(X, target, C=(0.5, 1.0), random_state=0).is_constant(X)
    free = LinearSVC.path(X, y, C=(0.5, 1.0), intercept="free", loss="logistic", random_state=0)
    assert not free.is_constant(X).any()
