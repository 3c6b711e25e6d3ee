"""Rows in a place of one's own, with every solver: a true certificate, or a refusal in words before any work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import support.own_solver  # noqa: F401 (registers a solver)
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.penalties import L1, ElasticNet
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import Dense, as_rows
from saddlesvm.solvers import SOLVERS, Auto, Newton
from saddlesvm.solvers.threaded.descent import ParallelDCD
from support import distance_bound, labels, matrix, named
from support.own_place import PackedProblem, packed

LIMITS = Limits(tol=1e-6, max_epochs=300.0)
EVERY = {**{name: kind() for name, kind in SOLVERS.items()}, "threads": ParallelDCD(2)}
LOSSES = [Hinge(), SquaredHinge(), Logistic(), EpsilonInsensitive(0.2)]
OVER_PASSES = {"auto", "newton"}


def problems(loss: Loss, **options: Any) -> tuple[Problem, PackedProblem]:
    """The same problem over rows in memory, and over compressed blocks."""
    X = matrix(101, 6)
    bias = 0.0 if options["intercept"] == "none" else 1.0
    plain = make_problem(as_rows(X, bias), labels(X, loss), loss, C=0.5, **options)
    assert isinstance(plain.X, Dense)
    passes = packed(plain.X, plain.members)
    return plain, PackedProblem(**vars(plain) | {"X": passes.X, "passes": passes})


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("name", EVERY)
def test_own_rows_are_certified_or_refused_in_words(name: str, loss: Loss, intercept: str) -> None:
    plain, own = problems(loss, intercept=intercept)
    if name not in OVER_PASSES:
        with pytest.raises(ValueError, match=r"(place of their own \(Packed\).*use Newton\(\)|solver 'blocks' reads)"):
            fit(own, EVERY[name], LIMITS)
        return
    result = fit(own, EVERY[name], LIMITS)
    assert result.outcome is Outcome.CERTIFIED, result.message
    w = np.append(result.coef, result.intercept)
    true = evaluate(plain, Point(w, result.alpha), given_offset=True).certificate
    assert true.relative_gap <= 1.01 * LIMITS.tol + 1e-12
    known = fit(plain, EVERY[name], LIMITS)
    away = distance_bound(result.certificate.gap, known.certificate.gap)
    assert np.linalg.norm(result.coef - known.coef) <= away


@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.5)], ids=named)
@pytest.mark.parametrize("name", EVERY)
def test_other_penalties_are_refused_in_words(name: str, penalty: Any) -> None:
    _, own = problems(SquaredHinge(), intercept="regularized", penalty=penalty)
    with pytest.raises(ValueError, match=f"the solver {EVERY[name].name!r} |solver 'blocks'"):
        fit(own, EVERY[name], LIMITS)


@pytest.mark.parametrize("solver", [Newton(), Auto()], ids=repr)
def test_a_checkpoint_tells_rows_of_ones_own_apart(solver: Any, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run")
    _, own = problems(Logistic(), intercept="regularized")
    first = fit(own, solver, LIMITS, checkpoint=checkpoint)
    assert np.array_equal(fit(own, solver, LIMITS, checkpoint=checkpoint).coef, first.coef)
    other = packed(as_rows(2.0 * matrix(101, 6), 1.0), own.members)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="belongs to another fit: rows"):
        fit(replace(own, passes=other), solver, LIMITS, checkpoint=checkpoint)
