"""Multinomial regression: its optimum is scikit-learn's, its options mean what they mean elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression

from saddlesvm import LinearSVC, LinearSVCCV, NotCertifiedWarning, Outcome
from saddlesvm.estimators.certify import certify_model
from saddlesvm.models.persistence import load, save
from saddlesvm.problem.losses import Logistic
from saddlesvm.problem.multinomial import make_multinomial_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.class_equations import ClassEquations, ClassFactors, Diagonal, SharedFactor
from saddlesvm.solvers.machines import SoftmaxMachine
from saddlesvm.solvers.multinomial import Multinomial
from saddlesvm.solvers.task import evaluate
from support import distance_bound
from support.classes import blobs


def softmax_fit(**options):
    return LinearSVC(multi_class="multinomial", **{"tol": 1e-8, "random_state": 0} | options)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_optimum_is_that_of_scikit_learn(layout, intercept):
    X, y = load_iris(return_X_y=True)
    ours = softmax_fit(fit_intercept=intercept, intercept="free").fit(layout(X), y)
    theirs = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000, fit_intercept=intercept).fit(X, y)
    assert ours.outcome_ is Outcome.CERTIFIED
    seen = distance_bound(ours.certificate_.gap)
    theirs_gap = sum(one.gap for one in certify_model(_with(ours, theirs), X, y))
    assert np.linalg.norm(ours.coef_ - theirs.coef_) <= seen + distance_bound(theirs_gap)
    np.testing.assert_allclose(ours.predict_proba(X).sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), ours.classes_[ours.predict_proba(X).argmax(axis=1)])
    assert not hasattr(ours, "dual_coef_")


def _with(model, other):
    """A copy of a fitted model with the weights of another."""
    copied = softmax_fit(**{name: given for name, given in model.get_params().items() if name != "multi_class"})
    vars(copied).update(vars(model))
    copied.coef_, copied.intercept_ = other.coef_, other.intercept_
    return copied


def test_two_classes_are_the_binary_logistic_machine_with_twice_C():
    X, y = blobs(k=2)
    both = softmax_fit(C=0.5).fit(X, y)
    binary = LinearSVC(loss="logistic", C=1.0, tol=1e-8).fit(X, y)
    assert both.coef_.shape == binary.coef_.shape
    assert 2 * both.certificate_.primal == pytest.approx(binary.certificate_.primal, rel=2e-8)
    far = distance_bound(binary.certificate_.gap) + 2.0 * distance_bound(both.certificate_.gap)
    assert np.linalg.norm(both.coef_ - binary.coef_) <= far
    np.testing.assert_allclose(both.predict_proba(X), binary.predict_proba(X), atol=1e-3)


def test_weights_are_repetitions_and_precisions_agree():
    X, y = blobs(k=4)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = softmax_fit().fit(X, y, sample_weight=times)
    repeated = softmax_fit().fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    both = distance_bound(weighted.certificate_.gap) + distance_bound(repeated.certificate_.gap)
    assert np.linalg.norm(weighted.coef_ - repeated.coef_) <= both
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=2e-8)
    narrow, lam = X.astype(np.float32), 1.0 / (0.5 * len(y))
    in_C = softmax_fit(C=0.5, class_weight="balanced").fit(narrow, y)
    in_lam = softmax_fit(lam=lam, C=1.0, class_weight="balanced").fit(narrow.astype(np.float64), y)
    assert in_lam.certificate_.primal == pytest.approx(lam * in_C.certificate_.primal, rel=4e-8)


def test_a_warm_start_begins_at_the_weights():
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    model = softmax_fit(tol=1e-6, warm_start=True).fit(X, y)
    passes = model.n_iter_
    assert model.fit(X, y).n_iter_ <= 2 < passes


def test_it_goes_on_from_its_checkpoint(tmp_path):
    X, y = load_digits(return_X_y=True)
    X = (X / 16.0).astype(np.float32)
    straight = softmax_fit(checkpoint=tmp_path / "straight").fit(X, y)
    for epoch in (1, 2, 4):
        path = tmp_path / f"at {epoch}"
        with pytest.warns(NotCertifiedWarning):
            softmax_fit(checkpoint=path, max_iter=epoch).fit(X, y)
        resumed = softmax_fit(checkpoint=path).fit(X, y)
        assert resumed.outcome_ is Outcome.CERTIFIED
        assert resumed.certificate_.dual <= straight.certificate_.primal
        assert straight.certificate_.dual <= resumed.certificate_.primal


def test_a_model_file_holds_it(tmp_path):
    X, y = blobs()
    model = softmax_fit(intercept="free").fit(X, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    own = certify_model(again, X, y)[0]
    assert own.primal == pytest.approx(model.certificate_.primal, rel=1e-12)
    assert certify_model(again, X, y, refine=3)[0].dual >= own.dual


def test_limits_are_met_and_no_model_is_worse_than_zero():
    X, y = blobs(k=4)
    with pytest.warns(NotCertifiedWarning):
        early = softmax_fit(max_iter=1).fit(X, y)
    assert early.outcome_ is Outcome.EPOCH_LIMIT
    assert early.certificate_.primal <= len(y) * np.log(4) * (1.0 + 1e-9)
    far = softmax_fit(warm_start=True, tol=1e-6).fit(X, y)
    far.coef_ = 1e6 * np.random.default_rng(0).normal(size=far.coef_.shape)
    assert far.fit(X, y).outcome_ is Outcome.CERTIFIED


@pytest.mark.parametrize("C", [1e5, 1e7, 1e10])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_separable_rows_are_certified_at_any_C(layout, C):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(150, 200)), random.integers(0, 4, 150)
    model = softmax_fit(C=C, tol=1e-6).fit(layout(X), y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.certificate_.relative_gap <= 1e-6


def test_a_newton_step_of_many_passes_is_no_standstill():
    """Weights over many powers of ten: the equations of a step take hundreds of passes, which improve nothing."""
    random = np.random.default_rng(1)
    X, y = random.normal(size=(150, 250)), random.integers(0, 4, 150)
    weights = random.exponential(size=150) * 10.0 ** random.integers(-4, 4, 150)
    model = softmax_fit(C=1e5, tol=1e-5).fit(X, y, sample_weight=weights)
    assert model.outcome_ is Outcome.CERTIFIED


def test_losses_entropies_and_bends_keep_their_digits_where_a_row_is_nearly_sure():
    """Of two classes that are z apart: log(1 + e^-z), its entropy, and p (1 - p), which 1 - p in floats would lose."""
    z = np.array([0.0, 1.0, 20.0, 40.0, 80.0])
    scores, own, ones = np.column_stack([z, np.zeros_like(z)]), np.zeros(z.size, dtype=np.int64), np.ones(z.size)
    rivals = np.exp(-z) / (1.0 + np.exp(-z))
    machine = SoftmaxMachine(own, 1.0, 2, ones)
    exact = np.log1p(np.exp(-z))
    for i in range(z.size):
        some = slice(i, i + 1)
        A, sums = machine.respond(some, scores[some], scores[some], 0.0)
        assert sums.losses == pytest.approx(exact[i], rel=1e-13, abs=0.0)
        assert -sums.conjugates == pytest.approx(exact[i] + rivals[i] * z[i], rel=1e-13, abs=0.0)
        assert sums.pulled_size == pytest.approx(rivals[i], rel=1e-13, abs=0.0)
        np.testing.assert_allclose(A[0], [rivals[i], -rivals[i]], rtol=1e-13)
        bends = machine.bend(some, scores[some], A, A, 0.0)
        curved = machine.curve(some, bends, np.array([[0.5, -0.25]]))
        exactly = rivals[i] * (1.0 - rivals[i])
        np.testing.assert_allclose(curved[0], 0.75 * exactly * np.array([1, -1]), rtol=1e-13)
        np.testing.assert_allclose(machine.diagonal(some, bends)[0], exactly, rtol=1e-13)
        np.testing.assert_allclose(machine.mean_bend(some, bends), exactly, rtol=1e-13)


@pytest.mark.parametrize("weighted", [False, True])
def test_bends_are_the_derivatives_of_multipliers(weighted):
    random = np.random.default_rng(0)
    Z, move = random.normal(size=(2, 7, 4))
    weights = random.random(7) if weighted else 1.0
    machine = SoftmaxMachine(random.integers(0, 4, 7), weights, 4, np.ones(7))
    every = slice(0, 7)
    A = machine.dual_variables(every, Z, Z, 0.0)
    np.testing.assert_allclose(A, machine.respond(every, Z, Z, 0.0)[0], atol=1e-15)
    step = 1e-6
    fall = machine.dual_variables(every, Z - step * move, Z, 0.0) - machine.dual_variables(
        every, Z + step * move, Z, 0.0
    )
    bends = machine.bend(every, Z, A, Z, 0.0)
    np.testing.assert_allclose(machine.curve(every, bends, move), fall / (2.0 * step), atol=1e-9)
    units = np.array([machine.curve(every, bends, np.tile(unit, (7, 1))) @ unit for unit in np.eye(4)]).T
    np.testing.assert_allclose(machine.diagonal(every, bends), units, atol=1e-15)
    np.testing.assert_allclose(machine.mean_bend(every, bends), units.mean(axis=1), atol=1e-15)


@pytest.mark.parametrize("kind", [ClassFactors, SharedFactor, Diagonal])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_preconditioners_are_symmetric_and_positive_and_products_symmetric(kind, layout):
    equations = _equations(layout, k=3)
    found = equations.kept if kind is ClassFactors else None
    equations.preconditioner = kind(equations, found) if found is not None else kind(equations)
    u, v = np.random.default_rng(0).normal(size=(2, *equations.W.shape))
    u -= u.mean(axis=1, keepdims=True)
    v -= v.mean(axis=1, keepdims=True)
    for operation in (equations.precondition, equations.multiply):
        assert np.vdot(u, operation(v)) == pytest.approx(np.vdot(v, operation(u)), rel=1e-9)
        assert np.vdot(u, operation(u)) > 0.0
        np.testing.assert_allclose(operation(u).sum(axis=1), 0.0, atol=1e-11)


def _equations(layout, k):
    """Newton's equations at some weights."""
    X, y = blobs(k=k)
    problem = make_multinomial_problem(as_rows(layout(X), 1.0), y, k, Logistic(), C=0.7, intercept="regularized")
    state = Multinomial().init(problem, 0)
    task = Multinomial()._task(problem, state)
    W = np.random.default_rng(1).normal(size=state.w.shape)
    point = evaluate(task, W - W.mean(axis=1, keepdims=True), state.centre, 0.0)
    return ClassEquations(task, point, state.centre, 0.0, 1.0)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_products_are_the_same_whether_bends_are_kept_or_not(layout):
    equations = _equations(layout, k=4)
    direction = np.random.default_rng(0).normal(size=equations.W.shape)
    kept = equations.multiply(direction)
    equations.kept = None
    np.testing.assert_allclose(equations.multiply(direction), kept, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_a_run_that_keeps_no_scores_ends_at_the_same_optimum_in_any_number_of_threads(layout, intercept, C):
    X, y = blobs(k=4)
    problem = make_multinomial_problem(as_rows(layout(X), 1.0), y, 4, Logistic(), C=C, intercept=intercept)
    found = []
    for keeps_scores, threads in ((True, 1), (False, 1), (False, 3)):
        state = Multinomial().init(problem, 0)
        task = Multinomial()._task(problem, state)
        task.keeps_scores = keeps_scores
        if layout is np.asarray:
            task.place.threads = threads
            task.place.block = 7
        for _ in range(200):
            state = Multinomial().step(problem, state, Budget(len(y), 1e-8))
            if state.estimate <= 1e-8:
                break
        found.append(Multinomial().solution(problem, state).evaluation)
    assert max(one.certificate.relative_gap for one in found) <= 1e-8
    assert max(one.certificate.dual for one in found) <= min(one.certificate.primal for one in found)


def test_factors_of_many_classes_of_few_rows_take_no_more_memory_than_the_fit():
    """4 rows a class: factors of all classes would take 13 times as many numbers as the rows and the scores."""
    random = np.random.default_rng(0)
    for n, k, kind in ((400, 100, SharedFactor), (4000, 3, ClassFactors)):
        X, y = random.normal(size=(n, 120)), np.arange(n) % k
        problem = make_multinomial_problem(as_rows(X, 1.0), y, k, Logistic(), C=1.0, intercept="regularized")
        state = Multinomial().init(problem, 0)
        task = Multinomial()._task(problem, state)
        equations = ClassEquations(task, evaluate(task, state.w, state.centre, 0.0), state.centre, 0.0, 1.0)
        assert type(equations.preconditioner) is kind


def test_what_does_not_go_together_is_said():
    X, y = blobs()
    for options, said in [
        ({"loss": "hinge"}, "logistic"),
        ({"solver": "sdca"}, "solver of its own"),
        ({"penalty": "elasticnet"}, "penalty='l2' only"),
    ]:
        with pytest.raises(ValueError, match=said):
            softmax_fit(**options).fit(X, y)
    with pytest.raises(ValueError, match="supports multi_class='multinomial' only"):
        LinearSVC(solver=Multinomial()).fit(X, y)


def test_cross_validation_and_folds_take_it():
    X, y = blobs(k=3)
    found = LinearSVCCV(softmax_fit(), Cs=[0.1, 1.0], cv=3).fit(X, y)
    alone = softmax_fit(C=found.C_, tol=1e-6).fit(X, y)
    far = distance_bound(alone.certificate_.gap) + distance_bound(found.certificate_.gap)
    assert np.linalg.norm(found.coef_ - alone.coef_) <= far
