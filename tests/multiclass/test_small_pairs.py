"""Many small pairs of classes at a time: the certificates are those of single fits."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from saddlesvm import SVC
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.outcome import Outcome
from saddlesvm.multiclass.fits import drive_all
from saddlesvm.multiclass.kernel_fit import KernelFits
from saddlesvm.multiclass.small_pairs import SmallPairs, certificate_of
from saddlesvm.multiclass.sub_problems import Pairs
from saddlesvm.problem.kernel import shared_facts
from saddlesvm.problem.kernel_certificate import KernelPoint, evaluate_kernel
from saddlesvm.problem.losses import make_loss
from saddlesvm.rows.kernels import Kernel
from saddlesvm.solvers.kernel.decomposition import KernelDecomposition

KERNELS = [Kernel("rbf", 0.2), Kernel("linear"), Kernel("poly", 0.3, 2, 1.0), Kernel("cosine")]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(180, 5, centers=6, cluster_std=3.0, random_state=4)
    order = np.argsort(y % 3, kind="stable")
    return X[order], y[order] % 3


def fits_of(data, kernel=KERNELS[0], loss="hinge", weights=None, tol=1e-3) -> KernelFits:
    X, y = data
    options = {"weights": weights, "intercept": "free", "scale": 1.0, "cache_size": 200.0, "C": 2.0}
    return KernelFits(
        problems=Pairs(y, np.unique(y)), solver=KernelDecomposition(), limits=Limits(tol=tol), seed=0, X=X,
        kernel=kernel, loss=make_loss(loss), options=options, facts=shared_facts(kernel, X, 200.0),
    )  # fmt: skip


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smooth_hinge"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_certificates_are_those_of_single_fits(data, kernel, loss, weighted):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, data[1].size) if weighted else None
    fits = fits_of(data, kernel, loss, weights)
    [batch] = fits.batches()
    assert isinstance(batch, SmallPairs)
    left = list(batch.problems)
    while left and batch.rest is None:
        moved = batch.advance(left, threading.Event())
        for k in range(3):
            plain = evaluate_kernel(fits.problem(fits.problems[k]), KernelPoint(batch.beta[batch.rows(k)].copy()))
            own, _ = certificate_of(batch.task, int(batch.laid_out.starts[k, 2]), batch.numbers[k])
            near = plain.certificate.rounding + 1e-11 * abs(own.primal)
            assert own.primal == pytest.approx(plain.certificate.primal, abs=near)
            assert own.dual == pytest.approx(plain.certificate.dual, abs=near)
            assert own.rounding == pytest.approx(plain.certificate.rounding, rel=0.05)
            assert batch.traces[k][-1]["primal"] >= own.primal
        left = [k for k in left if k not in [one.index for one in moved]]
    assert not left


@pytest.mark.parametrize("kernel", KERNELS[:3], ids=lambda kernel: kernel.name)
def test_pairs_with_kernel_rows_of_their_own_are_certified_as_single_fits_are(data, kernel):
    """Where the matrix of all points is too large to be shared; the classes need not be in order."""
    order = np.random.default_rng(1).permutation(data[1].size)
    fits = fits_of((data[0][order], data[1][order]), kernel)
    fits.facts = None
    batches = fits.batches()
    assert all(isinstance(batch, SmallPairs) and batch.task.gram is None for batch in batches)
    for k, result in enumerate(drive_all(batches, None)):
        problem = fits.problem(fits.problems[k])
        beta = np.zeros(data[1].size)
        beta[result.coef.rows] = result.coef.values
        plain = evaluate_kernel(problem, KernelPoint(beta[fits.members[k]])).certificate
        assert result.certificate.relative_gap <= 1e-3
        near = plain.rounding + 1e-11 * abs(plain.primal)
        assert result.certificate.primal == pytest.approx(plain.primal, abs=near)
        assert result.certificate.dual == pytest.approx(plain.dual, abs=near)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_model_is_within_its_gaps_of_the_one_that_is_watched(data, loss):
    X, y = data
    quick = SVC(C=2.0, loss=loss).fit(X, y)
    watched = SVC(C=2.0, loss=loss, callbacks=[lambda record: False]).fit(X, y)
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
