"""What a certificate says of a point: which weights and dual variables it judges, and what it adds for their errors."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

from saddlesvm.problem import certificate
from saddlesvm.problem.bounds import SLACK, STILL, Room, Sums, margin_errors, move_to_sum, point_sizes
from saddlesvm.problem.certificate import (
    Certificate,
    Evaluation,
    JudgedPoint,
    Point,
    certificates_of,
    evaluate,
    mostly_rounding,
)
from saddlesvm.problem.losses import Absolute, EpsilonInsensitive, Hinge, Logistic, Loss, Squared, SquaredHinge
from saddlesvm.problem.penalties import L1, ElasticNet
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.problem.responses import best_scale
from saddlesvm.problem.sums import dual_weights
from saddlesvm.problem.terms import silent
from saddlesvm.rows.layouts import as_rows
from support import ALL_LOSSES, features, labels, matrix, named, plain_dual, plain_primal, small_problem, weight

SMALL = {"n": 8, "d": 3}
by_loss = pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic(), EpsilonInsensitive(0.2)], ids=named)


def inside(problem: Problem, share: float = 0.5) -> np.ndarray:
    """Dual variables inside their bounds."""
    return share * np.array([-problem.loss.subgradient(0.2, y) for y in problem.y])


def near(left: float, right: float) -> bool:
    """Whether two figures are equal but for what rounding may do."""
    return left == pytest.approx(right, rel=1e-11, abs=1e-11)


# Which point is judged


@by_loss
@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_running_weights_stay_the_model_beside_the_exact_pull(loss: Loss, intercept: str) -> None:
    problem = small_problem(loss, intercept=intercept, **SMALL)  # type: ignore[arg-type]
    alpha = inside(problem)
    pull = dual_weights(problem, alpha)
    w = pull * 1.25
    kept = evaluate(problem, Point(w, alpha, tracks=True))
    assert np.array_equal(kept.coef, w[:-1]) and kept.exact and kept.pull is None and type(kept.intercept) is float
    assert near(kept.certificate.primal, plain_primal(problem, kept.coef, kept.intercept))
    assert near(kept.certificate.dual, max(0.0, plain_dual(problem, alpha)))
    narrow = evaluate(problem, Point(w.astype(np.float32), alpha, tracks=True))
    assert narrow.coef == pytest.approx(pull[:-1], rel=1e-14) and narrow.exact


@by_loss
def test_running_weights_are_taken_for_the_pull_where_no_proof_is_asked_for(loss: Loss) -> None:
    problem = small_problem(loss, intercept="regularized", **SMALL)  # type: ignore[arg-type]
    alpha = inside(problem)
    w = dual_weights(problem, alpha) * 1.25
    for running in (w, w.astype(np.float32)):
        found = evaluate(problem, Point(running, alpha, tracks=True), exact=False)
        assert np.array_equal(found.coef, np.asarray(running, np.float64)[:-1]) and not found.exact
        conjugates = sum(loss.conjugate(a, y, 1.0) for a, y in zip(alpha, problem.y, strict=True))
        own = np.asarray(running, np.float64)  # R*(v) is v.w - R(w) to first order
        reached = float(dual_weights(problem, alpha) @ own) - 0.5 * float(own @ own)
        assert near(found.certificate.dual, max(0.0, -problem.C * conjugates - reached))
    given = evaluate(problem, Point(w, alpha), exact=False)  # tracks nothing: a proof all the same
    assert given.exact and near(given.certificate.primal, plain_primal(problem, w[:-1], w[-1] * problem.scale))


@by_loss
@pytest.mark.parametrize("exact", [True, False])
def test_with_a_free_intercept_weights_are_rebuilt(loss: Loss, exact: bool) -> None:
    problem = small_problem(loss, intercept="free", **SMALL)  # type: ignore[arg-type]
    alpha = problem.intercept.balance(problem.pointwise, problem.members, inside(problem))
    w = dual_weights(problem, alpha) * 1.25
    w[-1] = 0.7
    found = evaluate(problem, Point(w, alpha, tracks=True), exact=exact)
    assert found.coef == pytest.approx(dual_weights(problem, alpha)[:-1], rel=1e-14) and found.exact
    assert near(found.certificate.primal, plain_primal(problem, found.coef, found.intercept))
    best = minimize_scalar(lambda b: plain_primal(problem, found.coef, b), bounds=(-9.0, 9.0), method="bounded")
    assert found.certificate.primal <= best.fun + 1e-9
    own = evaluate(problem, Point(w, alpha), given_offset=True)
    assert near(own.intercept, 0.7 * problem.scale) and np.array_equal(own.coef, w[:-1])


def test_the_pull_is_told_where_the_weights_are_others() -> None:
    problem = small_problem(SquaredHinge(), penalty=ElasticNet(0.3), **SMALL)  # type: ignore[arg-type]
    alpha = inside(problem)
    found = evaluate(problem, Point(alpha=alpha))
    assert found.pull is not None and found.pull == pytest.approx(dual_weights(problem, alpha)[:-1], rel=1e-14)
    assert np.array_equal(found.coef, problem.regularizer.weights(dual_weights(problem, alpha))[:-1])
    assert evaluate(small_problem(SquaredHinge(), **SMALL), Point(alpha=alpha)).pull is None  # type: ignore[arg-type]
    assert Point.read is False and not Point().tracks and Point().known == () and Point().evaluation is None
    assert JudgedPoint.read is True
    assert Evaluation(found.coef, 0.0, alpha, found.certificate).exact


def test_points_and_evaluations_cannot_be_changed() -> None:
    point = Point(np.zeros(2))
    found = Evaluation(np.zeros(1), 0.0, np.zeros(1), Certificate(1.0, 0.0))
    for one, name in ((point, "w"), (found, "intercept")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, name, None)
    with pytest.raises(TypeError):
        Point(None, None, False, (), found)  # type: ignore[misc]
    for rest in ((None,), (None, True)):
        with pytest.raises(TypeError):
            Evaluation(np.zeros(1), 0.0, np.zeros(1), Certificate(1.0, 0.0), *rest)  # type: ignore[misc]


def test_what_a_sweep_has_judged_is_proven_where_that_is_worth_a_pass() -> None:
    problem = small_problem(Hinge(), intercept="regularized", **SMALL)  # type: ignore[arg-type]
    judged = Evaluation(np.full(3, 7.0), 0.5, np.zeros(8), Certificate(1.0, 0.9375), exact=False)
    proofs: list[Certificate] = []

    def found(exact: bool, enough: float, proof: float = 0.875, of: Problem = problem) -> Evaluation:
        def prove() -> Certificate:
            proofs.append(Certificate(1.0, proof))
            return proofs[-1]

        point = JudgedPoint(np.zeros(4), np.zeros(8), judged=judged, prove=prove, enough=enough)
        return evaluate(of, point, exact=exact)

    assert found(False, 0.0) is judged and not proofs
    away = found(True, 0.06)  # the gap of the judgement is 0.0625
    assert not proofs and np.array_equal(away.coef, np.zeros(3)) and away.exact
    away = found(True, 0.1)  # that of the proof is 0.125
    assert len(proofs) == 1 and np.array_equal(away.coef, np.zeros(3))
    for enough, proof in ((0.125, 0.875), (0.0625, 0.9375), (0.5, 0.875)):
        kept = found(True, enough, proof)
        assert kept.certificate is proofs[-1] and kept.exact and kept.coef is judged.coef
    free = small_problem(Hinge(), intercept="free", **SMALL)  # type: ignore[arg-type]
    before = len(proofs)
    assert all(found(exact, 0.5, of=free) is not judged for exact in (True, False)) and len(proofs) == before
    assert evaluate(problem, Point(evaluation=judged)) is judged
    assert "prove=" not in repr(JudgedPoint(judged=judged, prove=lambda: proofs[0], enough=1.0))


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_targets_far_from_zero_are_judged_from_the_offset(kind: str) -> None:
    """Their products with the dual variables cancel: taken as they are, their rounding would be most of the bound."""
    X = matrix(12, 2)
    y = 1e9 + X @ np.array([1.0, -2.0])
    rows = as_rows(sparse.csr_array(X) if kind == "csr" else X, 1.0)
    for penalty in (None, L1()):
        problem = make_problem(rows, y, EpsilonInsensitive(0.1), C=0.5, intercept="free", penalty=penalty)
        alpha = np.tile([0.05, -0.05], 6)
        for point in (Point(np.array([1.0, -2.0, 1e9])), Point(np.array([1.0, -2.0, 1e9]), alpha), Point(alpha=alpha)):
            assert evaluate(problem, point).certificate.dual_rounding < 1e-9


@by_loss
def test_the_dual_point_zero_is_a_bound_where_it_is_feasible(loss: Loss) -> None:
    free = small_problem(loss, intercept="free", C=1e3, **SMALL)  # type: ignore[arg-type]
    alpha = free.intercept.balance(free.pointwise, free.members, inside(free, 0.9))
    assert plain_dual(free, alpha) < 0.0
    assert evaluate(free, Point(alpha=alpha)).certificate.dual == 0.0
    fixed = dataclasses.replace(small_problem(loss, **SMALL), fixed=np.array([9.0, 9.0, 9.0, 0.0]))  # type: ignore[arg-type]
    assert evaluate(fixed, Point(alpha=np.zeros(8))).certificate.dual == pytest.approx(-121.5)


# The length of a dual point


def longest(problem: Problem, alpha: np.ndarray) -> float:
    """The factor in [0, 1] of the highest dual objective, found by SciPy."""

    def negated(factor: float) -> float:
        pull = factor * problem.C * alpha @ features(problem)
        conjugates = sum(problem.loss.conjugate(factor * alpha[i], problem.y[i], 1.0) for i in problem.members)
        return problem.C * conjugates + problem.regularizer.conjugate(pull)

    return float(minimize_scalar(negated, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9}).x)


@pytest.mark.parametrize("C", [0.02, 0.3, 3.0, 100.0])
@pytest.mark.parametrize("penalty", [None, ElasticNet(0.2)], ids=["l2", "elasticnet"])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=named)
def test_the_length_of_a_dual_point_is_the_best_one(loss: Loss, penalty: Any, C: float) -> None:
    problem = small_problem(loss, C=C, penalty=penalty, intercept="regularized", **SMALL)  # type: ignore[arg-type]
    alpha = inside(problem, 0.97)
    found, best = best_scale(problem, alpha, dual_weights(problem, alpha)), longest(problem, alpha)
    if isinstance(loss, Logistic) or penalty is not None:
        assert found == pytest.approx(best, abs=2e-3)
    else:
        assert found == pytest.approx(best, abs=1e-6)  # the top of a parabola


@pytest.mark.parametrize("length", [1.005, 1.02, 1.03, 1.05])
def test_a_top_near_by_is_found_by_three_factors(length: float) -> None:
    problem = small_problem(Logistic(), C=5.0, intercept="regularized", **SMALL)  # type: ignore[arg-type]
    alpha = inside(problem, 0.9)
    alpha *= length * longest(problem, alpha)
    assert best_scale(problem, alpha, dual_weights(problem, alpha)) == pytest.approx(1.0 / length, abs=5e-4)


@pytest.mark.parametrize("penalty", [None, ElasticNet(0.2)], ids=["l2", "elasticnet"])
@pytest.mark.parametrize("C", [0.1, 1.0, 7.0])  # 7: three factors whose duals bend by exactly zero
def test_a_line_has_its_top_at_an_end(C: float, penalty: Any) -> None:
    rows = as_rows(np.zeros((4, 2)))
    y = np.array([1.0, -1.0, 2.0, -2.0])
    problem = make_problem(rows, y, Absolute(), C=C, penalty=penalty)
    lowest = pytest.approx(0.0, abs=0.0 if penalty is None else 1e-4)  # SciPy's search does not reach its ends
    assert best_scale(problem, 0.5 * np.sign(y), np.zeros(3)) == 1.0
    assert best_scale(problem, -0.5 * np.sign(y), np.zeros(3)) == lowest
    other = problem.pointwise._replace(y=-y)  # other labels, as an offset makes them
    assert best_scale(problem, 0.5 * np.sign(y), np.zeros(3), terms=other) == lowest


def test_a_dual_point_that_leads_away_from_the_optimum_has_the_length_zero() -> None:
    problem = small_problem(Squared(), **SMALL)  # type: ignore[arg-type]
    alpha = -inside(problem)
    assert plain_dual(problem, -0.1 * alpha) > 0.0 > plain_dual(problem, 0.1 * alpha)
    assert best_scale(problem, alpha, dual_weights(problem, alpha)) == 0.0


@pytest.mark.parametrize("size", [0.5, 2.0, 8.0])
def test_a_dual_point_is_shortened_until_its_conjugate_is_finite(size: float) -> None:
    problem = small_problem(SquaredHinge(), C=1.0, penalty=L1(), **SMALL)  # type: ignore[arg-type]
    alpha = inside(problem)
    alpha *= size / np.abs(dual_weights(problem, alpha)).max()
    factor = best_scale(problem, alpha, dual_weights(problem, alpha))
    conjugates = sum(problem.loss.conjugate(factor * a, y, 1.0) for a, y in zip(alpha, problem.y, strict=True))
    assert 0.0 < factor <= min(1.0, (1.0 + 1e-12) / size)
    for other in np.linspace(0.0, min(1.0, 1.0 / size), 51):
        assert conjugates <= sum(
            problem.loss.conjugate(other * a, y, 1.0) for a, y in zip(alpha, problem.y, strict=True)
        ) + 1e-6 * abs(conjugates)


def test_scipys_top_is_taken_where_it_is_higher() -> None:
    """A top far below three factors near 1, of a dual that is no parabola; and no other factor where 1 is the top."""
    problem = small_problem(Logistic(), C=50.0, **SMALL)  # type: ignore[arg-type]
    alpha = inside(problem, 0.9)
    factor = best_scale(problem, alpha, dual_weights(problem, alpha))
    assert 0.0 < factor < 0.5 and factor == pytest.approx(longest(problem, alpha), abs=2e-3)
    one = plain_dual(problem, factor * alpha)
    assert one > plain_dual(problem, alpha) and one >= plain_dual(problem, 0.5 * factor * alpha)


# What errors cost


@pytest.mark.parametrize(
    ("gap", "size", "rounding", "most"),
    [
        (1.0, 2.0, 1.5, True),
        (1.0, 2.0, 1.0, False),  # no more than the gap
        (1.0, 2.0, 0.5, False),
        (0.0, 2.0, 2.1e-8, True),
        (0.0, 2.0, 1.9e-8, False),  # a small one
        (0.0, 4.0, 0.5, True),
        (0.5, -4.0, 0.4, False),
        (0.0, 0.0, 0.0, False),
    ],
)
def test_where_rounding_is_most_of_a_gap(gap: float, size: float, rounding: float, most: Any) -> None:
    sums = Sums(0.0, 0.0, regularizer=size, regularizer_conjugate=gap - size, dual_rounding=rounding)
    assert mostly_rounding(1.0, sums) is most


@pytest.mark.parametrize(("penalty", "C", "again"), [(L1(), 1.0, 0), (L1(), 1e15, 1), (ElasticNet(0.5), 1e15, 0)])
def test_a_pull_is_summed_again_where_rounding_is_most_of_the_gap(
    monkeypatch: pytest.MonkeyPatch, penalty: Any, C: float, again: int
) -> None:
    asked: list[Any] = []
    plain: Callable[..., Any] = certificate.pulled_by_short_sums

    def counted(*given: Any) -> Any:
        asked.append(given)
        return plain(*given)

    monkeypatch.setattr(certificate, "pulled_by_short_sums", counted)
    X = np.tile(matrix(3, 2), (4, 1))
    alpha = np.repeat([2.0, -2.0, 2.0, -2.0], 3)  # the optimum: pulls cancel, and there is no gap
    problem = make_problem(as_rows(X), np.sign(alpha), SquaredHinge(), C=C, penalty=penalty)
    found = evaluate(problem, Point(np.zeros(3), alpha))
    assert len(asked) == again and found.certificate.sound
    tracked = evaluate(problem, Point(np.zeros(3), alpha, tracks=True), exact=False)
    assert len(asked) == again and not tracked.exact


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_weights_of_zero_have_no_margins_that_round(size: float) -> None:
    problem = small_problem(Squared(), intercept="free", **SMALL)  # type: ignore[arg-type]
    w = np.append(np.zeros(3), size)
    found = evaluate(problem, Point(w), given_offset=True).certificate
    sizes = point_sizes(problem.loss, problem.y, problem.norms, problem.weights, problem.members, np.zeros(8))
    errors = margin_errors(problem.row_sizes, 0.0, 0.0, shifted=size != 0.0)
    assert (errors.of_labels > 0.0) == (size != 0.0) and sizes.labels > 0.0
    shares = found.primal_rounding / (2.0**-53 * found.primal)
    # a margin that is exact leaves what the loss and its sums do; a target less its offset is rounded, too
    alone = SLACK * (512.0 + 8.0 + 8.0 / 512.0 + 32.0) + 32.0
    assert shares == pytest.approx(alone, rel=2e-3) if size == 0.0 else shares > alone * 1.005
    kept = small_problem(Squared(), intercept="regularized", **SMALL)  # type: ignore[arg-type]
    zero = evaluate(kept, Point(alpha=np.zeros(8))).certificate
    assert zero.primal_rounding / (2.0**-53 * zero.primal) == pytest.approx(alone, rel=2e-3)


def test_margins_that_round_up_to_no_loss_are_paid_for() -> None:
    """All computed losses are zero, but not all exact ones; a large C shows the difference."""
    random = np.random.default_rng(0)
    found = 0
    for _ in range(200):
        x = random.random(3)
        w = x / (x @ x)
        exact = sum(Fraction(one) * Fraction(other) for one, other in zip(x, w, strict=True))
        problem = make_problem(as_rows(np.array([x])), np.ones(1), SquaredHinge(), C=1e36)
        if exact >= 1 or float(problem.passes.margins(np.append(w, 0.0))[0]) < 1.0:
            continue
        found += 1
        objective = sum(Fraction(one) ** 2 for one in w) / 2 + Fraction(1e36) * (1 - exact) ** 2
        for point in (Point(np.append(w, 0.0), np.zeros(1)), Point(np.append(w, 0.0), np.zeros(1), tracks=True)):
            assert evaluate(problem, point).certificate.primal >= objective
    assert found > 5


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", ["none", "regularized"])
@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=named)
def test_problems_side_by_side_are_certified_as_each_by_itself(loss: Loss, intercept: str, weighted: bool) -> None:
    random = np.random.default_rng(3)
    X, scale = matrix(10, 3), 0.0 if intercept == "none" else 2.0
    members = np.array([0, 1, 2, 4, 5, 6, 7, 9])
    y = np.sign(random.normal(size=(3, 10)))
    weights = 10.0 ** random.uniform(-3.0, 3.0, (3, 10)) if weighted else None
    options: dict[str, Any] = {"C": 0.7, "members": members, "intercept": intercept}
    every = [
        make_problem(as_rows(X, scale), y[k], loss, weights=None if weights is None else weights[k], **options)
        for k in range(3)
    ]
    alpha = np.array([0.6 * y[k] * (1.0 if weights is None else weights[k]) for k in range(3)])
    W = random.normal(size=(3, 4)) * (1.0, 1.0, 1.0, scale > 0.0)
    shared = make_problem(as_rows(X, scale), y[0], loss, **options)
    chosen = None if weights is None else weights[:, members]
    found = certificates_of(shared, X[members], y[:, members], chosen, W, alpha[:, members])
    for k, problem in enumerate(every):
        own = evaluate(problem, Point(W[k], alpha[k] * np.isin(np.arange(10), members), tracks=True)).certificate
        assert near(found[k].primal, own.primal) and near(found[k].dual, own.dual) and found[k].form == own.form
        assert found[k].primal_rounding == pytest.approx(own.primal_rounding, rel=1e-3)
        assert found[k].dual_rounding == pytest.approx(own.dual_rounding, rel=1e-3)


# The move to the sum that a free intercept asks for


def asked(total: float, alpha: np.ndarray, loss: Loss, weighted: bool = False, scale: float = 1.0) -> Any:
    """The problem whose variables have this sum, the move of alpha, and the sizes of its conjugates."""
    X = matrix(alpha.size, 2) * scale
    weights = np.linspace(0.5, 2.0, alpha.size) if weighted else None
    y = np.tile([1.0, -1.0], alpha.size)[: alpha.size]
    members = np.arange(alpha.size - 1)  # the last row is left out
    problem = make_problem(as_rows(X, 1.0), y, loss, C=0.7, members=members, weights=weights, intercept="free")
    sizes = point_sizes(loss, y, problem.norms, problem.weights, members, alpha, signs=True)
    charged = sum(abs(loss.conjugate(alpha[i], y[i], weight(problem, i))) for i in members)

    @silent
    def room() -> Room:
        high = np.array([loss.bounds(y[i], weight(problem, i))[1] for i in members])
        at_top = [abs(loss.conjugate(most, y[i], weight(problem, i))) for i, most in zip(members, high, strict=True)]
        way = high - alpha[:-1]
        return Room(float(way.sum()), float(way @ np.sqrt(problem.norms[:-1])), sum(at_top))

    return problem, move_to_sum(sizes, members.size, charged, total, room), sizes, charged


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("short", [0.5, 1e-3, 1e-9])
@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=named)
def test_variables_of_one_sign_that_sum_to_too_little_go_towards_their_bounds(
    loss: Loss, short: float, weighted: bool
) -> None:
    alpha = np.where(np.arange(9) % 2, 0.0, 0.5)
    alpha[-1] = 77.0  # of a row that is no member
    total = float(alpha[:-1].sum()) + short
    problem, move, _, charged = asked(total, alpha, loss, weighted)
    high = np.array([loss.bounds(y, weight(problem, i))[1] for i, y in enumerate(problem.y)])
    room = (high - alpha)[:-1]
    share = short / room.sum()
    at_top = sum(abs(loss.conjugate(high[i], problem.y[i], weight(problem, i))) for i in problem.members)
    way = float(room @ np.sqrt(problem.norms[:-1]))
    assert share * (charged + at_top) <= move.charged <= SLACK * 1.0001 * share * (charged + at_top) + 1e-13
    assert share * way <= move.pulled <= SLACK * SLACK * 1.0001 * share * way + 1e-13
    assert move.share == math.inf


def test_a_sum_that_is_met_exactly_takes_hardly_a_move() -> None:
    alpha = np.where(np.arange(9) % 2, 0.0, 0.5)
    _, move, _, _ = asked(2.0, alpha, Hinge())
    assert 0.0 < move.charged < 1e-12 and 0.0 < move.pulled < 1e-12
    full = np.where(np.arange(9) % 2, 0.0, 1.0)
    _, move, _, _ = asked(4.0, full, Hinge())  # all at their bounds, which have that sum
    assert move == STILL


def test_variables_of_both_signs_are_shortened() -> None:
    alpha = np.where(np.arange(9) % 2, -0.25, 0.5)
    for total in (0.5, 1.0, 1.5):
        problem, move, sizes, charged = asked(total, alpha, Hinge())
        assert move == move_to_sum(sizes, problem.members.size, charged, total) and math.isfinite(move.pulled)
        assert move.pulled == move.share * sizes.pulled


def test_no_move_leads_to_a_sum_below_that_of_negative_variables() -> None:
    alpha = np.where(np.arange(9) % 2, -0.5, 0.0)
    _, move, _, _ = asked(-3.0, alpha, Hinge())
    assert move == (math.inf, math.inf, math.inf)
    _, endless, _, _ = asked(3.0, np.where(np.arange(9) % 2, 0.0, 0.5), SquaredHinge())
    assert endless.pulled == math.inf  # bounds of infinity say nothing


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_dual_variables_beyond_their_bounds_prove_no_more_than_zero_does(loss: Loss, intercept: Any) -> None:
    X = matrix(20, 3)
    y = labels(X, loss)
    problem = make_problem(as_rows(X, 1.0), y, loss, C=1.0, weights=np.arange(20.0) % 3, intercept=intercept)
    best = evaluate(problem, Point(np.ones(4)))
    for far in (1.5, 3.0, 1e3):
        found = evaluate(problem, Point(np.ones(4), far * y * problem.weights)).certificate
        assert found.sound
        assert 0.0 <= found.dual <= best.certificate.primal
