"""Small problems are solved in NumPy, to the same certificates, and nothing is compiled for them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.losses import Hinge, Loss, SquaredHinge, traits_of
from saddlesvm.problem.penalties import L1
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.small import Most
from saddlesvm.solvers import DCD, Auto, Columns
from saddlesvm.solvers.small import interior_point
from support import ALL_LOSSES, csr, distance_bound, labels, matrix, named

SHAPES = {"tall": (80, 6), "wide": (25, 60)}
OFTEN = Limits(tol=1e-9)


def problem_of(loss: Loss, shape: str = "tall", intercept: Any = "regularized", layout: str = "dense") -> Problem:
    """A problem over some rows, some of them weighted."""
    X = matrix(*SHAPES[shape])
    random = np.random.default_rng(7)
    rows = as_rows(csr(X) if layout == "csr" else X, 0.0 if intercept == "none" else 0.7)
    members = np.flatnonzero(random.random(len(X)) < 0.9)
    weights = random.choice([0.5, 1.0, 2.0], size=len(X))
    return make_problem(rows, labels(X, loss), loss, C=3.0, weights=weights, members=members, intercept=intercept)


@pytest.mark.parametrize("loss", ALL_LOSSES, ids=named)
@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("shape", list(SHAPES))
def test_every_loss_is_certified(loss: Loss, intercept: Any, shape: str) -> None:
    found = [fit(problem_of(loss, shape, intercept, layout), Auto(), OFTEN) for layout in ("dense", "csr")]
    for one in found:
        assert one.outcome is Outcome.CERTIFIED
        assert set(one.phases) <= {"dense Newton", "interior point"}
    apart = np.linalg.norm(found[0].coef - found[1].coef)
    assert apart <= distance_bound(*(one.certificate.gap for one in found))


@pytest.mark.parametrize("loss", [SquaredHinge(), Hinge()], ids=named)
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_optimum_is_that_of_coordinate_descent(loss: Loss, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    X = matrix(80, 6) * np.array([1.0, scale, 1.0, 1.0, 1.0, 1.0])
    problem = make_problem(as_rows(X, 1.0), labels(X, loss), loss, C=0.1 / scale, intercept="regularized")
    mine = fit(problem, Auto(), Limits(tol=1e-8))
    with monkeypatch.context() as other:
        other.setattr(Most, "values", -1)
        again = make_problem(as_rows(X, 1.0), problem.y, loss, C=problem.C, intercept="regularized")
        theirs = fit(again, Auto(), Limits(tol=1e-8))
    assert mine.outcome is theirs.outcome is Outcome.CERTIFIED
    assert not set(mine.phases) & set(theirs.phases)
    apart = np.linalg.norm(mine.coef - theirs.coef)
    assert apart <= distance_bound(mine.certificate.gap, theirs.certificate.gap)


@pytest.mark.parametrize("loss", [one for one in ALL_LOSSES if traits_of(one).parabolic], ids=named)
@pytest.mark.parametrize("intercept", ["none", "regularized"])
@pytest.mark.parametrize("C", [0.03, 1.0])
def test_few_weights_are_those_of_the_column_solver(loss: Loss, intercept: Any, C: float) -> None:
    problem = replace(problem_of(loss, intercept=intercept), penalty=L1(1.5), C=C)
    steep = fit(replace(problem, C=100.0 * C), Auto(), Limits(tol=1e-8))
    mine, theirs = (fit(problem, solver, Limits(tol=1e-9)) for solver in (Auto(), Columns()))
    assert set(mine.phases) == set(steep.phases) == {"interior point"} and steep.outcome is Outcome.CERTIFIED
    assert mine.outcome is theirs.outcome is Outcome.CERTIFIED
    assert mine.certificate.dual <= theirs.certificate.primal and theirs.certificate.dual <= mine.certificate.primal
    size = np.abs(theirs.coef).max()
    assert mine.coef == pytest.approx(theirs.coef, abs=1e-3 * size)
    assert np.array_equal(mine.coef == 0.0, theirs.coef == 0.0)


def test_the_column_solver_goes_on_where_the_steps_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interior_point, "MOST_STEPS", 3)
    found = fit(replace(problem_of(SquaredHinge()), penalty=L1(1.0)), Auto(), OFTEN)
    assert found.outcome is Outcome.CERTIFIED
    assert "columns" in found.phases


def test_few_dual_variables_are_within_their_bounds() -> None:
    found = fit(problem_of(Hinge()), Auto(), OFTEN)
    size = np.abs(found.alpha) / np.maximum(problem_of(Hinge()).weights, 1e-9)
    assert np.count_nonzero((size > 0.0) & (size < 1.0)) <= SHAPES["tall"][1] + 1


@pytest.mark.parametrize("loss", [SquaredHinge(), Hinge()], ids=named)
def test_limits_are_kept_and_the_best_model_is_returned(loss: Loss) -> None:
    short = fit(problem_of(loss), Auto(), Limits(tol=1e-9, max_epochs=2))
    longer = fit(problem_of(loss), Auto(), OFTEN)
    assert short.outcome is Outcome.EPOCH_LIMIT and short.epochs == 2
    assert longer.certificate.primal <= short.certificate.primal
    assert short.certificate.dual <= longer.certificate.primal
    endless = fit(problem_of(loss), Auto(), Limits(tol=0.0, max_epochs=90))
    assert endless.outcome is Outcome.EPOCH_LIMIT and endless.certificate.sound


def test_a_solver_that_is_asked_for_is_taken() -> None:
    assert set(fit(problem_of(SquaredHinge()), DCD(), Limits(tol=1e-3)).phases) == {"dcd"}


FIRST = """
import sys
import numpy as np
from scipy import sparse
from saddlesvm import LinearSVC, LinearSVR
X = np.random.default_rng(0).normal(size=(120, 5))
y = X[:, 0] > 0.2 * X[:, 1] ** 2
for rows in (X, X.astype(np.float32), sparse.csr_matrix(X)):
    for loss in ("squared_hinge", "hinge", "logistic"):
        assert LinearSVC(loss=loss, random_state=0).fit(rows, y).score(rows, y) > 0.8
    LinearSVC(random_state=0, multi_class="ovo", intercept="free").fit(rows, (3 * X[:, 0]).round().clip(-1, 1))
    LinearSVR(random_state=0).fit(rows, X[:, 0] - X[:, 2])
print([name for name in ("numba", "llvmlite") if name in sys.modules])
"""


def test_small_fits_need_no_compiler(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    told = subprocess.run([sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
