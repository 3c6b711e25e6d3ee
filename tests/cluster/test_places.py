"""Only the places of w that a partition's sparse rows have travel, and nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.part import make_part
from saddlesvm.cluster.rounds import Rounds, Training
from saddlesvm.cluster.tasks import Places, added, at, touched, whole, without_zeros
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows.layouts import as_rows

CLASSES = np.array([-1.0, 1.0])


def text(n: int = 200, d: int = 3000) -> tuple[sparse.csr_array, np.ndarray]:
    X = sparse.random_array((n, d), density=0.004, format="csr", rng=np.random.default_rng(0))
    return sparse.csr_array(X), np.where(np.random.default_rng(1).random(n) < 0.5, -1.0, 1.0)


def test_vectors_come_back_whole_and_add_up() -> None:
    random = np.random.default_rng(0)
    vectors = np.where(random.random((2, 2, 50)) < 0.1, random.normal(size=(2, 2, 50)), 0.0)
    cut = [without_zeros(one) for one in vectors]
    assert all(isinstance(one, Places) and one.nbytes < 2 * 50 * 8 for one in cut)
    assert np.array_equal(whole(cut[0]), vectors[0])
    assert np.array_equal(whole(added(*cut)), vectors[0] + vectors[1])
    assert np.array_equal(whole(added(cut[0], vectors[1])), vectors[0] + vectors[1])
    full = random.normal(size=(2, 5))
    assert without_zeros(full) is full and at(full, np.empty(0, dtype=np.int32)) is full


def test_rows_touch_their_features_and_the_intercept() -> None:
    X, _ = text()
    places = touched(as_rows(X, 1.0))
    assert np.array_equal(places, [*np.unique(X.indices), X.shape[1]])
    assert not touched(as_rows(X.toarray(), 1.0)).size


def test_the_rounds_are_the_same_with_fewer_bytes() -> None:
    X, y = text()
    parts = [make_part(X[k::4], y[k::4], None, CLASSES, 1.0, "regularized") for k in range(4)]
    plan = Training(Hinge(), 1.0, 200, 1, X.shape[1], tol=1e-6)
    engines = [Engine(parts, 1), Engine(parts, 1)]
    engines[1].places = [np.empty(0, dtype=np.int32)] * 4
    few, all_of = (Rounds(replace(plan), engine).run() for engine in engines)
    assert np.array_equal(few.W, all_of.W)
    assert few.trace[-1]["bytes_down"] < 0.5 * all_of.trace[-1]["bytes_down"]
    assert few.trace[-1]["bytes_up"] < all_of.trace[-1]["bytes_down"]
