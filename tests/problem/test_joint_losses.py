"""The laws of the losses of all scores: conjugates, sub-gradients, feasible points, and certificates made of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.joint_losses import best_rival_losses, best_rival_pulls, softmax_response
from saddlesvm.problem.losses import Hinge, Logistic, SquaredHinge
from saddlesvm.problem.multinomial import evaluation_at, make_multinomial_problem
from saddlesvm.rows.layouts import as_rows
from support.classes import blobs


def softmax_losses(scores, own):
    return softmax_response(scores, own)[1]


LOSSES = [best_rival_losses, softmax_losses]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=["best rival", "softmax"])


def drawn(seed, m=40, K=5):
    random = np.random.default_rng(seed)
    return random, 2.0 * random.normal(size=(m, K)), random.integers(0, K, m)


def pulls_and_conjugates(loss, scores, own):
    """``-Phi'`` of rows, and the conjugates at them, as certificates take them."""
    if loss is softmax_losses:
        pulls, _, entropies = softmax_response(scores, own)
        return pulls, -entropies
    pulls = best_rival_pulls(scores, own)
    return pulls, -pulls[np.arange(own.size), own]


@every_loss
def test_a_joint_loss_is_what_it_says(loss):
    _, scores, own = drawn(0)
    for z, y, found in zip(scores, own, loss(scores, own), strict=True):
        ahead = 1.0 + np.delete(z, y) - z[y]
        of_softmax = np.log(np.exp(z).sum()) - z[y]
        expected = of_softmax if loss is softmax_losses else max(ahead.max(), 0.0)
        assert found == pytest.approx(expected, abs=1e-13)


@every_loss
def test_pulls_are_sub_gradients(loss):
    random, scores, own = drawn(1)
    pulls, _ = pulls_and_conjugates(loss, scores, own)
    here = loss(scores, own)
    np.testing.assert_allclose(pulls.sum(axis=1), 0.0, atol=1e-15)
    for _ in range(20):
        move = random.normal(size=scores.shape)
        assert (loss(scores + move, own) >= here - (pulls * move).sum(axis=1) - 1e-12).all()


def test_the_softmax_has_the_slopes_of_finite_differences():
    random, scores, own = drawn(2)
    move, step = random.normal(size=scores.shape), 1e-6
    ends = softmax_losses(scores + step * move, own), softmax_losses(scores - step * move, own)
    slopes = -(softmax_response(scores, own)[0] * move).sum(axis=1)
    np.testing.assert_allclose((ends[0] - ends[1]) / (2.0 * step), slopes, atol=1e-8)


@every_loss
def test_conjugates_obey_fenchel_and_young(loss):
    _, scores, own = drawn(3)
    pulls, conjugates = pulls_and_conjugates(loss, scores, own)
    touching = loss(scores, own) + conjugates + (pulls * scores).sum(axis=1)
    np.testing.assert_allclose(touching, 0.0, atol=1e-12)
    elsewhere = loss(scores[::-1].copy(), own)
    assert (elsewhere + conjugates + (pulls * scores[::-1]).sum(axis=1) >= -1e-12).all()


def test_feasible_points_prove_no_more_than_is_true():
    random = np.random.default_rng(4)
    X, y = blobs(k=4)
    weights = random.exponential(size=len(y))
    for bias, rows in ((1.0, X), (0.0, sparse.csr_array(X))):
        kind = "regularized" if bias else "none"
        problem = make_joint_problem(as_rows(rows, bias), y, 4, Hinge(), C=0.3, weights=weights, intercept=kind)
        alpha = problem.feasible(-random.exponential(size=(len(y), 4)))
        rivals = np.where(np.arange(4) == y[:, None], 0.0, alpha)
        assert (rivals <= 0.0).all()
        assert (rivals >= -weights[:, None] - 1e-15).all()
        assert (-rivals.sum(axis=1) <= weights * (1.0 + 1e-12)).all()
        W = random.normal(size=(4, X.shape[1] + 1)) * (1.0 if bias else np.append(np.ones(X.shape[1]), 0.0))
        for point in (Point(alpha=alpha), Point(W, alpha), Point(W)):
            assert evaluate(problem, point).certificate.gap >= 0.0


def softmax_objective(X, y, K, C, weights, flat, intercept):
    """Multinomial regression's objective, written without the package's certificate."""
    W = flat.reshape(K, -1)
    z = X @ W[:, : X.shape[1]].T + (W[:, -1] if intercept != "none" else 0.0)
    charged = W if intercept == "regularized" else W[:, : X.shape[1]]
    paid = np.log(np.exp(z - z.max(axis=1)[:, None]).sum(axis=1)) + z.max(axis=1) - z[np.arange(len(y)), y]
    return 0.5 * np.vdot(charged, charged) + C * weights @ paid


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_multinomial_certificates_are_true_and_tight_at_the_optimum(intercept, layout):
    random = np.random.default_rng(5)
    X, y = blobs(k=3)
    weights = random.exponential(size=len(y))
    bias = 0.0 if intercept == "none" else 1.0
    problem = make_multinomial_problem(
        as_rows(layout(X), bias), y, 3, Logistic(), C=0.4, weights=weights, intercept=intercept
    )

    def objective(flat):
        return softmax_objective(X, y, 3, 0.4, weights, flat, intercept)

    shape = (3, X.shape[1] + 1)
    for size in (0.0, 0.1, 1.0, 30.0):
        W = size * random.normal(size=shape)
        if not bias:
            W[:, -1] = 0.0
        found = evaluate(problem, Point(W)).certificate
        assert found.primal == pytest.approx(objective(W.ravel()), rel=1e-9)
        assert found.gap >= 0.0
        assert evaluation_at(problem, W, problem.response(W.T)).certificate == found
    least = minimize(objective, np.zeros(shape[0] * shape[1]), method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
    at_best = evaluate(problem, Point(least.x.reshape(shape))).certificate
    assert at_best.dual <= least.fun
    assert at_best.relative_gap < 1e-4


def test_multinomial_regression_refuses_other_losses():
    X, y = blobs()
    with pytest.raises(ValueError, match="logistic loss"):
        make_multinomial_problem(as_rows(X), y, 3, SquaredHinge(), C=1.0)
    with pytest.raises(ValueError, match="hinge loss"):
        make_joint_problem(as_rows(X), y, 3, SquaredHinge(), C=1.0)


@pytest.mark.parametrize("size", [0.01, 1.0, 30.0])
def test_weights_prove_a_bound_by_the_best_multiple_of_their_dual_point(size):
    """Zero variables prove zero, so that the best multiple proves more."""
    random = np.random.default_rng(8)
    X, y = blobs(k=3)
    W = size * random.normal(size=(3, X.shape[1] + 1))
    softmax_problem = make_multinomial_problem(as_rows(X, 1.0), y, 3, Logistic(), C=0.4, intercept="regularized")
    assert evaluate(softmax_problem, Point(W)).certificate.dual > 0.0
    problem = make_joint_problem(as_rows(X, 1.0), y, 3, Hinge(), C=0.4, intercept="regularized")
    found = evaluate(problem, Point(W))
    assert found.certificate.dual > 0.0
    for share in (0.5, 0.9, 0.99):
        assert evaluate(problem, Point(alpha=share * found.alpha)).certificate.dual <= found.certificate.dual
    free = problem.feasible(random.normal(size=(len(y), 3)))
    rivals = np.where(np.eye(3, dtype=bool)[y], 0.0, free)
    assert rivals.max() == 0.0 and free.sum(axis=1) == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(evaluate(problem, Point(alpha=free)).certificate.dual)
