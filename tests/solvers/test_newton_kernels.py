"""Newton's kernels: multipliers, second derivatives, the search along a line, products with the rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from saddlesvm.problem.loss import Loss, is_smooth
from saddlesvm.problem.problem import is_classification, make_problem
from saddlesvm.problem.terms import Pointwise
from saddlesvm.rows.layouts import CSR
from saddlesvm.solvers.linear_algebra import full_rows, sum_outer
from saddlesvm.solvers.smoothed import (
    STILL_NEAR,
    Answers,
    Line,
    SmoothedTerms,
    add_outer_sparse,
    hessian_diagonal,
    respond,
    respond_to_weights,
    search,
)
from support import (
    ALL_LOSSES,
    LOSSES_BY_KIND,
    matrix,
    named,
)
from support.newton import plain_rows, rows_like

every_loss = pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
LAYOUTS = ["dense", "sparse"]
PRECISIONS = [np.float32, np.float64]


def plain_response(loss: Loss, centre: float, z: float, y: float, q: float, s: float) -> tuple[float, float]:
    """The multiplier of a row and the value of its term, by a search for the maximum of the definition."""

    def negated(a: float) -> float:
        conjugate = loss.conjugate(a, y, s)
        return conjugate + a * z + 0.5 * q * (a - centre) ** 2 if conjugate < math.inf else 1e300

    low, high = (min(max(end, -40.0), 40.0) for end in loss.bounds(y, s))
    found = minimize_scalar(negated, bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    best = min((float(found.x), low, high, 0.0), key=negated)
    return best, -negated(best)


def smoothed(terms: Pointwise, centre: np.ndarray, q: float) -> SmoothedTerms:
    return SmoothedTerms(*terms[:3], 2.0, centre, q, not is_smooth(terms.loss))


def answer(terms: Pointwise, z: np.ndarray, centre: np.ndarray, q: float) -> Answers:
    answers = Answers(np.empty(z.size), np.empty(z.size), np.zeros(4))
    respond(smoothed(terms, centre, q), z, answers)
    return answers


def some_terms(loss: Loss, n: int = 40) -> tuple[Pointwise, np.ndarray, np.ndarray]:
    """Terms with weights, margins on either side of every corner, and feasible centres."""
    random = np.random.default_rng(3)
    y = random.choice([-1.0, 1.0], n) if is_classification(loss) else random.normal(size=n)
    s, z = random.uniform(0.3, 2.0, n), 2.0 * random.normal(size=n)
    sign = y if is_classification(loss) else random.choice([-1.0, 1.0], n)
    return Pointwise(loss, y, s), z, sign * s * random.choice([0.0, 0.4, 1.0], n)


@every_loss
@pytest.mark.parametrize("q", [0.7, 1e-3])
def test_multipliers_maximise_their_definition(loss: Loss, q: float) -> None:
    terms, z, centre = some_terms(loss)
    alpha, _, (paid, conjugates, coupled, _) = answer(terms, z, centre, q)
    for i in range(z.size):
        s, y = terms.weights[i], terms.y[i]
        _, value = plain_response(loss, centre[i], z[i], y, q, s)
        own = -loss.conjugate(alpha[i], y, s) - alpha[i] * z[i] - 0.5 * q * (alpha[i] - centre[i]) ** 2
        assert own >= value - 1e-9
    assert paid == pytest.approx(sum(terms.weights[i] * loss.value(z[i], terms.y[i]) for i in range(z.size)))
    assert conjugates == pytest.approx(
        sum(loss.conjugate(alpha[i], terms.y[i], terms.weights[i]) for i in range(z.size)), abs=1e-12
    )
    assert coupled == pytest.approx(alpha @ z)


@every_loss
@pytest.mark.parametrize("q", [0.7, 0.0])
def test_second_derivatives_are_those_of_the_multipliers(loss: Loss, q: float) -> None:
    if q == 0.0 and not is_smooth(loss):
        pytest.skip("a piecewise linear loss needs a proximal term")
    terms, z, centre = some_terms(loss)
    step = 1e-6
    _, bend, sums = answer(terms, z, centre, q)
    ahead, bend_ahead, _ = answer(terms, z + step, centre, q)
    behind, bend_behind, _ = answer(terms, z - step, centre, q)
    smooth = np.isclose(bend_ahead, bend_behind, rtol=1e-4) & np.isclose(bend_ahead, bend, rtol=1e-4)
    assert smooth.mean() > 0.8
    assert bend[smooth] == pytest.approx((-2.0 * (ahead - behind) / (2.0 * step))[smooth], abs=1e-4)
    assert sums[3] == np.count_nonzero(bend)


@every_loss
def test_rows_that_rounding_leaves_beside_their_bound_do_not_bend(loss: Loss) -> None:
    if is_smooth(loss):
        pytest.skip("its variables never reach a bound with a slope")
    terms, _, centre = some_terms(loss, 2000)
    far = np.where(np.arange(2000) % 2 == 0, -1e3, 1e3)
    _, bend, _ = answer(terms, far, centre, 0.7)
    assert not bend.any()


@every_loss
def test_without_proximal_term_multipliers_are_minus_the_derivative(loss: Loss) -> None:
    if not is_smooth(loss):
        pytest.skip("a piecewise linear loss needs a proximal term")
    terms, z, centre = some_terms(loss)
    alpha, _, _ = answer(terms, z, centre, 0.0)
    expected = [-terms.weights[i] * loss.subgradient(z[i], terms.y[i]) for i in range(z.size)]
    assert alpha == pytest.approx(expected)


@every_loss
@pytest.mark.parametrize("length", [1.0, 300.0, 1e-3])
def test_the_search_finds_the_minimum_along_the_line(loss: Loss, length: float) -> None:
    terms, z, centre = some_terms(loss)
    q, C = 0.1, 2.0
    dz = length * np.random.default_rng(5).normal(size=z.size)
    quadratic = float(length * length)

    def slope(tau: float, linear: float) -> float:
        alpha, _, _ = answer(terms, z + tau * dz, centre, q)
        return float(linear + quadratic * tau - C * alpha @ dz)

    linear = -slope(0.0, 0.0) - 3.0 * length
    alpha, bend, _ = answer(terms, z, centre, q)
    at_one, _, _ = answer(terms, z + dz, centre, q)

    def found(linear: float) -> float:
        return search(smoothed(terms, centre, q), Line(z, dz, linear, quadratic), alpha, bend, at_one, 1e-9)

    tau = found(linear)
    assert tau > 0.0
    assert abs(slope(tau, linear)) <= 1e-8 * 3.0 * length
    assert found(-slope(0.0, 0.0) + 1.0) == 0.0
    flat_at_one = -slope(1.0, 0.0)
    if slope(0.0, flat_at_one) < 0.0:
        assert found(flat_at_one) == 1.0


@pytest.mark.parametrize("loss", LOSSES_BY_KIND, ids=named)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("q", [0.7, 0.0])
def test_multipliers_at_weights_are_those_at_their_margins(loss: Loss, layout: str, q: float) -> None:
    if q == 0.0 and not is_smooth(loss):
        pytest.skip("a piecewise linear loss needs a proximal term")
    terms, _, centre = some_terms(loss, 3 * STILL_NEAR)  # the members fill one block and begin another
    X = rows_like(matrix(centre.size, 6, density=0.6).astype(np.float32), layout, 1.7)
    members, w = np.arange(0, centre.size, 2), np.random.default_rng(1).normal(size=7)
    problem = make_problem(X, terms.y, loss, C=2.0, weights=terms.weights, members=members, intercept="regularized")
    its, margins = problem.member_terms, plain_rows(X)[members] @ w
    expected = answer(its, margins, problem.gather(centre), q)
    z, pulled, found = np.empty(members.size), np.ones(7), Answers(*np.empty((2, members.size)), np.zeros(4))
    respond_to_weights(smoothed(its, problem.gather(centre), q), X, members, w, z, found, pulled)
    assert z == pytest.approx(margins)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other)
    assert pulled == pytest.approx(1.0 + found.alpha @ plain_rows(X)[members])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bias", [0.0, 1.7])
def test_products_with_rows_are_numpys(layout: str, precision: type, bias: float) -> None:
    X = rows_like(matrix(30, 6, density=0.6).astype(precision), layout, bias)
    A, random = plain_rows(X), np.random.default_rng(0)
    chosen = np.array([1, 4, 5, 17, 29])
    B, bend, factors, v = A[chosen], random.uniform(0.5, 2.0, 30), random.normal(size=5), random.normal(size=7)
    hessian = B.T @ np.diag(bend[chosen]) @ B
    out = v.copy()
    hessian_diagonal(X, chosen, bend, out)
    assert out == pytest.approx(v + np.diag(hessian))
    assert full_rows(X, chosen) == pytest.approx(B)
    squares = sum_outer(X, chosen, np.abs(factors))
    assert np.tril(squares) == pytest.approx(np.tril(B.T @ np.diag(np.abs(factors)) @ B))
    if isinstance(X, CSR):
        upper = np.zeros((7, 7))
        add_outer_sparse(X, chosen, factors, upper)
        assert upper == pytest.approx(np.triu(B.T @ np.diag(factors) @ B))
