"""The rank of the published accuracies among those of many splits, because the published seed is not known."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from saddlesvm.lab.charts import Chart, Series
from saddlesvm.lab.dataset import Dataset
from saddlesvm.lab.experiments.dcd_entrants import ENTRANTS, THEIRS, Entrant
from saddlesvm.lab.experiments.dcd_published import PUBLISHED_ACCURACY, PUBLISHED_LINE, PUBLISHED_ROWS
from saddlesvm.lab.machine import in_threads
from saddlesvm.lab.report import Table

BESIDE = {"DCD": PUBLISHED_ROWS[0], "DCD, shrinking": PUBLISHED_ROWS[1], THEIRS: PUBLISHED_ROWS[2]}  # ours: theirs
LOW, HIGH = 0.025, 0.975  # quantiles between which 95 % of the splits lie
Accuracies = dict[tuple[str, float], np.ndarray]


def entrants() -> list[Entrant]:
    """The entrants that have a published line of their own."""
    return [entrant for entrant in ENTRANTS if entrant.name in BESIDE]


def accuracies(split: Callable[[int], Dataset], strengths: Sequence[float], seeds: int, passes: int) -> Accuracies:
    """Accuracy on the held-out rows by entrant and C, shape (seeds,) each.

    Parameters
    ----------
    split : callable
        Returns the data split with the seed that it is given.
    strengths : sequence of float
        Values of C.
    seeds : int
    passes : int
        Most passes over the active rows.
    """

    def scores(entrant: Entrant, seed: int) -> list[float]:
        data, found = split(seed), []
        for C in strengths:
            model: Any = entrant.make(C, passes)
            model.fit(data.X, data.y)
            found.append(float((model.predict(data.test_X) == data.test_y).mean()))
        return found

    made: Accuracies = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entrant in entrants():
            one = partial(scores, entrant)
            # LIBLINEAR draws from one generator for the whole process: side by side its runs would disturb each other.
            table = [one(seed) for seed in range(seeds)] if entrant.name == THEIRS else in_threads(one, range(seeds))
            made |= {(entrant.name, C): column for C, column in zip(strengths, np.array(table).T, strict=True)}
    return made


def split_table(found: dict[str, Accuracies], strengths: Sequence[float]) -> Table:
    """Published value, median and 95 % of the splits, and the published value's rank among them."""
    rows = []
    for name, cells in found.items():
        for (who, C), values in cells.items():
            published = published_value(name, who, strengths.index(C))
            low, middle, high = np.quantile(100.0 * values, (LOW, 0.5, HIGH))
            below = float((np.round(100.0 * values, 2) < published).mean())
            shown = [f"{published:.2f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}", f"{100 * below:.0f} %"]
            rows.append([name, who, f"{C:g}", *shown])
    columns = ["data", "solver", "C", "published (%)", "median (%)", "95 % of the splits (%)", "splits below it"]
    counts = ", ".join(f"{name} {next(iter(cells.values())).size}" for name, cells in found.items())
    return Table(columns, rows, f"Accuracy over splits with a third of the rows held out; splits: {counts}.")


def line_table(cells: Accuracies, models: dict[str, Any]) -> tuple[Table, str]:
    """The toy's line at the C of its published picture: weights, accuracy, and the published one among the splits.

    Parameters
    ----------
    cells : dict
        Accuracies of the splits by entrant and C.
    models : dict of str to estimator
        Each entrant's model of the first split.
    """
    C, published = PUBLISHED_LINE
    rows, inside = [], 0
    for who, model in models.items():
        values = 100.0 * cells[who, C]
        low, middle, high = np.quantile(values, (LOW, 0.5, HIGH))
        inside += low - 5e-3 <= published <= high + 5e-3
        weights = [f"{value:.3f}" for value in (*np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))]
        below = f"{100.0 * float((np.round(values, 2) < published).mean()):.0f} %"
        shown = [f"{values[0]:.2f}", f"{middle:.2f}", f"{low:.2f} to {high:.2f}", below]
        rows.append([who, *weights, f"{published:.2f}", *shown])
    columns = ["solver", "w1", "w2", "b", "published (%)", "seed 0 (%)", "median (%)", "95 % of the splits (%)"]
    caption = f"The line w1 x1 + w2 x2 + b = 0 at C = {C:g} for the split of seed 0; accuracy on the held-out rows."
    sentence = (
        f"The accuracy published beside the toy's line at C = {C:g}, {published:.2f} %, lies within 95 % of our splits "
        f"for {inside} of {len(models)} solvers."
    )
    return Table([*columns, "splits below it"], rows, caption), sentence


def published_value(name: str, who: str, place: int) -> float:
    """The published accuracy in percent beside one of our lines."""
    return PUBLISHED_ACCURACY[name][PUBLISHED_ROWS.index(BESIDE[who])][place]


def split_chart(name: str, cells: Accuracies, strengths: Sequence[float]) -> Chart:
    """Sorted accuracies of the splits, the published value as a level."""
    series = []
    for style, who in enumerate(BESIDE):
        values = np.sort(cells[who, strengths[0]])
        share = (np.arange(values.size) + 0.5) / values.size
        series.append(Series(f"{who}, C = {strengths[0]:g}", share, values, style=style))
    levels = {published_value(name, who, 0) / 100.0: "published" for who in BESIDE}
    caption = "Accuracies of the splits in ascending order; the dotted line is what was published for one of them."
    return Chart(
        f"{name}: accuracy over the splits",
        "share of the splits",
        "accuracy",
        tuple(series),
        levels=levels,
        caption=caption,
    )


def split_verdict(found: dict[str, Accuracies], strengths: Sequence[float]) -> str:
    """How many published values lie within 95 % of the splits, and which do not."""
    outside: dict[str, int] = {}
    total = 0
    for name, cells in found.items():
        for (who, C), values in cells.items():
            total += 1
            published = published_value(name, who, strengths.index(C)) / 100.0
            low, high = np.quantile(values, (LOW, HIGH))
            if not low - 5e-5 <= published <= high + 5e-5:
                outside[name] = outside.get(name, 0) + 1
    count = total - sum(outside.values())
    words = f"{count} of {total} published accuracies lie within 95 % of our splits"
    where = ", ".join(f"{number} of {name}" for name, number in outside.items())
    return f"{words}; outside: {where}." if outside else f"{words}."
