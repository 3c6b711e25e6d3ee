"""One-vs-rest, one-vs-one and Crammer and Singer's machine: laws, plain references, and scikit-learn as the oracle."""

from __future__ import annotations

import threading
from itertools import combinations

import numpy as np
import pytest
from numba import njit
from scipy.optimize import brentq
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris
from sklearn.svm import LinearSVC as Liblinear
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import _ovr_decision_function

from conftest import csr, distance_bound
from saddlesvm import LinearSVC, NotCertifiedWarning, Outcome
from saddlesvm.estimators.kernel import KernelSVC
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.multiclass import shared_start
from saddlesvm.multiclass import sub_problems as multiclass
from saddlesvm.multiclass.one_vs_one import one_vs_one, vote
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.crammer_singer import joint_weights, make_joint_problem
from saddlesvm.problem.losses import Hinge, SquaredHinge
from saddlesvm.rows import class_rows as row_blocks
from saddlesvm.rows.layouts import as_dense_row, as_rows
from saddlesvm.solvers import DCD
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.crammer_singer import CrammerSinger, threshold

WAYS = ("ovr", "ovo", "crammer_singer")
call_dots = njit(lambda X, i, W, classes, count, z: row_blocks.dots(X, i, W, classes, count, z))


def blobs(n: int = 90, d: int = 4, k: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes, numbered from 0, each present."""
    random = np.random.default_rng(seed)
    y = np.arange(n) % k
    return random.normal(size=(k, d))[y] * 1.5 + random.normal(size=(n, d)), y


def joint(X, y, *, bias=1.0, k=None, **options):
    options = {"C": 0.3} | options if "lam" not in options else options
    kind = "regularized" if bias else "none"
    return make_joint_problem(as_rows(X, bias), y, k or int(y.max()) + 1, Hinge(), intercept=kind, **options)


def joint_primal(X, y, coef, intercept, C, weights=None):
    """Crammer and Singer's objective, written without the package's certificate."""
    z = X @ coef.T + intercept
    own = z[np.arange(len(y)), y]
    rivals = z + 1.0 - np.eye(coef.shape[0])[y]
    paid = (np.ones(len(y)) if weights is None else weights) @ (rivals.max(axis=1) - own)
    return 0.5 * (np.vdot(coef, coef) + intercept @ intercept) + C * paid


def feasible(random, problem):
    """A random dual feasible point of a joint problem."""
    y, k = problem.codes, problem.n_classes
    alpha = -random.exponential(size=(y.size, k)) * (random.random((y.size, k)) < 0.5)
    return problem.feasible(alpha)


# ---- one row against many classes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_a_row_against_many_classes_equals_plain_algebra(form, dtype):
    random = np.random.default_rng(1)
    values = (random.normal(size=(12, 9)) * (random.random((12, 9)) < 0.6)).astype(dtype)
    X = as_rows(values if form == "dense" else csr(values), 0.7)
    W = row_blocks.new_weights(X, 6, dtype)
    coefficients = random.normal(size=(12, 6)) * (random.random((12, 6)) < 0.5)
    members = np.arange(1, 12, 2, dtype=np.int32)
    row_blocks.add_combinations(X, members, coefficients, W)
    plain = sum(np.outer(coefficients[i], as_dense_row(X, i)) for i in members)
    rounding = 50 * np.finfo(dtype).eps
    np.testing.assert_allclose(row_blocks.by_class(X, W), plain, atol=rounding)
    scores = np.array([[as_dense_row(X, i) @ w for w in plain] for i in range(12)])
    np.testing.assert_allclose(row_blocks.all_scores(X, plain), scores, atol=1e-12)
    classes = np.array([4, 0, 5, 2, 1, 3], dtype=np.int16)
    for count in (1, 4, 5, 6):
        z = np.full(6, np.nan, dtype=dtype)
        call_dots(X, 3, W, classes, count, z)
        np.testing.assert_allclose(z[classes[:count]], scores[3, classes[:count]], atol=10 * rounding)
        assert np.isnan(z[classes[count:]]).all()


# ---- Crammer and Singer


@pytest.mark.parametrize("seed", range(6))
def test_the_threshold_makes_the_block_sum_to_zero(seed):
    random = np.random.default_rng(seed)
    count, own = int(random.integers(2, 9)), 1
    B, A, s = random.normal(size=count) * 10.0 ** random.integers(-2, 3), random.exponential(), random.exponential()

    def total(beta):
        block = np.minimum(np.where(np.arange(count) == own, s, 0.0), (beta - B) / A)
        return block.sum()

    wide = 1e3 + abs(B).max() * count + A * s * count
    found = threshold(B, count, own, A, s, np.empty(count))
    assert found == pytest.approx(brentq(total, -wide, wide, xtol=1e-13), rel=1e-9, abs=1e-9)


def test_a_visit_leaves_the_row_without_a_share_of_the_gap():
    X, y = blobs(n=8, k=4, seed=3)
    for members in (np.array([i]) for i in range(8)):
        problem = joint(X, y, members=members, k=4, C=2.0)
        state = CrammerSinger().step(problem, CrammerSinger().init(problem, 0), Budget(1))
        certificate = evaluate(problem, CrammerSinger().solution(problem, state)).certificate
        assert abs(certificate.gap) <= 1e-12 * certificate.primal


@pytest.mark.parametrize("seed", range(5))
def test_weak_duality_of_the_joint_problem(seed):
    random = np.random.default_rng(seed)
    X, y = blobs(seed=seed)
    weights = random.exponential(size=len(y))
    problem = joint(X, y, weights=weights)
    alpha, W = feasible(random, problem), random.normal(size=(3, 5))
    own = evaluate(problem, Point(alpha=alpha))
    other = evaluate(problem, Point(W, alpha))
    assert own.certificate.gap >= 0.0
    assert other.certificate.gap >= 0.0
    assert own.certificate.dual == pytest.approx(other.certificate.dual)
    assert other.certificate.primal == pytest.approx(joint_primal(X, y, W[:, :-1], W[:, -1], problem.C, weights))
    np.testing.assert_allclose(joint_weights(problem, alpha)[:, :-1], problem.C * alpha.T @ X, atol=1e-12)
    np.testing.assert_allclose(problem.feasible(alpha), alpha, atol=1e-14)


@pytest.mark.parametrize("name", ["iris", "digits"])
@pytest.mark.parametrize("C", [0.01, 0.5])
def test_the_joint_machine_agrees_with_liblinear(name, C):
    X, y = load_iris(return_X_y=True) if name == "iris" else load_digits(return_X_y=True)
    X = X / X.max()
    ours = LinearSVC(multi_class="crammer_singer", C=C, tol=1e-5, random_state=0).fit(X, y)
    theirs = Liblinear(multi_class="crammer_singer", C=C, tol=1e-8, max_iter=100_000, random_state=0).fit(X, y)
    certificate = ours.certificate_
    reached = joint_primal(X, y, theirs.coef_, theirs.intercept_, C)
    assert ours.outcome_ is Outcome.CERTIFIED
    assert certificate.primal == pytest.approx(joint_primal(X, y, ours.coef_, ours.intercept_, C), rel=1e-12)
    assert certificate.dual <= reached <= certificate.primal * (1 + 1e-6)


@pytest.mark.parametrize("form", ["float32", "csr", "no shrinking", "lambda", "repeated"])
def test_the_joint_optimum_does_not_depend_on_the_form(form):
    X, y = blobs(k=4)
    weights = np.arange(len(y)) % 3.0
    reference = LinearSVC(multi_class="crammer_singer", tol=1e-7, random_state=0).fit(X, y, weights)
    options = {"multi_class": "crammer_singer", "tol": 1e-7, "random_state": 1}
    if form == "float32":
        single = X.astype(np.float32)
        reference.fit(single.astype(np.float64), y, weights)
        other = LinearSVC(**options).fit(single, y, weights)
    elif form == "csr":
        other = LinearSVC(**options).fit(csr(X), y, weights)
    elif form == "no shrinking":
        other = LinearSVC(**options, solver=CrammerSinger(shrinking=False)).fit(X, y, weights)
    elif form == "lambda":
        other = LinearSVC(**options, lam=1.0 / len(y)).fit(X, y, weights)
        assert other.certificate_.primal * len(y) == pytest.approx(reference.certificate_.primal, rel=2e-7)
    else:
        times = weights.astype(int)
        other = LinearSVC(**options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    gaps = [model.certificate_.gap * (len(y) if model.lam else 1.0) for model in (reference, other)]
    assert np.linalg.norm(reference.coef_ - other.coef_) <= distance_bound(*gaps)


def test_two_classes_of_the_joint_machine_are_the_binary_machine_with_twice_C():
    X, y = blobs(k=2)
    both = LinearSVC(multi_class="crammer_singer", C=0.5, tol=1e-8).fit(X, y)
    binary = LinearSVC(loss="hinge", C=1.0, tol=1e-8).fit(X, y)
    assert both.coef_.shape == binary.coef_.shape
    assert 2 * both.certificate_.primal == pytest.approx(binary.certificate_.primal, rel=2e-8)
    far = distance_bound(binary.certificate_.gap) + 2.0 * distance_bound(both.certificate_.gap)
    assert np.linalg.norm(both.coef_ - binary.coef_) <= far
    np.testing.assert_allclose(both.dual_coef_ @ X, both.coef_, atol=1e-10)


def test_a_row_of_zeros_is_certified_too():
    X, y = blobs()
    X[4] = 0.0
    model = LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-6).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED


def test_a_joint_fit_goes_on_from_its_checkpoint(tmp_path):
    X, y = blobs(k=4)
    options = {"multi_class": "crammer_singer", "tol": 1e-6, "random_state": 3}
    straight = LinearSVC(**options, checkpoint=tmp_path / "straight").fit(X, y)
    with pytest.warns(NotCertifiedWarning):
        LinearSVC(**options, checkpoint=tmp_path / "state", callbacks=[lambda record: True]).fit(X, y)
    resumed = LinearSVC(**options, checkpoint=tmp_path / "state").fit(X, y)
    np.testing.assert_array_equal(straight.coef_, resumed.coef_)


def test_the_joint_problem_refuses_what_it_does_not_have():
    X, y = blobs()
    for options, said in [
        ({"loss": "logistic"}, "hinge"),
        ({"intercept": "free"}, "free intercept"),
        ({"solver": "sdca"}, "solver of its own"),
    ]:
        with pytest.raises(ValueError, match=said):
            LinearSVC(multi_class="crammer_singer", **options).fit(X, y)
    with pytest.raises(ValueError, match="multi_class"):
        LinearSVC(multi_class="all").fit(X, y)
    with pytest.raises(ValueError, match="decision_function_shape"):
        LinearSVC(decision_function_shape="both").fit(X, y)
    with pytest.raises(ValueError, match="goes with"):
        LinearSVC(solver=CrammerSinger()).fit(X, y)
    with pytest.raises(ValueError, match="hinge"):
        make_joint_problem(as_rows(X), y, 3, SquaredHinge(), C=1.0)


# ---- one-vs-one


def test_votes_are_scikit_learns():
    random = np.random.default_rng(0)
    scores = random.normal(size=(50, 10))
    np.testing.assert_allclose(vote(scores, 5), _ovr_decision_function(scores > 0, scores, 5))


@pytest.mark.parametrize("strength", [{"C": 0.2}, {"lam": 0.05}])
def test_each_pair_is_the_two_class_problem_of_its_rows(strength):
    X, y = blobs(n=80)
    weights = np.where(np.arange(80) % 5 == 0, 0.0, 1.5)
    names = np.array(["c", "a", "b"])[y]
    model = LinearSVC(multi_class="ovo", tol=1e-7, **strength).fit(X, names, weights)
    for k, (first, second) in enumerate(combinations(model.classes_, 2)):
        mine = np.isin(names, [first, second])
        alone = LinearSVC(tol=1e-7, **strength).fit(X[mine], names[mine], weights[mine])
        unit = 1.0 if "C" in strength else mine.sum() * alone._fitted_C
        gaps = [unit * one.gap for one in (model.certificates_[k], alone.certificate_)]
        assert np.linalg.norm(model.coef_[k] - alone.coef_[0]) <= distance_bound(*gaps)
    assert model.certificate_.primal == pytest.approx(sum(one.primal for one in model.certificates_))


def test_the_shapes_of_the_decision_function():
    X, y = blobs(k=4)
    by_class = LinearSVC(multi_class="ovo", tol=1e-3, random_state=0).fit(X, y)
    by_pair = LinearSVC(multi_class="ovo", tol=1e-3, random_state=0, decision_function_shape="ovo").fit(X, y)
    assert by_class.decision_function(X).shape == (90, 4)
    assert by_pair.decision_function(X).shape == (90, 6)
    np.testing.assert_array_equal(by_class.decision_function(X), vote(by_pair.decision_function(X), 4))
    np.testing.assert_array_equal(by_class.predict(X), by_class.decision_function(X).argmax(axis=1))
    np.testing.assert_array_equal(by_class.predict(X), by_pair.predict(X))
    assert not hasattr(LinearSVC(multi_class="ovo", loss="logistic"), "predict_proba")


def test_a_pair_is_a_view_of_the_rows():
    X, y = blobs()
    design = as_rows(X)
    problem = one_vs_one(y, np.arange(3))[1]().problem(design, Hinge(), C=1.0, norms=np.ones(len(y)))
    assert problem.X is design
    np.testing.assert_array_equal(problem.members, np.flatnonzero(y != 1))


# ---- what all ways share


@pytest.mark.parametrize("way", WAYS)
def test_a_warm_start_ends_at_once_and_threads_change_nothing(way):
    X, y = blobs(k=5, n=150)
    model = LinearSVC(multi_class=way, loss="hinge", tol=1e-4, random_state=0, warm_start=True).fit(X, y)
    again = LinearSVC(multi_class=way, loss="hinge", tol=1e-4, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    cold = model.n_iter_
    model.set_params(tol=2e-4).fit(X, y)
    assert model.n_iter_ <= max(2, cold // 3)
    assert model.outcome_ is Outcome.CERTIFIED


def test_a_warm_start_after_another_way_begins_anew_where_it_must():
    X, y = blobs()
    model = LinearSVC(loss="hinge", warm_start=True, tol=1e-6)
    for way in (*WAYS, *reversed(WAYS)):
        model.set_params(multi_class=way).fit(X, y)
        fresh = LinearSVC(loss="hinge", multi_class=way, tol=1e-6).fit(X, y)
        assert np.linalg.norm(model.coef_ - fresh.coef_) <= 3 * distance_bound(
            model.certificate_.gap, fresh.certificate_.gap
        )


FOUR = np.arange(90) % 4


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("crammer_singer", FOUR % 2), ("crammer_singer", FOUR % 3)),
        (("crammer_singer", FOUR % 3), ("crammer_singer", FOUR)),
        (("crammer_singer", FOUR), ("ovo", FOUR)),
        (("ovo", FOUR), ("crammer_singer", FOUR)),
        (("ovo", FOUR % 3), ("crammer_singer", FOUR % 3)),
    ],
)
def test_a_start_of_other_classes_is_left_where_it_does_not_fit(before, after):
    X = np.random.default_rng(0).normal(size=(90, 4))
    model = LinearSVC(warm_start=True, random_state=0)
    for way, y in (before, after):
        model.set_params(multi_class=way).fit(X, y)
    cold = LinearSVC(multi_class=way, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.coef_.shape == cold.coef_.shape
    assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-4)


@pytest.mark.parametrize("way", WAYS)
def test_calibrated_probabilities(way):
    X, y = load_iris(return_X_y=True)
    model = CalibratedClassifierCV(LinearSVC(multi_class=way, loss="hinge", tol=1e-3), cv=3, ensemble=False).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert -np.log(probabilities[np.arange(150), y]).mean() < np.log(3) / 2
    assert model.score(X, y) > 0.85


def test_a_time_limit_is_shared_fairly(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(multiclass.time, "perf_counter", lambda: now[0])
    clock = multiclass.SharedTime(12.0, problems=4, jobs=2)
    assert clock.share() == pytest.approx(6.0)
    now[0] += 2.0
    clock.done()
    clock.done()
    assert clock.share() == pytest.approx(10.0)
    clock.done()
    assert clock.share() == pytest.approx(10.0)
    now[0] += 20.0
    assert 0.0 < clock.share() < 1e-6
    assert multiclass.SharedTime(None, 4, 2).share() is None


def test_one_time_limit_holds_for_the_whole_fit():
    X, y = load_digits(return_X_y=True)
    with pytest.warns(NotCertifiedWarning, match="time_limit"):
        model = LinearSVC(multi_class="ovo", C=1e3, tol=1e-12, max_time=0.02).fit(X, y)  # which each pair alone meets
    assert model.seconds_solving_ + model.seconds_certifying_ < 45 * 0.02


# ---- one-vs-rest in blocks


@pytest.fixture
def always_shared(monkeypatch):
    monkeypatch.setattr(shared_start, "LEAST_VALUES", 0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smooth_hinge", "logistic"])
@pytest.mark.parametrize("form", ["dense", "csr"])
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
    problem = problems[0]().problem(as_rows(X), Hinge(), C=1.0)
    stop = threading.Event()
    stop.set()
    start = shared.point(0, problem, stop, None)
    assert not start.alpha.any()
    assert fit(problem, DCD(), Limits(tol=1e-3), start=start).outcome is Outcome.CERTIFIED


def test_a_block_parts_when_each_alone_would_be_done(always_shared):
    X, y = blobs(k=6, n=300)
    problems = multiclass.one_vs_rest(y, np.arange(6))
    problem = problems[0]().problem(as_rows(X), Hinge(), C=100.0)
    starts = {}
    for most in (0.0, 2.0, np.inf):
        shared = shared_start.SharedStart(problems, 6, 1e-12, 0, most)
        starts[most] = [shared.point(k, problem, threading.Event(), None) for k in range(6)]
    assert starts[0.0] == starts[2.0] == [None] * 6
    assert all(start.alpha.any() for start in starts[np.inf])
    easy = problems[0]().problem(as_rows(X), Hinge(), C=1e-3)
    nearly = shared_start.SharedStart(problems, 6, 1e-3, 0, 3.0)
    assert all(nearly.point(k, easy, threading.Event(), None).alpha.any() for k in range(6))


def test_blocks_fit_the_problems_and_the_threads():
    X = as_rows(np.zeros((100_000, 256), dtype=np.float32))
    assert shared_start.block_size(X, 3, 1) == 1
    assert shared_start.block_size(X, 10, 1) == 10
    assert shared_start.block_size(X, 10, 2) == 5
    assert shared_start.block_size(X, 1000, 2) <= 32
    assert shared_start.block_size(as_rows(np.zeros((100, 4))), 1000, 1) == 1


UNMET = "compares predictions to 1e-7 at the default tol; test_class_weights_are_row_weights holds them to their gaps"
EXCUSED = {f"check_sample_weight_equivalence_on_{form}_data": UNMET for form in ("dense", "sparse")}


@parametrize_with_checks(
    [LinearSVC(multi_class="ovo"), LinearSVC(multi_class="crammer_singer")],
    expected_failed_checks=lambda estimator: EXCUSED,
)
@pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "model",
    [
        *(LinearSVC(multi_class=way) for way in ("ovr", "ovo", "crammer_singer")),
        KernelSVC(),
        KernelSVC(multi_class="ovo"),
    ],
)
def test_a_class_without_weight_is_refused(model):
    X, y = load_iris(return_X_y=True)
    for weighted in (y != 2, y == 0):
        with pytest.raises(ValueError, match=r"class [12] has no row of positive weight: every class needs one"):
            model.fit(X, y, sample_weight=weighted.astype(float))


def test_class_weights_are_row_weights():
    X, y = blobs()
    for way in WAYS:
        by_class = LinearSVC(multi_class=way, class_weight={0: 2.0, 2: 0.5}, tol=1e-7).fit(X, y)
        by_row = LinearSVC(multi_class=way, tol=1e-7).fit(X, y, np.array([2.0, 1.0, 0.5])[y])
        assert by_class.certificate_.primal == pytest.approx(by_row.certificate_.primal, rel=2e-7)
