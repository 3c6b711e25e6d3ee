"""Newton's method over passes where no row bends at first, or few do: the optimum of memory all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, Newton
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.losses import SmoothHinge, SquaredHinge
from saddlesvm.rows.memory_plan import MemoryPlan
from saddlesvm.solvers.newton_on_files import NewtonOnFiles
from support import matrix, named
from support.mapped import mapped, streamed

BLOCKS = MemoryPlan(2**30, np.linspace(0, 400, 13).astype(np.int64), 2, False)


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
@pytest.mark.parametrize("kind", ["regularized", "free"])
@pytest.mark.parametrize("loss", [SmoothHinge(0.5), SquaredHinge()], ids=named)
def test_rows_of_any_size_are_certified(loss: Loss, kind: Any, scale: float, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = matrix(400, 7)
    y = np.where(X @ random.normal(size=7) + random.normal(size=400) > 0.0, 1.0, -1.0)
    file = mapped(X * scale, tmp_path)
    problem = streamed(file, y, loss, plan=BLOCKS, C=1.0, intercept=kind)
    found = fit(problem, NewtonOnFiles(), Limits(tol=1e-5, max_epochs=40))
    assert found.outcome is Outcome.CERTIFIED


@pytest.mark.parametrize("kind, scale", [("regularized", 1.0), ("regularized", 1e3), ("free", 1.0)])
@pytest.mark.parametrize("loss", [SmoothHinge(), SquaredHinge()], ids=named)
def test_separable_rows_are_certified_at_a_huge_C(loss: Loss, kind: Any, scale: float, tmp_path: Path) -> None:
    """Hardly more rows bend than there are features, and a step is far too long along what no row holds."""
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 10)).astype(np.float32)
    y = np.where(X @ random.normal(size=10) > 0.0, 1.0, -1.0)
    blocks = MemoryPlan(2**30, np.linspace(0, 3000, 25).astype(np.int64), 6, False)
    room = {"kept_bytes": 300 * 300}  # for a tenth of the rows
    problem = streamed(mapped(X * np.float32(scale), tmp_path), y, loss, plan=blocks, C=1e6, intercept=kind, **room)
    found = fit(problem, NewtonOnFiles(), Limits(tol=1e-5, max_epochs=80))
    assert found.outcome is Outcome.CERTIFIED


@pytest.mark.parametrize("name", ["squared_hinge", "hinge"])
def test_a_few_huge_rows_do_not_stop_steps_that_a_share_of_the_rows_prepares(name: str) -> None:
    """A share of evenly spaced rows misses most of the huge rows, whose gradients are the largest."""
    random = np.random.default_rng(1)
    X = random.normal(size=(3000, 200))
    y = np.sign(X[:, 0] + 0.7 * random.normal(size=3000))
    X[random.random(3000) < 0.01] *= 1e4
    model = LinearSVC(solver=Newton(), C=1.0, tol=1e-6, loss=name).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.certificate_.relative_gap <= 1e-6
