"""Rows in the plane and their problem, which the step view shows.

Rows of more than two features are projected on their two principal components. The solvers work on
the rows in the plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.data.door import check_design
from saddlesvm.data.label_checks import check_labels
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.kernel_machine import OF_KERNELS
from saddlesvm.kernel.kernel_problem import make_kernel_problem
from saddlesvm.kernel.mercer import Kernel, resolve_gamma
from saddlesvm.lab.dataset import Dataset, make_dataset
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.losses import Loss
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.allowed import check
from saddlesvm.solvers import DCD
from saddlesvm.solvers.crammer_singer import CrammerSinger

if TYPE_CHECKING:
    from saddlesvm.problem.problem import Problem

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


class DrawnRows(NamedTuple):
    """Rows that were drawn at random and brought into the plane.

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


def draw_rows(X: Any, most: int, seed: int) -> DrawnRows:
    """Draw rows of X at random, and bring them into the plane.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    most : int
        Rows at most.
    seed : int

    Raises
    ------
    ValueError
        The data have fewer than two features.
    """
    n, d = X.shape
    if d < 2:
        raise ValueError(f"the step view needs at least two features; the data have {d}")
    count = min(most, n)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:count])
    drawn = X[chosen]
    if sparse.issparse(drawn):
        drawn = drawn.toarray()
    points, axes, change = _project(np.asarray(drawn, dtype=np.float64))
    how_many = "all rows" if count == n else f"{count} of {n:,} rows, drawn at random"
    return DrawnRows(chosen, points, axes, f"{how_many}; {change}")


def _project(X: np.ndarray) -> tuple[np.ndarray, tuple[str, str], str]:
    """Return two columns for the rows, the names of both, and a sentence about their origin."""
    if X.shape[1] == 2:
        return np.ascontiguousarray(X), ("feature 1", "feature 2"), "the two features as they are"
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    # The right singular vectors of centred rows are their principal components.
    _, _, components = np.linalg.svd(scaled, full_matrices=False)
    points = np.ascontiguousarray(scaled @ components[:2].T)
    words = f"{X.shape[1]} features standardised and projected on their two principal components"
    return points, ("component 1", "component 2"), words


def linear_plane(
    data: Dataset, loss: Loss, strength: dict[str, Any], intercept: bool, rows: int, seed: int
) -> Plane:
    """Return the plane of a problem with a single weight vector.

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
        Rows at most, drawn at random.
    seed : int
    """
    drawn = draw_rows(data.X, rows, seed)
    projected = make_dataset(drawn.X, data.y[drawn.chosen], name=data.name)
    problem = projected.problem(loss, intercept=intercept_name(intercept), **strength)
    best = fit(problem, DCD(), OPTIMAL)
    return assemble_plane(drawn, projected.y, data.classes, problem, best, data.name)


def kernel_plane(
    data: Dataset,
    loss: Loss,
    strength: dict[str, Any],
    intercept: bool,
    gamma: Any,
    rows: int,
    seed: int,
) -> Plane:
    """Return the plane of a problem with a Gaussian kernel.

    Parameters
    ----------
    data : Dataset
        For classification, with at least two features.
    loss : Loss
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    gamma : {"scale", "auto"} or float
    rows : int
        Rows at most, drawn at random.
    seed : int

    Raises
    ------
    ValueError
        `gamma` is out of range, or the data have fewer than two features.
    """
    check("gamma", gamma, OF_KERNELS["gamma"])
    drawn = draw_rows(data.X, rows, seed)
    y = data.y[drawn.chosen]
    kernel = Kernel("rbf", resolve_gamma(gamma, drawn.X))
    name = intercept_name(intercept)
    problem: Any
    problem, _ = make_kernel_problem(drawn.X, kernel, y, loss, intercept=name, **strength)
    best = fit(problem, Decomposition(), OPTIMAL)
    return assemble_plane(drawn, y, data.classes, problem, best, data.name)


def classes_plane(
    X: Any,
    y: object,
    loss: Loss,
    strength: dict[str, Any],
    intercept: bool,
    rows: int,
    seed: int,
    name: str,
) -> Plane:
    """Return the plane of the problem of all classes.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        With at least two features.
    y : array-like of shape (n,)
        Two to six classes.
    loss : Loss
        The hinge.
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    rows : int
        Rows at most, drawn at random.
    seed : int
    name : str

    Raises
    ------
    ValueError
        The rows drawn have fewer than two classes, or more than six.
    """
    design = check_design(X).plain
    labels = check_labels(y, design.shape[0])
    drawn = draw_rows(design, rows, seed)
    classes, codes = np.unique(labels[drawn.chosen], return_inverse=True)
    if not 2 <= classes.size <= COLOURS:
        raise ValueError(
            f"the step view of all classes shows 2 to {COLOURS} classes; the rows drawn have "
            f"{classes.size}"
        )
    # Classes become numbers; a virtual feature carries the intercepts.
    problem = make_joint_problem(
        as_rows(np.ascontiguousarray(drawn.X), bias=1.0 if intercept else 0.0),
        codes.astype(np.float64),
        classes.size,
        loss,
        intercept=intercept_name(intercept),
        **strength,
    )
    best = fit(problem, CrammerSinger(), OPTIMAL)
    names = tuple(str(label) for label in classes)
    return assemble_plane(drawn, codes, names, problem, best, name)


def intercept_name(regularized: bool) -> Any:
    """Return the name of the intercept of a step view."""
    return "regularized" if regularized else "none"


def assemble_plane(
    drawn: DrawnRows,
    y: np.ndarray,
    classes: tuple[str, ...],
    problem: Problem,
    best: FitResult,
    name: str,
) -> Plane:
    """Return the plane of a problem and of its certified optimum."""
    optimum = np.column_stack([np.atleast_2d(best.coef), np.atleast_1d(best.intercept)])
    words = f"{name}: {drawn.words}."
    return Plane(drawn.X, y, classes, problem, words, drawn.axes, optimum, best.certificate.primal)
