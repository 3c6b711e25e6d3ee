"""Where the optimum of multinomial regression lies: no closer fit contradicts it, and the curvature proves far more."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from saddlesvm.answers.joint_neighbourhood import JointNeighbourhood, joint_neighbourhood, norms_apart
from saddlesvm.answers.labels import label_by_differences
from saddlesvm.answers.neighbourhood import gap_in_C_form
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.problem.losses import Logistic
from saddlesvm.problem.multinomial import make_multinomial_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.multinomial import Multinomial
from support import csr, matrix


def posed(seed, classes=3, intercept="regularized"):
    """A problem of either layout and precision, with rows of weight zero, and a C between 0.1 and 100."""
    random = np.random.default_rng(seed)
    X = matrix(60, 4, seed, density=0.7)
    codes = np.argsort(np.argsort(X[:, 0] + 0.5 * random.normal(size=60))) * classes // 60
    weights = random.choice([0.0, 0.5, 1.0, 3.0], size=60) if seed % 2 else None
    rows = as_rows(csr(X) if seed % 3 == 0 else X.astype(np.float32) if seed % 3 == 1 else X, 1.3)
    given = {"weights": weights, "intercept": intercept, "C": 10.0 ** random.integers(-1, 3)}
    return make_multinomial_problem(rows, codes.astype(float), classes, Logistic(), **given)


def solved(problem, tol):
    """A fit's weights, and its gap in the C form."""
    found = fit(problem, Multinomial(), Limits(tol, max_epochs=2000))
    return np.column_stack([found.coef, found.intercept / problem.scale]), gap_in_C_form(problem, found.certificate.gap)


@pytest.mark.parametrize(("classes", "intercept"), [(2, "regularized"), (4, "regularized"), (2, "free"), (4, "free")])
def test_no_closer_fit_contradicts_the_softmax_ball(classes, intercept):
    ways, proven_labels = set(), 0
    for seed in range(20):
        problem = posed(seed, classes, intercept)
        optimum, left = solved(problem, 1e-12)
        X = matrix(20, 4, seed + 100)
        truth = np.hstack([X, np.full((20, 1), problem.scale)]) @ optimum.T
        floor = 1.0 if intercept == "regularized" else joint_neighbourhood(problem, optimum, left).curvature.floor
        reach = 2.0 * np.sqrt(2.0 * left / floor) * (2.0 + np.linalg.norm(X, axis=1, keepdims=True)) + 1e-9
        for tol in (1e-1, 1e-3, 1e-8):
            W, gap = solved(problem, tol)
            near = joint_neighbourhood(problem, W, gap)
            parts, seen = near.parts(), truth if classes > 2 else truth[:, 1:] - truth[:, :1]
            low, high = (np.column_stack(one) for one in zip(*(part.score_bounds(X) for part in parts), strict=True))
            assert ((low - reach <= seen) & (seen <= high + reach)).all()
            for part, best in zip(parts, optimum if classes > 2 else [optimum[1] - optimum[0]], strict=True):
                least, most = part.weight_bounds()
                best = best * np.append(np.ones(4), problem.scale)
                assert ((least - reach.max() <= best) & (best <= most + reach.max())).all()
            label, proven = near.labels(X)
            assert (label == truth.argmax(axis=1))[proven].all()
            ways, proven_labels = ways | {parts[0].way}, proven_labels + proven.sum()
    assert ways == {"gap", "curvature"}
    assert proven_labels > 20 * 3 * 20 // 3  # the loosest fits prove little


def test_the_curvature_proves_more_labels_than_the_gap():
    problem = posed(2, 4)
    W, gap = solved(problem, 1e-4)
    near, X = joint_neighbourhood(problem, W, gap), matrix(400, 4, 7)
    plain = JointNeighbourhood(W, np.sqrt(2.0 * gap), problem.scale)
    assert near.curvature.factor is not None
    assert near.labels(X)[1].mean() > plain.labels(X)[1].mean() + 0.05


def test_the_ball_of_a_free_intercept_has_no_end_without_curvature():
    problem = posed(2, 3, "free")
    W, gap = solved(problem, 1e-6)
    W[:, 0] += 1e3  # the gradient is too long for the curvature
    assert not joint_neighbourhood(problem, W, gap).labels(matrix(5, 4, 1))[1].any()


@pytest.mark.parametrize("seed", range(6))
def test_no_eigenvalue_with_free_intercepts_is_below_the_floor(seed):
    problem = posed(seed, 3, "free")
    near = joint_neighbourhood(problem, *solved(problem, 1e-10))
    L = np.tril(near.curvature.factor)
    assert 0.0 < near.curvature.floor <= np.linalg.eigvalsh(L @ L.T)[0]


def test_norms_of_differences_are_those_of_the_exact_second_derivative():
    problem = posed(2)
    W, gap = solved(problem, 1e-10)
    near = joint_neighbourhood(problem, W, gap)
    X = np.hstack([problem.X.values, np.full((60, 1), problem.scale)])
    p = np.exp(X @ W.T)
    p /= p.sum(axis=1, keepdims=True)
    H = np.eye(15)
    for x, q in zip(X, p, strict=True):
        H += problem.C * np.kron(np.diag(q) - np.outer(q, q), np.outer(x, x))
    inverse, unit = np.linalg.inv(H), np.eye(3)
    best = np.arange(60) % 3
    found = norms_apart(near.curvature, problem.X, best, 3)
    for i, k in np.ndindex(60, 3):
        v = np.kron(unit[best[i]] - unit[k], X[i])
        np.testing.assert_allclose(found[i, k] ** 2, v @ inverse @ v, rtol=1e-6)


def test_the_third_derivative_of_the_softmax_is_within_the_range_of_the_direction():
    random = np.random.default_rng(0)
    for _ in range(200):
        p, u, v = random.dirichlet(np.full(4, 0.3)), random.normal(size=4), random.normal(size=4)
        p, u, v = ([Fraction(float(one)) for one in values] for values in (p, u, v))
        total = sum(p)

        def mean(values, p=p, total=total):
            return sum(a * b for a, b in zip(p, values, strict=True)) / total

        squares, middle = [(one - mean(u)) ** 2 for one in u], mean(v)
        third = mean([(one - middle) * two for one, two in zip(v, squares, strict=True)])
        assert abs(third) <= (max(v) - min(v)) * mean(squares)


def test_differences_may_be_known_one_by_one():
    z, away = np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]), np.array([[9.0, 1.5, 0.5], [9.0, 1.5, 1.5]])
    label, proven = label_by_differences(z, away)
    assert (label.tolist(), proven.tolist()) == ([0, 0], [True, False])
