"""One-vs-rest problems that begin together."""

from __future__ import annotations

import dataclasses
import itertools
import threading

import numpy as np
import pytest
from sklearn.datasets import load_digits

from saddlesvm import LinearSVC, Outcome
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.multiclass import shared_start, sub_problems as multiclass
from saddlesvm.multiclass.shared_start import ClassNewton
from saddlesvm.problem.certificate import evaluate
from saddlesvm.problem.losses import Hinge, Logistic
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD
from support import csr, distance_bound, others_nightly
from support.classes import blobs

LOSSES, FORMS = ("hinge", "squared_hinge", "smooth_hinge", "logistic"), ("dense", "csr")


@pytest.fixture
def always_shared(monkeypatch):
    monkeypatch.setattr(shared_start, "LEAST_VALUES", 0)


@pytest.mark.parametrize(
    ("loss", "form"),
    others_nightly(
        itertools.product(LOSSES, FORMS),
        {("hinge", "csr"), ("squared_hinge", "dense"), ("logistic", "dense")}.__contains__,
    ),
)
def test_problems_that_begin_together_end_as_alone(loss, form, always_shared):
    X, y = blobs(k=6, n=200)
    weights = np.where(np.arange(200) % 7 == 0, 0.0, 1.0 + np.arange(200) % 2)
    given = X if form == "dense" else csr(X)
    intercept = "free" if loss == "hinge" else "regularized"
    options = {"loss": loss, "intercept": intercept, "tol": 1e-6, "random_state": 0}
    shared = LinearSVC(**options).fit(given, y, weights)
    alone = LinearSVC(**options, solver=DCD(shrinking=False)).fit(given, y, weights)
    for k in range(6):
        gaps = shared.certificates_[k].gap, alone.certificates_[k].gap
        assert shared.certificates_[k].relative_gap <= 1e-6
        assert np.linalg.norm(shared.coef_[k] - alone.coef_[k]) <= distance_bound(*gaps)


def test_a_block_leaves_little_to_do(monkeypatch):
    X, y = load_digits(return_X_y=True)
    options = {"C": 0.01, "tol": 1e-3, "random_state": 0}
    alone = LinearSVC(**options).fit(X, y)
    monkeypatch.setattr(shared_start, "LEAST_VALUES", 0)
    shared = LinearSVC(**options).fit(X, y)

    def epochs(model):
        last = {record["problem"]: record["epoch"] for record in model.trace_}
        return sum(last.values())

    assert epochs(shared) < 0.5 * epochs(alone)
    assert shared.n_iter_ > max(record["epoch"] for record in shared.trace_)


def test_an_interrupted_block_hands_over_what_it_has(always_shared):
    X, y = blobs(k=6, n=300)
    problems = multiclass.one_vs_rest(y, np.arange(6))
    shared = shared_start.SharedStart(problems, 6, 1e-6, 0)
    problem = problems[0].problem(as_rows(X), Hinge(), C=1.0)
    stop = threading.Event()
    stop.set()
    start = shared.point(0, problem, stop, None)
    assert not start.alpha.any()
    assert fit(problem, DCD(), Limits(tol=1e-3), start=start).outcome is Outcome.CERTIFIED


def test_a_block_parts_when_each_alone_would_be_done(always_shared):
    X, y = blobs(k=6, n=300)
    problems = multiclass.one_vs_rest(y, np.arange(6))
    problem = problems[0].problem(as_rows(X), Hinge(), C=100.0)
    starts = {}
    for most in (0.0, 2.0, np.inf):
        shared = shared_start.SharedStart(problems, 6, 1e-12, 0, most)
        starts[most] = [shared.point(k, problem, threading.Event(), None) for k in range(6)]
    assert starts[0.0] == starts[2.0] == [None] * 6
    assert all(start.alpha.any() for start in starts[np.inf])
    easy = problems[0].problem(as_rows(X), Hinge(), C=1e-3)
    nearly = shared_start.SharedStart(problems, 6, 1e-3, 0, 3.0)
    assert all(nearly.point(k, easy, threading.Event(), None).alpha.any() for k in range(6))


def test_blocks_fit_the_problems_and_the_threads():
    X = as_rows(np.zeros((100_000, 256), dtype=np.float32))
    assert shared_start.block_size(X, 3, 1) == 1
    assert shared_start.block_size(X, 10, 1) == 10
    assert shared_start.block_size(X, 10, 2) == 5
    assert shared_start.block_size(X, 1000, 2) <= 32
    assert shared_start.block_size(as_rows(np.zeros((100, 4))), 1000, 1) == 1


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_newton_steps_of_a_block_solve_each_of_its_problems(kind):
    """What each class reaches is certified alone, over the stored rows."""
    X, y = blobs(k=6, n=300)
    factors, weights = np.array([1.0, 3.0, 1.0, 0.5, 1.0, 1.0]), 0.5 + np.arange(300) % 2
    labels = np.where(y[:, None] == np.unique(y), 1, -1).astype(np.int8)
    made = [
        make_problem(as_rows(X.astype(kind), 1.0), one, Logistic(), C=2.0, weights=own, intercept="regularized")
        for one, own in (
            (labels[:, k].astype(float), weights * np.where(labels[:, k] > 0, factors[k], 1.0)) for k in range(6)
        )
    ]
    block = ClassNewton(dataclasses.replace(made[0], weights=weights), labels, np.zeros(labels.shape), factors)
    passes, estimates = block.run(1e-3, 0, lambda: False)
    assert 1 < passes < 100
    assert (estimates <= 1e-3).all()
    for k, problem in enumerate(made):
        proof = evaluate(problem, block.point(k)).certificate
        assert proof.relative_gap <= 1e-3
    stopped = ClassNewton(block.problem, labels, np.zeros(labels.shape), factors)
    assert stopped.run(1e-3, 0, lambda: True)[0] == 1
