"""The certificate is a proof: weak duality for any points, bounds that hold, and two independent computations."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize, minimize_scalar

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.problem.bounds import Sums
from saddlesvm.problem.certificate import Certificate, Point, evaluate
from saddlesvm.problem.intercepts import INTERCEPTS, balance, best_offset
from saddlesvm.problem.losses import Hinge, Logistic, Loss
from saddlesvm.problem.problem import Problem, Strength, make_problem
from saddlesvm.problem.responses import best_scale
from saddlesvm.problem.sums import dual_weights
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import SDCA
from saddlesvm.solvers.base import Budget
from support import (
    ALL_LOSSES,
    LOSSES_BY_KIND,
    features,
    labels,
    matrix,
    named,
    plain_bound,
    plain_dual,
    plain_primal,
    small_problem,
    weight,
)

every_loss = pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
by_kind = pytest.mark.parametrize("loss", LOSSES_BY_KIND, ids=named)
every_intercept = pytest.mark.parametrize("intercept", list(INTERCEPTS))
seeds = st.integers(0, 10**6)


def some_problem(loss: Loss, intercept: str, weighted: bool, seed: int, **form: float) -> Problem:
    random = np.random.default_rng(seed)
    n, d = int(random.integers(2, 25)), int(random.integers(1, 6))
    weights = np.where(random.random(n) < 0.2, 0.0, random.uniform(0.1, 3.0, n)) if weighted else None
    if weights is not None:
        weights[0] = 1.0
    X, bias = matrix(n, d, seed), 0.0 if intercept == "none" else float(random.choice([1.0, 3.0]))
    form = form or {"C": float(10.0 ** random.uniform(-3, 2))}
    return make_problem(as_rows(X, bias), labels(X, loss, seed), loss, weights=weights, intercept=intercept, **form)  # type: ignore[arg-type]


def random_dual(problem: Problem, seed: int) -> np.ndarray:
    """A random dual feasible point, some of it at the bounds; the sum that a free intercept asks for is not kept."""
    random = np.random.default_rng(seed + 1)
    alpha = np.zeros(problem.y.size)
    for i in problem.members:
        s = weight(problem, i)
        ends = [min(max(end, -3.0 * s), 3.0 * s) for end in problem.loss.bounds(problem.y[i], s)]
        alpha[i] = float(random.choice([0.0, 1.0, random.random()])) * float(random.choice(ends))
    return alpha


@every_loss
@every_intercept
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=10)
@given(seed=seeds)
def test_weak_duality_and_both_objectives(loss: Loss, intercept: str, weighted: bool, seed: int) -> None:
    problem = some_problem(loss, intercept, weighted, seed)
    random = np.random.default_rng(seed + 2)
    w = random.normal(size=problem.n_features + 1) * 10.0 ** random.uniform(-2, 1)
    if intercept == "none":
        w[-1] = 0.0
    alpha = random_dual(problem, seed)
    found = [evaluate(problem, point) for point in (Point(w), Point(alpha=alpha), Point(w, alpha))]
    found += [evaluate(problem, point, given_offset=True) for point in (Point(w), Point(w, alpha))]
    assert [each.intercept for each in found[-2:]] == [w[-1] * problem.scale] * 2
    for evaluation in found:
        certificate = evaluation.certificate
        assert certificate.sound
        assert certificate.primal == pytest.approx(plain_primal(problem, evaluation.coef, evaluation.intercept), 1e-9)
        scale = 1e-9 * (1.0 + abs(certificate.primal) + abs(certificate.dual))
        assert certificate.dual == pytest.approx(plain_bound(problem, evaluation.alpha), abs=scale)
        if intercept == "free":
            assert abs(evaluation.alpha.sum()) <= 1e-12 * (1.0 + np.abs(evaluation.alpha).sum())
    # any dual point bounds any model, not only its own
    highest = max(each.certificate.dual for each in found)
    lowest = min(each.certificate.primal for each in found)
    assert highest <= lowest + 1e-9 * abs(lowest)


@every_loss
@every_intercept
def test_no_bound_is_above_the_optimum(loss: Loss, intercept: str) -> None:
    """Bounds of poor models against an upper estimate of the optimum that scipy found on its own."""
    problem = small_problem(loss, n=20, d=3, C=0.7, intercept=intercept)

    def primal(point: np.ndarray) -> float:
        return plain_primal(problem, point[:-1], point[-1] if intercept != "none" else 0.0)

    best = minimize(primal, np.zeros(4), method="Powell", options={"xtol": 1e-10, "ftol": 1e-12, "maxiter": 10_000})
    for seed in range(10):
        w = np.random.default_rng(seed).normal(size=4) * (intercept != "none" or np.arange(4) < 3)
        assert evaluate(problem, Point(w)).certificate.dual <= best.fun * (1.0 + 1e-12)
        assert evaluate(problem, Point(alpha=random_dual(problem, seed))).certificate.dual <= best.fun * (1.0 + 1e-12)
    own = fit(problem, SDCA(), Limits(tol=1e-9, max_epochs=50_000)).certificate
    assert own.dual <= best.fun * (1.0 + 1e-12)
    assert own.gap <= 1e-9 * own.primal
    assert best.fun >= own.primal - own.gap


@by_kind
@settings(max_examples=15)
@given(seed=seeds, weighted=st.booleans())
def test_balance_keeps_feasible_and_sums_to_zero(loss: Loss, seed: int, weighted: bool) -> None:
    problem = some_problem(loss, "free", weighted, seed)
    alpha = random_dual(problem, seed)
    before = alpha.copy()
    balance(problem.terms, problem.members, alpha)
    assert abs(alpha.sum()) <= 1e-12 * (1.0 + np.abs(before).sum())
    assert np.all(np.abs(alpha) <= np.abs(before))
    assert np.all(alpha * before >= 0.0)
    assert math.isfinite(plain_dual(problem, alpha))
    heavier = np.sign(before.sum())
    assert np.array_equal(alpha[before * heavier <= 0.0], before[before * heavier <= 0.0])
    again = alpha.copy()
    balance(problem.terms, problem.members, again)
    assert again == pytest.approx(alpha, abs=1e-11 * (1.0 + np.abs(before).sum()))


@by_kind
@settings(max_examples=10)
@given(seed=seeds, weighted=st.booleans(), start=st.floats(-20.0, 20.0))
def test_best_offset_is_as_good_as_scipys(loss: Loss, seed: int, weighted: bool, start: float) -> None:
    problem = some_problem(loss, "free", weighted, seed)
    z = np.random.default_rng(seed).normal(size=problem.members.size) * 3.0

    def paid(offset: float) -> float:
        return sum(weight(problem, i) * loss.value(z[k] + offset, problem.y[i]) for k, i in enumerate(problem.members))

    found = best_offset(problem.terms, problem.members, z, start)
    theirs = minimize_scalar(paid, bounds=(-40.0, 40.0), method="bounded", options={"xatol": 1e-10})
    assert paid(found) <= theirs.fun + 1e-9 * (1.0 + theirs.fun)


@every_loss
@settings(max_examples=6)
@given(seed=seeds)
@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_lambda_form_is_lambda_times_the_c_form(loss: Loss, intercept: str, seed: int) -> None:
    one = some_problem(loss, intercept, True, seed)
    other = some_problem(loss, intercept, True, seed, lam=one.lam)
    assert (other.C, other.lam) == pytest.approx((one.C, one.lam), rel=1e-14)
    w = np.random.default_rng(seed).normal(size=one.n_features + 1)
    in_c, in_lambda = (evaluate(problem, Point(w)).certificate for problem in (one, other))
    assert (in_c.form, in_lambda.form) == ("C", "lambda")
    assert in_lambda.primal == pytest.approx(in_c.primal * one.lam, rel=1e-12)
    assert in_lambda.dual == pytest.approx(in_c.dual * one.lam, rel=1e-9, abs=1e-12 * in_lambda.primal)
    assert in_lambda.relative_gap == pytest.approx(in_c.relative_gap, abs=1e-9)


@every_loss
@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_a_quick_estimate_equals_the_exact_certificate_to_rounding(loss: Loss, intercept: str) -> None:
    problem, solver = small_problem(loss, intercept=intercept), SDCA()
    state = solver.init(problem, 3)
    for _ in range(5):
        state = solver.step(problem, state, Budget(problem.members.size))
    point = solver.solution(problem, state)
    quick, exact = (evaluate(problem, point, exact=exact) for exact in (False, True))
    assert quick.certificate.primal == pytest.approx(exact.certificate.primal, rel=1e-12)
    assert quick.certificate.dual == pytest.approx(exact.certificate.dual, rel=1e-12)
    assert quick.coef == pytest.approx(exact.coef, rel=1e-10, abs=1e-12)


@every_loss
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("nearness", [0.0, 0.9, 1.0])
def test_the_scale_of_a_dual_point_is_as_good_as_any_on_a_grid(loss: Loss, C: float, nearness: float) -> None:
    """Of points far from the optimum, near it, and next to it."""
    problem = small_problem(loss, C=C)
    done = fit(problem, SDCA(), Limits(tol=1e-9, max_epochs=2000)).alpha
    margin = -np.array([loss.subgradient(0.0, y) for y in problem.y])
    alpha = nearness * done + (1.0 - nearness) * margin
    factor = best_scale(problem, alpha, dual_weights(problem, alpha))
    assert 0.0 <= factor <= 1.0
    reached = plain_dual(problem, factor * alpha)
    best = max(plain_dual(problem, trial * alpha) for trial in np.linspace(0.0, 1.0, 401))
    assert reached >= best - 1e-5 * abs(best)


def test_a_dual_point_whose_weights_are_zero_is_left_at_its_full_length() -> None:
    problem = make_problem(as_rows(np.zeros((4, 2))), np.array([1.0, -1.0, 1.0, -1.0]), Hinge(), C=1.0)
    assert best_scale(problem, 0.5 * problem.y, np.zeros(3)) == 1.0


def test_evaluating_changes_nothing_that_was_handed_over() -> None:
    problem = small_problem(Hinge(), intercept="free")
    w, alpha = np.ones(6), random_dual(problem, 0)
    kept = w.copy(), alpha.copy()
    evaluate(problem, Point(w, alpha))
    evaluate(problem, Point(w.astype(np.float32)))
    assert np.array_equal(w, kept[0]) and np.array_equal(alpha, kept[1])


def test_dual_weights_are_the_plain_sum() -> None:
    problem = small_problem(Hinge(), intercept="regularized")
    alpha = random_dual(problem, 0)
    assert dual_weights(problem, alpha) == pytest.approx(problem.C * alpha @ features(problem), rel=1e-12)


def test_a_dual_point_of_the_optimum_is_recovered_from_its_weights() -> None:
    """A smooth loss: the sub-gradients at the optimal margins are the optimal dual point."""
    problem = small_problem(Logistic(), intercept="regularized")
    best = fit(problem, SDCA(), Limits(tol=1e-10, max_epochs=20_000))
    again = evaluate(problem, Point(np.append(best.coef, best.intercept)))
    assert again.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize(
    ("primal", "dual", "relative", "excess", "sound"),
    [
        (2.0, 1.0, 0.5, 1.0, True),
        (1.0, 1.0, 0.0, 0.0, True),
        (1.0, -1.0, 2.0, math.inf, True),
        (1.0, -2.0, 1.5, math.inf, True),
        (0.0, 0.0, 0.0, 0.0, True),
        (0.0, -1.0, 1.0, 1.0, True),
        (-1.0, -1.0, 0.0, 0.0, True),
        (-1.0, -4.0, 0.75, 0.75, True),  # a negative objective proves nothing by its sign
        (1.0, -math.inf, math.inf, math.inf, False),
        (-1.0, -math.inf, math.inf, math.inf, False),
        (-1.0, 0.0, -1.0, math.inf, False),
        (1.0, 1.1, -1 / 11, -1 / 11, False),
        (1.0, 1.0 + 1e-13, -1e-13, -1e-13, False),  # rounding is part of both figures already
        (math.inf, 1.0, math.inf, math.inf, False),
        (math.nan, 1.0, math.nan, math.nan, False),
    ],
)
def test_figures_of_a_certificate(primal: float, dual: float, relative: float, excess: float, sound: bool) -> None:
    certificate = Certificate(primal, dual)
    assert certificate.gap == pytest.approx(primal - dual, nan_ok=True)
    assert certificate.relative_gap == pytest.approx(relative, rel=1e-2, nan_ok=True)
    assert certificate.excess == pytest.approx(excess, rel=1e-2, nan_ok=True)
    assert certificate.sound is sound


@given(
    figures=st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0.0, 1e6)), min_size=1, max_size=6),
    share=st.floats(0.0, 1.0),
)
def test_relative_gap_and_excess_bound_every_optimum_that_the_certificate_allows(
    figures: list[tuple[float, float]], share: float
) -> None:
    proofs = [Certificate(primal, primal - gap, "lambda") for primal, gap in figures]
    total = Certificate.total(proofs)
    assert total.form == "lambda"
    assert total.primal == pytest.approx(sum(one.primal for one in proofs))
    scale = sum(abs(one.primal) + abs(one.dual) for one in proofs)
    assert total.gap == pytest.approx(sum(one.gap for one in proofs), abs=1e-14 * scale)
    for one in (*proofs, total):
        optimum = one.dual + share * one.gap
        assert one.primal - optimum <= one.relative_gap * max(abs(one.primal), abs(one.dual)) * (1.0 + 1e-12)
        if optimum != 0.0:
            rounding = 1e-12 * (abs(one.primal) + abs(one.dual))
            assert (one.primal - optimum) <= one.excess * abs(optimum) * (1.0 + 1e-12) + rounding
    best = proofs[0].better_of(Certificate(proofs[0].primal + 1.0, proofs[0].dual + 0.5 * proofs[0].gap, "lambda"))
    assert best == proofs[0].bounded_by(Certificate(0.0, best.dual)) and best.gap <= proofs[0].gap


@pytest.mark.parametrize("uses_lambda", [False, True])
def test_a_certificate_is_made_of_four_sums(uses_lambda: bool) -> None:
    strength = Strength(C=0.25, n=8, uses_lambda=uses_lambda)
    proof = Certificate.from_sums(
        strength, Sums(paid=12.0, conjugates=-6.0, regularizer=1.0, regularizer_conjugate=0.5)
    )
    expected = (2.0, 0.5) if uses_lambda else (4.0, 1.0)
    assert (proof.primal, proof.dual) == pytest.approx(expected, rel=1e-14) and proof.primal > expected[0]
    assert proof.dual < expected[1] and proof.form == ("lambda" if uses_lambda else "C")
    assert proof.gap - proof.rounding == pytest.approx(expected[0] - expected[1], rel=1e-14)


def test_a_certificate_reads_well_and_cannot_be_changed() -> None:
    certificate = Certificate(2.0, 1.5)
    assert str(certificate) == "primal 2, dual 1.5, relative gap 2.50e-01"
    with pytest.raises(dataclasses.FrozenInstanceError):
        certificate.dual = 2.0  # type: ignore[misc]


def test_a_certificate_holds_plain_floats_whatever_the_sums_are() -> None:
    sums = Sums(*map(np.float64, (12.0, -6.0, 1.0, 0.5, 1e-12, 1e-12)))
    proof = Certificate.from_sums(Strength(C=0.25, n=8, uses_lambda=False), sums)
    held = (proof.primal, proof.dual, proof.primal_rounding, proof.dual_rounding, proof.relative_gap)
    assert [type(number) for number in held] == [float] * 5
