"""What Newton's method computes: multipliers, second derivatives, the search along a line, products with the rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from saddlesvm.problem.loss import Loss, is_smooth
from saddlesvm.problem.problem import is_classification
from saddlesvm.problem.terms import Pointwise
from saddlesvm.rows.layouts import CSR
from saddlesvm.rows.places import all_in_float64
from saddlesvm.rows.sparse_products import add_outer_products
from saddlesvm.solvers.machines import ALL, Binary, CompiledBinary, ResponseSums
from saddlesvm.solvers.search import find_least
from support import (
    ALL_LOSSES,
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


def answer(
    terms: Pointwise, z: np.ndarray, centre: np.ndarray, q: float
) -> tuple[np.ndarray, np.ndarray, ResponseSums]:
    return machine(terms).answer(ALL, z, centre, q)


def machine(terms: Pointwise) -> Binary:
    return CompiledBinary(terms.loss, terms.y, terms.weights)


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
    alpha, _, sums = answer(terms, z, centre, q)
    smoothed = 0.0
    for i in range(z.size):
        s, y = terms.weights[i], terms.y[i]
        _, value = plain_response(loss, centre[i], z[i], y, q, s)
        own = -loss.conjugate(alpha[i], y, s) - alpha[i] * z[i] - 0.5 * q * (alpha[i] - centre[i]) ** 2
        assert own >= value - 1e-9
        smoothed += own
    assert sums.smoothed == pytest.approx(smoothed)
    assert sums.losses == pytest.approx(sum(terms.weights[i] * loss.value(z[i], terms.y[i]) for i in range(z.size)))
    assert sums.conjugates == pytest.approx(
        sum(loss.conjugate(alpha[i], terms.y[i], terms.weights[i]) for i in range(z.size)), abs=1e-12
    )


@every_loss
@pytest.mark.parametrize("q", [0.7, 0.0])
def test_second_derivatives_are_those_of_the_multipliers(loss: Loss, q: float) -> None:
    if q == 0.0 and not is_smooth(loss):
        pytest.skip("a piecewise linear loss needs a proximal term")
    terms, z, centre = some_terms(loss)
    step = 1e-6
    _, bend, _ = answer(terms, z, centre, q)
    ahead, bend_ahead, _ = answer(terms, z + step, centre, q)
    behind, bend_behind, _ = answer(terms, z - step, centre, q)
    smooth = np.isclose(bend_ahead, bend_behind, rtol=1e-4) & np.isclose(bend_ahead, bend, rtol=1e-4)
    assert smooth.mean() > 0.8
    assert bend[smooth] == pytest.approx(((behind - ahead) / (2.0 * step))[smooth], abs=1e-4)


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
    alpha, _, _ = answer(terms, z, centre, q)
    linear = float(C * alpha @ dz) - 3.0 * length

    def slope_at(t: float) -> float:
        alpha, _, _ = answer(terms, z + t * dz, centre, q)
        return float(linear + length * length * t - C * alpha @ dz)

    place = find_least(slope_at, slope_at(0.0), slope_at(1.0))
    assert place > 0.0
    assert abs(slope_at(place)) <= 0.11 * 3.0 * length


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bias", [0.0, 1.7])
def test_products_with_rows_are_numpys(layout: str, precision: type, bias: float) -> None:
    X = rows_like(matrix(30, 6, density=0.6).astype(precision), layout, bias)
    A, random = plain_rows(X), np.random.default_rng(0)
    chosen = np.array([1, 4, 5, 17, 29])
    B, bend, factors = A[chosen], random.uniform(0.5, 2.0, 30), random.normal(size=5)
    hessian = B.T @ np.diag(bend[chosen]) @ B
    some = np.zeros(30)
    some[chosen] = bend[chosen]
    place = all_in_float64(X)
    assert place.diagonal(np.arange(30), some) == pytest.approx(np.diag(hessian))
    squares = place.gram(chosen, np.abs(factors), np.float64)
    assert np.tril(squares) == pytest.approx(np.tril(B.T @ np.diag(np.abs(factors)) @ B))
    if isinstance(X, CSR):
        upper = np.zeros((7, 7))
        add_outer_products(X, chosen, factors, upper)
        assert upper == pytest.approx(np.triu(B.T @ np.diag(factors) @ B))
