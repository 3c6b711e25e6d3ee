"""SVC: its intercepts and lambda, scikit-learn's optima, pairs of classes, refusals, and what is kept of a fit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as theirs
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs, make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.kernel_pegasos import KernelPegasos
from saddlesvm.kernel.svc import SVC

LOOSE = "compares predictions to 1e-7 at the default tol, which proves less"
EXCUSED = {f"check_sample_weight_equivalence_on_{form}_data": LOOSE for form in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # of scikit-learn, about labels of NaN
@parametrize_with_checks(
    [SVC(kernel="linear"), SVC(intercept="none")],
    expected_failed_checks=lambda model: EXCUSED,
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def two() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(300, 8, n_informative=5, flip_y=0.1, class_sep=0.7, random_state=3)


@pytest.fixture(scope="module")
def many() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(400, 5, centers=4, cluster_std=4.0, random_state=1)
    return X, np.array(["apple", "pear", "plum", "quince"])[y]


def test_scores_are_those_of_scikit_learns_svc(two):
    X, y = two
    ours = SVC(C=2.0, tol=1e-10).fit(X, y)
    other = theirs.SVC(C=2.0, tol=1e-10).fit(X, y)
    # a gap g bounds ||w - w*|| by sqrt(2 g), and a score of a unit-norm row with it; 1e-5 for the free intercept
    bound = np.sqrt(2.0 * ours.certificate_.gap) + 1e-5
    np.testing.assert_allclose(ours.decision_function(X), other.decision_function(X), atol=bound)
    assert ours.outcome_ is Outcome.CERTIFIED
    assert ours.n_support_.sum() == ours.support_.size == ours.dual_coef_.shape[1]
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    assert abs(ours.dual_coef_.sum()) < 1e-9


def test_pairs_of_classes_agree_with_scikit_learns_wrapper(many):
    X, y = many
    ours = SVC(C=0.7, gamma=0.05, tol=1e-10).fit(X, y)
    other = OneVsOneClassifier(theirs.SVC(C=0.7, gamma=0.05, tol=1e-10)).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), other.decision_function(X), atol=1e-3)
    assert (ours.predict(X) == other.predict(X)).mean() > 0.99
    assert len(ours.certificates_) == ours.intercept_.size == 6
    assert all(one.relative_gap <= 1e-10 for one in ours.certificates_)
    assert ours.certificate_.primal == pytest.approx(sum(one.primal for one in ours.certificates_))


def test_one_class_against_the_rest_by_scikit_learns_wrapper(many):
    X, y = many
    ours = OneVsRestClassifier(SVC(C=0.7, gamma=0.05, tol=1e-10)).fit(X, y)
    other = OneVsRestClassifier(theirs.SVC(C=0.7, gamma=0.05, tol=1e-10)).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), other.decision_function(X), atol=1e-3)


def test_both_shapes_of_the_pairwise_decision_function(many):
    X, y = many
    pairs = SVC(decision_function_shape="ovo").fit(X, y)
    votes = clone(pairs).set_params(decision_function_shape="ovr").fit(X, y)
    assert pairs.decision_function(X).shape == (400, 6)
    assert votes.decision_function(X).shape == (400, 4)
    np.testing.assert_array_equal(pairs.predict(X), votes.predict(X))
    other = theirs.SVC(decision_function_shape="ovo", gamma=pairs.kernel_.gamma, tol=1e-8).fit(X, y)
    tight = clone(pairs).set_params(tol=1e-9).fit(X, y)
    np.testing.assert_allclose(tight.decision_function(X), other.decision_function(X), atol=1e-3)


def test_precomputed_callable_sparse_and_threads_give_the_same_scores(many):
    X, y = many
    test = X[::3] + 0.1
    options = {"tol": 1e-9, "random_state": 0}
    reference = SVC(gamma=0.05, **options).fit(X, y).decision_function(test)
    given = SVC(kernel="precomputed", **options).fit(rbf_kernel(X, gamma=0.05), y)
    assert given.support_vectors_.shape[0] == 0
    for scores in (
        given.decision_function(rbf_kernel(test, X, gamma=0.05)),
        SVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.05), **options).fit(X, y).decision_function(test),
        SVC(gamma=0.05, **options).fit(sparse.csr_array(X), y).decision_function(sparse.csr_array(test)),
        SVC(gamma=0.05, n_jobs=2, **options).fit(X, y).decision_function(test),
    ):
        np.testing.assert_allclose(scores, reference, atol=1e-3)


def test_float32_data_stay_float32_and_agree(two):
    X, y = two
    narrow = SVC(tol=1e-8).fit(X.astype(np.float32), y)
    wide = SVC(tol=1e-8).fit(X.astype(np.float32).astype(np.float64), y)
    assert narrow.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(narrow.decision_function(X), wide.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("intercept", ["none", "free"])
def test_class_weights_multiply_sample_weights(two, intercept):
    X, y = two
    s = np.random.default_rng(0).uniform(0.5, 2.0, 300)
    options = {"gamma": 0.1, "tol": 1e-9, "intercept": intercept}
    by_class = SVC(class_weight={0: 0.3, 1: 2.0}, **options).fit(X, y, s)
    by_row = SVC(**options).fit(X, y, s * np.where(y == 1, 2.0, 0.3))
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-6)
    assert (by_class.intercept_[0] == 0.0) == (intercept == "none")


def test_lambda_is_c_in_another_form(two):
    X, y = two
    by_lam = SVC(lam=1.0 / (300 * 2.0), tol=1e-9).fit(X, y)
    by_C = SVC(C=2.0, tol=1e-9).fit(X, y)
    assert by_lam.certificate_.form == "lambda"
    np.testing.assert_allclose(by_lam.decision_function(X), by_C.decision_function(X), atol=1e-6)


def test_kernel_pegasos_through_the_estimator(two):
    X, y = two
    model = SVC(solver=KernelPegasos(batch_size=5), lam=0.01, tol=0.05, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.certificate_.relative_gap <= 0.05
    best = SVC(lam=0.01).fit(X, y)
    assert (model.predict(X) == best.predict(X)).mean() > 0.95


def test_a_limit_warns_and_names_the_gap(two):
    X, y = two
    with pytest.warns(NotCertifiedWarning, match="the relative gap is"):
        model = SVC(solver="kernel-pegasos", max_iter=5, tol=1e-6).fit(X, y)
    assert model.outcome_ is Outcome.EPOCH_LIMIT
    assert model.certificate_.gap > 0.0


def test_solver_options_can_be_searched_and_models_pickled(two):
    X, y = two
    model = SVC().set_params(solver__block=64, C=3.0)
    assert model.solver == Decomposition(block=64)
    search = GridSearchCV(model, {"C": [0.1, 1.0], "solver__shrinking": [True, False]}, cv=2).fit(X, y)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.decision_function(X), search.best_estimator_.decision_function(X))


def test_a_seed_repeats_a_fit_bit_for_bit():
    X, y = load_iris(return_X_y=True)
    first, second = (SVC(random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.dual_coef_, second.dual_coef_)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"kernel": "nope"}, "kernel must be 'linear'"),
        ({"gamma": "wide"}, "gamma must be 'scale', 'auto' or a finite number of at least 0; got 'wide'"),
        ({"gamma": -1.0}, "gamma must be 'scale'"),
        ({"gamma": None}, "gamma must be 'scale', 'auto' or a finite number of at least 0; got None"),
        ({"degree": "a"}, "degree must be a whole number of at least 0; got 'a'"),
        ({"coef0": "a"}, "coef0 must be a finite number; got 'a'"),
        ({"max_iter": 0}, "max_iter must be -1 or positive"),
        ({"C": -1.0}, "C must be a positive finite number"),
        ({"C": 2.0, "lam": 0.1}, "give either C or lam"),
        ({"solver": "dcd"}, "unknown solver 'dcd': use one of auto, kernel-pegasos"),
        ({"intercept": "fixed"}, "intercept must be 'free' or 'none'"),
        ({"cache_size": 0}, "cache_size must be a positive finite number"),
        ({"class_weight": {0: 1.0, 1: -1.0}}, "class_weight must hold"),
        ({"class_weight": {0: 1.0, 1: 0.0}}, "class 1 has no row of positive weight"),
    ],
)
def test_bad_options_are_named(two, options, message):
    with pytest.raises(ValueError, match=message):
        SVC(**options).fit(*two)


@pytest.mark.filterwarnings("ignore:overflow")  # of the power
@pytest.mark.parametrize(
    "options",
    [
        {"kernel": lambda A, B: np.full((A.shape[0], B.shape[0]), np.nan)},
        {"kernel": "poly", "degree": 2000, "gamma": 9},
    ],
)
@pytest.mark.parametrize("solver", ["auto", "kernel-pegasos"])
def test_kernel_values_that_are_not_finite_are_refused(two, options, solver):
    with pytest.raises(ValueError, match=r"the kernel .* gave values that are not finite"):
        SVC(solver=solver, max_iter=3, **options).fit(*two)


def test_unknown_solver_options_are_named():
    with pytest.raises(ValueError, match="has no option 'batch_size'; it has: block, working_set, shrinking"):
        SVC().set_params(solver__batch_size=3)


def test_a_precomputed_kernel_must_be_square_and_dense(two):
    X, y = two
    with pytest.raises(ValueError, match="square"):
        SVC(kernel="precomputed").fit(X, y)
    with pytest.raises(TypeError, match="dense data is required"):
        SVC(kernel="precomputed").fit(sparse.csr_array(rbf_kernel(X)), y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_hard_margin_is_certified(kernel: str) -> None:
    """A hyperplane parts the rows, and C times the rounding of a margin is more than the rest of the objective."""
    X, y = make_blobs(40, centers=2, random_state=6)
    model = SVC(kernel=kernel, C=1e12).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED and model.score(X, y) == 1.0
