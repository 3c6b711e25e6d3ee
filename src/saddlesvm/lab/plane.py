"""Rows in the plane and their problem, which the step view shows.

Rows of more than two features are projected on their two principal components. The solvers work on
the rows in the plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data.door import check_design
from saddlesvm.data.label_checks import check_labels
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.kernel_machine import OF_KERNELS
from saddlesvm.kernel.kernel_problem import make_kernel_problem
from saddlesvm.kernel.mercer import Kernel, resolve_gamma
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.losses import Loss
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.allowed import check
from saddlesvm.solvers import DCD
from saddlesvm.solvers.crammer_singer import CrammerSinger

OPTIMAL = Limits(tol=1e-10, max_epochs=20_000.0)  # of the fit whose optimum the page shows
COLOURS = 6  # classes that the page can tell apart


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
        A problem of a single weight vector, of a kernel, or of all classes.
    words : str
        A sentence that says how the data were changed.
    axes : tuple of two str
    optimum : ndarray
        The best weights and, in the last place, the intercept: shape (3,), a row for each class, or
        (0,) with a kernel.
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
    kind: str,
    X: Any,
    y: object,
    loss: Loss,
    *,
    strength: dict[str, Any],
    intercept: bool,
    gamma: Any,
    rows: int,
    seed: int,
    positive: object,
    name: str,
) -> Plane:
    """Return the plane of a problem, and its certified optimum.

    Parameters
    ----------
    kind : {"linear", "kernel", "classes"}
        A single weight vector, a Gaussian kernel, or all classes at once.
    X : array-like or sparse matrix of shape (n, d)
        With at least two features.
    y : array-like of shape (n,)
    loss : Loss
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    gamma : {"scale", "auto"} or float
        Parameter of the kernel.
    rows : int
        Rows at most, drawn at random.
    seed : int
    positive : label or None
        The class that is compared with the rest.
    name : str

    Raises
    ------
    ValueError
        The data have fewer than two features, too few or too many classes, or `gamma` is out of
        range.
    """
    options: dict[str, Any] = {"intercept": "regularized" if intercept else "none", **strength}
    if kind == "classes":
        design = check_design(X).plain
        chosen = draw_rows(design, rows, seed)
        points, axes, change = project(design, chosen)
        labels = check_labels(y, design.shape[0])[chosen]
        names, classes = np.unique(labels, return_inverse=True)
        if not 2 <= names.size <= COLOURS:
            raise ValueError(
                f"the step view of all classes shows 2 to {COLOURS} classes; the rows drawn have "
                f"{names.size}"
            )
        # Classes become numbers; a virtual feature carries the intercepts.
        lifted = as_rows(points, bias=1.0 if intercept else 0.0)
        codes = classes.astype(np.float64)
        problem: Any = make_joint_problem(lifted, codes, names.size, loss, **options)
        solver: Any = CrammerSinger()
    else:
        data = make_dataset(X, y, name=name, positive=positive)
        design = data.X
        chosen = draw_rows(design, rows, seed)
        points, axes, change = project(design, chosen)
        classes = data.y[chosen]
        names = np.array(data.classes)
        if kind == "linear":
            problem = make_dataset(points, classes).problem(loss, **options)
            solver = DCD()
        else:
            check("gamma", gamma, OF_KERNELS["gamma"])
            kernel = Kernel("rbf", resolve_gamma(gamma, points))
            problem, _ = make_kernel_problem(points, kernel, classes, loss, **options)
            solver = Decomposition()
    best = fit(problem, solver, OPTIMAL)
    optimum = np.column_stack([np.atleast_2d(best.coef), np.atleast_1d(best.intercept)])
    n = design.shape[0]
    how_many = "all rows" if chosen.size == n else f"{chosen.size} of {n:,} rows, drawn at random"
    words = f"{name}: {how_many}; {change}."
    lowest = best.certificate.primal
    return Plane(points, classes, tuple(map(str, names)), problem, words, axes, optimum, lowest)


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
    spread = points.std(axis=0)
    scaled = (points - points.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    # The right singular vectors of centred rows are their principal components.
    _, _, components = np.linalg.svd(scaled, full_matrices=False)
    words = (
        f"{points.shape[1]} features standardised and projected on their two principal components"
    )
    projected = np.ascontiguousarray(scaled @ components[:2].T)
    return projected, ("component 1", "component 2"), words
