"""Pictures of a classifier: confusion matrix, misclassified images, decision function, rows set aside by shrinking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.lab.charts import PALETTE, Chart, Grid, Series, new_axes, plain
from saddlesvm.lab.runs import iterates
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers.dcd import DCD

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BIG, SMALL = 26.0, 4.0  # square points: areas of active rows, and of rows set aside
CLASS_STYLES = (0, 1)


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
    place = {label: k for k, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), dtype=int)
    np.add.at(counts, ([place[one] for one in y], [place[one] for one in predicted]), 1)
    words = tuple(str(label) for label in labels)
    wrong = int(counts.sum() - np.trace(counts))
    caption = f"{wrong:,} of {counts.sum():,} rows are not on the diagonal; colour is the share of each true class."
    return Grid(title, "predicted", "true", counts, words, words, caption)


def confusion(y: np.ndarray, predicted: np.ndarray, labels: Sequence[Any], ax: Axes | None = None) -> Axes:
    """Draw the confusion matrix; parameters as for :func:`confusion_grid`."""
    return confusion_grid(y, predicted, labels).draw(ax)


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
    pitch_x, pitch_y = width * 1.15, height * 1.35
    for k, image in enumerate(dense):
        left, top = (k % columns) * pitch_x, (k // columns) * pitch_y
        ax.imshow(image.reshape(shape), cmap="gray_r", extent=(left, left + width, top + height, top))
        words = plain(f"{y[shown[k]]} / {predicted[shown[k]]}")
        ax.text(left + width / 2, top - 1, words, ha="center", va="bottom", fontsize=6)
    ax.set_xlim(-1, columns * pitch_x)
    ax.set_ylim(lines * pitch_y, -0.25 * height)
    return ax


def plane_chart(X: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: float, title: str = "") -> Chart:
    """Points of a 2-D problem with the line where the decision function is 0, and where it is -1 and +1."""
    series = [*_classes(X, y)]
    for level, dash, name in ((0.0, "solid", "decision 0"), (-1.0, "dot", "margin -1"), (1.0, "dash", "margin +1")):
        x1, x2 = _line(X, coef, intercept - level)
        series.append(Series(name, x1, x2, style=2, dash=dash))
    words = "The solid line parts the classes; points between the outer lines lie inside the margin."
    return Chart(title or "decision function", "x1", "x2", tuple(series), caption=words, equal=True)


def decision(X: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: float, ax: Axes | None = None) -> Axes:
    """Draw the decision function of a 2-D problem as shades, its margin as lines, and the rows as points.

    Parameters
    ----------
    X : ndarray of shape (n, 2)
    y : ndarray of shape (n,)
        -1 and +1.
    coef : ndarray of shape (2,)
    intercept : float
    ax : matplotlib.axes.Axes, optional
    """
    ax = new_axes() if ax is None else ax
    low, high = X.min(axis=0), X.max(axis=0)
    first, second = np.meshgrid(np.linspace(low[0], high[0], 120), np.linspace(low[1], high[1], 120))
    values = coef[0] * first + coef[1] * second + intercept
    bound = float(np.abs(values).max())
    ax.contourf(first, second, values, levels=17, cmap="RdBu", vmin=-bound, vmax=bound, alpha=0.35)
    plane_chart(X, y, coef, intercept).draw(ax)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    return ax


def margins(X: Any, y: np.ndarray, coef: np.ndarray, intercept: float, ax: Axes | None = None) -> Axes:
    """Histogram of the decision function, one colour a class; the margin lies between the dotted lines."""
    ax = new_axes() if ax is None else ax
    scores = np.asarray(X @ coef.astype(X.dtype), dtype=float) + intercept
    edges = np.histogram_bin_edges(scores, bins=60)
    for sign, style in zip((-1.0, 1.0), CLASS_STYLES, strict=True):
        ax.hist(scores[y == sign], bins=list(edges), color=PALETTE[style], alpha=0.6, label=f"class {sign:+.0f}")
    for level, line in ((-1.0, ":"), (0.0, "-"), (1.0, ":")):
        ax.axvline(level, color="0.3", linewidth=0.9, linestyle=line)
    ax.set(xlabel="decision function", ylabel="rows", title="decision function and margin")
    ax.legend(loc="best", fontsize=7, frameon=False)
    return ax


def shrinking_charts(problem: Problem, epochs: Sequence[float] = (1, 2, 4, 8), seed: int = 0) -> list[Chart]:
    """One scatter an epoch of a 2-D problem under shrinking: rows set aside are small.

    Parameters
    ----------
    problem : Problem
        Dense, of two features.
    epochs : sequence of float
        Passes' worth of row visits.
    seed : int
    """
    X, y = np.asarray(problem.X.values), problem.y  # type: ignore[union-attr]
    charts = []
    for epoch, (state, point) in zip(epochs, iterates(problem, DCD(), list(epochs), seed), strict=True):
        working = np.zeros(y.size, dtype=bool)
        working[state.order[: state.active]] = True
        size = np.where(working, BIG, SMALL)
        assert point.w is not None
        w = point.w.astype(float)
        caption = f"{state.active:,} of {y.size:,} rows are active; the small ones are set aside by shrinking."
        x1, x2 = _line(X, w[:2], w[2] * problem.scale)
        lines = (*_classes(X, y, size), Series("decision 0", x1, x2, style=2))
        charts.append(Chart(f"epoch {epoch:g}", "x1", "x2", lines, caption=caption, equal=True))
    return charts


def shrinking(problem: Problem, epoch: float, seed: int = 0, ax: Axes | None = None) -> Axes:
    """Draw the scatter of :func:`shrinking_charts` for one epoch."""
    return shrinking_charts(problem, (epoch,), seed)[0].draw(ax)


def _classes(X: np.ndarray, y: np.ndarray, size: np.ndarray | None = None) -> list[Series]:
    found = []
    for sign, style in zip((-1.0, 1.0), CLASS_STYLES, strict=True):
        mine = y == sign
        area = None if size is None else size[mine]
        found.append(Series(f"class {sign:+.0f}", X[mine, 0], X[mine, 1], style=style, dash="none", size=area))
    return found


def _line(X: np.ndarray, coef: np.ndarray, offset: float) -> tuple[np.ndarray, np.ndarray]:
    """The two ends of the line ``coef . x + offset = 0`` inside the box of the points (empty if it misses the box)."""
    low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
    ends = []
    for axis in (0, 1):
        other = 1 - axis
        if coef[other] != 0.0:
            for edge in (low[axis], high[axis]):
                crossing = -(offset + coef[axis] * edge) / coef[other]
                if low[other] <= crossing <= high[other]:
                    ends.append((edge, crossing) if axis == 0 else (crossing, edge))
    ends = sorted(set(ends))
    chosen = [ends[0], ends[-1]] if len(ends) > 1 else []
    return np.array([end[0] for end in chosen]), np.array([end[1] for end in chosen])
