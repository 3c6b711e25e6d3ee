"""LinearSVC and LinearSVR: scikit-learn's checks and optima, layouts, repeatability, dual points, refusals."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_iris, load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC as TheirSVC, LinearSVR as TheirSVR
from sklearn.utils.estimator_checks import parametrize_with_checks

from saddlesvm import DCD, SDCA, SVC, LinearSVC, LinearSVCCV, LinearSVR, Pegasos
from saddlesvm.data.door import check_design
from saddlesvm.multiclass.sub_problems import threads_each
from support.estimating import two_blobs

EXCUSED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "compares predictions to 1e-7 at the default tol, which proves the objective to 1e-4 only; "
        "test_weights_equal_repetition holds both fits to what their gaps allow"
    ),
    "check_sample_weight_equivalence_on_sparse_data": "as for dense data",
}
SEARCH = LinearSVCCV(LinearSVC(random_state=0), Cs=2, cv=2)


def excused(estimator: object) -> dict[str, str]:
    return EXCUSED if isinstance(estimator, LinearSVR) else {}


@pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")  # the checks set max_iter to 20
@parametrize_with_checks([LinearSVC(), LinearSVR(), SEARCH], expected_failed_checks=excused)
def test_scikit_learn_checks(estimator: object, check: object) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    return two_blobs()


def distance_allowed(model: LinearSVC) -> float:
    """Strong convexity: ``1/2 ||w - w*||^2 <= gap`` in the C form, where the gap is not known beyond rounding."""
    certificate = model.certificate_
    return float(np.sqrt(2.0 * max(certificate.gap, 1e-13 * certificate.primal)))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_same_optimum_as_scikit_learn(blobs, loss, fit_intercept):
    X, y = blobs
    ours = LinearSVC(loss=loss, fit_intercept=fit_intercept, tol=1e-8, random_state=0).fit(X, y)
    theirs = TheirSVC(loss=loss, fit_intercept=fit_intercept, dual=True, tol=1e-10, max_iter=10**6, random_state=0)
    theirs.fit(X, y)
    moved = np.append(ours.coef_ - theirs.coef_, ours.intercept_ - theirs.intercept_)
    assert np.linalg.norm(moved) <= 2 * distance_allowed(ours) + 1e-6
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.99


def test_same_regression_optimum_as_scikit_learn(blobs):
    X, _ = blobs
    y = X @ np.arange(6.0) + 1.0
    ours = LinearSVR(epsilon=0.2, tol=1e-8, random_state=0).fit(X, y)
    theirs = TheirSVR(epsilon=0.2, dual=True, tol=1e-10, max_iter=10**6, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2 * distance_allowed(ours) + 1e-5)
    assert ours.score(X, y) > 0.99


def test_probabilities_are_those_of_logistic_regression(blobs):
    X, y = blobs
    ours = LinearSVC(loss="logistic", intercept="free", tol=1e-10, random_state=0).fit(X, y)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(ours.predict_log_proba(X), np.log(ours.predict_proba(X)))


def test_probabilities_of_many_classes_sum_to_one():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(loss="logistic", random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (150, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.9


def test_probabilities_need_the_logistic_loss(blobs):
    model = LinearSVC().fit(*blobs)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(blobs[0])


def test_weights_equal_repetition(blobs):
    X, y = blobs
    weights = np.random.default_rng(1).integers(0, 4, size=300)
    repeated = np.repeat(np.arange(300), weights)
    weighted = LinearSVC(tol=1e-9, random_state=0).fit(X, y, sample_weight=weights)
    plain = LinearSVC(tol=1e-9, random_state=0).fit(X[repeated], y[repeated])
    moved = np.linalg.norm(weighted.coef_ - plain.coef_)
    assert moved <= distance_allowed(weighted) + distance_allowed(plain)


def test_int64_indices_as_the_reader_gives_them(tmp_path, blobs):
    X, y = blobs
    path = tmp_path / "rows.txt"
    dump_svmlight_file(X, (y == "yes").astype(int), str(path))
    read, labels = load_svmlight_file(str(path))
    read.indices, read.indptr = read.indices.astype(np.int64), read.indptr.astype(np.int64)
    sparse_fit = LinearSVC(tol=1e-6, random_state=0).fit(read, labels)
    dense_fit = LinearSVC(tol=1e-6, random_state=0).fit(X, y)
    moved = np.linalg.norm(sparse_fit.coef_ - dense_fit.coef_)
    assert moved <= distance_allowed(sparse_fit) + distance_allowed(dense_fit)


@pytest.mark.parametrize("kind", [sparse.csc_matrix, sparse.coo_array, np.asfortranarray, lambda X: X.tolist()])
def test_other_layouts_are_converted(blobs, kind):
    X, y = blobs
    model = LinearSVC(random_state=0).fit(X, y)
    other = LinearSVC(random_state=0).fit(kind(X), y)
    moved = np.linalg.norm(other.coef_ - model.coef_)
    assert moved <= distance_allowed(other) + distance_allowed(model)


def test_unsorted_and_repeated_indices_are_sorted_and_summed():
    X = sparse.csr_matrix((np.array([2.0, 1.0, 1.0, -3.0]), np.array([1, 0, 0, 1]), np.array([0, 3, 4])), shape=(2, 2))
    ours = LinearSVC(random_state=0).fit(X, [1, 0])
    plain = LinearSVC(random_state=0).fit(np.array([[2.0, 2.0], [0.0, -3.0]]), [1, 0])
    np.testing.assert_allclose(ours.coef_, plain.coef_, atol=distance_allowed(ours) + distance_allowed(plain))


def test_unsorted_indices_are_used_in_place():
    X = sparse.random(40, 9, density=0.5, format="csr", random_state=np.random.default_rng(0))
    X = sparse.csr_matrix((X.data[::-1].copy(), X.indices[::-1].copy(), X.nnz - X.indptr[::-1]), shape=X.shape)
    before = X.indices.copy()
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    assert check_design(X).X.indices is X.indices
    y = np.arange(40) % 3
    for model in (LinearSVC(random_state=0), LinearSVC(multi_class="crammer_singer", random_state=0)):
        ours, plain = model.fit(X, y), clone(model).fit(X.sorted_indices(), y)
        np.testing.assert_allclose(ours.coef_, plain.coef_, atol=1e-7)
        np.testing.assert_allclose(ours.decision_function(X), plain.decision_function(X), atol=1e-6)
    radial = SVC(random_state=0).fit(X, y)
    plain = SVC(random_state=0).fit(X.sorted_indices(), y)
    np.testing.assert_allclose(radial.decision_function(X), plain.decision_function(X), atol=1e-6)
    assert np.array_equal(X.indices, before)


def test_indices_out_of_range_are_refused():
    X = sparse.csr_matrix((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    X.indices[1] = 7
    with pytest.raises(ValueError, match="column indices must be from 0 to 1"):
        LinearSVC().fit(X, [0, 1])


def test_mapped_and_read_only_data_are_used_in_place(tmp_path, blobs):
    X, y = blobs
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = LinearSVC(random_state=0).fit(mapped, y)
    assert model.score(mapped, y) > 0.7


def test_repeatable_also_in_parallel_threads(blobs):
    X, y = blobs
    results: list[np.ndarray] = []

    def work() -> None:
        results.append(LinearSVC(solver=SDCA(), random_state=3).fit(X, y).coef_)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((one == results[0]).all() for one in results)


def test_one_vs_rest_in_threads_is_the_same():
    X, y = load_iris(return_X_y=True)
    one = LinearSVC(random_state=0).fit(X, y)
    two = LinearSVC(random_state=0, n_jobs=2).fit(X, y)
    assert (one.coef_ == two.coef_).all()
    assert len(one.certificates_) == 3
    assert one.dual_coef_.shape == (3, 150)


def test_threads_are_not_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saddlesvm.multiclass.sub_problems.cpu_count", lambda: 8)
    monkeypatch.setattr("saddlesvm.multiclass.sub_problems.effective_n_jobs", lambda n_jobs: n_jobs or 1)
    assert [threads_each(jobs, 8) for jobs in (1, 2, 3, 8)] == [8, 4, 2, 1]
    assert threads_each(1, 100) == 8
    assert threads_each(1, None) == 1


def test_dual_coef_gives_coef(blobs):
    X, y = blobs
    model = LinearSVC(tol=1e-6, fit_intercept=False, random_state=0).fit(X, y)
    assert np.linalg.norm(model.dual_coef_ @ X - model.coef_) <= distance_allowed(model)


@pytest.mark.parametrize("solver", ["auto", "dcd", "newton", "pegasos"])
@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_dual_coef_comes_as_close_to_coef_as_the_gap_says(blobs, solver, intercept):
    """The gap is ``1/2 ||w - w(a)||^2`` and terms that Fenchel and Young's inequality keeps from being negative."""
    X, y = blobs
    model = LinearSVC(loss="logistic", solver=solver, intercept=intercept, tol=0.05, random_state=0).fit(X, y)
    assert np.linalg.norm(model.dual_coef_ @ X - model.coef_) <= distance_allowed(model)


def test_lambda_is_c(blobs):
    X, y = blobs
    by_c = LinearSVC(C=0.5, random_state=0).fit(X, y)
    by_lambda = LinearSVC(lam=1 / (0.5 * 300), random_state=0).fit(X, y)
    np.testing.assert_allclose(by_lambda.coef_, by_c.coef_, rtol=1e-9)
    assert by_lambda.certificate_.form == "lambda"
    assert by_lambda.certificate_.primal == pytest.approx(by_c.certificate_.primal / (0.5 * 300))


@pytest.mark.parametrize("strength", [{"C": 0.5}, {"lam": 0.01}])
@pytest.mark.parametrize("model", [LinearSVC, SVC])
def test_records_have_the_certificates_form(blobs, model, strength):
    told = []
    fitted = model(callbacks=[told.append], **strength).fit(*blobs)
    assert told[-1].certificate == fitted.certificate_


@pytest.mark.parametrize("seed", [5, 23, 27])
def test_the_last_record_is_of_the_model_where_an_earlier_one_was_better(blobs, seed):
    """With these seeds the certificate before the last has a lower primal objective, and not enough of a bound."""
    told = []
    model = LinearSVC(C=0.5, solver="dcd", callbacks=[told.append], random_state=seed).fit(*blobs)
    assert told[-1].primal > min(record.primal for record in told)
    assert told[-1].certificate == model.certificate_
    assert (told[-1].coef == model.coef_[0]).all()
    np.testing.assert_allclose(model.dual_coef_ @ blobs[0], model.coef_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")
def test_solver_options_in_a_grid_search(blobs):
    X, y = blobs
    search = GridSearchCV(
        LinearSVC(solver="pegasos", max_iter=20, tol=0.5, random_state=0), {"solver__batch_size": [1, 16]}, cv=2
    )
    search.fit(X, y)
    assert isinstance(search.best_estimator_.solver, Pegasos)
    given = LinearSVC(solver=DCD())
    given.set_params(solver__shrinking=False)
    assert given.solver == DCD(shrinking=False)
    with pytest.raises(ValueError, match="no option 'nonsense'"):
        given.set_params(solver__nonsense=1)


def test_clone_and_pickle_keep_the_solver(blobs):
    model = LinearSVC(solver=SDCA(start="sgd"), random_state=0)
    assert clone(model).solver == SDCA(start="sgd")
    fitted = pickle.loads(pickle.dumps(model.fit(*blobs)))
    assert fitted.certificate_ == model.certificate_


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C must be a positive finite number, from .*; got 0.0"),
        ({"lam": -1.0}, "lam must be a positive finite number"),
        ({"C": 2.0, "lam": 1.0}, "either C or lam"),
        ({"loss": "absolute"}, "regression loss: use LinearSVR"),
        ({"loss": "nonsense"}, "unknown loss 'nonsense'"),
        ({"solver": "nonsense"}, "unknown solver 'nonsense'"),
        ({"solver": "sdca:nonsense=1"}, "no option 'nonsense'"),
        ({"penalty": "l0"}, "penalty must be 'l2', 'l1' or 'elasticnet'"),
        ({"intercept": "fixed"}, "intercept must be"),
        ({"intercept_scaling": 0.0}, "intercept_scaling must be a positive finite number, from 1e-100 to 1e100"),
        ({"multi_class": "nonsense"}, "multi_class must be"),
        ({"dual": "maybe"}, "dual must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"tol": "a"}, "tol must be a relative gap, at least 0 and below 1: a gap of 1 proves nothing; got 'a'"),
        ({"tol": None}, "tol must be a relative gap, at least 0 and below 1: a gap of 1 proves nothing; got None"),
        ({"tol": 2}, "tol must be a relative gap, at least 0 and below 1: a gap of 1 proves nothing; got 2"),
        ({"C": None}, "C must be a positive finite number, from .*; got None"),
        ({"max_iter": 0}, "max_iter must be positive, or None for no limit; got 0"),
        ({"max_iter": -1}, "max_iter must be positive, or None for no limit; got -1"),
        ({"max_time": "1 s"}, "max_time must be positive, or None for no limit; got '1 s'"),
        ({"n_jobs": "a"}, "n_jobs must be a whole number other than 0, or None; got 'a'"),
        ({"callbacks": [3]}, r"callbacks must be a list of callables, or None; got \[3\]"),
        ({"callbacks": print}, "callbacks must be a list of callables, or None; got <built-in function print>"),
        ({"loss": "smooth_hinge:width=0"}, "width must be a positive finite number"),
        ({"loss": "smooth_hinge:width=a"}, "width"),
        ({"solver": Pegasos(batch_size=301)}, "larger than the number of rows"),
        ({"class_weight": {"no": -1.0}}, "class_weight must hold finite factors of at least 0"),
        ({"class_weight": {"no": 0.0, "yes": 0.0}}, "no row of positive weight: at least two"),
    ],
)
def test_bad_options_are_named(blobs, options, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(**options).fit(*blobs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, y[:-1], None), "inconsistent numbers of samples"),
        (lambda X, y: (np.where(X > 2, np.nan, X), y, None), "contains NaN in row"),
        (lambda X, y: (np.where(X > 2, np.inf, X), y, None), "contains infinity"),
        (lambda X, y: (X, np.full(300, "a"), None), "1 class only, 'a'"),
        (lambda X, y: (X, y, np.full(300, -1.0)), "must not be negative"),
        (lambda X, y: (X, y, np.zeros(300)), "zero everywhere"),
        (lambda X, y: (X, y, (y == "yes").astype(float)), "class 'no' has no row of positive weight"),
        (lambda X, y: (X[:0], y[:0], None), "minimum of 1"),
    ],
)
def test_bad_data_are_named(blobs, change, message):
    X, y, weights = change(*blobs)
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("loss", ["absolute", "huber", "squared", "epsilon_insensitive"])
@pytest.mark.parametrize("target", [1.0, 0.1, -3.3, 1e6])
def test_targets_that_are_all_alike_are_the_free_intercept(loss: str, target: float) -> None:
    X = np.random.default_rng(0).standard_normal((200, 5))
    model = LinearSVR(loss=loss, intercept="free").fit(X, np.full(200, target))
    assert model.outcome_ == "certified"
    assert model.certificate_.primal == 0.0
    assert not np.any(model.coef_)
    np.testing.assert_allclose(model.predict(X), target, rtol=1e-15)
