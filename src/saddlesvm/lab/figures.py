"""Every figure of the lab: functions that return charts, whose ``draw(ax)`` draws on matplotlib
axes and returns them.

Without axes a figure of its own is made, which :func:`save` writes as PNG or SVG.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import confusion_matrix

from saddlesvm.lab.charts import Chart, Grid, Series, Shade, new_axes, plain, save
from saddlesvm.lab.curves import closing_chart, curve_chart, strength_chart
from saddlesvm.lab.runs import iterates
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.dcd import DCD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "closing_chart",
    "confusion_grid",
    "curve_chart",
    "margins_chart",
    "misclassified",
    "plane_chart",
    "points_chart",
    "save",
    "shrinking_charts",
    "strength_chart",
]

# square points: areas of active rows, and of rows set aside
BIG = 26.0
SMALL = 4.0
CLASS_STYLES = (0, 1)
NAMES = ("class -1", "class +1")
GRID = 60  # places of a heat map along an axis
BINS = 60  # bars of a histogram


def confusion_grid(
    y: np.ndarray, predicted: np.ndarray, labels: Sequence[Any], title: str = "Confusion matrix"
) -> Grid:
    """The confusion matrix: true classes down, predicted ones across.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
    labels : sequence
        All classes, in the order to show them.
    title : str
    """
    counts = confusion_matrix(y, predicted, labels=labels)
    words = tuple(str(label) for label in labels)
    wrong = int(counts.sum() - np.trace(counts))
    caption = (
        f"{wrong:,} of {counts.sum():,} rows are not on the diagonal; colour is the share "
        "of each true class."
    )
    return Grid(title, "predicted", "true", counts, words, words, caption)


def misclassified(
    X: Any,
    y: np.ndarray,
    predicted: np.ndarray,
    shape: tuple[int, int],
    scores: np.ndarray | None = None,
    most: int = 32,
    ax: Axes | None = None,
) -> Axes:
    """The misclassified rows as images, the worst first where scores are given.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, height * width)
    y, predicted : ndarray of shape (n,)
    shape : tuple of int
        Height and width.
    scores : ndarray of shape (n,), optional
        The greater its absolute value, the worse a mistake.
    most : int, default=32
        Images at most.
    ax : matplotlib.axes.Axes, optional
    """
    wrong = np.flatnonzero(y != predicted)
    if scores is not None:
        wrong = wrong[np.argsort(-np.abs(scores[wrong]), kind="stable")]
    shown = wrong[:most]
    height, width = shape
    columns = max(1, min(8, shown.size))
    lines = max(1, math.ceil(shown.size / columns))
    ax = new_axes(0.8 * columns + 0.4, 0.95 * lines + 0.5) if ax is None else ax
    ax.set_axis_off()
    ax.set_title(f"{wrong.size:,} of {y.size:,} are misclassified (true / predicted)", fontsize=8)
    dense = np.asarray(X[shown].todense() if hasattr(X, "todense") else X[shown], dtype=float)
    pitch_x = width * 1.15
    pitch_y = height * 1.35
    for k, image in enumerate(dense):
        left = (k % columns) * pitch_x
        top = (k // columns) * pitch_y
        ax.imshow(
            image.reshape(shape), cmap="gray_r", extent=(left, left + width, top + height, top)
        )
        words = plain(f"{y[shown[k]]} / {predicted[shown[k]]}")
        ax.text(left + width / 2, top - 1, words, ha="center", va="bottom", fontsize=6)
    ax.set_xlim(-1, columns * pitch_x)
    ax.set_ylim(lines * pitch_y, -0.25 * height)
    return ax


def plane_chart(
    X: np.ndarray,
    y: np.ndarray,
    decide: Callable[[np.ndarray], np.ndarray],
    title: str = "",
    *,
    names: Sequence[str] = NAMES,
    alpha: np.ndarray | None = None,
) -> Chart:
    """A heat map of the decision function on the plane, its zero and its margin as lines, and the
    rows as points.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
    y : ndarray of shape (n,)
        -1 and +1.
    decide : callable
        The decision function: takes rows of shape (m, 2), gives values of shape (m,).
    title : str
    names : sequence of two str
        Of the classes -1 and +1.
    alpha : ndarray of shape (n,), optional
        Dual variables: rows where they are zero get small marks.
    """
    shade = shade_over(X, decide)
    size = None if alpha is None else np.where(alpha != 0.0, BIG, SMALL)
    series = [*_classes(X, y, size, names)]
    for level, dash, name in (
        (0.0, "solid", "decision 0"),
        (-1.0, "dot", "margin -1"),
        (1.0, "dash", "margin +1"),
    ):
        series.append(Series(name, *level_line(shade, level), style=2, dash=dash))
    words = (
        "The solid line parts the classes; points between the outer lines lie inside the margin."
    )
    if alpha is not None:
        words += " Small marks: rows with alpha = 0, without which the model would be the same."
    shown = tuple(one for one in series if one.x.size)
    return Chart(
        title or "Decision function", "x1", "x2", shown, caption=words, equal=True, shade=shade
    )


def points_chart(
    X: np.ndarray, y: np.ndarray, title: str = "", names: Sequence[str] = NAMES
) -> Chart:
    """The rows of a plane as points, a colour and a mark for each class.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
    y : ndarray of shape (n,)
        -1 and +1.
    title : str
    names : sequence of two str
        Of the classes -1 and +1.
    """
    caption = f"{y.size:,} rows of two classes."
    return Chart(
        title or "The data",
        "x1",
        "x2",
        tuple(_classes(X, y, None, names)),
        caption=caption,
        equal=True,
    )


def affine(coef: np.ndarray, intercept: float) -> Callable[[np.ndarray], np.ndarray]:
    """A linear decision function."""
    return lambda places: places @ coef + intercept


def shade_over(X: np.ndarray, decide: Callable[[np.ndarray], np.ndarray]) -> Shade:
    """A function of the plane over the box of the rows."""
    low = X.min(axis=0).astype(float)
    high = X.max(axis=0).astype(float)
    x1, x2 = (np.linspace(low[axis], high[axis], GRID) for axis in (0, 1))
    places = np.stack([np.tile(x1, GRID), np.repeat(x2, GRID)], axis=1)
    return Shade(
        x1,
        x2,
        np.asarray(decide(places.astype(X.dtype)), dtype=float).reshape(GRID, GRID),
        "decision",
    )


def level_line(shade: Shade, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The level lines of a heat map, as points; NaN between two lines."""
    from contourpy import contour_generator

    lines = contour_generator(shade.x, shade.y, shade.values).lines(level)
    gap = np.full((1, 2), np.nan)
    points = (
        np.concatenate([part for line in lines for part in (line, gap)])
        if lines
        else np.empty((0, 2))
    )
    return points[:-1, 0], points[:-1, 1]


def margins_chart(
    scores: np.ndarray, y: np.ndarray, names: Sequence[str] = NAMES, title: str = ""
) -> Chart:
    """Histogram of the decision function, one colour a class; the margin lies between the outer
    dotted lines.

    Parameters
    ----------
    scores, y : ndarray of shape (n,)
    names : sequence of two str
        Of the classes -1 and +1.
    title : str
    """
    edges = np.histogram_bin_edges(scores, bins=BINS)
    series = []
    for sign, style, name in zip((-1.0, 1.0), CLASS_STYLES, names, strict=True):
        counts, _ = np.histogram(scores[y == sign], bins=edges)
        series.append(Series(name, edges, np.append(counts, 0.0), style=style, steps=True))
    words = "How far the rows are from the border; the margin lies between the outer dotted lines."
    return Chart(
        title or "Decision function and margin",
        "decision function",
        "rows",
        tuple(series),
        caption=words,
        uprights=(-1.0, 0.0, 1.0),
    )


def shrinking_charts(
    problem: Problem, epochs: Sequence[float] = (1, 2, 4, 8), names: Sequence[str] = NAMES
) -> list[Chart]:
    """One scatter an epoch of a 2-D problem under shrinking: rows set aside are small.

    Parameters
    ----------
    problem : Problem
        Dense, of two features.
    epochs : sequence of float
        Passes' worth of row visits.
    names : sequence of two str
        Of the classes -1 and +1.
    """
    X = np.asarray(problem.X.values)  # type: ignore[union-attr]
    y = problem.y
    charts = []
    for epoch, (state, point) in zip(
        epochs, iterates(problem, DCD(), list(epochs), 0), strict=True
    ):
        working = np.zeros(y.size, dtype=bool)
        working[state.order[: state.active]] = True
        size = np.where(working, BIG, SMALL)
        assert point.w is not None
        w = point.w.astype(float)
        caption = (
            f"{state.active:,} of {y.size:,} rows are active; the small ones are set aside by "
            "shrinking."
        )
        line = level_line(shade_over(X, affine(w[:2], w[2] * problem.scale)), 0.0)
        lines = (*_classes(X, y, size, names), Series("decision 0", *line, style=2))
        charts.append(Chart(f"epoch {epoch:g}", "x1", "x2", lines, caption=caption, equal=True))
    return charts


def _classes(
    X: np.ndarray, y: np.ndarray, size: np.ndarray | None, names: Sequence[str]
) -> list[Series]:
    found = []
    for sign, style, name in zip((-1.0, 1.0), CLASS_STYLES, names, strict=True):
        mine = y == sign
        area = None if size is None else size[mine]
        found.append(Series(name, X[mine, 0], X[mine, 1], style=style, dash="none", size=area))
    return found
