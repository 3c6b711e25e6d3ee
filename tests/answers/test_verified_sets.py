"""Verified active sets of the hinge: the exact optimum, by fractions, is in the ball; what is not sure is not told."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.answers.active_set import WORTH, has_margin, verify_active_set
from saddlesvm.estimators.exact_optimum import go_closer, training_data
from saddlesvm.estimators.fitted import fitted_value
from saddlesvm.problem.losses import Hinge, SquaredHinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from support import csr, labels, matrix

HINGE = Hinge()


def posed(seed, loss=HINGE):
    """A problem with or without weights of the rows, dense or sparse, and a model's multipliers near its optimum."""
    random = np.random.default_rng(seed)
    X = matrix(60, 4, seed)
    y = labels(X, Hinge(), seed)
    y[random.choice(60, 9, replace=False)] *= -1.0
    weights = random.choice([0.0, 0.5, 1.0, 3.0], size=60) if seed % 2 else None
    rows = csr(X) if seed % 3 == 0 else X.astype(np.float32) if seed % 3 == 1 else X
    C = 10.0 ** random.integers(-1, 3)
    model = LinearSVC(loss="hinge", C=C, tol=1e-10, max_iter=10_000, random_state=0).fit(rows, y, sample_weight=weights)
    given = {"C": C, "intercept": "regularized", "weights": weights}
    problem = make_problem(as_rows(rows, 1.0), y, loss, **given)
    return problem, np.ravel(model.dual_coef_) / C, rows


def exact_optimum(problem, alpha, rows):
    """The optimum with the active set of these multipliers, in fractions; the conditions are checked in fractions."""
    dense = rows.toarray() if hasattr(rows, "toarray") else rows
    members, C = problem.members.tolist(), Fraction(problem.C)
    X = {i: [*map(Fraction, map(float, dense[i])), Fraction(1)] for i in members}
    y, s = ({i: Fraction(float(one[i])) for i in members} for one in (problem.y, problem.row_weights))
    share = {i: float(alpha[i]) * float(y[i]) / float(s[i]) for i in members}
    F = [i for i in members if 1e-6 < share[i] < 1.0 - 1e-6]
    fixed = [i for i in members if share[i] >= 1.0 - 1e-6]
    v = [C * sum((s[i] * y[i] * X[i][j] for i in fixed), Fraction(0)) for j in range(5)]
    system = [[dot(X[i], X[j]) for j in F] + [y[i] - dot(X[i], v)] for i in F]
    for k in range(len(F)):
        pivot = system[k][k]
        system[k] = [one / pivot for one in system[k]]
        for other in range(len(F)):
            if other != k:
                factor = system[other][k]
                system[other] = [a - factor * b for a, b in zip(system[other], system[k], strict=True)]
    w = [v[j] + sum((row[-1] * X[i][j] for i, row in zip(F, system, strict=True)), Fraction(0)) for j in range(5)]
    for i, row in zip(F, system, strict=True):
        assert 0 <= row[-1] * y[i] <= C * s[i]
    for i in set(members) - set(F):
        assert y[i] * dot(X[i], w) <= 1 if i in fixed else y[i] * dot(X[i], w) >= 1
    return w


def dot(a, b):
    return sum((p * q for p, q in zip(a, b, strict=True)), Fraction(0))


@pytest.mark.parametrize("seed", range(9))
def test_the_exact_optimum_is_in_the_ball(seed):
    problem, alpha, rows = posed(seed)
    found = verify_active_set(problem, alpha)
    assert found is not None
    w = exact_optimum(problem, alpha, rows)
    away = sum(((a - Fraction(float(b))) ** 2 for a, b in zip(w, found.center, strict=True)), Fraction(0))
    assert away <= Fraction(found.radius) ** 2
    assert found.radius < 1e-9
    asked = matrix(10, 4, seed + 50)
    for row, low, high in zip(asked, *found.score_bounds(asked), strict=True):
        score = dot([*map(Fraction, map(float, row)), Fraction(1)], w)
        assert Fraction(float(low)) <= score <= Fraction(float(high))


def test_multipliers_that_are_far_from_the_optimum_are_moved_or_not_verified():
    problem, alpha, rows = posed(2)
    w = np.array([float(one) for one in exact_optimum(problem, alpha, rows)])
    random = np.random.default_rng(0)
    for noise in (1e-3, 0.1, 1.0):
        near = np.clip(alpha * problem.y + noise * random.normal(size=60), 0.0, 1.0) * problem.y
        found = verify_active_set(problem, near)
        assert found is None or np.linalg.norm(w - found.center) <= found.radius + 1e-12


def test_rows_on_the_margin_that_depend_on_each_other_are_not_verified():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [0.3, 1.0], [0.2, -1.0]])
    y = np.array([1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
    problem = make_problem(as_rows(X, 1.0), y, Hinge(), C=100.0, intercept="regularized")
    assert verify_active_set(problem, 0.004 * y) is None


def test_other_problems_have_no_margin():
    problem = posed(0)[0]
    assert has_margin(problem)
    assert not has_margin(posed(0, SquaredHinge())[0])
    free = make_problem(problem.X, problem.y, Hinge(), C=1.0, intercept="free")
    assert not has_margin(free)


def test_scores_of_a_hinge_are_known_to_rounding():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 20))
    y = np.where(X[:, 0] + random.normal(size=300) > 0.0, "b", "a")
    model = LinearSVC(loss="hinge", C=10.0, random_state=0).fit(X, y)
    fitted = fitted_value(model)
    low, high = go_closer(fitted, training_data(fitted)).proof.score_bounds(X)
    assert (high - low).max() < 1e-9
    low, high = model.decision_bounds(X)
    assert (high - low).max() < 4.0 * WORTH
    assert model.is_proven(X[np.abs(low) > 1e-3]).mean() > 0.95
