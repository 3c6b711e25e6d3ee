"""The scene of the step view: a few rows of the data in the plane, and the problem over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.lab.dataset import Dataset, make_dataset
from saddlesvm.problem.losses import Loss
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers import DCD

OPTIMAL = Limits(tol=1e-10, max_epochs=20_000.0)


@dataclass(frozen=True, eq=False)
class Plane:
    """Rows in the plane and their problem.

    Attributes
    ----------
    data : Dataset
        The rows, of shape (n, 2).
    problem : Problem
    words : str
        A sentence that says how the data were changed.
    axes : tuple of two str
    optimum : ndarray of shape (3,)
        The best weights and, in the last place, the intercept.
    lowest : float
        The lowest objective, in the problem's own form.
    """

    data: Dataset
    problem: Problem
    words: str
    axes: tuple[str, str]
    optimum: np.ndarray
    lowest: float


def make_plane(data: Dataset, loss: Loss, strength: dict[str, Any], intercept: bool, rows: int, seed: int) -> Plane:
    """Draw rows, bring them into the plane, and find the optimum.

    Two features stay as they are; more are centred and projected on their two principal components, and the solvers
    work on these.

    Parameters
    ----------
    data : Dataset
        For classification, with two features at least.
    loss : Loss
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    rows : int
        Most rows to draw, at random.
    seed : int
    """
    X, y = data.X, data.y
    n, d = X.shape
    if d < 2:
        raise ValueError(f"the step view needs two features at least; the data have {d}")
    count = min(rows, n)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:count])
    seen = X[chosen].toarray() if sparse.issparse(X) else np.asarray(X[chosen])
    points, axes, done = _in_the_plane(np.asarray(seen, dtype=np.float64))
    few = "all rows" if count == n else f"{count} of {n:,} rows, drawn at random"
    plane = make_dataset(points, y[chosen], name=data.name)
    problem = plane.problem(loss, intercept="regularized" if intercept else "none", **strength)
    best = fit(problem, DCD(), OPTIMAL)
    optimum = np.append(best.coef, best.intercept)
    return Plane(plane, problem, f"{data.name}: {few}; {done}.", axes, optimum, best.certificate.primal)


def _in_the_plane(X: np.ndarray) -> tuple[np.ndarray, tuple[str, str], str]:
    """Two columns, their names, and a sentence on their origin."""
    if X.shape[1] == 2:
        return np.ascontiguousarray(X), ("feature 1", "feature 2"), "the two features as they are"
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    _, _, components = np.linalg.svd(scaled, full_matrices=False)
    words = f"{X.shape[1]} features standardised and projected on their two principal components"
    return np.ascontiguousarray(scaled @ components[:2].T), ("component 1", "component 2"), words


def loss_curve(loss: Any, low: float, high: float, count: int = 81) -> list[list[float]]:
    """The loss of a row as a function of its margin ``y z``, as points."""
    return [[round(float(m), 4), round(float(loss.value(float(m), 1.0)), 5)] for m in np.linspace(low, high, count)]
