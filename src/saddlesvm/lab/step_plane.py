"""Rows in the plane, and the problem that the solvers of a step view work on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult
from saddlesvm.lab.dataset import Dataset, make_dataset
from saddlesvm.problem.loss import Loss
from saddlesvm.solvers import DCD

OPTIMAL = Limits(tol=1e-10, max_epochs=20_000.0)


@dataclass(frozen=True, eq=False)
class Plane:
    """Rows in the plane and their problem.

    Attributes
    ----------
    X : ndarray of shape (n, 2)
    y : ndarray of shape (n,)
        Labels -1 and +1, or class numbers.
    classes : tuple of str
        The names of the classes.
    problem : Problem
        A problem of one weight vector, of a kernel, or of all classes.
    words : str
        A sentence that says how the data were changed.
    axes : tuple of two str
    optimum : ndarray
        The best weights and, in the last place, the intercept: shape (3,), a row for each class, or (0,) with a kernel.
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


class PlaneRows(NamedTuple):
    """Rows that were drawn and brought into the plane.

    Attributes
    ----------
    chosen : ndarray of int
        Their numbers among all rows.
    X : ndarray of shape (n, 2)
    axes : tuple of two str
        The names of the axes.
    words : str
        How the rows were drawn and changed.
    """

    chosen: np.ndarray
    X: np.ndarray
    axes: tuple[str, str]
    words: str


def plane_rows(X: Any, rows: int, seed: int) -> PlaneRows:
    """At most `rows` random rows of X, in the plane.

    Two features stay as they are; more are standardised and projected on their two principal components.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    rows : int
    seed : int

    Raises
    ------
    ValueError
        The data have fewer than two features.
    """
    n, d = X.shape
    if d < 2:
        raise ValueError(f"the step view needs at least two features; the data have {d}")
    count = min(rows, n)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:count])
    seen = X[chosen].toarray() if sparse.issparse(X) else np.asarray(X[chosen])
    points, axes, done = _in_the_plane(np.asarray(seen, dtype=np.float64))
    few = "all rows" if count == n else f"{count} of {n:,} rows, drawn at random"
    return PlaneRows(chosen, points, axes, f"{few}; {done}")


def linear_plane(data: Dataset, loss: Loss, strength: dict[str, Any], intercept: bool, rows: int, seed: int) -> Plane:
    """The plane of a problem with one weight vector.

    Parameters
    ----------
    data : Dataset
        For classification, with at least two features.
    loss : Loss
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    rows : int
        Most rows to draw, at random.
    seed : int
    """
    drawn = plane_rows(data.X, rows, seed)
    plane = make_dataset(drawn.X, data.y[drawn.chosen], name=data.name)
    problem = plane.problem(loss, intercept=intercept_name(intercept), **strength)
    return made_plane(drawn, plane.y, data.classes, problem, fit(problem, DCD(), OPTIMAL), data.name)


def intercept_name(regularized: bool) -> Any:
    """The name of the intercept of a step view."""
    return "regularized" if regularized else "none"


def made_plane(
    drawn: PlaneRows, y: np.ndarray, classes: tuple[str, ...], problem: Any, best: FitResult, name: str
) -> Plane:
    """The plane of a problem and of its certified optimum."""
    optimum = np.column_stack([np.atleast_2d(best.coef), np.atleast_1d(best.intercept)])
    words = f"{name}: {drawn.words}."
    return Plane(drawn.X, y, classes, problem, words, drawn.axes, optimum, best.certificate.primal)


def _in_the_plane(X: np.ndarray) -> tuple[np.ndarray, tuple[str, str], str]:
    """Two columns, their names, and a sentence on their origin."""
    if X.shape[1] == 2:
        return np.ascontiguousarray(X), ("feature 1", "feature 2"), "the two features as they are"
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    _, _, components = np.linalg.svd(scaled, full_matrices=False)
    words = f"{X.shape[1]} features standardised and projected on their two principal components"
    return np.ascontiguousarray(scaled @ components[:2].T), ("component 1", "component 2"), words
