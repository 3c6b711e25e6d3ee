"""The optimum after rows are left out: no refit contradicts what is proven."""

from __future__ import annotations

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.answers.changed_rows import ChangedRows, bound_margins_left_out
from saddlesvm.answers.vicinity import find_vicinity
from saddlesvm.problem.losses import make_loss
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from support import csr, labels, matrix

N, D = 42, 4
CLASSIFIERS, REGRESSORS = ["logistic", "squared_hinge", "smooth_hinge"], ["squared", "huber"]
INTERCEPTS = ["none", "regularized", "free"]


class Case:
    """A small problem next to its optimum, and refits of its changes."""

    def __init__(self, name, intercept, C=0.4, seed=0, sparse=False):
        self.X = matrix(N, D, seed, density=0.7)
        loss = make_loss(name)
        self.y = labels(self.X, loss, seed)
        kind = LinearSVC if name in CLASSIFIERS else LinearSVR
        options = {"fit_intercept": intercept != "none"}
        if intercept != "none":
            options["intercept"] = intercept
        self.model = kind(loss=name, C=C, tol=1e-10, random_state=0, **options)
        self.scale = {"none": 0.0, "regularized": 1.0, "free": 2.0}[intercept]
        rows = as_rows(csr(self.X) if sparse else self.X, self.scale)
        self.problem = make_problem(rows, self.y, loss, C=C, intercept=intercept)
        rough = kind(loss=name, C=C, tol=1e-3, random_state=0, **options).fit(self.X, self.y)
        w = np.append(rough.coef_, np.ravel(rough.intercept_) / (self.scale or 1.0))
        self.near = find_vicinity(self.problem, w)

    def refit(self, X, y):
        """Scores of all rows by a model of these, and how far they can be from the optimum's."""
        model = self.model.fit(X, y)
        decide = getattr(model, "decision_function", model.predict)
        away = np.sqrt(2.0 * model.certificate_.gap)
        return decide(self.X), 3.0 * away * np.sqrt(
            np.sum(self.X**2, axis=1) + 1.0
        )  # 3: a free intercept is in no ball


@pytest.fixture(params=[(name, kind) for name in CLASSIFIERS + REGRESSORS for kind in INTERCEPTS], ids="-".join)
def case(request):
    return Case(*request.param, sparse=request.param[1] == "free")


def test_no_refit_without_a_row_contradicts_the_bounds(case):
    low, high = bound_margins_left_out(case.near)
    chosen = np.arange(0, N, 3)
    changed = ChangedRows(case.near, chosen)
    own, error = changed.margins(changed.solve())
    for k, i in enumerate(chosen):
        scores, off = case.refit(np.delete(case.X, i, 0), np.delete(case.y, i))
        assert low[i] - off[i] <= scores[i] <= high[i] + off[i]
        assert abs(own[k] - scores[i]) <= error[k] + off[i]
    assert np.isfinite(error).mean() > 0.7  # corners and a free intercept: not where the step is long


def test_the_squared_loss_is_known_in_closed_form():
    case = Case("squared", "regularized")
    low, high = bound_margins_left_out(case.near)
    X = np.hstack([case.X, np.ones((N, 1))])
    for i in range(N):
        kept = np.delete(np.arange(N), i)
        w = np.linalg.solve(np.eye(D + 1) + 0.8 * X[kept].T @ X[kept], 0.8 * X[kept].T @ case.y[kept])
        np.testing.assert_allclose([low[i], high[i]], X[i] @ w, rtol=0, atol=1e-10)


def test_kinked_losses_have_no_vicinity():
    X = matrix(20, 3)
    problem = make_problem(as_rows(X, 0.0), np.where(X[:, 0] > 0, 1.0, -1.0), make_loss("hinge"), C=1.0)
    assert find_vicinity(problem, np.zeros(4)) is None
