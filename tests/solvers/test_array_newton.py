"""Newton's method in array code: its optima, its certificates, and that a first fit compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.penalties import ElasticNet
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.matrix import as_rows
from saddlesvm.runtime.small import Most
from saddlesvm.solvers import equations
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.newton import Newton, suits

INTERCEPTS = ("none", "regularized", "free")
SMOOTH = {
    "logistic": lambda m: np.logaddexp(0.0, -m),
    "squared_hinge": lambda m: np.maximum(0.0, 1.0 - m) ** 2,
}
PLAIN = SMOOTH | {"hinge": lambda m: np.maximum(0.0, 1.0 - m)}


@pytest.fixture
def rows():
    """Rows of both classes, some of them on the wrong side, and weights of which one is zero."""
    random = np.random.default_rng(3)
    X = random.standard_normal((600, 7)) * (random.random((600, 7)) < 0.6)
    y = np.where(X @ random.standard_normal(7) + random.standard_normal(600) + 0.4 > 0.0, 1.0, -1.0)
    weights = random.random(600) * 2.0
    weights[5] = 0.0
    return X, y, weights


def objective(X, y, weights, loss, C, intercept, w, b):
    """The primal objective by its formula."""
    charged = float(w @ w) + (b * b if intercept == "regularized" else 0.0)
    return 0.5 * charged + C * float(weights @ PLAIN[loss](y * (X @ w + b)))


def solve(problem, tol=1e-7, start=None):
    return fit(problem, Newton(), Limits(tol=tol, max_time=30.0), start=start)


def posed(X, y, loss, C, intercept, weights=None, **more):
    bias = 0.0 if intercept == "none" else 1.0
    return make_problem(as_rows(X, bias), y, make_loss(loss), C=C, intercept=intercept, weights=weights, **more)


@pytest.mark.parametrize("C", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", PLAIN)
def test_the_certificate_is_true(rows, loss, intercept, C):
    X, y, weights = rows
    found = solve(posed(X, y, loss, C, intercept, weights))
    assert found.outcome is Outcome.CERTIFIED
    primal = objective(X, y, weights, loss, C, intercept, found.coef, found.intercept)
    assert primal <= found.certificate.primal
    assert primal == pytest.approx(found.certificate.primal, rel=1e-9)
    again = evaluate(posed(X, y, loss, C, intercept, weights), Point(None, found.alpha))
    assert again.certificate.dual <= found.certificate.primal
    assert again.certificate.dual == pytest.approx(found.certificate.dual, rel=1e-6)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_optimum_is_that_of_scipy(rows, loss, intercept):
    X, y, weights = rows
    found = solve(posed(X, y, loss, 0.7, intercept, weights), tol=1e-9)

    def at(v):
        return objective(X, y, weights, loss, 0.7, intercept, v[:-1], v[-1] if intercept != "none" else 0.0)

    best = minimize(at, np.zeros(8), method="BFGS", options={"gtol": 1e-9, "maxiter": 500})
    assert found.certificate.dual <= best.fun * (1.0 + 1e-12)
    assert found.certificate.primal == pytest.approx(best.fun, rel=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
@pytest.mark.parametrize("features", [0, 1000])
def test_equations_by_products_and_by_factors_agree(rows, loss, features, monkeypatch):
    X, y, _ = rows
    monkeypatch.setattr(equations, "FEW_FEATURES", features)
    found = solve(posed(X, y, loss, 2.0, "free"))
    assert found.outcome is Outcome.CERTIFIED
    other = LinearSVC(loss=loss, C=2.0, intercept="free", tol=1e-7, solver="dcd").fit(X, y)
    assert found.certificate.dual <= other.certificate_.primal
    assert other.certificate_.dual <= found.certificate.primal


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8])
def test_narrow_rows_are_certified_in_double_precision(rows, kind):
    X = (rows[0] * 10.0).astype(kind)
    for tol in (1e-3, 1e-7):
        found = solve(posed(X, rows[1], "logistic", 0.01, "regularized"), tol=tol)
        assert found.outcome is Outcome.CERTIFIED
        every = np.ones(600)
        primal = objective(
            X.astype(float), rows[1], every, "logistic", 0.01, "regularized", found.coef, found.intercept
        )
        assert primal == pytest.approx(found.certificate.primal, rel=1e-10)


def test_some_rows_are_a_problem_of_their_own(rows):
    X, y, _ = rows
    members = np.arange(0, 600, 3)
    some = solve(posed(X, y, "hinge", 1.0, "free", members=members))
    alone = solve(posed(X[members], y[members], "hinge", 1.0, "free"))
    assert some.certificate.dual <= alone.certificate.primal
    assert alone.certificate.dual <= some.certificate.primal
    assert not some.alpha[1::3].any()


def test_a_share_of_the_rows_comes_first_where_there_are_many():
    random = np.random.default_rng(0)
    X = random.standard_normal((20_000, 20))
    y = np.where(X[:, 0] + random.standard_normal(20_000) > 0.0, 1.0, -1.0)
    for loss in PLAIN:
        found = solve(posed(X, y, loss, 1.0, "regularized"), tol=1e-5)
        assert found.outcome is Outcome.CERTIFIED
        assert found.rows_touched % 20_000  # visits of a share


@pytest.mark.parametrize("loss", PLAIN)
def test_separable_rows_end_in_a_proof(loss):
    random = np.random.default_rng(1)
    X = random.standard_normal((4_000, 5))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    for C in (1.0, 1e6):
        model = LinearSVC(loss=loss, C=C, tol=1e-5).fit(X, y)
        assert model.outcome_ is Outcome.CERTIFIED


def test_a_start_at_the_optimum_takes_a_pass(rows):
    X, y, _ = rows
    problem = posed(X, y, "logistic", 1.0, "regularized")
    first = solve(problem)
    w = np.append(first.coef, first.intercept)
    again = solve(problem, start=Point(w, first.alpha / problem.C), tol=1e-6)
    assert again.epochs <= 2.0 < first.epochs


def test_a_start_far_out_does_no_harm(rows):
    X, y, _ = rows
    for loss in PLAIN:
        found = solve(posed(X, y, loss, 1.0, "free"), start=Point(np.full(8, 1e4)))
        assert found.outcome is Outcome.CERTIFIED


@pytest.mark.parametrize(
    "loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "huber:delta=1.0", "pinball:tau=0.3"]
)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_regressions(loss, intercept):
    random = np.random.default_rng(4)
    X = random.standard_normal((30_000, 6))
    y = X @ random.standard_normal(6) + 3.0 + random.standard_normal(30_000)
    given = {"fit_intercept": False} if intercept == "none" else {"intercept": intercept}
    model = LinearSVR(loss=loss, C=0.1, tol=1e-6, **given).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    other = LinearSVR(loss=loss, C=0.1, tol=1e-6, solver="dcd", **given).fit(X, y)
    assert model.certificate_.dual <= other.certificate_.primal
    assert other.certificate_.dual <= model.certificate_.primal


def test_other_solvers_go_on_from_its_dual_point_of_all_rows(rows):
    X, y, weights = rows
    problem = posed(X, y, "hinge", 1.0, "free", weights)
    solver = Newton()
    state = solver.step(problem, solver.init(problem, 0), Budget(6000, 1e-6))
    assert state.best.alpha.shape == (600,)
    assert state.best.alpha[5] == 0.0  # its weight is zero
    random = np.random.default_rng(9)
    X = random.standard_normal((6000, 40)) @ random.standard_normal((40, 40))
    X += 100.0 * random.standard_normal((6000, 1))
    y = np.where(X[:, 0] - X[:, 1] > 0.0, 1, -1)
    weights = random.random(6000) * (random.random(6000) < 0.8)
    assert LinearSVC(loss="smooth_hinge", C=100.0).fit(X, y, weights).outcome_ is Outcome.CERTIFIED


def test_it_takes_problems_that_are_its_own_only(rows):
    X, y, _ = rows
    assert suits(posed(X, y, "hinge", 1.0, "free"))
    assert not suits(posed(X, y, "hinge", 1.0, "none", penalty=ElasticNet(0.5)))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 300.0])
def test_the_softmax_is_certified_like_its_plain_formula(intercept, C):
    random = np.random.default_rng(5)
    X = random.standard_normal((700, 6))
    y = np.argmax(X @ random.standard_normal((6, 4)) + random.standard_normal((700, 4)), axis=1)
    weights = random.random(700) + 0.5
    given = {"fit_intercept": False} if intercept == "none" else {"intercept": intercept}
    model = LinearSVC(loss="logistic", multi_class="multinomial", C=C, tol=1e-7, **given).fit(X, y, weights)
    assert model.outcome_ is Outcome.CERTIFIED
    Z = X @ model.coef_.T + model.intercept_
    charged = float((model.coef_**2).sum())
    if intercept == "regularized":
        charged += float((model.intercept_**2).sum())
    losses = logsumexp(Z, axis=1) - Z[np.arange(700), y]
    primal = 0.5 * charged + C * float(weights @ losses)
    assert primal == pytest.approx(model.certificate_.primal, rel=1e-9)

    def at(v):
        W = v.reshape(4, 7)
        b = W[:, -1] * (intercept != "none")
        Z = X @ W[:, :-1].T + b
        P = np.exp(Z - logsumexp(Z, axis=1)[:, None])
        P[np.arange(700), y] -= 1.0
        P *= C * weights[:, None]
        slope = np.hstack([W[:, :-1] + P.T @ X, (P.sum(axis=0) + b * (intercept == "regularized"))[:, None]])
        value = 0.5 * float((W[:, :-1] ** 2).sum()) + 0.5 * float((b**2).sum()) * (intercept == "regularized")
        value += C * float(weights @ (logsumexp(Z, axis=1) - Z[np.arange(700), y]))
        return value, (slope * (np.r_[np.ones(6), float(intercept != "none")])).ravel()

    best = minimize(at, np.zeros(28), jac=True, method="L-BFGS-B", options={"maxiter": 3000, "ftol": 1e-15})
    assert model.certificate_.dual <= best.fun * (1.0 + 1e-12)


def test_products_over_all_rows_go_on_where_no_row_bends():
    random = np.random.default_rng(1072857184)
    X = random.standard_normal((60, 20)) * 1e6
    y = np.argmax(X[:, :4] + 1e5 * random.standard_normal((60, 4)), axis=1)
    model = LinearSVC(loss="logistic", multi_class="multinomial", intercept="free", C=1e30, tol=1e-2, max_iter=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert model.outcome_ is not Outcome.FAILED
    assert np.isfinite(model.coef_).all()


FIRST = """
import os, sys
import numpy as np
from saddlesvm import LinearSVC, LinearSVR
random = np.random.default_rng(0)
X = random.standard_normal((30_000, 50))
y = np.where(X @ random.standard_normal(50) + 5.0 * random.standard_normal(30_000) > 0, 1, -1)
for model in (LinearSVC(), LinearSVC(loss="logistic"), LinearSVC(loss="hinge"), LinearSVC(loss="hinge", C=1e-3),
              LinearSVC(loss="logistic", intercept="free"), LinearSVC(C=50.0).set_params(tol=1e-6)):
    model.fit(X, y)
    assert str(model.outcome_) == "certified", (model, model.outcome_)
    model.predict(X)
LinearSVC().fit(X.astype(np.float32), y)
LinearSVC(loss="logistic", multi_class="multinomial").fit(X[:20_000], y[:20_000] + (X[:20_000, 0] > 1.0))
LinearSVR(C=0.01).fit(X, X @ random.standard_normal(50))
print("numba" in sys.modules, sum(len(files) for _, _, files in os.walk(os.environ["NUMBA_CACHE_DIR"])))
"""


def test_a_first_fit_of_dense_rows_compiles_nothing(tmp_path):
    assert 30_000 * 50 <= Most.dense == 10_000_000
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", FIRST], capture_output=True, text=True, env=environment, timeout=120)
    assert run.stdout.split() == ["False", "0"], run.stderr
