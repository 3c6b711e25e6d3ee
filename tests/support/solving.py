"""How the tests of the solvers run a problem: some epochs, or to a certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Outcome
from saddlesvm.problem.certificate import Point
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.base import Budget

TIGHT = Limits(tol=1e-8, max_epochs=100_000)


def weights_of(result: FitResult) -> np.ndarray:
    return np.append(result.coef, result.intercept)


def run(problem: Problem, solver: Any, epochs: int, seed: int = 0, start: Point | None = None) -> Any:
    """The state after whole epochs, without the fit's loop."""
    state = solver.init(problem, seed, start)
    while state.epochs < epochs - 1e-9:
        state = solver.step(problem, state, Budget(problem.members.size))
    return state


def certified(problem: Problem, solver: Any, limits: Limits = TIGHT) -> FitResult:
    result = fit(problem, solver, limits)
    assert result.outcome is Outcome.CERTIFIED, f"{solver}: {result.message}"
    return result
