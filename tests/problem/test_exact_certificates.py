"""Every figure of a certificate against exact arithmetic: what it adds for rounding, and what it takes from others."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize
from test_intercepts import with_total

from saddlesvm.problem.bounds import Sums
from saddlesvm.problem.certificate import ASSEMBLING, Certificate, Point, evaluate, relative
from saddlesvm.problem.losses import Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.problem import Strength
from support import named

UNIT = 2.0**-53
sizes = st.floats(1e-6, 1e9)
signed = st.one_of(sizes, sizes.map(lambda size: -size))


@given(
    st.tuples(sizes, signed, sizes, sizes), st.tuples(sizes, sizes), st.sampled_from([0.25, 3.0, 1e5]), st.booleans()
)
def test_objectives_and_their_own_rounding(
    four: tuple[float, ...], rounding: tuple[float, float], C: float, uses_lambda: bool
) -> None:
    paid, conjugates, regularizer, conjugate = four
    strength = Strength(C=C, n=8, uses_lambda=uses_lambda)
    found = Certificate.from_sums(strength, Sums(*four, *rounding, at_zero=-math.inf))
    unit = Fraction(strength.unit)
    primal = Fraction(regularizer) + Fraction(C) * Fraction(paid)
    dual = -Fraction(conjugate) - Fraction(C) * Fraction(conjugates)
    above = Fraction(rounding[0]) + ASSEMBLING * Fraction(UNIT) * (abs(Fraction(regularizer)) + Fraction(C * paid))
    below = Fraction(rounding[1]) + ASSEMBLING * Fraction(UNIT) * (Fraction(conjugate) + abs(Fraction(C * conjugates)))
    assert found.primal_rounding == pytest.approx(float(above * unit), rel=1e-12)
    assert found.dual_rounding == pytest.approx(float(below * unit), rel=1e-12)
    assert Fraction(found.primal) >= (primal + Fraction(rounding[0])) * unit
    assert Fraction(found.dual) <= (dual - Fraction(rounding[1])) * unit
    assert found.primal == pytest.approx(float((primal + above) * unit), rel=1e-14)
    assert found.dual == pytest.approx(float((dual - below) * unit), abs=1e-14 * float((below + abs(dual)) * unit))


@pytest.mark.parametrize(
    ("at_zero", "dual", "rounding"),
    [(-math.inf, -2.0, 0.5), (-3.0, -2.0, 0.5), (-2.25, -2.25, 0.0), (1.0, 1.0, 0.0), (1.5, -2.0, 0.5)],
)
def test_the_dual_point_zero_takes_the_place_of_a_worse_one(at_zero: float, dual: float, rounding: float) -> None:
    sums = Sums(1.0, 1.0, 0.0, 1.0, primal_rounding=0.0, dual_rounding=0.5, at_zero=at_zero)  # 1 and -2, less a half
    found = Certificate.from_sums(Strength(C=1.0, n=4, uses_lambda=False), sums)
    assert found.dual == pytest.approx(dual - rounding, rel=1e-12)
    assert found.dual_rounding == pytest.approx(rounding, rel=1e-12, abs=0.0)


@given(st.lists(st.tuples(signed, signed, sizes, sizes), min_size=2, max_size=6))
def test_certificates_together_are_no_better_than_their_exact_sum(figures: list[tuple[float, ...]]) -> None:
    parts = [Certificate(primal, dual, "lambda", above, below) for primal, dual, above, below in figures]
    total = Certificate.total(parts)
    primal, dual = sum(Fraction(one.primal) for one in parts), sum(Fraction(one.dual) for one in parts)
    heights = sum(abs(one.primal) for one in parts), sum(abs(one.dual) for one in parts)
    assert 0 <= Fraction(total.primal) - primal <= 2 * len(parts) * Fraction(UNIT) * Fraction(heights[0])
    assert 0 <= dual - Fraction(total.dual) <= 2 * len(parts) * Fraction(UNIT) * Fraction(heights[1])
    above, below = (sum(of(one) for one in parts) for of in (rounding_above, rounding_below))
    own = UNIT * len(parts)
    assert total.primal_rounding == pytest.approx(above + own * heights[0], rel=1e-12)
    assert total.dual_rounding == pytest.approx(below + own * heights[1], rel=1e-12)
    assert total.form == "lambda"
    assert Certificate.total([Certificate(1.0, 0.0, "lambda"), Certificate(1.0, 0.0, "C")]).form == "lambda"


def rounding_above(one: Certificate) -> float:
    return one.primal_rounding


def rounding_below(one: Certificate) -> float:
    return one.dual_rounding


def test_the_better_of_two_points_keeps_the_rounding_of_each_bound() -> None:
    one, other = Certificate(2.0, 1.0, "C", 0.1, 0.2), Certificate(3.0, 1.5, "C", 0.3, 0.4)
    assert Certificate(2.0, 1.0) == Certificate(2.0, 1.0, "C", 0.0, 0.0)
    assert Certificate.total([one]) is one
    assert one.better_of(other) == other.better_of(one) == Certificate(2.0, 1.5, "C", 0.1, 0.4)
    assert one.bounded_by(other) == Certificate(2.0, 1.5, "C", 0.1, 0.4)
    assert other.better_of(Certificate(4.0, 0.0, "C", 1.0, 1.0)) == other
    even = Certificate(2.0, 1.0, "C", 0.7, 0.8)
    assert one.better_of(even) == one and even.better_of(one) == even  # the first of equals
    assert (one.rounding, other.rounding) == pytest.approx((0.3, 0.7))
    assert one.rounding_share == pytest.approx(0.15) and one.relative_gap == 0.5


@pytest.mark.parametrize(
    ("gap", "primal", "dual", "share"),
    [(1.0, 2.0, 1.0, 0.5), (1.0, 1.0, -4.0, 0.25), (0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)],
)
def test_shares_of_the_larger_objective(gap: float, primal: float, dual: float, share: float) -> None:
    assert relative(gap, primal, dual) == share


@pytest.mark.parametrize(
    ("certificate", "tol", "noise", "limited"),
    [
        (Certificate(2.0, -4.0, "C", 3.0, 1.0), 0.9, 0.0, True),  # of a gap of 6, 4 are rounding, above 0.9 x 4
        (Certificate(2.0, -4.0, "C", 3.0, 1.0), 1.0, 0.0, False),  # 4 is not above 1.0 x 4
        (Certificate(2.0, -4.0, "C", 1.0, 1.0), 0.1, 0.0, False),  # 2 of rounding, and 4 besides
        (Certificate(2.0, -4.0, "C", 1.0, 1.0), 0.1, 2.0, True),  # 4, and 4 besides
        (Certificate(2.0, -4.0, "C", 1.0, 1.0), 0.1, 1.9, False),
        (Certificate(4.0, -2.0, "C", 3.0, 1.0), 0.9, 0.0, True),
        (Certificate(2.0, -4.0, "C", 3.0, 1.0), 0.0, 0.0, False),
        (Certificate(2.0, -math.inf, "C", 3.0, math.inf), 0.9, 0.0, False),
    ],
)
def test_where_rounding_is_the_limit(certificate: Certificate, tol: float, noise: float, limited: Any) -> None:
    assert certificate.is_limited_by_rounding(tol, noise) is limited


@cache
def least(loss: Loss, seed: int) -> float:
    """A low primal objective of a small problem; the optimum is below it."""
    problem = with_total(loss, 0.0, seed)
    alpha = problem.intercept.balance(problem.pointwise, problem.members, problem.y * 0.5)

    def primal(w: np.ndarray) -> float:
        return evaluate(problem, Point(w, alpha)).certificate.primal

    return float(minimize(primal, np.zeros(4), method="Nelder-Mead", options={"maxfev": 200}).fun)


@pytest.mark.parametrize("loss", [SquaredHinge(), Logistic(), Hinge()], ids=named)
@pytest.mark.parametrize("away", [1e-9, 1e-2, -1e-9, -1e-2])
def test_a_dual_point_that_misses_the_sum_bounds_the_optimum_and_loses_little(loss: Loss, away: float) -> None:
    problem = with_total(loss, 0.0, 0)
    random = np.random.default_rng(0)
    heavier = 0.5 * (0.5 + random.random(20))
    alpha = problem.intercept.balance(problem.pointwise, problem.members, problem.y * heavier)
    near, missed = (evaluate(problem, Point(random.normal(size=4), one)) for one in (alpha, alpha * (1.0 + away)))
    optimum = least(loss, 0)
    scale = abs(optimum) + abs(near.certificate.dual) + 1.0
    assert missed.certificate.dual <= optimum + 1e-8 * scale
    assert missed.certificate.dual >= near.certificate.dual - (60.0 * abs(away) + 1e-11) * scale
