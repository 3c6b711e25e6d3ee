"""Certificates observe: under the rules of its paper a run has the same bits whenever it is certified."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddlesvm import DCD, SDCA, Pegasos
from saddlesvm.fit.outcome import Limits
from saddlesvm.fit.run import Fit
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.losses import Hinge, Logistic, SquaredHinge
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.joint_ascent import JointAscent

NEVER = {"certify_every": 1e9}
SCHEDULES = {
    "as it comes": {},
    "every epoch": {"certify_every": 1.0},
    "odd times": {"certify_every": 0.37, "certify_growth": 0.13},
}
RULES = ("projected_gradient", "weight_change", "both")
ALGORITHMS: dict[str, Any] = {
    "Pegasos": Pegasos(sampling="replacement", output="last"),
    "Pegasos, average": Pegasos(sampling="replacement", output="average"),
    "Pegasos, random": Pegasos(sampling="subset", output="random"),
    "Pegasos, tail average": Pegasos(batch_size=7),
    "Pegasos, projection": Pegasos(batch_size=5, projection=True, sampling="subset", output="last"),
    "SDCA": SDCA(),
    "SDCA, replacement": SDCA("replacement"),
    "SDCA, cyclic, from SGD": SDCA("cyclic", "sgd"),
    "SDCA, average": SDCA("replacement", output="average"),
    "SDCA, random": SDCA(output="random"),
    "SDCA, T steps, average": SDCA("replacement", output="average", iterations=1_001),
    **{
        f"DCD, {rule}, shrinking {shrinking}": DCD(stopping=rule, shrinking=shrinking, threshold=1e-9, run_length=1)
        for rule in RULES
        for shrinking in (True, False)
    },
    "DCD, passes": DCD(stopping="both", threshold=1e-4, max_passes=23),
}


def rough_problem(loss: Any, C: float, dtype: Any) -> Any:
    """Columns of very different scales, as those of heart: gaps stay large for long."""
    random = np.random.default_rng(3)
    y = random.choice([-1.0, 1.0], 120)
    X = random.normal(size=(120, 5)) * np.array([0.1, 1.0, 1.0, 20.0, 100.0]) + 0.3 * y[:, None]
    return make_dataset(X.astype(dtype), y, name="").problem(loss, C, "regularized")


def run(problem: Any, solver: Any, epochs: float, schedule: dict[str, float]) -> Fit:
    """A fit that keeps the last point, ended after so many epochs."""
    limits: Any = Limits(tol=0.0, max_epochs=epochs, keep="last", **schedule)
    fit = Fit(problem, solver, limits, seed=5)
    while fit.end is None:
        fit.step()
        fit.finish_step(stopped=False)
    return fit


def check_same_bits(problem: Any, solver: Any, epochs: float) -> None:
    """Compare the end of a run that was never certified before it with those of other schedules."""
    alone = run(problem, solver, epochs, NEVER)
    assert len(alone.trace) == 1
    for words, schedule in SCHEDULES.items():
        other = run(problem, solver, epochs, schedule)
        assert other.state.rows_touched == alone.state.rows_touched, words
        np.testing.assert_array_equal(other.state.w, alone.state.w, words)
        np.testing.assert_array_equal(other.state.random, alone.state.random, words)
        np.testing.assert_array_equal(other.result().coef, alone.result().coef, words)
        if hasattr(alone.state, "alpha"):
            np.testing.assert_array_equal(other.state.alpha, alone.state.alpha, words)
    assert len(run(problem, solver, epochs, SCHEDULES["odd times"]).trace) > 3


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_run_has_the_same_bits_whenever_it_is_certified(name: str, dtype: Any) -> None:
    for loss, C, epochs in ((Hinge(), 1.0, 40.0), (SquaredHinge(), 10.0, 30.0), (Hinge(), 0.01, 7.5)):
        check_same_bits(rough_problem(loss, C, dtype), ALGORITHMS[name], epochs)


def test_smooth_losses_too() -> None:
    check_same_bits(rough_problem(Logistic(), 1.0, np.float64), SDCA(), 20.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_classes_too(dtype: Any) -> None:
    """Crammer and Singer's machine without shrinking, as published."""
    random = np.random.default_rng(1)
    y = random.integers(0, 4, 90)
    X = (random.normal(size=(90, 4)) * np.array([0.1, 1.0, 10.0, 50.0]) + np.eye(4)[y]).astype(dtype)
    problem = make_joint_problem(as_rows(X), y, 4, Hinge(), C=1.0)
    check_same_bits(problem, JointAscent(shrinking=False), 25.0)
