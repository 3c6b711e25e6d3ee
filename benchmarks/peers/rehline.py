"""ReHLine beside saddlesvm: processor seconds to within 1e-3 of the optimum, for the table of docs/how/speed.md.

    pip install rehline
    python -m benchmarks.peers.rehline --data DIR [--sets fashion,dense-100k-f64]

`DIR` holds the data of the suite (benchmarks/peers/suite). saddlesvm has the quickest of several tolerances, ReHLine
the fewest passes of a ladder that suffice, each as the minimum of three runs. ReHLine gets its rows in float64. A cell
ends when a fit of ReHLine takes more than `LIMIT` processor seconds.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parent / "suite"))

from grid import FIRST, SOURCES, Cell

from saddlesvm import LinearSVC

NEAR = 1e-3  # relative distance from the optimum to come to
TOLERANCES = (1e-2, 4e-3, 1e-3)
LADDER = (3, 6, 9, 10, 12, 14, 20, 40, 80, 160, 320, 640, 1280, 1600, 1920, 2240, 2560, 5120)
LIMIT = 8.0
RUNS = 3
TIGHT = 1e-10  # tolerance of ReHLine: the passes end a fit
REFERENCE = {"tol": 1e-5, "max_time": 40.0}  # of the fit whose dual bound stands for the optimum


def timed(fit: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a fit, and the model."""
    began = time.process_time()
    model = fit()
    return time.process_time() - began, model


def quickest(fit: Callable[[], Any]) -> tuple[float, Any]:
    """The least seconds of several runs, and the model; one run where it takes longer than `LIMIT`."""
    seconds, model = timed(fit)
    for _ in range(RUNS - 1 if seconds < LIMIT else 0):
        seconds = min(seconds, timed(fit)[0])
    return seconds, model


def objective(X: Any, y: np.ndarray, w: np.ndarray, cell: Cell) -> float:
    """The objective of weights, in the C form."""
    short = np.maximum(0.0, 1.0 - y * (X @ w))
    return float(0.5 * w @ w + cell.C * (short if cell.loss == "hinge" else short**2).sum())


def measured(cell: Cell, X: Any, y: np.ndarray) -> str:
    """The row of the table."""
    from rehline import plqERM_Ridge

    rows = X.astype(np.float64)
    options: dict[str, Any] = {"loss": cell.loss, "C": cell.C, "fit_intercept": False, "random_state": 0}
    least = LinearSVC(**options, **REFERENCE).fit(X, y).certificate_.dual

    def near(model: Any) -> bool:
        return objective(rows, y, np.ravel(model.coef_).astype(np.float64), cell) <= (1.0 + NEAR) * least

    ours = [quickest(lambda tol=tol: LinearSVC(**options, tol=tol).fit(X, y)) for tol in TOLERANCES]
    mine = min(seconds for seconds, model in ours if near(model))
    loss = {"name": cell.loss.replace("_", " ")}

    def passes(count: int) -> Any:
        return plqERM_Ridge(loss=loss, C=cell.C, max_iter=count, tol=TIGHT).fit(rows, y)

    words = f"| {cell.data} | {loss['name']} | {cell.C:g} | {mine:.2g} |"
    for count in LADDER:
        seconds, model = timed(lambda count=count: passes(count))
        if near(model):
            seconds = min(seconds, quickest(lambda count=count: passes(count))[0])
            return f"{words} {seconds:.2g} | {seconds / mine:.2g} |"
        if seconds > LIMIT:
            break
    return f"{words} not within {LIMIT:.0f} s | |"


def main() -> int:
    """Measure the cells of the map that ReHLine can solve, one row of the table each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--sets", default=",".join(SOURCES), help="data sets (default: all)")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.sets.split(","):
        X, y = SOURCES[name].make(given.data)
        for cell in FIRST:
            if cell.data == name and cell.loss != "logistic":
                print(measured(cell, X, y), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
