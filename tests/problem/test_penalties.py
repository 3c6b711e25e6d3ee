"""The penalties beside plain references: their laws, weak duality, and fits by SDCA and DCD."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize_scalar

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.problem import penalties
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.intercepts import Absent, Free, Regularized
from saddlesvm.problem.losses import Hinge, Logistic, Loss, Squared, SquaredHinge
from saddlesvm.problem.penalties import (
    L1,
    L2,
    ElasticNet,
    Penalty,
    elastic_net,
    holds_square,
    modulus,
    score,
)
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.problem.responses import best_scale
from saddlesvm.problem.sums import dual_weights
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.compiled import kernel
from saddlesvm.solvers import DCD, SDCA, Newton
from support import csr, features, labels, matrix, named, others_nightly

SQUARES: list[Penalty] = [L2(), ElasticNet(0.4)]
ALL: list[Penalty] = [*SQUARES, L1(0.4)]
every_penalty = pytest.mark.parametrize("penalty", ALL, ids=lambda penalty: type(penalty).__name__)
every_square = pytest.mark.parametrize("penalty", SQUARES, ids=lambda penalty: type(penalty).__name__)


def value(penalty: Penalty, w: float) -> float:
    """``r(w)``."""
    square, l1 = penalty.factors()
    return 0.5 * square * w * w + l1 * abs(w)


def conjugate(penalty: Penalty, v: float) -> float:
    """``r*(v)``, from its definition for each of the two kinds."""
    square, l1 = penalty.factors()
    beyond = max(abs(v) - l1, 0.0)
    if square:
        return 0.5 * beyond**2
    return 0.0 if abs(v) <= l1 * (1.0 + 1e-15) else math.inf


def weight(penalty: Penalty, v: float) -> float:
    """The maximiser of ``v w - r(w)``; zero without a square."""
    square, l1 = penalty.factors()
    return square * math.copysign(max(abs(v) - l1, 0.0), v)


every_kind = pytest.mark.parametrize("kind", ["none", "regularized", "free"])


def some_problem(penalty: Penalty, loss: Loss, kind: str, seed: int = 0, sparse: bool = False, **more: Any) -> Problem:
    X, bias = matrix(40, 6, seed), 0.0 if kind == "none" else 1.5
    rows = as_rows(csr(X) if sparse else X, bias)
    options: Any = {"C": 0.5, "intercept": kind, "penalty": penalty} | more
    return make_problem(rows, labels(X, loss, seed), loss, **options)


def primal(problem: Problem, coef: np.ndarray, intercept: float) -> float:
    """The objective, without the package's certificate."""
    z = features(problem)[:, :-1] @ coef + intercept
    paid = sum(problem.loss.value(one, y) for one, y in zip(z, problem.y, strict=True))
    last = intercept / problem.scale if problem.intercept.name == "regularized" else 0.0
    charged = value(problem.penalty, last) if isinstance(problem.penalty, L1) else 0.5 * last**2
    return float(sum(value(problem.penalty, one) for one in coef) + charged + problem.C * paid)


@every_penalty
@given(w=st.floats(-5.0, 5.0), v=st.floats(-5.0, 5.0))
def test_a_penalty_and_its_conjugate_belong_together(penalty: Penalty, w: float, v: float) -> None:
    whole = Regularizer(penalty, Absent())
    v *= whole.domain_scale(np.array([v, 0.0]))
    charged, bound = whole.value(np.array([w, 0.0])), whole.conjugate(np.array([v, 0.0]))
    assert whole.value(np.zeros(2)) == 0.0 <= charged
    assert w * v <= charged + bound + 1e-12
    if isinstance(penalty, L1):
        assert bound == 0.0
        return
    found = minimize_scalar(lambda u: value(penalty, u) - v * u, bounds=(-10.0, 10.0), method="bounded")
    slope = abs(v) + 10.0 * value(penalty, 1.0)  # of the function, at most; the search is right to 1e-5
    assert -found.fun - 1e-12 <= bound <= -found.fun + 1e-5 * slope
    own, other = (whole.weights(np.array([one, 0.0]))[0] for one in (v, w))
    assert own * v == pytest.approx(value(penalty, own) + bound, abs=1e-12)
    assert abs(own - other) <= abs(v - w) + 1e-12, "the conjugate is 1-smooth"


@every_penalty
@pytest.mark.parametrize("kind", [Absent(), Regularized(1.5), Free(1.5)], ids=str)
@given(seed=st.integers(0, 1000))
def test_the_regulariser_adds_the_penalties_and_the_share_of_the_intercept(
    penalty: Penalty, kind: Any, seed: int
) -> None:
    w, v = np.random.default_rng(seed).normal(size=(2, 7))
    whole = Regularizer(penalty, kind)
    v = v * whole.domain_scale(v)
    last: Penalty = penalty if isinstance(penalty, L1) else L2()
    seen_last = kind.name == "regularized"
    assert whole.value(w) == pytest.approx(sum(value(penalty, one) for one in w[:-1]) + seen_last * value(last, w[-1]))
    at_last = conjugate(last, v[-1]) if seen_last else 0.0
    assert whole.conjugate(v) == pytest.approx(sum(conjugate(penalty, one) for one in v[:-1]) + at_last)
    assert whole.conjugate_along(v)(0.3) == pytest.approx(whole.conjugate(0.3 * v))
    assert whole.weights(v) == pytest.approx(
        [*(weight(penalty, one) for one in v[:-1]), weight(last, v[-1]) if seen_last else v[-1]]
    )
    square, l1 = penalty.factors()
    bends = square * (np.abs(v[:-1]) > l1) if l1 else np.ones(6)
    assert whole.curvature(v) == pytest.approx([*bends, square * (kind.name != "free")])


@pytest.mark.parametrize("penalty", [L2(), ElasticNet(0.4)], ids=str)
def test_a_pull_to_weights_has_these_weights(penalty: Penalty) -> None:
    w = np.array([0.0, 1.5, -2.0, 0.3, 0.0, -0.1])
    whole = Regularizer(penalty, Regularized(1.0))
    assert whole.weights(whole.pull_of_weights(w)) == pytest.approx(w, abs=1e-15)


@kernel
def scores(penalty: Any, X: Any, v: np.ndarray, out: np.ndarray) -> None:
    for i in range(out.size):
        out[i] = score(penalty, X, i, v, 1.0)


@every_square
@pytest.mark.parametrize("sparse", [False, True])
def test_scores_read_the_weights_through_the_penalty(penalty: Penalty, sparse: bool) -> None:
    X, v = matrix(8, 5, density=0.6), np.random.default_rng(0).normal(size=6)
    rows, found = as_rows(csr(X) if sparse else X, 0.7), np.empty(8)
    scores(penalty, rows, v, found)
    weights = Regularizer(penalty, Regularized(0.7)).weights(v)
    assert found == pytest.approx(np.hstack([X, np.full((8, 1), 0.7)]) @ weights)
    assert found == pytest.approx([score(penalty, rows, i, v, 1.0) for i in range(8)])


@every_penalty
@every_kind
@pytest.mark.parametrize("loss", [Hinge(), Logistic(), Squared()], ids=named)
def test_weak_duality(penalty: Penalty, kind: str, loss: Loss) -> None:
    problem = some_problem(penalty, loss, kind)
    random = np.random.default_rng(1)
    for size in (0.01, 0.3, 3.0):
        w = random.normal(size=7) * size * (kind != "none" or np.arange(7) < 6)
        alpha = -np.array([loss.subgradient(one, y) for one, y in zip(random.normal(size=40), problem.y, strict=True)])
        points = [Point(w), Point(w, alpha)] + ([] if isinstance(penalty, L1) else [Point(alpha=alpha)])
        found = [evaluate(problem, point) for point in points]
        for one in found:
            assert one.certificate.sound
            assert one.certificate.primal == pytest.approx(primal(problem, one.coef, one.intercept), rel=1e-12)
            pull = dual_weights(problem, one.alpha)
            conjugates = sum(loss.conjugate(a, y, 1.0) for a, y in zip(one.alpha, problem.y, strict=True))
            bound = -problem.C * conjugates - problem.regularizer.conjugate(pull * (1.0 - 1e-15))
            assert one.certificate.dual == pytest.approx(max(bound, 0.0), rel=1e-9, abs=1e-9)  # zero proves 0
        best = min(one.certificate.primal for one in found)
        assert max(one.certificate.dual for one in found) <= best + 1e-12 * abs(best)


@every_penalty
@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=named)
def test_the_scale_of_a_dual_point_keeps_to_the_domain_and_is_nearly_best(penalty: Penalty, loss: Loss) -> None:
    problem = some_problem(penalty, loss, "none")
    alpha = -np.array([loss.subgradient(0.0, y) for y in problem.y])
    pull = dual_weights(problem, alpha)

    def bound(factor: float) -> float:
        paid = sum(loss.conjugate(factor * a, y, 1.0) for a, y in zip(alpha, problem.y, strict=True))
        return -problem.C * paid - problem.regularizer.conjugate_along(pull)(factor)

    factor = best_scale(problem, alpha, pull)
    most = problem.regularizer.domain_scale(pull)
    assert 0.0 <= factor <= most <= 1.0
    best = max(bound(most * one) for one in np.linspace(0.0, 1.0, 201))
    assert bound(factor) >= best - 1e-3 * abs(best)


@every_square
@every_kind
@pytest.mark.parametrize(
    ("solver", "loss", "sparse"),
    others_nightly(
        [
            (solver, loss, sparse)
            for solver in (SDCA(), SDCA(output="average"), DCD())
            for loss, sparse in ((SquaredHinge(), False), (Hinge(), True))
        ],
        lambda case: case[2] == (case[0] == DCD()),
    ),
    ids=str,
)
def test_dual_solvers_certify_every_penalty_that_holds_a_square(
    penalty: Penalty, kind: str, solver: Any, loss: Loss, sparse: bool
) -> None:
    tol = 1e-6 if solver != SDCA(output="average") else 1e-2
    problem = some_problem(penalty, loss, kind, sparse=sparse)
    result = fit(problem, solver, Limits(tol=tol, max_epochs=5000))
    assert result.certificate.relative_gap <= tol
    whole = primal(some_problem(penalty, loss, kind), result.coef, result.intercept)
    assert result.certificate.primal == pytest.approx(whole, rel=1e-10)


def test_the_elastic_net_leaves_features_out() -> None:
    problem = some_problem(ElasticNet(4.0), SquaredHinge(), "none")
    result = fit(problem, DCD(), Limits(tol=1e-9, max_epochs=5000))
    left_out = result.coef == 0.0
    assert 0 < left_out.sum() < 6
    # no gradient of the losses there is larger than l1 but for what the gap leaves to the pull
    pull = dual_weights(problem, result.alpha)[:-1]
    assert np.abs(pull[left_out]).max() <= 4.0 + math.sqrt(2.0 * result.certificate.gap)


def test_solvers_that_need_half_a_square_say_so() -> None:
    problem = some_problem(ElasticNet(0.1), SquaredHinge(), "none")
    with pytest.raises(ValueError, match=r"\(half a square\) only, not ElasticNet\(l1=0.1\): use DCD or SDCA"):
        fit(problem, Newton(), Limits(tol=1e-3))
    with pytest.raises(ValueError, match="start='sgd' needs penalty='l2'"):
        fit(problem, SDCA(start="sgd"), Limits(tol=1e-3))
    with pytest.raises(ValueError, match="supports penalty='l2' only, not ElasticNet"):
        make_joint_problem(problem.X, np.zeros(40), 3, Hinge(), C=1.0, penalty=ElasticNet(0.1))


def test_an_elastic_net_is_scikit_learns() -> None:
    w = 0.7
    for l1_ratio in (0.0, 0.2, 0.9, 1.0):
        made, share = elastic_net(l1_ratio)
        assert share * value(made, w) == pytest.approx(0.5 * (1.0 - l1_ratio) * w * w + l1_ratio * abs(w), rel=1e-14)
        assert isinstance(made, L2 if l1_ratio == 0.0 else L1 if l1_ratio == 1.0 else ElasticNet)
        assert modulus(made) == made.factors()[0]
        assert holds_square(made) == (l1_ratio < 1.0)


@every_penalty
@pytest.mark.parametrize("place", [0, -1])
def test_a_pull_whose_square_overflows_has_an_infinite_conjugate(penalty: Penalty, place: int) -> None:
    pull = np.zeros(4)
    pull[place] = 1e200
    with np.errstate(over="ignore"):
        assert Regularizer(penalty, Regularized()).conjugate(pull) == math.inf


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_the_bodies_of_scores_equal_the_plain_ones(layout: str) -> None:
    X = as_rows(matrix(6, 4, density=0.6) if layout == "dense" else csr(matrix(6, 4, density=0.6)), 2.5)
    v = np.random.default_rng(0).normal(size=5)
    for penalty in (L2(), ElasticNet(0.3)):
        kinds = [numba.typeof(one) for one in (penalty, X, 1, v, 0.7)]
        body = penalties._pick_score(*kinds)
        assert [body(penalty, X, i, v, 0.7) for i in range(6)] == pytest.approx(
            [score(penalty, X, i, v, 0.7) for i in range(6)], rel=1e-13
        )
