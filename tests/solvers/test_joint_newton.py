"""Newton's method for the joint machines: its laws, its optima, and when it takes over."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC, NotCertifiedWarning, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.joint_losses import best_rival_losses
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import class_equations
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.best_rival import BestRival, JointNewton
from saddlesvm.solvers.class_equations import ClassEquations
from saddlesvm.solvers.crammer_singer import ASCENT, FINISH, CrammerSinger
from saddlesvm.solvers.task import evaluate as evaluate_at
from support import Every, csr, distance_bound
from support.classes import blobs

CLASSES, FEATURES = 5, 4


def rows_of(*, n=60, layout=np.asarray, C=1.0, **options):
    """A joint problem whose classes overlap, and some of whose rows weigh nothing."""
    random = np.random.default_rng(3)
    X, y = random.normal(size=(n, FEATURES)), np.arange(n) % CLASSES
    X += 0.8 * random.normal(size=(CLASSES, FEATURES))[y]
    weights = random.integers(0, 3, n).astype(np.float64)
    options = {"C": C, "weights": weights, "intercept": "regularized"} | options
    return make_joint_problem(as_rows(layout(X), 1.0), y.astype(float), CLASSES, Hinge(), **options)


def smoothed(problem, centre, q, Z, alpha):
    """The sum of the rows' terms, by its definition."""
    ahead = Z + 1.0 - np.eye(CLASSES)[problem.codes]
    return float(-(alpha * ahead).sum() - 0.5 * q * np.square(alpha - centre).sum())


def a_point(problem, seed):
    """A machine, a dual feasible centre, scores and a change of the scores."""
    random = np.random.default_rng(seed)
    shape = problem.y.size, CLASSES
    machine = BestRival(problem.codes, problem.all_weights, CLASSES, np.ones(problem.y.size))
    centre = problem.feasible(-random.exponential(0.3, size=shape) * (random.random(shape) < 0.6))
    return machine, centre, 2.0 * random.normal(size=shape), random.normal(size=shape), random


@pytest.mark.parametrize("q", [1e-9, 0.05, 2.0, 1e6])
def test_the_variables_are_feasible_and_best(q):
    problem = rows_of()
    machine, centre, Z, _, random = a_point(problem, 0)
    alpha, sums = machine.respond(slice(0, problem.y.size), Z, centre, q)
    np.testing.assert_allclose(problem.feasible(alpha), alpha, atol=1e-13)
    best = smoothed(problem, centre, q, Z, alpha)
    assert sums.smoothed == pytest.approx(best, rel=1e-9)
    assert sums.losses == pytest.approx(best_rival_losses(Z, problem.codes) @ problem.all_weights, rel=1e-12)
    gained = alpha[np.arange(problem.y.size), problem.codes]
    assert sums.conjugates == pytest.approx(-gained.sum(), rel=1e-12)
    for _ in range(50):
        other = problem.feasible(alpha + 0.2 * random.normal(size=alpha.shape))
        assert smoothed(problem, centre, q, Z, other) <= best + 1e-11 * (1.0 + abs(best))


def test_bends_are_the_derivatives_of_the_variables():
    problem = rows_of()
    q = 0.7
    step = 1e-6
    every = slice(0, problem.y.size)
    machine, centre, Z, change, _ = a_point(problem, 1)
    alpha = machine.dual_variables(every, Z, centre, q)
    ends = [machine.dual_variables(every, Z + side * step * change, centre, q) for side in (-1.0, 1.0)]
    bends = machine.bend(every, Z, alpha, centre, q)
    curved = machine.curve(every, bends, change)
    np.testing.assert_allclose(curved, (ends[0] - ends[1]) / (2.0 * step), atol=1e-8)
    units = [machine.curve(every, bends, np.tile(unit, (problem.y.size, 1))) @ unit for unit in np.eye(CLASSES)]
    np.testing.assert_allclose(machine.diagonal(every, bends), np.transpose(units), atol=1e-12)


@pytest.mark.parametrize("layout", [np.asarray, csr], ids=["dense", "csr"])
def test_the_matrix_and_products_with_it_are_the_same(layout):
    problem = rows_of(layout=layout)
    q = 0.7
    _, centre, _, _, random = a_point(problem, 2)
    state = JointNewton(q=q).init(problem, 0, Point(None, centre))
    task = JointNewton()._task(problem, state)
    point = evaluate_at(task, state.w, state.centre, q)
    equations = ClassEquations(task, point, state.centre, q, 1.0)
    D = random.normal(size=state.w.shape)
    matrix = np.tril(equations.matrix())
    matrix += np.tril(matrix, -1).T
    assert equations.bent
    np.testing.assert_allclose((matrix @ D.T.ravel()).reshape(CLASSES, -1).T, equations.multiply(D), atol=1e-10)
    np.testing.assert_allclose(equations.multiply(equations.inverse(D)), D, atol=1e-8)


@pytest.mark.parametrize("layout", [np.asarray, csr, lambda X: X.astype(np.float32)], ids=["dense", "csr", "float32"])
@pytest.mark.parametrize("unknowns", [0, 1500], ids=["iterations", "factor"])
def test_every_step_proves_a_gap_and_the_last_the_optimum(layout, unknowns, monkeypatch):
    monkeypatch.setattr(class_equations, "MOST_UNKNOWNS", unknowns)
    problem = rows_of(layout=layout, C=20.0)
    solver = JointNewton(q=20.0)
    state = solver.init(problem, 0, Point(None, np.zeros((problem.y.size, CLASSES))))
    gaps = []
    while state.estimate > 1e-9 and len(gaps) < 600 and not state.stuck:
        state = solver.step(problem, state, Budget(1, 1e-9))
        gaps.append(state.best.primal - state.best.dual)
    own = evaluate(problem, solver.solution(problem, state)).certificate
    assert own.relative_gap <= 1.1e-9 + own.rounding_share
    assert gaps == sorted(gaps, reverse=True)
    assert own.primal == pytest.approx(problem.unit * state.best.primal, rel=1e-12)
    np.testing.assert_allclose(problem.feasible(state.best.alpha), state.best.alpha, atol=1e-12)


def test_some_rows_are_a_problem_of_their_own():
    members = np.arange(0, 60, 2)
    problem = rows_of(members=members)
    solver = JointNewton()
    state = solver.init(problem, 0, Point(None, np.zeros((problem.y.size, CLASSES))))
    while state.estimate > 1e-7:
        state = solver.step(problem, state, Budget(1, 1e-7))
    assert not state.best.alpha[1::2].any()
    assert evaluate(problem, solver.solution(problem, state)).certificate.relative_gap <= 1e-6


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
    problem, solver = rows_of(C=5.0), CrammerSinger()
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
    problem = rows_of(n=3000)
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
