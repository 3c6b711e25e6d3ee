"""Over files, every solver ends at the optimum in memory, at any loss, intercept and C; its proof holds there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Certificate, Point, evaluate
from saddlesvm.problem.loss import Loss, is_smooth
from saddlesvm.problem.losses import Hinge, Logistic
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import MemoryPlan
from saddlesvm.solvers import DCD, Blocks
from saddlesvm.solvers.newton_on_files import NewtonOnFiles
from support import ALL_LOSSES, labels, matrix, named
from support.mapped import D, N, close_enough, mapped, mapped_csr, streamed

SMOOTH = [loss for loss in ALL_LOSSES if is_smooth(loss)]
KINKED = [loss for loss in ALL_LOSSES if not is_smooth(loss)]
INTERCEPTS = ("none", "regularized", "free")
UNEQUAL = {"plan": MemoryPlan(2**30, np.array([0, 90, 130, 260, 300, N]), 2, False)}
NARROW = UNEQUAL | {"kept_bytes": 400 * 90}  # with room for about 90 rows


@dataclass(frozen=True)
class Way:
    """A solver over files, its losses, the gap it proves, its epochs at most, and values of C."""

    solver: Any
    losses: Sequence[Loss]
    tol: float
    epochs: float
    Cs: Sequence[float] = (0.5,)
    sparse: bool = False
    options: dict[str, Any] = field(default_factory=dict)


WAYS = {
    "newton": Way(NewtonOnFiles(), SMOOTH, 1e-7, 20, options=UNEQUAL),
    "newton, sparse rows": Way(NewtonOnFiles(), SMOOTH, 1e-7, 20, sparse=True, options=UNEQUAL),
    "active set": Way(NewtonOnFiles(), KINKED, 1e-6, 60, (0.01, 1.0, 1e3), options=NARROW),
}
ALL = [
    *((name, *one) for name, way in WAYS.items() for one in itertools.product(way.losses, INTERCEPTS, way.Cs)),
    *(("blocks", loss, kind, 0.05) for loss, kind in zip(ALL_LOSSES, itertools.cycle(INTERCEPTS), strict=False)),
]
WAYS["blocks"] = Way(Blocks(), ALL_LOSSES, 1e-4, np.inf)


def proven_again(plain: Any, found: Any) -> Certificate:
    """What a model and its dual variables prove in memory."""
    return evaluate(
        plain, Point(np.append(found.coef, found.intercept / (plain.scale or 1.0)), found.alpha)
    ).certificate


@pytest.mark.parametrize(
    ("name", "loss", "intercept", "C"), ALL, ids=lambda one: named(one) if isinstance(one, tuple) else None
)
def test_every_loss_ends_at_the_optimum_in_memory(
    name: str, loss: Loss, intercept: Any, C: float, tmp_path: Path
) -> None:
    way, X = WAYS[name], matrix(N, D)
    y, s = labels(X, loss), np.where(np.arange(N) % 5 == 0, 0.0, 1.0 + np.arange(N) % 3)
    posed: dict[str, Any] = {"intercept": intercept, "weights": s, "C": C}
    problem = streamed((mapped_csr if way.sparse else mapped)(X, tmp_path), y, loss, **posed, **way.options)
    found = fit(problem, way.solver, Limits(tol=way.tol, max_epochs=way.epochs))
    plain = make_problem(as_rows(X, problem.scale), y, loss, **posed)
    assert found.outcome is Outcome.CERTIFIED
    again = proven_again(plain, found)
    assert again.relative_gap <= 1.01 * way.tol
    assert again.dual >= found.certificate.dual - 1e-9 * abs(again.dual)
    if C <= 1.0:
        best = fit(plain, DCD(), Limits(tol=min(way.tol, 1e-6)))
        assert best.outcome is Outcome.CERTIFIED
        assert close_enough(found, best)
        assert found.certificate.dual <= best.certificate.primal
        assert found.certificate.primal >= best.certificate.dual


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize(
    ("loss", "least", "epochs", "options"), [(Logistic(), -3, 30, UNEQUAL), (Hinge(), -2, 60, NARROW)], ids=named
)
def test_a_large_C_ends_at_the_optimum_in_any_precision(
    loss: Loss, least: int, epochs: int, options: dict[str, Any], layout: str, dtype: Any, tmp_path: Path
) -> None:
    X = (matrix(N, D, density=0.8) * np.logspace(0, least, D)).astype(dtype)
    y = labels(X, loss)
    file = mapped(X, tmp_path) if layout == "dense" else mapped_csr(X, tmp_path)
    problem = streamed(file, y, loss, intercept="regularized", C=1e3, **options)
    found = fit(problem, NewtonOnFiles(), Limits(tol=1e-6, max_epochs=epochs))
    assert found.outcome is Outcome.CERTIFIED
    plain = make_problem(as_rows(X, 1.0), y, loss, C=1e3, intercept="regularized")
    assert proven_again(plain, found).relative_gap <= 1.01e-6
