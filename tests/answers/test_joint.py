"""Where the optimum of multinomial regression lies: no closer fit contradicts it."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm.answers.joint_neighbourhood import joint_neighbourhood
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


@pytest.mark.parametrize("classes", [2, 4])
def test_no_closer_fit_contradicts_the_softmax_ball(classes):
    proven_labels = 0
    for seed in range(20):
        problem = posed(seed, classes)
        optimum, left = solved(problem, 1e-12)
        X = matrix(20, 4, seed + 100)
        truth = np.hstack([X, np.full((20, 1), problem.scale)]) @ optimum.T
        reach = 2.0 * np.sqrt(2.0 * left) * (2.0 + np.linalg.norm(X, axis=1, keepdims=True)) + 1e-9
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
            proven_labels += proven.sum()
    assert proven_labels > 20 * 3 * 20 // 3  # the loosest fits prove little


def test_the_gap_proves_nothing_of_a_free_intercept():
    problem = posed(2, 3, "free")
    W, gap = solved(problem, 1e-6)
    assert not joint_neighbourhood(problem, W, gap).labels(matrix(5, 4, 1))[1].any()


def test_differences_may_be_known_one_by_one():
    z, away = np.array([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]]), np.array([[9.0, 1.5, 0.5], [9.0, 1.5, 1.5]])
    label, proven = label_by_differences(z, away)
    assert (label.tolist(), proven.tolist()) == ([0, 0], [True, False])
