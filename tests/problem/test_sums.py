"""Sums over the rows are those of the losses' own numbers, row by row, however the rows are given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from saddlesvm.problem import sums
from saddlesvm.problem.intercepts import balance, offset_slope
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.losses import Hinge, Logistic
from saddlesvm.problem.problem import make_problem
from saddlesvm.problem.terms import BLOCK
from saddlesvm.rows.layouts import as_rows
from support import LOSSES_BY_KIND, named, small_problem

losses = pytest.mark.parametrize("loss", LOSSES_BY_KIND, ids=named)


def feasible(problem: Any, random: np.random.Generator) -> np.ndarray:
    """Dual variables within their bounds, some of them at a bound, some zero."""
    alpha = np.zeros(problem.y.size)
    sums.dual_of_margins(problem.pointwise, problem.members, random.normal(size=problem.members.size), 0.0, alpha)
    return alpha * random.choice([0.0, 0.3, 1.0], size=alpha.size)


def weighted(loss: Loss, weights: bool = True) -> Any:
    """A problem over some rows, with weights or without."""
    random = np.random.default_rng(5)
    members = np.flatnonzero(random.random(60) < 0.8)
    given = {"weights": random.random(60) + 0.1} if weights else {}
    return small_problem(loss, members=members, intercept="free", **given)


def plain_sums(problem: Any, z: np.ndarray, offset: float, alpha: np.ndarray) -> list[float]:
    """The five sums in plain Python, each of them rounded once."""
    loss, terms = problem.loss, []
    for k, i in enumerate(problem.members):
        s = float(problem.weights[i]) if problem.weights.size else 1.0
        y, a, margin = float(problem.y[i]), float(alpha[i]), float(z[k])
        terms.append((s * loss.value(margin + offset, y), loss.conjugate(a, y, s), a * margin))
    paid, conjugates, pairs = zip(*terms, strict=True)
    return [math.fsum(column) for column in (paid, conjugates, pairs, map(abs, conjugates), map(abs, pairs))]


@losses
@pytest.mark.parametrize("weights", [True, False])
def test_sums_are_those_of_the_rows_one_by_one(loss: Loss, weights: bool) -> None:
    problem, random = weighted(loss, weights), np.random.default_rng(1)
    terms, members, alpha = problem.pointwise, problem.members, feasible(problem, random)
    z = random.normal(size=members.size)
    assert sums.loss_sums(terms, members, z, 0.3, alpha) == pytest.approx(plain_sums(problem, z, 0.3, alpha), rel=1e-12)
    plain = plain_sums(problem, z, 0.0, 0.7 * alpha)[1]
    assert sums.conjugate_sum(terms, members, alpha, 0.7) == pytest.approx(plain, rel=1e-12)
    slope, bend = offset_slope(terms, members, z, 0.3)
    assert slope == pytest.approx(sum(s * loss.subgradient(float(t) + 0.3, y) for s, t, y in rows_of(problem, z)))
    assert bend == pytest.approx(sum(s * loss.curvature(float(t) + 0.3, y) for s, t, y in rows_of(problem, z)))


def rows_of(problem: Any, z: np.ndarray) -> list[tuple[float, float, float]]:
    """Weight, margin and label of each member."""
    s = problem.row_weights[problem.members]
    return [(float(one), float(t), float(y)) for one, t, y in zip(s, z, problem.y[problem.members], strict=True)]


@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=named)
@pytest.mark.parametrize("every", [1, 3], ids=["all", "members"])
def test_sums_over_several_blocks_of_rows_leave_none_out(loss: Loss, every: int) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(2 * BLOCK + 7, 2)), np.sign(random.normal(size=2 * BLOCK + 7))
    members = np.arange(0, y.size, every)
    problem = make_problem(as_rows(X, 1.0), y, loss, C=0.1, intercept="free", members=members)
    w, alpha = np.array([0.5, -1.0, 0.0]), feasible(problem, random)
    z = sums.margins(problem, w)
    plain = plain_sums(problem, z, 0.0, alpha)
    assert sums.sums_of_margins(problem, w, alpha) == pytest.approx(plain, rel=1e-12)
    found, pull = sums.sums_and_pull(problem, w, alpha)
    assert found == pytest.approx(plain, rel=1e-12)
    assert pull[:-1] == pytest.approx(0.1 * alpha[members] @ X[members], rel=1e-9)
    balance(problem.pointwise, problem.members, alpha)
    assert alpha.sum() == pytest.approx(0.0, abs=1e-9)


@losses
def test_variables_beyond_their_bounds_come_back_to_them(loss: Loss) -> None:
    problem, random = weighted(loss), np.random.default_rng(1)
    alpha = feasible(problem, random)
    alpha[problem.members] += random.choice([-10.0, 0.0, 10.0], size=problem.members.size)
    before = alpha.copy()
    sums.bring_back(problem.pointwise, problem.members, alpha)
    for i in problem.members:
        low, high = loss.bounds(float(problem.y[i]), float(problem.weights[i]))
        assert alpha[i] == pytest.approx(min(max(before[i], low), high), rel=1e-12)


def test_balance_takes_from_variables_within_their_bounds_first() -> None:
    problem = make_problem(as_rows(np.zeros((3, 1))), np.ones(3), Hinge(), C=1.0, intercept="free")
    for before, total, after in (([0.5, 1.0, 0.0], 1.0, [0.0, 1.0, 0.0]), ([0.0] * 3, 1.0, [0.0] * 3)):
        alpha = np.array(before)
        balance(problem.pointwise, problem.members, alpha, total)
        assert alpha.tolist() == after


@losses
def test_far_margins_and_variables_at_their_bounds_raise_no_warning(loss: Loss) -> None:
    problem = weighted(loss)
    terms, members, z = problem.pointwise, problem.members, np.linspace(-1e4, 1e4, problem.members.size)
    alpha = np.zeros(problem.y.size)
    with np.errstate(all="raise"):
        assert np.isfinite(sums.loss_sums(terms, members, z, 0.0, alpha)).all()
        sums.dual_of_margins(terms, members, z, 0.0, alpha)
        assert np.isfinite(sums.conjugate_sum(terms, members, alpha, 1.0))
        balance(terms, members, alpha)
        offset_slope(terms, members, z, 0.0)
        sums.bring_back(terms, members, alpha)
    assert alpha.sum() == pytest.approx(0.0, abs=1e-9 * np.abs(alpha).sum())
