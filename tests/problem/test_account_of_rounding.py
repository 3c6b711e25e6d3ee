"""Certificates hold in floating point: claims about hostile points, judged in 120 digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attack import judge, textbook
from attack.fits import refute
from attack.hostile import hostile_rows, hostile_targets, hostile_weights
from attack.public import Claim
from saddlesvm import LinearSVR
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.bounds import (
    UNIT,
    Bounded,
    LossSizes,
    MarginErrors,
    PointSizes,
    RowSizes,
    ValueSums,
    gamma,
    loss_sizes,
    paid_rounding,
    sums_of_values,
    unbalance,
)
from saddlesvm.problem.certificate import Certificate, Point, evaluate
from saddlesvm.problem.intercepts import INTERCEPTS
from saddlesvm.problem.loss import Loss, is_smooth, loss_name
from saddlesvm.problem.losses import Hinge, Logistic
from saddlesvm.problem.problem import Problem, is_classification, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD
from support import PACKAGED, csr, matrix, named, small_problem

CASES = 6


def hostile(loss: Loss, intercept: str, seed: int) -> tuple[Problem, judge.Case]:
    """A problem of the package's, and the judge's of the same numbers."""
    random = np.random.default_rng([seed, len(intercept)])
    X = hostile_rows(random).astype(np.float64)
    y, weights = hostile_targets(random, X, is_classification(loss)), hostile_weights(random, len(X))
    C, scale = float(10.0 ** random.uniform(-8, 8)), 0.0 if intercept == "none" else float(random.choice([1.0, 3.0]))
    problem = make_problem(as_rows(X, scale), y, loss, C=C, weights=weights, intercept=intercept)  # type: ignore[arg-type]
    known = textbook.textbook(loss_name(loss), *loss)  # type: ignore[misc]
    return problem, judge.make_case(X, y, weights, C, known, intercept, scale or 1.0)


def random_point(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights of a random size, and dual variables inside their bounds, many of them at these."""
    random = np.random.default_rng(seed)
    w = random.normal(size=problem.n_features + 1) * 10.0 ** random.uniform(-6, 4)
    w[-1] *= problem.intercept.present
    alpha = np.zeros(problem.y.size)
    for i in problem.members:
        s = problem.weights[i] if problem.weights.size else 1.0
        low, high = (float(np.clip(end, -9.0 * s, 9.0 * s)) for end in problem.loss.bounds(problem.y[i], s))
        alpha[i] = random.choice([low, high, 0.0, random.uniform(low, high)])
    return w, alpha


@pytest.mark.parametrize("loss", PACKAGED, ids=named)
@pytest.mark.parametrize("intercept", list(INTERCEPTS))
def test_no_claim_about_a_hostile_point_is_refuted(loss: Loss, intercept: str) -> None:
    for seed in range(CASES):
        problem, case = hostile(loss, intercept, seed)
        w, alpha = random_point(problem, seed)
        claims = []
        for point in (Point(w), Point(alpha=alpha), Point(w, alpha)):
            found = evaluate(problem, point)
            true = judge.primal(case, found.coef, found.intercept), judge.dual(case, found.alpha[problem.members])
            claims.append(Claim(found.certificate, *true, problem=seed))
            assert found.exact and found.certificate.rounding >= 0.0
        lowest = min(one.primal for one in claims)
        assert not [f"seed {seed}: {wrong}" for one in claims for wrong in refute(one, lowest)]


@pytest.mark.parametrize("intercept", list(INTERCEPTS))
def test_rounding_is_a_small_part_of_an_ordinary_certificate(intercept: str) -> None:
    problem = small_problem(Hinge(), intercept=intercept)
    result = fit(problem, DCD(), Limits(tol=1e-9, max_epochs=20_000))
    assert result.outcome is Outcome.CERTIFIED, result.message
    assert 0.0 < result.certificate.rounding_share < 1e-11


def test_a_gap_below_what_rounding_allows_is_an_outcome_of_its_own() -> None:
    result = fit(small_problem(Hinge()), DCD(), Limits(tol=1e-15, max_epochs=100_000))
    assert result.outcome is Outcome.LIMITED_BY_ROUNDING and "scale" in result.outcome.advice.lower()
    assert result.certificate.relative_gap > 1e-15 and result.certificate.sound


@pytest.mark.parametrize("loss", ["squared", "huber", "squared_epsilon_insensitive"])
@pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")
def test_constant_targets_end(loss: str) -> None:
    model = LinearSVR(loss=loss, intercept="free").fit(matrix(30, 3), np.full(30, 1.7))
    assert model.outcome_ in (Outcome.CERTIFIED, Outcome.LIMITED_BY_ROUNDING)
    assert model.intercept_ == pytest.approx(1.7) and np.abs(model.coef_).max() < 1e-6


def test_a_dual_point_that_does_not_sum_to_zero_is_counted_as_shortened() -> None:
    exact = PointSizes(0.0, 0.0, 1.0, 1.0, positive=2.0, negative=2.0)
    assert 0.0 < unbalance(exact, 10) < 1e-13
    assert unbalance(exact._replace(positive=2.5), 10) == pytest.approx(0.5 / 2.5, rel=0.02)
    assert unbalance(exact._replace(positive=0.0, negative=0.0), 10) == 0.0
    assert unbalance(exact._replace(positive=0.0), 10) == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize("length", [0.01, 30.0])
def test_a_loss_without_any_bound_grows_by_no_more_than_at_both_ends(length: float) -> None:
    """``phi(z) = z^4`` of one row, whose margin is off by ``error ||x||`` at most."""
    loss, error = LossSizes(np.inf, np.inf, 1.0, gamma(8.0)), 1e-3
    rows, point = RowSizes(1.0, 2.0, 1.0, length, length**2, length), PointSizes(0.0, 0.0, 0.0, 0.0)
    for z in (0.0, 0.1, -2.0):
        above = paid_rounding(loss, z**4, rows, point, MarginErrors(error, 0.0, 0.0), lambda move, z=z: (z + move) ** 4)  # type: ignore[misc]
        assert above >= max((z + move) ** 4 for move in (-error * length, error * length)) - z**4


def test_the_slope_of_a_loss_is_the_larger_one_of_both_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    def bounds(self: Hinge, y: float, s: float) -> tuple[float, float]:
        return (0.0, s) if y > 0.0 else (-3.0 * s, 0.0)

    monkeypatch.setattr(Hinge, "bounds", bounds)
    assert loss_sizes.__wrapped__(Hinge(), 10.0).slope == 3.0


def test_half_a_square_that_rounding_made_negative_counts_as_zero() -> None:
    """Without errors in the values, rounding is that of adding up; half a square just below zero has no root."""
    rows, loss = RowSizes(4.0, 0.0, 4.0, 0.0, 0.0, 0.0), LossSizes(1.0, np.inf, 16.0, gamma(16.0))
    found = ValueSums(2.0, -1.0, 1.0, 1.0, rows, 1e-20)
    sums = sums_of_values(loss, 0.5, found, (Bounded(0.0), Bounded(-1e-20)), Bounded(0.0), [])
    assert 0.0 < sums.primal_rounding <= 20.0 * UNIT
    assert 0.0 < sums.dual_rounding <= 40.0 * UNIT


def test_facts_about_rounding() -> None:
    assert gamma(4.0) == pytest.approx(4.0 * 2.0**-53, rel=1e-14, abs=0.0) and gamma(2.0**53) == np.inf
    X = matrix(20, 6, density=0.3)
    assert as_rows(X).longest_row == 6
    assert as_rows(csr(X)).longest_row == np.count_nonzero(X, axis=1).max()


@pytest.mark.parametrize(
    ("certificate", "limited"),
    [
        (Certificate(1.0, 0.9, "C", 1e-9, 1e-9), False),  # far from the optimum
        (Certificate(1.0, 1.0 - 3e-9, "C", 1e-9, 1e-9), True),
        (Certificate(1.0, 1.0 - 3e-12, "C", 1e-12, 1e-12), False),  # certified, at the gap of 1e-10 asked for
        (Certificate(np.inf, -np.inf, "C", np.inf, np.inf), False),
    ],
)
def test_when_a_certificate_is_limited_by_rounding(certificate: Certificate, limited: Any) -> None:
    assert certificate.is_limited_by_rounding(1e-10) is limited
    assert not certificate.is_limited_by_rounding(0.0)


def test_smooth_losses_have_a_bounded_curvature_and_others_a_bounded_slope() -> None:
    for loss in PACKAGED:
        steep = max(abs(end) for end in loss.bounds(1.0, 1.0))
        assert np.isfinite(loss.largest_curvature() if is_smooth(loss) else steep)


def test_the_logistic_loss_grows_by_no_more_than_its_own_share() -> None:
    loss, z = Logistic(), np.linspace(-60.0, 60.0, 241)
    for e in (1e-12, 0.1, 1.0):
        grown, value = (np.array([loss.value(one, 1.0) for one in at]) for at in (z - e, z))
        assert (grown <= np.exp(loss.growth() * e) * value * (1.0 + 1e-14)).all()
