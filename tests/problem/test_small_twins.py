"""What NumPy does for small problems is what the kernels do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_sums import feasible, weighted

from saddlesvm.problem.loss import Loss, methods_of
from saddlesvm.problem.terms import box_of
from saddlesvm.rows import layouts
from saddlesvm.rows.layouts import Rows, as_rows
from saddlesvm.solvers import smoothed as kernels
from saddlesvm.solvers.smoothed import Answers, SmoothedTerms
from support import LOSSES_BY_KIND, csr, matrix, named, shuffled

CLOSE: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12}
losses = pytest.mark.parametrize("loss", LOSSES_BY_KIND, ids=named)


def both(function: Any, *arguments: Any, changed: int | None = None) -> tuple[Any, Any]:
    """What the twin and the kernel return, or make of their argument number `changed`."""
    found = []
    for one in (function.twin, function.compiled):
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        answer = one(*given)
        found.append(answer if changed is None else given[changed])
    return found[0], found[1]


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
    _, y, weights, _ = problem.member_terms
    n = y.size
    centre = problem.gather(feasible(problem, random))
    terms = SmoothedTerms(loss, y, weights, problem.C, centre, q, loss.largest_curvature() == np.inf)
    z, dz = random.normal(size=(2, n))
    found = []
    for respond in (kernels.respond.twin, kernels.respond.compiled):  # type: ignore[attr-defined]
        answers = Answers(np.empty(n), np.empty(n), np.zeros(4))
        respond(terms, z, answers)
        found.append(answers)
    for mine, other in zip(*found, strict=True):
        np.testing.assert_allclose(mine, other, **CLOSE)
    for tau in (0.0, 0.3, 2.0):
        np.testing.assert_allclose(*both(kernels.slope_along, terms, z, dz, tau), **CLOSE)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["dense", "csr", "mixed", "csr64"])
def test_work_on_rows(layout: str, dtype: Any) -> None:
    random, dense = np.random.default_rng(3), matrix(30, 7, density=0.5).astype(dtype)
    makers: dict[str, Callable[[], Any]] = {
        "dense": lambda: dense,
        "csr": lambda: csr(dense),
        "mixed": lambda: shuffled(csr(dense)),
        "csr64": lambda: csr(dense, np.int64),
    }
    X: Rows = as_rows(makers[layout](), 0.5)
    chosen = np.flatnonzero(random.random(30) < 0.6)
    c, bend = random.normal(size=chosen.size), random.random(30)
    found = both(kernels.hessian_diagonal, X, chosen, bend, np.zeros(8), changed=3)
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-6)
    if layout != "dense":
        found = both(kernels.add_outer_sparse, X, chosen, c, np.zeros((8, 8)), changed=3)
        np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-6)


def test_values_that_overflow_in_few_rows_raise_no_warning() -> None:
    X, chosen = as_rows(np.array([[1e200, -1e200], [1e308, 1e308]]), 1.0), np.arange(2)
    with np.errstate(all="raise"):
        for function, *given in (
            (layouts.norms_of, chosen, np.empty(2)),
            (layouts.dot_rows, chosen, np.full(3, 2.0), np.empty(2)),
            (layouts.combine_rows, chosen, np.full(2, 2.0), np.zeros(3)),
        ):
            getattr(function, "twin", function)(X, *given)
            assert not np.isfinite(given[-1]).all()
