"""A type of rows of one's own: certified by the solvers that take any rows, refused in words by the others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.matrix import as_rows, register_rows
from saddlesvm.solvers import SOLVERS
from support import distance_bound, matrix, named
from support.own_descent import TwoPointDescent
from support.own_rows import Differences, axpy, dot

LIMITS = Limits(tol=1e-6, max_epochs=2000.0)
EVERY = {name: kind() for name, kind in SOLVERS.items()}
ANY_ROWS = {"dcd", "sdca"}
N = 120


class Unknown(NamedTuple):
    """Rows that nobody has registered."""

    values: np.ndarray
    bias: float


def pairs(loss: Loss, bias: float = 0.0) -> tuple[Problem, Problem]:
    """The same ranking problem over differences of rows: those of the type, and an array of them."""
    random = np.random.default_rng(0)
    values, places = matrix(40, 5), random.integers(40, size=(2, N))
    better, worse = places
    y = np.where((values[better] - values[worse])[:, 0] + 0.3 * random.normal(size=N) > 0, 1.0, -1.0)
    kind = "regularized" if bias else "none"
    own: Any = Differences(values, better, worse, bias)
    known = as_rows(values[better] - values[worse], bias)
    return tuple(make_problem(X, y, loss, C=0.5, intercept=kind) for X in (own, known))  # type: ignore[return-value]


@pytest.mark.parametrize("bias", [0.0, 1.0])
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=named)
@pytest.mark.parametrize("name", EVERY)
def test_own_rows_are_certified_or_refused_in_words(name: str, loss: Loss, bias: float) -> None:
    own, known = pairs(loss, bias)
    if name not in ANY_ROWS:
        with pytest.raises(ValueError, match=r"reads Dense or CSR rows; these are rows of type Differences|'blocks'"):
            fit(own, EVERY[name], LIMITS)
        return
    result = fit(own, EVERY[name], LIMITS)
    check(result, known)


def test_a_solver_over_passes_takes_rows_of_any_type() -> None:
    own, known = pairs(Logistic(), 1.0)
    check(fit(own, TwoPointDescent(), LIMITS), known)


def check(result: FitResult, known: Problem) -> None:
    """The certificate is true of an array of the same rows, and the model is near that of a fit to it."""
    assert result.outcome is Outcome.CERTIFIED, result.message
    w = np.append(result.coef, result.intercept)
    true = evaluate(known, Point(w, result.alpha), given_offset=True).certificate
    assert true.relative_gap <= 1.01 * LIMITS.tol
    expected = fit(known, EVERY["dcd"], LIMITS)
    away = distance_bound(result.certificate.gap, expected.certificate.gap)
    assert np.linalg.norm(result.coef - expected.coef) <= away


def test_rows_of_a_type_that_is_not_registered_are_refused_in_words() -> None:
    with pytest.raises(TypeError, match="rows of type Unknown are not known: give Dense or CSR rows"):
        make_problem(Unknown(matrix(6, 2), 0.0), np.ones(6), Hinge(), C=1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="bodies of dot, axpy, squared_norm; squared_norm is missing"):
        register_rows(dot=dot, axpy=axpy)
