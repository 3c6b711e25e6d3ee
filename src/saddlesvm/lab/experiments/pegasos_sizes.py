"""How an error along the iterations depends on the number of training rows, and slopes in log-log."""

from __future__ import annotations

import numpy as np

from saddlesvm.lab.charts import Chart, Series
from saddlesvm.lab.experiments.base import percent
from saddlesvm.lab.report import Table

COLUMNS = 5  # columns of the table, each for a number of iterations


def size_chart(marks: np.ndarray, errors: dict[int, np.ndarray], best: float, lam: float) -> Chart:
    """One line a size: the median over the runs, quartiles as a band.

    Parameters
    ----------
    marks : ndarray of shape (m,)
        Numbers of iterations.
    errors : dict of int to ndarray of shape (m, runs)
        By the number of training rows.
    best : float
        The least possible error.
    lam : float
    """
    series = []
    for style, (n, found) in enumerate(errors.items()):
        low, middle, high = np.quantile(found, (0.25, 0.5, 0.75), axis=1)
        series.append(Series(f"{n:,} rows", marks, middle, low, high, style=style))
    words = f"Last iterate, lambda = {lam:g}: median over the runs, with the quartiles."
    levels = {best: "least possible"}
    title, axis = "Test error of the last iterate", "error on new data"
    return Chart(title, "iterations", axis, tuple(series), x_log=True, levels=levels, caption=words)


def size_table(marks: np.ndarray, errors: dict[int, np.ndarray]) -> Table:
    """Medians at a few numbers of iterations, in percent."""
    places = np.unique(np.linspace(0, marks.size - 1, COLUMNS).round().astype(int))
    rows = [[f"{n:,}", *(percent(float(np.median(found[place]))) for place in places)] for n, found in errors.items()]
    columns = ["rows", *(f"{marks[place]:,} iterations" for place in places)]
    return Table(columns, rows, "Test error (%) of the last iterate, median over the runs.")


def slope_of(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The least-squares slope of log y against log x, and its standard error; NaN for fewer than two points."""
    keep = (np.asarray(x) > 0.0) & (np.asarray(y) > 0.0)
    u, v = np.log(np.asarray(x, dtype=float)[keep]), np.log(np.asarray(y, dtype=float)[keep])
    if u.size < 2 or np.ptp(u) == 0.0:
        return float("nan"), float("nan")
    u, v = u - u.mean(), v - v.mean()
    slope = float(u @ v / (u @ u))
    rest = v - slope * u
    return slope, float(np.sqrt(rest @ rest / max(u.size - 2, 1) / (u @ u)))
