"""Neighbourhoods of the optimum: an independent, far closer fit never contradicts them, and rounding is counted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.answers.gradient import gradient_at, margin_slips
from saddlesvm.answers.neighbourhood import find_neighbourhood, gap_in_C_form
from saddlesvm.answers.row_estimates import FACTORED, quadratic_forms
from saddlesvm.answers.vicinity import find_vicinity
from saddlesvm.data import load_bundled
from saddlesvm.estimators.exact_optimum import movement_for
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.problem.intercepts import INTERCEPTS
from saddlesvm.problem.losses import Hinge, Logistic, Squared, SquaredHinge
from saddlesvm.problem.penalties import L1, L2, ElasticNet
from saddlesvm.problem.problem import Problem, is_classification, make_problem
from saddlesvm.problem.sums import margins
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.auto import Auto
from support import ALL_LOSSES, csr, distance_bound, labels, matrix, named, small_problem


def posed(loss, seed, intercept="regularized", penalty=None) -> Problem:
    """A problem with rows of weight zero, of either layout and precision, and a C between 0.01 and 100."""
    random = np.random.default_rng(seed)
    X = matrix(50, 4, seed, density=0.7)
    weights = random.choice([0.0, 0.5, 1.0, 3.0], size=50) if seed % 2 else None
    rows = csr(X) if seed % 3 == 0 else X.astype(np.float32) if seed % 3 == 1 else X
    scale = 0.0 if intercept == "none" else 1.3
    C = 10.0 ** random.integers(-2, 3)
    given = {"weights": weights, "intercept": intercept, "penalty": penalty or L2(), "C": C}
    return make_problem(as_rows(rows, scale), labels(X, loss, seed), loss, **given)


def solved(problem, tol):
    """A fit's weights with the virtual feature's, its gap in the C form, and its intercept."""
    found = fit(problem, Auto(), Limits(tol, max_epochs=2000))
    w = np.append(found.coef, found.intercept / (problem.scale or 1.0))
    return w, gap_in_C_form(problem, found.certificate.gap), found.intercept


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
def test_no_closer_fit_contradicts_the_bounds(loss, intercept):
    for seed in range(4):
        problem = posed(loss, seed, intercept, ElasticNet(0.3) if seed == 3 else None)
        w, gap, _ = solved(problem, 10.0 ** -(2 + seed))
        near = find_neighbourhood(problem, w, gap)
        optimum, left, offset = solved(problem, 1e-13)
        X = matrix(20, 4, seed + 100)
        scores = X @ optimum[:-1] + offset
        reach = distance_bound(left) * (1.0 + np.linalg.norm(X, axis=1))
        low, high = near.score_bounds(X)
        assert (low - reach <= scores).all()
        assert (scores <= high + reach).all()
        least, most = near.weight_bounds()
        assert (least - reach.max() <= np.append(optimum[:-1], offset)).all()
        assert (np.append(optimum[:-1], offset) <= most + reach.max()).all()


def test_curvature_proves_far_more_than_the_gap():
    for loss in (Logistic(), SquaredHinge()):
        problem = posed(loss, 2)
        w, gap, _ = solved(problem, 1e-8)
        near = find_neighbourhood(problem, w, gap)
        assert near.inverse is not None
        low, high = near.score_bounds(matrix(20, 4, 5))
        assert (high - low).max() <= 0.01 * np.sqrt(2.0 * gap)


def test_parabolas_are_known_to_their_rounding_from_any_weights():
    problem = posed(Squared(), 2)
    far = find_neighbourhood(problem, np.ones(5), 1e300)
    optimum, _, _ = solved(problem, 1e-14)
    H = np.eye(5) + 2.0 * problem.C * rows_of(problem).T @ rows_of(problem)
    away = far.center - optimum
    assert np.sqrt(away @ H @ away) <= far.radius + 1e-6
    assert far.radius <= 1e-6


def rows_of(problem):
    """The members' rows with the virtual feature, in float64."""
    values = np.asarray(problem.X.values, dtype=np.float64)[problem.members]
    return np.hstack([values, np.full((len(values), 1), problem.scale)])


@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()], ids=named)
def test_lengths_are_no_smaller_than_those_of_the_exact_inverse(loss, intercept):
    problem = small_problem(loss, n=40, d=4, C=3e2, intercept=intercept)
    near = find_vicinity(problem, solved(problem, 1e-6)[0])
    assert near is not None
    exact = _exact_inverse(rows_of(problem), near.bend, intercept == "free")
    squares = [
        float(sum(x * m * z for x, row in zip(one, exact, strict=True) for m, z in zip(row, one, strict=True)))
        for one in [[Fraction(v) for v in row] for row in rows_of(problem)]
    ]
    found = quadratic_forms(problem.X, problem.members, (1.0 + near.error) * near.inverse)
    assert (found >= squares).all()
    np.testing.assert_allclose(found, squares, rtol=1e-3)
    assert (near.leverages >= squares).all()


def _exact_inverse(rows, bends, free):
    """The inverse of ``R'' + sum_i h_i x_i x_i'`` in fractions, by Gauss and Jordan."""
    size = rows.shape[1]
    whole = [[Fraction(0)] * (2 * size) for _ in range(size)]
    for row, bend in zip(rows.tolist(), bends.tolist(), strict=True):
        for j in range(size):
            for k in range(size):
                whole[j][k] += Fraction(bend) * Fraction(row[j]) * Fraction(row[k])
    for j in range(size):
        whole[j][j] += 0 if free and j == size - 1 else 1
        whole[j][size + j] = Fraction(1)
    for j in range(size):
        whole[j] = [one / whole[j][j] for one in whole[j]]
        for k in range(size):
            if k != j:
                factor = whole[k][j]
                whole[k] = [one - factor * other for one, other in zip(whole[k], whole[j], strict=True)]
    return [row[size:] for row in whole]


def test_gradients_are_within_their_error_of_exact_ones():
    problem = small_problem(SquaredHinge(), n=60, d=5, C=1e4, intercept="regularized")
    w = np.linspace(-1.0, 1.0, 6) / 3.0
    found = gradient_at(problem, w)
    exact = [Fraction(one) for one in w]
    for row, y in zip(rows_of(problem).tolist(), problem.y.tolist(), strict=True):
        x = [Fraction(one) for one in row]
        left = 1 - Fraction(y) * sum(a * Fraction(b) for a, b in zip(x, w, strict=True))
        if left > 0:
            exact = [one - 2 * Fraction(problem.C) * Fraction(y) * left * a for one, a in zip(exact, x, strict=True)]
    away = np.array([float(one - Fraction(got)) for one, got in zip(exact, found.value, strict=True)])
    assert 0.0 < np.linalg.norm(away) <= found.error <= 1e-12 * np.linalg.norm(found.value)


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
def test_losses_tell_the_truth_about_their_curvature(loss):
    z = np.linspace(-4.0, 4.0, 4001)
    for y in (-1.0, 1.0):
        bends = np.array([loss.curvature(one, y) for one in z])
        if hasattr(loss, "steepening"):
            grown = np.abs(np.diff(np.log(bends)))
            assert grown.max() <= loss.steepening() * (z[1] - z[0]) * (1.0 + 1e-9)
        if hasattr(loss, "corners"):
            place = y * z if is_classification(loss) else z - y
            jumps = np.flatnonzero(np.diff(bends))
            corners = np.array(loss.corners())
            assert all(np.abs(place[one] - corners).min() <= 1.01 * (z[1] - z[0]) for one in jumps)


def test_what_has_no_curvature_proves_nothing_false():
    problem = posed(Logistic(), 2, penalty=L1())
    near = find_neighbourhood(problem, np.zeros(5), 1.0)
    low, high = near.score_bounds(np.ones((1, 4)))
    assert (low[0], high[0]) == (-np.inf, np.inf)
    wide = small_problem(Logistic(), n=3, d=FACTORED + 1)
    assert find_neighbourhood(wide, np.zeros(FACTORED + 2), 1.0).inverse is None


def test_a_hinge_is_bounded_by_its_gap():
    problem = posed(Hinge(), 2)
    w, gap, _ = solved(problem, 1e-6)
    near = find_neighbourhood(problem, w, gap)
    assert near.inverse is None
    np.testing.assert_allclose(near.radius, np.sqrt(2.0 * gap), rtol=0.02)


def test_margins_are_within_their_slips_of_exact_ones():
    random = np.random.default_rng(0)
    X, w = random.normal(size=(30, 200)).astype(np.float32), random.normal(size=201)
    for rows in (X, csr(X * (random.random(X.shape) < 0.1))):
        problem = make_problem(as_rows(rows, 1.3), labels(X, Logistic(), 0), Logistic(), C=1.0, intercept="regularized")
        z = margins(problem, w)
        slips = margin_slips(problem, w)
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        for row, found, slip in zip(dense, z, slips, strict=True):
            exact = sum(Fraction(float(x)) * Fraction(float(v)) for x, v in zip(row, w[:-1], strict=True))
            exact += Fraction(1.3) * Fraction(float(w[-1]))
            assert abs(Fraction(float(found)) - exact) <= Fraction(float(slip))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_a_proof_is_as_close_as_the_fit_was_asked_to_be(loss: str, tol: float) -> None:
    notes = load_bundled("banknote")
    model = LinearSVC(loss=loss, tol=tol, C=0.1).fit(notes.X, notes.y)
    low, high = model.decision_bounds(notes.X)
    closest = movement_for(max(tol, 1e-4) if loss == "hinge" else tol)  # rounding, where only the gap counts
    assert (high - low <= 2.0 * closest * (1.0 + 1e-6)).all()
    exact = LinearSVC(loss=loss, tol=1e-9, C=0.1).fit(notes.X, notes.y)
    reach = np.sqrt(2.0 * exact.certificate_.gap) * np.sqrt(1.0 + (notes.X**2).sum(axis=1))
    z = exact.decision_function(notes.X)
    assert (z + reach >= low).all()
    assert (z - reach <= high).all()
