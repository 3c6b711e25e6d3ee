"""The bounds of the papers: their formulas, their conditions, and that they hold on data."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

from saddlesvm.data import load_bundled
from saddlesvm.lab import bounds
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.problem.losses import Hinge


def test_bounds_follow_their_formulas():
    R, lam, T, delta = 2.0, 0.01, 1000.0, 0.1
    assert bounds.gradient_constant(R, lam) == 16.0
    assert bounds.gradient_constant(R, lam, projection=True) == pytest.approx(2.1**2)
    assert bounds.rate(lam, T) == pytest.approx(np.log(1000.0) / 10.0)
    average = bounds.average_iterate_bound(R, lam, T, delta)
    assert average == pytest.approx(21 * 16 * np.log(1e4) / 10.0)
    assert bounds.random_iterate_bound(R, lam, T, delta) == pytest.approx(2 * average)
    assert bounds.deterministic_regret_bound(R, lam, T) < average


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, 0.1, 10, 0.1), "R >= 1"),
        ((1, 0.3, 10, 0.1), "1/4"),
        ((1, 0.1, 2, 0.1), "T must"),
        ((1, 0.1, 10, 1.0), "delta"),
    ],
)
def test_bounds_name_the_condition_that_is_not_met(arguments, message):
    with pytest.raises(ValueError, match=message):
        bounds.average_iterate_bound(*arguments)


def test_bounds_hold_on_data():
    from saddlesvm.fit.loop import fit
    from saddlesvm.fit.outcome import Limits
    from saddlesvm.lab.runs import iterates
    from saddlesvm.problem.certificate import Point, evaluate
    from saddlesvm.solvers import DCD, Pegasos

    table = load_bundled("toy")
    data, lam = make_dataset(table.X[::8], table.y[::8]), 0.1
    problem = data.problem(Hinge(), lam=lam)
    R = float(np.sqrt(problem.norms.max()))
    bound = fit(problem, DCD(), Limits(tol=1e-6)).certificate.dual
    solver = Pegasos(sampling="replacement", output="average")
    for state, point in iterates(problem, solver, [0.2, 1.0, 8.0]):
        above = evaluate(problem, Point(point.w)).certificate.primal - bound
        assert above <= bounds.average_iterate_bound(R, lam, state.iteration, 0.05)
