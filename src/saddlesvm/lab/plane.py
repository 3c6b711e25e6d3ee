"""Rows in the plane and their problem, which the step view shows.

Rows of more than two features are projected on their two principal components. The solvers work on
the rows in the plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.problem.losses import Loss
from saddlesvm.solvers import DCD

OPTIMAL = Limits(tol=1e-10, max_epochs=20_000.0)  # of the fit whose optimum the page shows


@dataclass(frozen=True, eq=False)
class Plane:
    """Rows in the plane and their problem.

    Attributes
    ----------
    X : ndarray of shape (n, 2)
    y : ndarray of shape (n,)
        Labels -1 and +1.
    classes : tuple of str
        The names of the classes.
    problem : Problem
    words : str
        A sentence that says how the data were changed.
    axes : tuple of two str
    optimum : ndarray
        The best weights and, in the last place, the intercept, shape (3,).
    lowest : float
        The lowest objective, in the problem's own form.
    """

    X: np.ndarray
    y: np.ndarray
    classes: tuple[str, ...]
    problem: Any
    words: str
    axes: tuple[str, str]
    optimum: np.ndarray
    lowest: float


def make_plane(
    X: Any,
    y: object,
    loss: Loss,
    *,
    strength: dict[str, Any],
    intercept: bool,
    rows: int,
    seed: int,
    positive: object,
    name: str,
) -> Plane:
    """Return the plane of a problem, and its certified optimum.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        With at least two features.
    y : array-like of shape (n,)
    loss : Loss
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    rows : int
        Rows at most, drawn at random.
    seed : int
    positive : label or None
        The class that is compared with the rest.
    name : str

    Raises
    ------
    ValueError
        The data have fewer than two features, or more than two classes without `positive`.
    """
    data = make_dataset(X, y, name=name, positive=positive)
    chosen = draw_rows(data.X, rows, seed)
    points, axes, change = project(data.X, chosen)
    codes = data.y[chosen]
    kind: Any = "regularized" if intercept else "none"
    problem = make_dataset(points, codes).problem(loss, intercept=kind, **strength)
    best = fit(problem, DCD(), OPTIMAL)
    n = data.X.shape[0]
    how_many = "all rows" if chosen.size == n else f"{chosen.size} of {n:,} rows, drawn at random"
    words = f"{name}: {how_many}; {change}."
    optimum = np.append(best.coef, best.intercept)
    return Plane(
        points, codes, data.classes, problem, words, axes, optimum, best.certificate.primal
    )


def draw_rows(X: Any, most: int, seed: int) -> np.ndarray:
    """Return the numbers of some rows of X, drawn at random, in order."""
    n, d = X.shape
    if d < 2:
        raise ValueError(f"the step view needs at least two features; the data have {d}")
    return np.sort(np.random.default_rng(seed).permutation(n)[: min(most, n)])


def project(X: Any, chosen: np.ndarray) -> tuple[np.ndarray, tuple[str, str], str]:
    """Return two columns for some rows, the names of both, and a sentence about their origin."""
    drawn = X[chosen]
    if sparse.issparse(drawn):
        drawn = drawn.toarray()
    points = np.ascontiguousarray(drawn, dtype=np.float64)
    if points.shape[1] == 2:
        return points, ("feature 1", "feature 2"), "the two features as they are"
    scaled = StandardScaler().fit_transform(points)
    projected = PCA(2, svd_solver="full").fit_transform(scaled)
    words = (
        f"{points.shape[1]} features standardised and projected on their two principal components"
    )
    return np.ascontiguousarray(projected), ("component 1", "component 2"), words
