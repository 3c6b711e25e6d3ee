"""The top-k machine: its step, its optimum, and its relatives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq
from sklearn.datasets import load_digits

from saddlesvm import LinearSVC, NotCertifiedWarning, Outcome
from saddlesvm.problem.certificate import evaluate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.joint_losses import BEST_RIVAL, TopKHinge
from saddlesvm.problem.losses import Hinge
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.crammer_singer import CrammerSinger
from saddlesvm.solvers.joint_steps import threshold_between
from support import Every, distance_bound
from support.classes import blobs


@pytest.mark.parametrize("seed", range(6))
def test_the_threshold_makes_a_block_between_its_bounds_sum_to_zero(seed):
    random = np.random.default_rng(seed)
    count, own, k = int(random.integers(2, 9)), 1, int(random.integers(1, 5))
    B, A, s = random.normal(size=count) * 10.0 ** random.integers(-2, 3), random.exponential(), random.exponential()
    first = np.arange(count) == own

    def total(beta):
        return np.clip((beta - B) / A, np.where(first, 0.0, -s / k), np.where(first, s, 0.0)).sum()

    found = threshold_between(B, count, own, A, s, -s / k)
    assert abs(total(found)) <= 1e-13 * (s + abs(B).max() / A)
    expected = brentq(total, B.min() - 1.0, B.max() + 1.0, xtol=1e-14)
    if abs(total(expected + 1e-6) - total(expected - 1e-6)) > 1e-9:  # else the sum is zero on an interval
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("machine", [BEST_RIVAL, *map(TopKHinge, (1, 2, 3, 6))], ids=str)
@pytest.mark.parametrize("intercept", ["none", "regularized"])
@pytest.mark.parametrize("empty", [False, True])
def test_a_visit_leaves_the_row_without_a_share_of_the_gap(machine, intercept, empty):
    X, y = blobs(n=8, k=4, seed=3)
    X[0] *= not empty
    design = as_rows(X, 0.0 if intercept == "none" else 1.0)
    for row in range(8):
        given = {"C": 2.0, "members": np.array([row]), "intercept": intercept}
        problem = make_joint_problem(design, y, 4, Hinge(), machine, **given)
        state = CrammerSinger().step(problem, CrammerSinger().init(problem, 0), Budget(1))
        certificate = evaluate(problem, CrammerSinger().solution(problem, state)).certificate
        assert abs(certificate.gap) <= 1e-12 * certificate.primal


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_one_of_k_is_crammer_and_singers_machine(layout):
    X, y = blobs(k=4)
    options = {"C": 0.2, "tol": 1e-7, "random_state": 0}
    one = LinearSVC(multi_class="top_k", top_k=1, **options).fit(layout(X), y)
    other = LinearSVC(multi_class="crammer_singer", **options).fit(layout(X), y)
    far = distance_bound(one.certificate_.gap) + distance_bound(other.certificate_.gap)
    assert np.linalg.norm(one.coef_ - other.coef_) <= far


@pytest.mark.parametrize("k", [2, 3, 12])
def test_digits_are_certified_and_more_forgiven_rows_pay_less(k):
    X, y = load_digits(return_X_y=True)
    model = LinearSVC(multi_class="top_k", top_k=k, C=0.1, tol=1e-5, random_state=0).fit(X / 16.0, y)
    assert model.outcome_ is Outcome.CERTIFIED
    z = X / 16.0 @ model.coef_.T + model.intercept_
    paid = TopKHinge(k).values(z, y).sum()
    charged = 0.5 * (np.vdot(model.coef_, model.coef_) + model.intercept_ @ model.intercept_)
    assert model.certificate_.primal == pytest.approx(charged + 0.1 * paid, rel=1e-9)
    best = LinearSVC(multi_class="crammer_singer", C=0.1, tol=1e-5, random_state=0).fit(X / 16.0, y)
    assert model.certificate_.dual <= best.certificate_.primal
    duals = model.dual_coef_.toarray()
    assert np.linalg.norm(duals @ (X / 16.0) - model.coef_) <= distance_bound(model.certificate_.gap)


def test_a_warm_start_and_a_checkpoint_go_on(tmp_path):
    X, y = blobs(k=4)
    options = {"multi_class": "top_k", "top_k": 2, "tol": 1e-6, "random_state": 0, "callbacks": [Every(1)]}
    model = LinearSVC(**options, warm_start=True).fit(X, y)
    assert model.fit(X, y).outcome_ is Outcome.CERTIFIED
    straight = LinearSVC(**options, checkpoint=tmp_path / "one").fit(X, y)
    with pytest.warns(NotCertifiedWarning):
        LinearSVC(**options | {"callbacks": [Every(1, lambda record: True)]}, checkpoint=tmp_path / "two").fit(X, y)
    resumed = LinearSVC(**options, checkpoint=tmp_path / "two").fit(X, y)
    np.testing.assert_array_equal(straight.coef_, resumed.coef_)


def test_the_top_k_machine_says_what_it_does_not_have():
    X, y = blobs()
    for options, said in [({"top_k": 0}, "top_k"), ({"loss": "logistic"}, "hinge"), ({"intercept": "free"}, "free")]:
        with pytest.raises(ValueError, match=said):
            LinearSVC(multi_class="top_k", **options).fit(X, y)
