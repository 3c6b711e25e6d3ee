"""Many small pairs of classes at a time: the certificates are those of single fits."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from saddlesvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.kernel_certificate import evaluate_kernel
from saddlesvm.kernel.kernel_errors import kernel_errors
from saddlesvm.kernel.kernel_fits import KernelRows
from saddlesvm.kernel.kernel_problem import KernelFacts
from saddlesvm.kernel.mercer import Kernel, gram
from saddlesvm.kernel.nu_machines import PLAIN, Novelty, NuClassification, NuRegression
from saddlesvm.kernel.small_pairs import SmallPairs
from saddlesvm.multiclass.fits import Fits, drive_all
from saddlesvm.multiclass.sub_problems import Pairs, SubProblem
from saddlesvm.problem.certificate import KernelPoint
from saddlesvm.problem.losses import make_loss

KERNELS = [Kernel("rbf", 0.2), Kernel("linear"), Kernel("poly", 0.3, 2, 1.0), Kernel("cosine")]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(180, 5, centers=6, cluster_std=3.0, random_state=4)
    order = np.argsort(y % 3, kind="stable")
    return X[order], y[order] % 3


def fits_of(data, kernel=KERNELS[0], loss="hinge", weights=None, tol=1e-3) -> tuple[Fits, KernelRows]:
    X, y = data
    options = {"weights": weights, "intercept": "free", "cache_size": 200.0, "C": 2.0}
    facts = KernelFacts(gram(kernel, X), kernel_errors(kernel, X))
    rows = KernelRows(X=X, kernel=kernel, loss=make_loss(loss), options=options, facts=facts)
    problems = Pairs(y, np.unique(y))
    return Fits(problems=problems, rows=rows, solver=Decomposition(), limits=Limits(tol=tol), seed=0), rows


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_certificates_are_those_of_single_fits(data, kernel, weighted):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, data[1].size) if weighted else None
    fits, rows = fits_of(data, kernel, "hinge", weights)
    [batch] = rows.batch_together(fits)
    assert isinstance(batch, SmallPairs)
    done = batch.advance(list(batch.problems), threading.Event())
    assert [one.index for one in done] == list(batch.problems)
    for k in batch.problems:
        plain = evaluate_kernel(rows.pose(fits.problems[k]), KernelPoint(batch.beta[batch.rows(k)].copy()))
        own, _ = batch.certificate_of(k)
        near = plain.certificate.rounding + 1e-11 * abs(own.primal)
        assert own.primal == pytest.approx(plain.certificate.primal, abs=near)
        assert own.dual == pytest.approx(plain.certificate.dual, abs=near)
        assert own.rounding == pytest.approx(plain.certificate.rounding, rel=0.05, abs=0.0)
        assert batch.result_of(k).trace[-1]["primal"] >= own.primal


def test_pairs_with_kernel_rows_of_their_own_are_certified_as_single_fits_are(data, monkeypatch):
    """Where the matrix of all points is too large to be shared; the classes need not be in order."""
    order = np.random.default_rng(1).permutation(data[1].size)
    monkeypatch.setattr("saddlesvm.kernel.kernel_fits.can_share_matrix", lambda *given: False)
    fits, rows = fits_of((data[0][order], data[1][order]), Kernel("rbf", 0.3))
    rows.facts = None
    batches = rows.batch_together(fits)
    assert all(isinstance(batch, SmallPairs) and batch.task.gram is None for batch in batches)
    for k, result in enumerate(drive_all(batches, 1)):
        problem = rows.pose(fits.problems[k])
        beta = np.zeros(data[1].size)
        beta[result.coef.rows] = result.coef.values
        plain = evaluate_kernel(problem, KernelPoint(beta[rows.members[k]])).certificate
        assert result.certificate.relative_gap <= 1e-3
        near = plain.rounding + 1e-11 * abs(plain.primal)
        assert result.certificate.primal == pytest.approx(plain.primal, abs=near)
        assert result.certificate.dual == pytest.approx(plain.dual, abs=near)


MACHINES = {
    "novelty": (Novelty(0.3), "hinge"),
    "nu classification": (NuClassification(0.4), "hinge"),
    "nu regression": (NuRegression(0.4), "hinge"),
    "regression": (PLAIN, "epsilon_insensitive:epsilon=0.1"),
    "quantiles": (PLAIN, "pinball:tau=0.7"),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS[:3], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("name", MACHINES)
def test_other_machines_are_certified_as_single_fits_are(data, name, kernel, weighted):
    """One or two groups of rows with an offset each, of one or two parts, and a tube."""
    (X, y), (machine, loss) = data, MACHINES[name]
    weights = np.random.default_rng(0).uniform(0.5, 2.0, y.size) if weighted else None
    target = X[:, 0] - X[:, 1] ** 2 / 9.0
    fits, rows = fits_of(data, kernel, "hinge", weights)
    rows.loss, rows.machine = make_loss(loss), machine
    fits.problems = fits.problems if name == "nu classification" else [SubProblem(0, "", target)]
    if rows.has_short_rows():
        return
    [batch] = rows.batch_together(fits)
    assert isinstance(batch, SmallPairs)
    done = batch.advance(list(batch.problems), threading.Event())
    assert [one.index for one in done] == list(batch.problems)
    assert machine is PLAIN or (np.abs(batch.programs.judged.totals) > 0.0).all()
    for k in batch.problems:
        problem = rows.pose(fits.problems[k])
        beta = batch.beta[batch.rows(k)].copy()
        if name == "nu classification":  # here the later class comes first; there the rows are in their order
            later = np.argsort(-problem.views.signs, kind="stable")
            beta[later] = batch.beta[batch.rows(k)]
        plain = evaluate_kernel(problem, KernelPoint(beta))
        own, offsets = batch.certificate_of(k)
        near = max(own.rounding, plain.certificate.rounding) + 1e-11 * abs(own.primal)
        assert own.primal == pytest.approx(plain.certificate.primal, abs=near)
        assert own.dual == pytest.approx(plain.certificate.dual, abs=near)
        most = 4.0 if beta.size > problem.X.shape[0] else 1.05  # both rows of a point count, and do not cancel
        assert 0.95 <= own.rounding / plain.certificate.rounding <= most
        assert np.ravel(offsets) == pytest.approx(np.ravel(plain.intercept), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    "model",
    [NuSVC(nu=0.3), NuSVR(nu=0.3), OneClassSVM(nu=0.2), SVR(C=3.0), SVC(), NuSVC(nu=0.2, kernel="poly")],
    ids=lambda model: type(model).__name__,
)
def test_models_of_other_machines_are_those_that_are_watched(data, model):
    """The bundle and a fit of its own prove bounds of one optimum, and their scores are as near as these say."""
    X, y = data
    y = X[:, 0] - X[:, 1] if isinstance(model, (SVR, NuSVR)) else y
    quick = type(model)(**model.get_params()).set_params(tol=1e-8).fit(X, y)
    watched = type(model)(**model.get_params()).set_params(tol=1e-8, callbacks=[lambda record: False]).fit(X, y)
    assert quick.outcome_ is watched.outcome_ is Outcome.CERTIFIED
    for one, other in zip(quick.certificates_, watched.certificates_, strict=True):
        assert one.dual <= other.primal and other.dual <= one.primal
    ovo = {"decision_function_shape": "ovo"} if isinstance(model, NuSVC) else {}
    scores = [
        one.set_params(**ovo).decision_function(X) if hasattr(one, "decision_function") else one.predict(X)
        for one in (quick, watched)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-2 * np.abs(scores[1]).max())


def test_nu_that_is_infeasible_or_leaves_no_margin(data):
    X, y = data
    with pytest.raises(ValueError, match="infeasible: the smaller class allows at most"):
        NuSVC(nu=0.9).fit(X[: y.size // 2], y[: y.size // 2])
    with pytest.warns(UserWarning, match="nu is too small"):
        NuSVC(nu=1.0, kernel="linear").fit(np.tile(X[:40], (2, 1)), np.repeat([0, 1], 40))


def test_only_plain_pairs_have_kernel_rows_of_their_own(data, monkeypatch):
    """The first point of the machines with nu needs kernel rows before any step has come to them."""
    X, y = data
    monkeypatch.setattr("saddlesvm.kernel.kernel_fits.can_share_matrix", lambda *given: False)
    fits, rows = fits_of(data)
    rows.facts, rows.machine = None, NuClassification(0.3)
    assert rows.batch_together(fits) is None
    two, rows = fits_of((np.tile(X, (4, 1)), np.tile(y > 0, 4)))  # more rows than have a matrix of all points
    rows.facts = None
    [batch] = rows.batch_together(two)
    assert isinstance(batch, SmallPairs) and batch.task.gram is None
    [result] = two.solve()
    beta = np.zeros(4 * y.size)
    beta[result.coef.rows] = result.coef.values
    plain = evaluate_kernel(rows.pose(two.problems[0]), KernelPoint(beta)).certificate
    assert result.certificate.relative_gap <= 1e-3
    assert result.certificate.primal == pytest.approx(plain.primal, rel=1e-9)


def test_a_model_is_within_its_gaps_of_the_one_that_is_watched(data):
    X, y = data
    quick = SVC(C=2.0).fit(X, y)
    watched = SVC(C=2.0, callbacks=[lambda record: False]).fit(X, y)
    for one, other in zip(quick.certificates_, watched.certificates_, strict=True):
        assert one.relative_gap <= 1e-3 and one.dual <= other.primal and other.dual <= one.primal
    # The objective of each pair is strongly convex in w: scores of both differ by no more than its gaps allow.
    reach = np.sqrt(max(2.0 * (one.gap + other.gap) for one, other in zip(quick.certificates_, watched.certificates_,
                                                                           strict=True)))  # fmt: skip
    apart = quick.set_params(decision_function_shape="ovo").decision_function(X) - watched.set_params(
        decision_function_shape="ovo"
    ).decision_function(X)
    spread = apart - (quick.intercept_ - watched.intercept_)
    assert np.abs(spread).max() <= 2.0 * reach


def test_rows_in_any_order_and_two_classes(data):
    X, y = data
    order = np.random.default_rng(1).permutation(y.size)
    one, other = SVC().fit(X, y), SVC().fit(X[order], y[order])
    for here, there in zip(one.certificates_, other.certificates_, strict=True):
        assert here.dual <= there.primal and there.dual <= here.primal
    assert np.array_equal(other.support_vectors_, X[order][other.support_])
    two = y < 2
    model = SVC(tol=1e-6).fit(X[two][::-1], y[two][::-1])
    assert model.outcome_ is Outcome.CERTIFIED and model.trace_.column("problem")[0] == ""
    assert model.score(X[two], y[two]) == SVC(tol=1e-6, max_time=60.0).fit(X[two], y[two]).score(X[two], y[two])


def test_pairs_that_are_not_certified_have_fits_of_their_own(data):
    X, y = data
    with pytest.warns(UserWarning, match="rounding"):
        model = SVC(tol=1e-15).fit(X, y)
    assert model.outcome_ is Outcome.LIMITED_BY_ROUNDING and len(model.certificates_) == 3
    assert max(one.relative_gap for one in model.certificates_) < 1e-9


def test_threads_find_the_same(data):
    X, y = data
    one, other = SVC(n_jobs=1).fit(X, y), SVC(n_jobs=2).fit(X, y)
    assert np.array_equal(one.dual_coef_, other.dual_coef_) and np.array_equal(one.intercept_, other.intercept_)
