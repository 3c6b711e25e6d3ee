"""The kinds of intercept: what each makes of w and of dual variables, and weak duality for any sum of these."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from saddlesvm.problem.intercepts import (
    INTERCEPTS,
    Absent,
    Free,
    Intercept,
    Regularized,
    best_offset,
    intercept_kind,
    make_intercept,
    signed_sums,
)
from saddlesvm.problem.losses import Absolute, Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.penalties import L2
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.problem.regularizer import Regularizer
from saddlesvm.rows.layouts import as_rows
from support import features, labels, matrix, named, plain_primal, small_problem

KINDS: list[Intercept] = [Absent(), Regularized(2.0), Free(2.0)]


def with_total(loss: Loss, total: float, seed: int) -> Problem:
    """A problem whose dual variables have the sum `total`."""
    X = matrix(20, 3, seed)
    return make_problem(as_rows(X, 1.5), labels(X, loss, seed), loss, C=0.7, intercept=Free(1.5, total))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_name_makes_the_kind_that_bears_it(kind: Intercept) -> None:
    assert INTERCEPTS[str(kind)] is type(kind) is intercept_kind(kind.name)
    assert make_intercept(kind.name, kind.scale) == kind
    assert make_intercept(kind, 7.0) is kind
    assert kind.present == (kind.scale > 0.0)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_row_is_what_the_penalty_sees_and_the_lift(kind: Intercept) -> None:
    row = np.array([1.0, -2.0, 0.5, kind.scale])
    seen = Regularizer(L2(), kind).penalised_part(row)
    assert seen @ seen + kind.lift == row @ row
    assert (type(kind).value(2.0, lambda: np.ones(3)) > 0.0) == kind.present
    problem = small_problem(Hinge(), intercept=kind.name)
    offset = kind.best(problem.pointwise, problem.members, np.full(problem.members.size, 3.0), 0.0)
    assert (offset != 0.0) == kind.constrained


def test_unknown_names_and_scales_that_do_not_fit_are_refused() -> None:
    rows, y = as_rows(matrix(5, 2), 1.0), np.ones(5)
    with pytest.raises(ValueError, match="intercept must be one of none, regularized, free; got 'fixed'"):
        make_problem(rows, y, Hinge(), C=1.0, intercept="fixed")  # type: ignore[arg-type]
    for misfit in ("none", Absent(), Regularized(2.0), Free(2.0)):
        with pytest.raises(ValueError, match="does not work with a virtual feature of value 1"):
            make_problem(rows, y, Hinge(), C=1.0, intercept=misfit)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_margins_and_intercept_do_not_depend_on_where_the_offset_is_kept(kind: Intercept) -> None:
    w = np.array([1.0, -2.0, 3.0 if kind.present else 0.0])
    row = np.array([0.5, 0.25, kind.scale])
    counted, offset = kind.split(w)
    assert row @ counted + offset == pytest.approx(row @ w, abs=1e-15)
    assert kind.multiplier(w).tolist() == ([3.0] if kind.constrained else [])


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Absolute()], ids=named)
def test_a_dual_solver_keeps_the_intercept_in_its_last_weight(kind: Intercept, loss: Loss) -> None:
    """After `last` the last weight is the multiplier and what the dual variables add, as w(alpha) has it."""
    problem = small_problem(loss, intercept=kind.name)
    own = dataclasses.replace(problem.intercept)
    alpha = np.array([-loss.subgradient(0.3, y) for y in problem.y])
    offset = own.multiplier(None)
    last = own.last(0.8, offset, problem.C, alpha)
    pulled = problem.C * alpha @ features(problem)[:, -1]
    assert last == pytest.approx(0.8 / own.scale + pulled if own.constrained else 0.8 if own.present else 0.0)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=named)
@given(size=st.floats(1.0, 3.0), sign=st.sampled_from([-1.0, 1.0]), seed=st.integers(0, 1000))
def test_the_best_offset_with_any_sum(loss: Loss, size: float, sign: float, seed: int) -> None:
    total = sign * size
    problem = with_total(loss, total, seed)
    random = np.random.default_rng(seed)
    members = problem.members
    heavier = np.where(problem.y * total > 0.0, 1.0, random.random(20) * 0.1)  # of the sign that the sum has
    bounded = isinstance(loss, SquaredHinge) or size < min((problem.y > 0).sum(), (problem.y < 0).sum())
    assume(bounded)  # else no offset is best
    alpha = problem.intercept.balance(problem.pointwise, members, problem.y * heavier)
    w = random.normal(size=4)
    z = features(problem)[:, :-1] @ w[:-1]
    assert alpha.sum() == pytest.approx(total, rel=1e-9)
    best = best_offset(problem.pointwise, members, z, 0.0, total)

    def objective(offset: float) -> float:
        return plain_primal(problem, w[:-1], offset) + problem.C * total * offset

    height = abs(objective(best)) + 1.0
    assert all(objective(best) <= objective(best + step) + 1e-9 * height for step in (-1.0, -1e-3, 1e-3, 1.0))


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic(), Absolute()], ids=named)
@pytest.mark.parametrize("start", [-300.0, 0.0, 2.5])
def test_the_best_offset_is_found_from_any_start(loss: Loss, start: float) -> None:
    """Also where the loss is flat, or has no curvature, at the start."""
    problem = small_problem(loss, n=30, d=2)
    terms, members = problem.pointwise, problem.members
    z = np.random.default_rng(0).normal(size=30)

    def objective(offset: float) -> float:
        return sum(loss.value(one + offset, target) for one, target in zip(z, problem.y, strict=True))

    best = best_offset(terms, members, z, start)
    around = np.concatenate([best + np.geomspace(1e-4, 10.0, 30), best - np.geomspace(1e-4, 10.0, 30)])
    assert objective(best) <= min(map(objective, around)) + 1e-9 * objective(best)
    assert best_offset(terms, members, z, best) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Absolute()], ids=named)
def test_sums_of_variables_tell_signs_and_bounds_apart(loss: Loss) -> None:
    random = np.random.default_rng(1)
    problem = small_problem(loss, weights=random.random(60) + 0.5)
    low, high = np.array([loss.bounds(y, s) for y, s in zip(problem.y, problem.weights, strict=True)]).T
    ends = np.clip(np.where(random.random(60) < 0.5, low, high), -2.0, 2.0)
    alpha = ends * random.choice([0.0, 0.3, 1.0], 60)
    inner = (alpha > low) & (alpha < high)
    plain = [size[chosen].sum() for chosen in (inner | True, inner) for size in (alpha.clip(0), (-alpha).clip(0))]
    found = signed_sums(problem.pointwise, problem.members, alpha)
    assert found == pytest.approx(plain, rel=1e-12)
    assert inner.any()
    assert loss.bounds(1.0, 1.0)[1] == np.inf or plain[0] > plain[2] > 0.0


def test_an_intercept_has_a_feature_of_one_by_default() -> None:
    assert (Absent().scale, Regularized().scale, Free().scale) == (0.0, 1.0, 1.0)


def test_variables_are_lengthened_where_shortening_does_not_lead_to_the_sum() -> None:
    problem = with_total(Hinge(), 5.0, 0)
    alpha = problem.intercept.balance(problem.pointwise, problem.members, np.zeros(20))
    assert alpha.sum() == pytest.approx(5.0, rel=1e-12)
    assert ((alpha * problem.y >= 0.0) & (np.abs(alpha) <= 1.0)).all()


def test_a_sum_that_the_bounds_exclude_is_refused() -> None:
    problem = with_total(Hinge(), 50.0, 0)
    with pytest.raises(ValueError, match=r"the dual variables have the sum \d+; it must be 50"):
        problem.balance(np.zeros(20))
