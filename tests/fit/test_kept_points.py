"""The dual point that a fit returns is the one that proves its bound."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm.fit.outcome import Limits
from saddlesvm.fit.points import Points
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from support import matrix


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
def test_a_bound_keeps_its_point_while_the_solver_goes_on(intercept: str) -> None:
    X = matrix(30, 4, seed=3)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    problem = make_problem(as_rows(X, 0.0 if intercept == "none" else 1.0), y, Hinge(), C=1.0, intercept=intercept)
    run = Points(problem, Limits(1e-3))
    alpha = 0.1 * y / np.where(y > 0.0, (y > 0.0).mean(), (y < 0.0).mean())
    run.keep(evaluate(problem, Point(alpha=alpha)))
    alpha[:] = 0.0  # where the solver went
    run.keep(evaluate(problem, Point(alpha=alpha)))
    proven = run.highest
    assert proven.certificate.dual > 0.0
    assert evaluate(problem, Point(alpha=proven.alpha)).certificate.dual == proven.certificate.dual
