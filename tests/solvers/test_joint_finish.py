"""The second-order finish of the joint machines: its laws, its optima, and when it takes over."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC, NotCertifiedWarning, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.joint_losses import BEST_RIVAL
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.crammer_singer import ASCENT, FINISH, CrammerSinger
from saddlesvm.solvers.second_order import joint
from saddlesvm.solvers.second_order.joint import JointFinish
from saddlesvm.solvers.second_order.joint_kernels import (
    LINE,
    SUMS,
    FreeRows,
    SmoothedRows,
    add_blocks,
    bent_jointly,
    respond,
    slope_along,
)
from support import Every, csr, distance_bound
from support.classes import blobs

LOSSES = pytest.mark.parametrize("loss", [BEST_RIVAL], ids=["best rival"])
CLASSES, FEATURES = 5, 4


def rows_of(loss, *, n=60, layout=np.asarray, C=1.0, **options):
    """A joint problem whose classes overlap, and some of whose rows weigh nothing."""
    random = np.random.default_rng(3)
    X, y = random.normal(size=(n, FEATURES)), np.arange(n) % CLASSES
    X += 0.8 * random.normal(size=(CLASSES, FEATURES))[y]
    weights = random.integers(0, 3, n).astype(np.float64)
    options = {"C": C, "weights": weights, "intercept": "regularized"} | options
    return make_joint_problem(as_rows(layout(X), 1.0), y.astype(float), CLASSES, Hinge(), loss, **options)


def response(problem, centre, q, Z):
    """The variables of all rows at the scores Z, and the classes between their bounds."""
    n, K = Z.shape
    terms = SmoothedRows(problem.joint, problem.codes, problem.all_weights, centre, q)
    alpha, classes, counts = np.empty((n, K)), np.empty((n, K), dtype=np.int32), np.zeros(n, dtype=np.int32)
    respond(terms, Z, alpha, classes, counts, np.zeros(1, SUMS))
    return terms, alpha, FreeRows(np.flatnonzero(counts), classes, counts)


def smoothed(problem, centre, q, Z, alpha):
    """The sum of the rows' terms, by its definition."""
    ahead = Z + 1.0 - np.eye(CLASSES)[problem.codes]
    return float(-(alpha * ahead).sum() - 0.5 * q * np.square(alpha - centre).sum())


def a_point(problem, seed):
    """A dual feasible centre, scores and a change of the scores."""
    random = np.random.default_rng(seed)
    shape = problem.y.size, CLASSES
    centre = problem.feasible(-random.exponential(0.3, size=shape) * (random.random(shape) < 0.6))
    return centre, 2.0 * random.normal(size=shape), random.normal(size=shape), random


@LOSSES
@pytest.mark.parametrize("q", [0.05, 2.0])
def test_the_variables_are_feasible_and_best(loss, q):
    problem = rows_of(loss)
    centre, Z, _, random = a_point(problem, 0)
    _, alpha, _ = response(problem, centre, q, Z)
    np.testing.assert_allclose(problem.feasible(alpha), alpha, atol=1e-13)
    best = smoothed(problem, centre, q, Z, alpha)
    for _ in range(50):
        other = problem.feasible(alpha + 0.2 * random.normal(size=alpha.shape))
        assert smoothed(problem, centre, q, Z, other) <= best + 1e-11


@LOSSES
def test_the_derivatives_along_a_line_are_those_of_the_smoothed_losses(loss):
    problem, q, step = rows_of(loss), 0.7, 1e-5
    centre, Z, change, _ = a_point(problem, 1)
    terms, _, _ = response(problem, centre, q, Z)
    line = np.zeros(1, LINE)
    slope_along(terms, Z, change, 0.3, line)
    places = Z + (0.3 + np.array([-step, step]))[:, None, None] * change
    before, after = (smoothed(problem, centre, q, at, response(problem, centre, q, at)[1]) for at in places)
    assert line["slope"][0] == pytest.approx((after - before) / (2.0 * step), rel=1e-6)
    slopes = []
    for t in (0.3 - step, 0.3 + step):
        slope_along(terms, Z, change, t, line)
        slopes.append(line["slope"][0])
    slope_along(terms, Z, change, 0.3, line)
    assert line["bend"][0] == pytest.approx((slopes[1] - slopes[0]) / (2.0 * step), rel=1e-4)


@LOSSES
@pytest.mark.parametrize("layout", [np.asarray, csr], ids=["dense", "csr"])
def test_matrix_product_and_line_have_the_same_second_derivative(loss, layout):
    problem, q, t = rows_of(loss, layout=layout), 0.7, 1.3
    centre, _, _, random = a_point(problem, 2)
    D = problem.new_weights()
    problem.X.by_class(D)[:] = random.normal(size=(CLASSES, FEATURES + 1))
    finish = JointFinish(problem, centre, q)
    Z, width = finish.Z, FEATURES + 1
    terms, _, free_rows = response(problem, centre, q, Z)
    assert free_rows.rows.size
    found, matrix = np.zeros_like(D), np.zeros((CLASSES * width, CLASSES * width))
    bent_jointly(problem.X, free_rows, D, t, found)
    add_blocks(problem.X, free_rows, t, width, matrix)
    matrix = np.triu(matrix) + np.triu(matrix, 1).T
    flat = problem.X.by_class(D).ravel()
    np.testing.assert_allclose(matrix @ flat, problem.X.by_class(found).ravel(), atol=1e-12)
    line = np.zeros(1, LINE)
    slope_along(terms, Z, finish._scores(problem.X.by_class(D)), 0.0, line)
    assert flat @ matrix @ flat == pytest.approx(t * q * line["bend"][0], rel=1e-9)


@LOSSES
@pytest.mark.parametrize("layout", [np.asarray, csr, lambda X: X.astype(np.float32)], ids=["dense", "csr", "float32"])
@pytest.mark.parametrize("unknowns", [0, 1500], ids=["iterations", "factor"])
def test_every_step_proves_a_gap_and_the_last_the_optimum(loss, layout, unknowns, monkeypatch):
    monkeypatch.setattr(joint, "MOST_UNKNOWNS", unknowns)
    problem = rows_of(loss, layout=layout, C=20.0)
    finish = JointFinish(problem, np.zeros((problem.y.size, CLASSES)), 20.0)
    gaps = []
    while finish.estimate > 1e-9 and finish.steps < 300:
        finish.step(1e-9)
        gaps.append(finish.estimate)
    own = evaluate(problem, Point(finish.best.w, finish.best.alpha)).certificate
    assert own.relative_gap <= 1.1e-9 + own.rounding_share
    assert gaps == sorted(gaps, reverse=True)
    assert own.primal == pytest.approx(problem.unit * finish.best.primal, rel=1e-12)
    np.testing.assert_allclose(problem.feasible(finish.best.alpha), finish.best.alpha, atol=1e-12)


def test_factors_of_the_classes_precondition(monkeypatch):
    monkeypatch.setattr(joint, "MOST_UNKNOWNS", 0)
    problem, taken = rows_of(BEST_RIVAL, n=200, C=20.0), []
    for fit in (True, False):
        monkeypatch.setattr(joint, "factors_fit", lambda problem, fit=fit: fit)
        finish = JointFinish(problem, np.zeros((problem.y.size, CLASSES)), 20.0)
        iterations = 0
        while finish.estimate > 1e-6:
            finish.step(1e-6)
            iterations += finish.iterations
        taken.append(iterations)
    assert taken[0] < taken[1]


def hard_classes(n=400):
    """Classes that overlap, and a C with which coordinate ascent takes long."""
    random = np.random.default_rng(0)
    y = np.arange(n) % CLASSES
    return random.normal(size=(n, FEATURES)) + random.normal(size=(CLASSES, FEATURES))[y], y


@pytest.mark.parametrize("ways", [{"multi_class": "crammer_singer"}], ids=str)
def test_the_finish_ends_fits_with_a_large_C(ways):
    X, y = hard_classes()
    model = LinearSVC(C=1000.0, tol=1e-7, random_state=0, **ways).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.phases_.keys() == {ASCENT, FINISH}
    assert any("changing over" in record["remark"] for record in model.trace_)


def test_a_run_that_is_broken_off_in_its_finish_goes_on(tmp_path):
    X, y = hard_classes()
    options = {"multi_class": "crammer_singer", "C": 100.0, "tol": 1e-6, "random_state": 0, "callbacks": [Every(1)]}
    straight = LinearSVC(**options).fit(X, y)
    with pytest.warns(NotCertifiedWarning):
        in_finish = [lambda record: "changing over" in record.remark and record.relative_gap < 1e-3]
        LinearSVC(**options | {"callbacks": [Every(1), *in_finish]}, checkpoint=tmp_path / "run").fit(X, y)
    resumed = LinearSVC(**options, checkpoint=tmp_path / "run").fit(X, y)
    assert resumed.outcome_ is Outcome.CERTIFIED
    gaps = straight.certificate_.gap, resumed.certificate_.gap
    assert np.linalg.norm(straight.coef_ - resumed.coef_) <= distance_bound(*gaps)


def test_the_ascent_goes_on_where_the_finish_keeps_no_promise():
    problem, solver = rows_of(BEST_RIVAL, C=5.0), CrammerSinger()
    state = solver.init(problem, 0)
    state = solver.step(problem, state, Budget(problem.members.size))
    solver.change(problem, state, FINISH, "tried")
    state.course.begin(1e-12, 1e-12)
    state = solver.step(problem, state, Budget(1, 1e-9))
    assert state.phase == ASCENT
    assert "changing back" in state.remark
    while state.estimate > 1e-6:
        state = solver.step(problem, state, Budget(problem.members.size, 1e-6))
    assert evaluate(problem, solver.solution(problem, state)).certificate.relative_gap <= 1e-5


def test_predictions_hand_over_where_the_ascent_is_slow_only():
    problem = rows_of(BEST_RIVAL, n=3000)
    solver, budget = CrammerSinger(), Budget(1, 1e-6)
    slow, fast = (solver.init(problem, 0) for _ in range(2))
    for epoch in range(1, 41):
        slow.course.add(epoch, 1e-2 * 0.999**epoch)
        fast.course.add(epoch, 0.5**epoch)
    solver.predict(problem, fast, 1e-13)
    assert fast.phase == ASCENT
    slow.base_epochs = slow.epochs = 40.0
    slow = solver.step(problem, slow, budget)
    assert slow.phase == FINISH and "Newton steps" in slow.decision
    assert slow.course.next_prediction > 40.0


def test_separable_classes_need_no_finish():
    X, y = blobs(n=300, k=3)
    model = LinearSVC(multi_class="crammer_singer", C=1e-3, tol=1e-4, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert FINISH not in model.phases_
