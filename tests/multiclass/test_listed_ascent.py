"""The ascent of Crammer and Singer's machine over lists of variables, for many classes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC, Outcome
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.problem import crammer_singer
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.crammer_singer import JointProblem, make_joint_problem
from saddlesvm.problem.joint_losses import BEST_RIVAL
from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.sums import dual_weights
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.crammer_singer import JointAscent
from saddlesvm.solvers.joint_ascent import ListedState, TableState
from support import Every, csr, distance_bound
from support.classes import blobs


@pytest.fixture
def lists(monkeypatch):
    """Lists from the smallest problems on."""
    monkeypatch.setattr(crammer_singer, "MANY_VARIABLES", 1)
    monkeypatch.setattr(crammer_singer, "MANY_CLASSES", 3)


def joint(X, y, **options):
    return make_joint_problem(as_rows(X, 1.0), y, int(y.max()) + 1, Hinge(), C=0.5, intercept="regularized", **options)


def fitted(X, y, weights=None, **options):
    given = {"multi_class": "crammer_singer", "loss": "hinge", "tol": 1e-6, "random_state": 0} | options
    return LinearSVC(**given).fit(X, y, weights)


FORMS = {
    "float32": {},
    "csr": {"made": csr},
    "float64": {"made": lambda X: X.astype(np.float64)},
    "float16": {"made": lambda X: X.astype(np.float16)},
    "weights": {"weights": np.arange(400) % 5.0},
}


@pytest.mark.parametrize("form", FORMS)
def test_lists_reach_the_optimum_of_the_ascent_without_lists(form, monkeypatch):
    X, y = blobs(400, 6, 12, seed=1)
    options = dict(FORMS[form])
    made, weights = options.pop("made", lambda X: X)(X.astype(np.float32)), options.pop("weights", None)
    plain = fitted(made, y, weights, **options)
    monkeypatch.setattr(crammer_singer, "MANY_VARIABLES", 1)
    monkeypatch.setattr(crammer_singer, "MANY_CLASSES", 3)
    listed = fitted(made, y, weights, **options)
    assert listed.outcome_ is Outcome.CERTIFIED
    gaps = plain.certificate_.gap, listed.certificate_.gap
    assert np.linalg.norm(plain.coef_ - listed.coef_) <= distance_bound(*gaps)
    assert listed.certificate_.dual <= plain.certificate_.primal + listed.certificate_.dual_rounding
    reached = listed.dual_coef_ @ made.astype(np.float64)
    assert np.linalg.norm(reached - listed.coef_) <= distance_bound(listed.certificate_.gap)


def test_a_visit_leaves_the_row_without_a_share_of_the_gap(lists):
    X, y = blobs(n=8, k=4, seed=3)
    for members in (np.array([i]) for i in range(8)):
        problem, solver = joint(X, y, members=members), JointAscent()
        state = solver.step(problem, solver.init(problem, 0), Budget(1))
        assert isinstance(state, ListedState)
        certificate = evaluate(problem, solver.solution(problem, state)).certificate
        assert abs(certificate.gap) <= 1e-12 * certificate.primal


@pytest.mark.parametrize("X", [np.zeros((6, 3)), np.eye(6)[:, :3]], ids=["zeros", "some zeros"])
def test_rows_of_zeros_have_their_best_variables(X, lists):
    y = np.arange(6) % 3
    model = fitted(X, y, intercept="none")
    assert model.outcome_ is Outcome.CERTIFIED


def test_a_full_pool_is_packed_and_nothing_is_lost(lists):
    X, y = blobs(300, 5, 40, seed=2)
    problem, solver = joint(X, y), JointAscent()
    state = solver.init(problem, 0)
    state.pack(0)
    sizes = set()
    for _ in range(6):
        solver.step(problem, state, Budget(300))
        sizes.add(state.values.size)
        before = state.duals()
        state.pack(0)
        assert (before != state.duals()).nnz == 0
        true = dual_weights(problem, before)
        np.testing.assert_allclose(dual_weights(problem, before.toarray()), true, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(np.asarray(state.w), true, atol=1e-9 * np.abs(true).max())
        np.testing.assert_allclose(before.sum(axis=1), 0.0, atol=1e-12)
    assert len(sizes) > 1


@pytest.mark.parametrize("some", [False, True], ids=["all rows", "some rows"])
def test_a_certificate_is_the_same_for_an_array_and_a_csr_array(some, lists):
    X, y = blobs(200, 5, 30)
    problem = joint(X, y, **({"members": np.arange(0, 200, 2)} if some else {}))
    random = np.random.default_rng(0)
    alpha = problem.feasible(-random.exponential(size=(200, 30)) * (random.random((200, 30)) < 0.1))
    W = dual_weights(problem, alpha)
    for given in ({}, {"w": W}, {"w": W, "tracks": True}):
        exact = "tracks" not in given
        one, other = (evaluate(problem, Point(alpha=a, **given), exact=exact) for a in (alpha, sparse.csr_array(alpha)))
        for name in ("primal", "dual", "primal_rounding", "dual_rounding"):
            expected = getattr(one.certificate, name)
            assert getattr(other.certificate, name) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    found = evaluate(problem, Point(W))
    assert sparse.issparse(found.alpha)
    np.testing.assert_allclose(problem.feasible(found.alpha.toarray()), found.alpha.toarray(), atol=1e-14)


def test_a_fit_of_many_classes_takes_less_memory_than_its_variables_would():
    random = np.random.default_rng(0)
    y = np.arange(16_384) % 128
    X = (random.normal(size=(128, 16))[y] + random.normal(size=(y.size, 16))).astype(np.float32)
    problem, solver = joint(X, y), JointAscent()
    solver.step(problem, solver.init(problem, 0), Budget(100))
    tracemalloc.start()
    state = solver.step(problem, solver.init(problem, 0), Budget(2 * y.size))
    evaluate(problem, solver.solution(problem, state))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert problem.many_variables
    assert peak < 0.9 * 8 * y.size * 128


@pytest.mark.filterwarnings("ignore:stopped before the certificate")
def test_a_run_goes_on_from_its_checkpoint(tmp_path, lists):
    X, y = blobs(300, 5, 12, seed=4)
    options = {"multi_class": "crammer_singer", "loss": "hinge", "tol": 1e-6, "random_state": 0}
    whole = LinearSVC(**options, max_iter=12, callbacks=[Every(1)]).fit(X, y)
    path = tmp_path / "run"
    records = []
    stop = LinearSVC(
        **options, max_iter=12, checkpoint=Checkpoint(path, every_steps=1),
        callbacks=[Every(1, lambda record: records.append(record) or len(records) >= 4)],
    )  # fmt: skip
    stop.fit(X, y)
    again = LinearSVC(**options, max_iter=12, callbacks=[Every(1)], checkpoint=Checkpoint(path, every_steps=1))
    resumed = again.fit(X, y)
    ours, theirs = resumed.certificate_, whole.certificate_
    assert ours.dual <= theirs.primal and theirs.dual <= ours.primal


def test_without_shrinking_and_over_few_classes_there_are_no_lists(lists):
    X, y = blobs(60, 4, 5)
    problem = joint(X, y)
    assert isinstance(JointAscent(shrinking=False).init(problem, 0), TableState)
    other = make_joint_problem(
        as_rows(X, 1.0), y % 2, 2, Hinge(), BEST_RIVAL, C=0.5, intercept="regularized", kind=JointProblem
    )
    assert isinstance(JointAscent().init(other, 0), TableState)
