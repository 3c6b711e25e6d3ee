"""Kernel machines: the laws of the dual solvers, kernel Pegasos against the paper's figure."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs, make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.kernel_certificate import evaluate_kernel, may_pay, nearest_feasible
from saddlesvm.kernel.kernel_pegasos import KernelPegasos, draw_rows
from saddlesvm.kernel.kernel_problem import KernelProblem, make_kernel_problem
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.kernel.pair_ascent import ascend_pairs, ascend_singly, program_over
from saddlesvm.problem.certificate import KernelPoint
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, loss_name
from saddlesvm.solvers.base import Budget

INTERCEPTS = ["none", "free"]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(300, 8, n_informative=5, flip_y=0.1, class_sep=0.7, random_state=3)
    return X, np.where(y == 1, 1.0, -1.0)


def problem_of(X, y, *, metric="rbf", gamma=0.1, loss=Hinge(), intercept="free", **options) -> KernelProblem:  # noqa: B008
    if "lam" not in options:
        options.setdefault("C", 1.0)
    return make_kernel_problem(X, Kernel(metric, gamma), y, loss, intercept=intercept, **options)[0]


def solved(problem: KernelProblem, tol: float = 1e-8, **options):
    result = fit(problem, Decomposition(**options), Limits(tol=tol, max_time=60.0))
    assert result.outcome is Outcome.CERTIFIED
    return result


def bound_on_difference(first, second) -> float:
    """How far two certified objectives of one problem can be apart."""
    return max(first.certificate.gap, second.certificate.gap) + 1e-9 * first.certificate.primal


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_weak_duality_for_random_points(data, intercept):
    rng = np.random.default_rng(1)
    problem = problem_of(*data, intercept=intercept, weights=rng.uniform(0.1, 2.0, 300))
    best = solved(problem, 1e-10).certificate
    for scale in (0.1, 1.0, 10.0):
        beta, dual = rng.normal(size=(2, 300)) * scale
        certificate = evaluate_kernel(problem, KernelPoint(beta, nearest_feasible(problem, dual))).certificate
        assert certificate.dual <= best.primal * (1 + 1e-12)
        assert certificate.primal >= best.dual * (1 - 1e-12)


@pytest.mark.parametrize("ascend", [ascend_pairs, ascend_singly])
def test_ascent_reaches_the_optimality_conditions_and_keeps_the_gradient(data, ascend):
    X, y = data[0][:80], data[1][:80]
    K = rbf_kernel(X, gamma=0.1)
    low, high = np.minimum(0.0, y), np.maximum(0.0, y)
    beta, g = np.zeros(80), -y.copy()
    small = program_over(K, (low, high), 0.0, np.array([0, 80]))
    steps = ascend(small, g, beta, 1e-9, 100_000)
    assert 0 < steps < 100_000
    np.testing.assert_allclose(g, K @ beta - y, atol=1e-12)
    assert ((beta >= low) & (beta <= high)).all()
    rise, fall = (-g)[beta < high], (-g)[beta > low]
    if ascend is ascend_pairs:
        assert abs(beta.sum()) < 1e-12
        assert rise.max() - fall.min() <= 1e-9
    else:
        assert max(rise.max(), -fall.min()) <= 1e-9


@pytest.mark.parametrize("metric", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_same_objective_as_scikit_learns_svc(data, metric, C):
    X, y = data
    problem = problem_of(X, y, metric=metric, C=C)
    ours = solved(problem, 1e-7)
    theirs = SVC(C=C, kernel=metric, gamma=0.1, tol=1e-8).fit(X, y)
    beta = np.zeros(300)
    beta[theirs.support_] = theirs.dual_coef_[0]
    their_certificate = evaluate_kernel(problem, KernelPoint(nearest_feasible(problem, beta)))
    difference = abs(ours.certificate.primal - their_certificate.certificate.primal)
    assert difference <= bound_on_difference(ours, their_certificate)


def test_same_objective_as_liblinear_with_the_linear_kernel(data):
    X, y = data
    theirs = LinearSVC(loss="hinge", tol=1e-10, max_iter=1_000_000, fit_intercept=False).fit(X, y)
    weights = theirs.coef_[0]
    slack = np.maximum(0.0, 1.0 - y * theirs.decision_function(X))
    their_primal = 0.5 * weights @ weights + slack.sum()
    ours = solved(problem_of(X, y, metric="linear", intercept="none"), 1e-9)
    assert ours.certificate.dual <= their_primal * (1 + 1e-12)
    assert ours.certificate.primal == pytest.approx(their_primal, rel=1e-5)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_weights_equal_repetition(data, intercept):
    X, y = data
    counts = np.random.default_rng(2).integers(0, 4, 300)
    weighted = solved(problem_of(X, y, intercept=intercept, weights=counts.astype(float)))
    rows = np.repeat(np.arange(300), counts)
    repeated = solved(problem_of(X[rows], y[rows], intercept=intercept))
    assert abs(weighted.certificate.primal - repeated.certificate.primal) <= bound_on_difference(weighted, repeated)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_every_form_of_the_data_gives_the_same_model(data, intercept):
    X, y = data
    reference = solved(problem_of(X, y, intercept=intercept))
    order = np.random.default_rng(4).permutation(300)
    others = [
        problem_of(sparse.csr_array(X), y, intercept=intercept),
        problem_of(rbf_kernel(X, gamma=0.1), y, metric="precomputed", intercept=intercept),
        problem_of(X, y, metric=lambda A, B: rbf_kernel(A, B, gamma=0.1), intercept=intercept),
        problem_of(X[order], y[order], intercept=intercept),
    ]
    for problem in others:
        result = solved(problem)
        assert abs(result.certificate.primal - reference.certificate.primal) <= bound_on_difference(result, reference)


def test_lambda_form_is_the_c_form_scaled(data):
    in_C = solved(problem_of(*data, C=0.5))
    in_lambda = solved(problem_of(*data, lam=1.0 / (300 * 0.5)))
    assert in_lambda.certificate.form == "lambda"
    assert in_lambda.certificate.primal * 150.0 == pytest.approx(in_C.certificate.primal, rel=2e-8)


@pytest.mark.parametrize("options", [{"shrinking": False}, {"block": 2, "working_set": 2}, {"block": 16}])
@pytest.mark.parametrize("cache_size", [200.0, 0.01])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_options_and_cache_change_the_way_not_the_optimum(data, options, cache_size, intercept):
    reference = solved(problem_of(*data, C=5.0, intercept=intercept), 1e-5)
    result = solved(problem_of(*data, C=5.0, intercept=intercept, cache_size=cache_size), 1e-5, **options)
    assert abs(result.certificate.primal - reference.certificate.primal) <= bound_on_difference(result, reference)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_rows_are_set_aside_and_the_certificate_covers_them(intercept):
    X, y = make_classification(1000, 6, n_informative=4, class_sep=1.0, flip_y=0.05, random_state=0)
    problem = problem_of(X, np.where(y == 1, 1.0, -1.0), gamma=0.05, C=20.0, intercept=intercept, cache_size=1.0)
    solver = Decomposition(block=64, working_set=256)
    state = solver.step(problem, solver.init(problem, 0), Budget(rows=100_000, relative_gap=1e-5))
    assert state.active == state.at_work.size == state.rows.source.count < 1000
    result = solved(problem, 1e-6, block=64, working_set=256)
    reference = solved(problem, 1e-6, shrinking=False)
    assert abs(result.certificate.primal - reference.certificate.primal) <= bound_on_difference(result, reference)


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(1.0)], ids=loss_name)
def test_rows_that_cannot_pay_pay_nothing_however_far_their_values_are_off(loss):
    random = np.random.default_rng(1)
    y = random.normal(size=200) if isinstance(loss, EpsilonInsensitive) else random.choice([-1.0, 1.0], 200)
    problem, _ = make_kernel_problem(random.normal(size=(200, 2)), Kernel("linear"), y, loss, C=1.0, intercept="free")
    f, errors = 3.0 * random.normal(size=200), 10.0 ** random.uniform(-16, 0, 200)
    may = may_pay(problem.terms, f + 0.25, errors)
    assert 20 < np.count_nonzero(may) < 200
    for way in np.linspace(-1.0, 1.0, 21):
        paid = [loss.value(z, target) for z, target in zip(f + 0.25 + way * errors, y, strict=True)]
        assert not np.any(np.array(paid)[~may])


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_steps_on_the_rows_that_count_never_lower_the_dual(intercept):
    X, classes = make_blobs(random_state=0, n_samples=21, centers=2)
    y = np.where(classes > 0, 1.0, -1.0)
    problem, _ = make_kernel_problem(X, Kernel("linear"), y, Hinge(), C=1.0, intercept=intercept)
    solver = Decomposition()
    state = solver.init(problem, 0)
    for _ in range(4):
        solver.improve_all(problem, state, 1e-3)
        before = evaluate_kernel(problem, KernelPoint(state.beta)).certificate
        solver.improve_active(problem, state)
        after = evaluate_kernel(problem, KernelPoint(state.beta)).certificate
        assert after.dual >= before.dual - before.rounding
        assert np.allclose(state.f, problem.margins(state.beta), rtol=0.0, atol=1e-10)


def test_working_sets_grow_with_the_free_support_vectors(data):
    """A set without some of them would take many more steps; a set without any of them need not be larger."""
    X, y = (np.tile(part.T, 2).T for part in data)
    problem = problem_of(X + np.linspace(0.0, 0.1, 600)[:, None], y, C=1e4, gamma=2.0, cache_size=1.0)
    solver = Decomposition(working_set=8)
    state = solver.init(problem, 0)
    sizes = []
    for _ in range(40):
        free = int(np.count_nonzero((state.beta > state.low) & (state.beta < state.high)))
        chosen = solver.choose_working_set(problem, state)
        assert len(set(chosen.tolist())) == chosen.size <= min(max(8, free), state.rows.capacity)
        sizes.append(chosen.size)
        solver.improve(problem, state)
    assert max(sizes) > 8


def test_rows_set_aside_wrongly_come_back(data):
    X, y = (np.tile(part.T, 2).T for part in data)
    problem = problem_of(X + np.linspace(0.0, 0.1, 600)[:, None], y, cache_size=1.0)
    solver = Decomposition()
    state = solver.init(problem, 0)
    aside = np.arange(100)
    state.at_work = np.setdiff1d(problem.members, aside)
    state.rows.restrict(state.at_work)
    state = solver.step(problem, state, Budget(rows=10_000, relative_gap=1e-9))
    assert not state.beta[aside].any()
    evaluation = evaluate_kernel(problem, solver.solution(problem, state))
    assert evaluation.certificate.relative_gap > 1e-3
    state = solver.learn_from_certificate(problem, state, evaluation)
    np.testing.assert_array_equal(state.at_work, problem.members)
    state = solver.step(problem, state, Budget(rows=10_000, relative_gap=1e-7))
    assert evaluate_kernel(problem, solver.solution(problem, state)).certificate.relative_gap <= 1e-6


def test_start_from_an_earlier_solution(data):
    problem = problem_of(*data, C=3.0)
    first = solved(problem, 1e-6)
    again = fit(problem, Decomposition(), Limits(tol=1e-5), start=KernelPoint(first.coef))
    assert again.certificate.primal <= first.certificate.primal * (1 + 1e-5)
    assert again.rows_touched <= 300


def test_a_kernel_that_is_not_positive_definite_still_ends_at_a_stationary_point(data):
    result = fit(problem_of(*data, metric="sigmoid", gamma=1.0), Decomposition(), Limits(tol=1e-6, max_epochs=2000.0))
    assert result.certificate.gap >= 0.0


def figure_three(K, y, lam, draws):
    """Kernel Pegasos as printed: Shalev-Shwartz and others (2011), figure 3."""
    alpha = np.zeros(len(y))
    for t, i in enumerate(draws, start=1):
        if y[i] / (lam * t) * np.sum(alpha * y * K[i]) < 1.0:
            alpha[i] += 1.0
    return alpha


@pytest.mark.parametrize("cache_size", [200.0, 0.02])
def test_kernel_pegasos_is_the_papers(data, cache_size):
    X, y = data
    problem = problem_of(X, y, intercept="none", lam=0.01, cache_size=cache_size)
    solver = KernelPegasos()
    state = solver.init(problem, 7)
    draws = draw_rows(state.random.copy(), 300, 2000)
    state = solver.step(problem, state, Budget(rows=2000))
    expected = figure_three(rbf_kernel(X, gamma=0.1), y, 0.01, draws)
    assert state.steps == 2000
    np.testing.assert_array_equal(state.alpha * y, expected)
    np.testing.assert_allclose(solver.solution(problem, state).beta, expected * y / (0.01 * 2000), rtol=1e-12)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("batch_size", [1, 7])
def test_kernel_pegasos_comes_near_the_optimum_and_its_bound_is_true(data, batch_size, intercept):
    problem = problem_of(*data, lam=0.01, intercept=intercept)
    best = solved(problem).certificate
    result = fit(problem, KernelPegasos(batch_size=batch_size), Limits(tol=0.0, max_epochs=700.0))
    assert result.outcome is Outcome.EPOCH_LIMIT
    assert result.certificate.dual <= best.primal * (1 + 1e-12)
    assert best.dual <= result.certificate.primal <= 1.1 * best.primal


def test_kernel_pegasos_needs_room_for_a_batch(data):
    with pytest.raises(ValueError, match="raise cache_size or lower batch_size"):
        KernelPegasos(batch_size=50).init(problem_of(*data, cache_size=0.001), 0)


@pytest.mark.parametrize("solver", [Decomposition(), KernelPegasos()])
def test_a_seed_repeats_a_run_bit_for_bit(data, solver):
    first, second = (fit(problem_of(*data), solver, Limits(tol=1e-3, max_epochs=50.0), seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.coef, second.coef)


def test_options_out_of_range_are_refused():
    with pytest.raises(ValueError, match="block and working_set"):
        Decomposition(block=1)
    with pytest.raises(ValueError, match="batch_size and block"):
        KernelPegasos(batch_size=0)
