"""What NumPy does for small problems is what the kernels do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_sums import feasible, weighted

from saddlesvm.problem.loss import Loss, methods_of
from saddlesvm.problem.terms import box_of
from saddlesvm.rows import layouts
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers.machines import ALL, Binary, CompiledBinary
from support import LOSSES_BY_KIND, named

CLOSE: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
losses = pytest.mark.parametrize("loss", LOSSES_BY_KIND, ids=named)


@losses
def test_the_box_has_the_bounds_of_each_row(loss: Loss) -> None:
    y = np.array([-1.0, 1.0, 1.0, -1.0, 1.0])
    for weights in (np.empty(0), np.array([0.5, 3.0, 0.0, 0.0, 1.0])):
        low, high = box_of(loss, y, weights)
        for i, s in enumerate(weights if weights.size else np.ones(5)):
            assert (low[i], high[i]) == (loss.bounds(y[i], s) if s > 0.0 else (0.0, 0.0))


@losses
@pytest.mark.parametrize("q", [0.0, 0.7])
def test_responses_of_newtons_method(loss: Loss, q: float) -> None:
    if methods_of(loss).dual_step is None and q > 0.0:
        pytest.skip("the step is an iteration, which NumPy leaves to the kernels")
    if loss.largest_curvature() == np.inf and q == 0.0:
        pytest.skip("a loss with kinks has a proximal term")
    problem, random = weighted(loss), np.random.default_rng(2)
    _, y, weights = problem.member_terms
    centre = problem.gather(feasible(problem, random))
    z = random.normal(size=y.size)
    found = []
    for kind in (Binary, CompiledBinary):
        alpha, bend, sums = kind(loss, y, weights).answer(ALL, z, centre, q)
        found.append((alpha, bend, *sums))
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other, **CLOSE)


def test_values_that_overflow_in_few_rows_raise_no_warning() -> None:
    X, chosen = as_rows(np.array([[1e200, -1e200], [1e308, 1e308]]), 1.0), np.arange(2)
    with np.errstate(all="raise"):
        for function, *given in (
            (layouts.norms_of, chosen, np.empty(2)),
            (layouts.dot_rows, chosen, np.full(3, 2.0), np.empty(2)),
            (layouts.combine_rows, chosen, np.full(2, 2.0), np.zeros(3)),
        ):
            function(X, *given)
            assert not np.isfinite(given[-1]).all()
