"""A fit that ends early returns a model that no number makes better: neither zero, nor a multiple of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.kernel_pegasos import KernelPegasos
from saddlesvm.kernel.kernel_problem import make_kernel_problem
from saddlesvm.kernel.kernel_sums import half_norm
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.problem.certificate import KernelPoint, Point, evaluate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.penalties import ElasticNet
from saddlesvm.problem.problem import make_problem
from saddlesvm.problem.rescaling import GAIN, PRECISION, improve
from saddlesvm.problem.sums import loss_sums
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, SDCA, Newton, Pegasos
from saddlesvm.solvers.auto import Auto
from saddlesvm.solvers.crammer_singer import CrammerSinger

FACTORS = (0.0, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.99, 1.01, 1.1, 2.0, 10.0, 1e3)
SLACK = 1.0 + 10.0 * (PRECISION + GAIN)
IN_TURN = 1.001  # a free intercept and the factor are searched in turn, a few times
EARLY = Limits(tol=1e-12, max_epochs=0.05)


def hostile(n: int = 200, d: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose features differ by powers of ten, and labels -1 and +1, mostly +1."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * 10.0 ** random.uniform(0, 4, d)
    return X, np.where(X[:, 0] + 3.0 * random.normal(size=n) > -2.0, 1.0, -1.0)


def multiples(problem: Any, result: Any) -> list[Any]:
    """Certificates of multiples of a linear model with the intercept that it has, and of zero with the best one."""
    w, last = np.append(result.coef, result.intercept / (problem.scale or 1.0)), problem.intercept.constrained
    points = [factor * w for factor in FACTORS]
    for point in points:
        point[-1] = w[-1] if last else point[-1]
    made = [evaluate(problem, Point(w=point), given_offset=True).certificate for point in points]
    return [*made, evaluate(problem, Point(w=0.0 * w)).certificate]


@pytest.mark.parametrize("kind", ["none", "regularized", "free"])
@pytest.mark.parametrize("solver", [SDCA(), DCD(), Pegasos(), Auto()], ids=repr)
@pytest.mark.parametrize("name", ["hinge", "logistic", "squared", "absolute"])
def test_no_multiple_of_a_model_is_better(name: str, solver: Any, kind: Any) -> None:
    X, y = hostile()
    rows = as_rows(X, 0.0 if kind == "none" else 1.0)
    problem = make_problem(rows, y, make_loss(name), C=10.0, intercept=kind)
    result = fit(problem, solver, EARLY)
    assert result.certificate.sound
    assert result.outcome is not Outcome.CERTIFIED or isinstance(solver, Auto)  # it solves small problems in one step
    for other in multiples(problem, result):
        assert result.certificate.primal <= other.primal * (IN_TURN if kind == "free" else SLACK)


def test_an_elastic_net_is_no_exception() -> None:
    X, y = hostile()
    options: dict[str, Any] = {"lam": 1e-4, "penalty": ElasticNet(0.3), "intercept": "regularized"}
    problem = make_problem(as_rows(X, 1.0), y, make_loss("hinge"), **options)
    result = fit(problem, SDCA(), EARLY)
    for other in multiples(problem, result):
        assert result.certificate.primal <= other.primal * SLACK


@pytest.mark.parametrize("kind", ["none", "regularized"])
def test_neither_are_joint_machines(kind: Any) -> None:
    X, y = hostile()
    codes = (y > 0) + (X[:, 1] > 0).astype(np.float64)
    problem = make_joint_problem(
        as_rows(X, float(kind != "none")), codes, 3, make_loss("hinge"), C=10.0, intercept=kind
    )
    result = fit(problem, CrammerSinger(), EARLY)
    W = np.column_stack([result.coef, np.broadcast_to(result.intercept, 3)])
    for factor in FACTORS:
        other = evaluate(problem, Point(w=factor * W)).certificate
        assert result.certificate.primal <= other.primal * SLACK


@pytest.mark.parametrize("kind", ["none", "regularized", "free"])
@pytest.mark.parametrize("solver", [Decomposition(), KernelPegasos()], ids=repr)
def test_neither_are_kernels(solver: Any, kind: Any) -> None:
    X, y = hostile(60)
    problem, _ = make_kernel_problem(
        X, Kernel("poly", gamma=1.0, degree=2), y, make_loss("hinge"), C=10.0, intercept=kind
    )
    result = fit(problem, solver, EARLY)
    assert result.outcome is not Outcome.CERTIFIED and result.certificate.sound
    zero = evaluate(problem, KernelPoint(np.zeros(60))).certificate
    assert result.certificate.primal <= zero.primal * SLACK
    offset = result.intercept if kind == "free" else 0.0
    f, nothing, (low, high) = problem.margins(result.coef), np.zeros(60), problem.box()
    dual = isinstance(solver, Decomposition)
    assert not dual or ((result.coef >= low) & (result.coef <= high)).all()
    for factor in FACTORS:
        if dual and (factor * result.coef > high * SLACK).any():
            continue  # not a point of the dual
        paid = loss_sums(problem.terms, problem.members, factor * f, offset, nothing)[0]
        primal = problem.C * paid + factor * factor * half_norm(result.coef, f)
        assert result.certificate.primal <= primal * SLACK


def test_the_intercept_alone_is_better_than_nothing() -> None:
    X, y = hostile()
    y[y < 0][:20] = 1.0
    problem = make_problem(as_rows(1e6 * X, 1.0), y, make_loss("hinge"), C=1e-3, intercept="regularized")
    point = improve(problem, None)
    found = evaluate(problem, point).certificate
    for last in np.linspace(-2.0, 2.0, 81):
        w = np.zeros(X.shape[1] + 1)
        w[-1] = last
        assert found.primal <= evaluate(problem, Point(w=w)).certificate.primal * SLACK


def test_an_optimum_is_left_alone() -> None:
    X, y = hostile()
    problem = make_problem(as_rows(X / X.std(axis=0)), y, make_loss("logistic"), C=1.0)
    result = fit(problem, Newton(), Limits(tol=1e-12))
    w = np.append(result.coef, 0.0)
    assert improve(problem, evaluate(problem, Point(w=w, alpha=result.alpha))) is None


@pytest.mark.parametrize("kind", ["none", "regularized", "free"])
@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "smooth_hinge"])
def test_a_model_without_loss_is_not_limited_by_the_rounding_of_its_margins(name: str, kind: Any) -> None:
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 60)), np.where(random.normal(size=40) > 0, 1.0, -1.0)
    problem = make_problem(as_rows(X, 0.0 if kind == "none" else 1.0), y, make_loss(name), C=1e12, intercept=kind)
    result = fit(problem, Auto(), Limits(tol=1e-7))
    assert result.outcome is Outcome.CERTIFIED
