"""The figures of the lab: functions that return charts.

``draw(ax)`` of a chart draws on matplotlib axes and returns them. Without axes it makes a new
figure, which :func:`save` writes as PNG or SVG.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay, confusion_matrix

from saddlesvm.lab.charts import Chart, Picture, Series, Shade, new_axes, plain, save
from saddlesvm.lab.curves import closing_chart, curve_chart, gap_chart
from saddlesvm.lab.runs import iterates
from saddlesvm.problem.problem import Problem
from saddlesvm.runtime.data_types import Matrix
from saddlesvm.solvers.dcd import DCD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "closing_chart",
    "confusion_grid",
    "curve_chart",
    "gap_chart",
    "margins_chart",
    "misclassified",
    "plane_chart",
    "points_chart",
    "save",
    "shrinking_charts",
]

# Areas of the points of active rows, and of rows set aside, in square points.
BIG = 26.0
SMALL = 4.0
CLASS_STYLES = (0, 1)
NAMES = ("class -1", "class +1")
GRID = 60  # places of a heat map along an axis
BINS = 60  # bars of a histogram


def confusion_grid(
    y: np.ndarray, predicted: np.ndarray, labels: Sequence[object], title: str = "Confusion matrix"
) -> Picture:
    """Return the confusion matrix: true classes down, predicted classes across.

    Parameters
    ----------
    y, predicted : ndarray of shape (n,)
    labels : sequence
        All classes, in the order to show them.
    title : str
    """
    counts = confusion_matrix(y, predicted, labels=labels)
    wrong = int(counts.sum() - np.trace(counts))
    caption = f"{wrong:,} of {counts.sum():,} rows are not on the diagonal."

    def draw() -> Axes:
        words = [plain(str(label)) for label in labels]
        display = ConfusionMatrixDisplay(counts, display_labels=words)
        display.plot(ax=new_axes(), cmap="Blues", colorbar=False, xticks_rotation=45)
        display.ax_.set_title(plain(title))
        return display.ax_

    return Picture(title, caption, draw)


def misclassified(
    X: Matrix,
    y: np.ndarray,
    predicted: np.ndarray,
    shape: tuple[int, int],
    scores: np.ndarray | None = None,
    most: int = 32,
    ax: Axes | None = None,
) -> Axes:
    """Draw the misclassified rows as images; with scores, the worst mistakes first.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, height * width)
    y, predicted : ndarray of shape (n,)
    shape : tuple of int
        Height and width.
    scores : ndarray of shape (n,), optional
        The larger the absolute value, the worse the mistake.
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
    if ax is None:
        ax = new_axes(0.8 * columns + 0.4, 0.95 * lines + 0.5)
    ax.set_axis_off()
    ax.set_title(f"{wrong.size:,} of {y.size:,} are misclassified (true / predicted)", fontsize=8)
    rows = X[shown]
    if hasattr(rows, "todense"):
        rows = rows.todense()
    # The images stand in a grid, with room for the words above each.
    pitch_x = width * 1.15
    pitch_y = height * 1.35
    for k, image in enumerate(np.asarray(rows, dtype=float)):
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
    """Return the decision function on the plane as a heat map, with its margin and the rows.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
    y : ndarray of shape (n,)
        -1 and +1.
    decide : callable
        The decision function: it takes rows of shape (m, 2), and returns values of shape (m,).
    title : str
    names : sequence of two str
        The names of the classes -1 and +1.
    alpha : ndarray of shape (n,), optional
        Dual variables: rows whose variable is zero get small marks.
    """
    shade = shade_over(X, decide)
    size = None if alpha is None else np.where(alpha != 0.0, BIG, SMALL)
    series = class_series(X, y, size, names)
    caption = (
        "The solid line separates the classes; points between the outer lines are inside the "
        "margin."
    )
    if alpha is not None:
        caption += " Small marks: rows with alpha = 0, without which the model would be the same."
    title = title or "Decision function"
    return Chart(title, "x1", "x2", tuple(series), caption=caption, equal=True, shade=shade)


def points_chart(
    X: np.ndarray, y: np.ndarray, title: str = "", names: Sequence[str] = NAMES
) -> Chart:
    """Return the rows of a plane as points, with a colour and a mark for each class.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
    y : ndarray of shape (n,)
        -1 and +1.
    title : str
    names : sequence of two str
        The names of the classes -1 and +1.
    """
    series = tuple(class_series(X, y, None, names))
    caption = f"{y.size:,} rows of two classes."
    return Chart(title or "The data", "x1", "x2", series, caption=caption, equal=True)


def linear_scores(coef: np.ndarray, intercept: float, X: np.ndarray) -> np.ndarray:
    """Return the values of a linear decision function."""
    return X @ coef + intercept


def shade_over(X: np.ndarray, decide: Callable[[np.ndarray], np.ndarray]) -> Shade:
    """Return the values of a decision function over the box of the rows."""
    low = X.min(axis=0).astype(float)
    high = X.max(axis=0).astype(float)
    x1 = np.linspace(low[0], high[0], GRID)
    x2 = np.linspace(low[1], high[1], GRID)
    places = np.stack([np.tile(x1, GRID), np.repeat(x2, GRID)], axis=1)
    values = np.asarray(decide(places.astype(X.dtype)), dtype=float)
    return Shade(x1, x2, values.reshape(GRID, GRID))


def margins_chart(
    scores: np.ndarray, y: np.ndarray, names: Sequence[str] = NAMES, title: str = ""
) -> Chart:
    """Return a histogram of the decision function, with a colour for each class.

    Parameters
    ----------
    scores, y : ndarray of shape (n,)
    names : sequence of two str
        The names of the classes -1 and +1.
    title : str
    """
    edges = np.histogram_bin_edges(scores, bins=BINS)
    series = []
    for sign, style, name in zip((-1.0, 1.0), CLASS_STYLES, names, strict=True):
        counts, _ = np.histogram(scores[y == sign], bins=edges)
        # Steps have one edge more than counts.
        series.append(Series(name, edges, np.append(counts, 0.0), style=style, steps=True))
    caption = "Distances of the rows from the border; the margin is between the outer dotted lines."
    return Chart(
        title or "Decision function and margin",
        "decision function",
        "rows",
        tuple(series),
        caption=caption,
        uprights=(-1.0, 0.0, 1.0),
    )


def shrinking_charts(
    problem: Problem, epochs: Sequence[float] = (1, 2, 4, 8), names: Sequence[str] = NAMES
) -> list[Chart]:
    """Return the rows of a 2-D problem after some epochs; rows that shrinking set aside are small.

    Parameters
    ----------
    problem : Problem
        Dense, of two features.
    epochs : sequence of float
        Row visits, in passes.
    names : sequence of two str
        The names of the classes -1 and +1.
    """
    X = np.asarray(problem.X.values)  # type: ignore[union-attr]
    y = problem.y
    charts = []
    points = iterates(problem, DCD(), list(epochs), 0)
    for epoch, (state, point) in zip(epochs, points, strict=True):
        # The order begins with the rows that are active.
        is_active = np.zeros(y.size, dtype=bool)
        is_active[state.order[: state.active]] = True
        size = np.where(is_active, BIG, SMALL)
        assert point.w is not None
        w = point.w.astype(float)
        decide = functools.partial(linear_scores, w[:2], w[2] * problem.scale)
        shade = replace(shade_over(X, decide), is_filled=False)
        series = tuple(class_series(X, y, size, names))
        caption = (
            f"{state.active:,} of {y.size:,} rows are active; shrinking has set the small ones "
            "aside."
        )
        charts.append(
            Chart(f"epoch {epoch:g}", "x1", "x2", series, caption=caption, equal=True, shade=shade)
        )
    return charts


def class_series(
    X: np.ndarray, y: np.ndarray, size: np.ndarray | None, names: Sequence[str]
) -> list[Series]:
    """Return the rows of the plane as a cloud of points for each class."""
    clouds = []
    for sign, style, name in zip((-1.0, 1.0), CLASS_STYLES, names, strict=True):
        rows = y == sign
        area = None if size is None else size[rows]
        clouds.append(Series(name, X[rows, 0], X[rows, 1], style=style, dash="none", size=area))
    return clouds
