"""Many more rows than features: where Newton's method, begun on a sample of the rows, beats coordinate descent.

Seconds to certify a tolerance, medians in turn, by coordinate descent alone, by Newton's method from zero and from the
solution of a sample of the rows, and by the automatic solver, which chooses. No intercept, one thread:

    OMP_NUM_THREADS=1 python -m benchmarks.claims.tall
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import embedding_like, interleaved
from saddlesvm import LinearSVC
from saddlesvm.solvers import DCD, Auto, Newton

WAYS: dict[str, Any] = {
    "descent": DCD(),
    "Newton from zero": Newton(warm_up=0),
    "Newton from a sample": Newton(),
    "auto": Auto(),
}
LIMIT = 3.0  # seconds of a fit


def unscaled(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Dense rows whose features differ in size by a factor of a hundred."""
    X, y = embedding_like(n, d)
    return 5.0 * X * np.logspace(0.0, -2.0, d), y


def compare(name: str, X: np.ndarray, y: np.ndarray, loss: str, C: float, tol: float, repeats: int) -> None:
    """A line of the table."""

    def fit(solver: Any) -> Callable[[], LinearSVC]:
        common: dict[str, Any] = {"fit_intercept": False, "random_state": 0, "max_time": LIMIT}
        return lambda: LinearSVC(loss=loss, C=C, tol=tol, solver=solver, **common).fit(X, y)

    table = interleaved({way: fit(solver) for way, solver in WAYS.items()}, repeats + 1)  # the first may compile
    cells = []
    for way, (spent, model) in table.items():
        failed = "" if model.outcome_.name == "CERTIFIED" else "*"
        chosen = f" ({', '.join(model.phases_)})" if way == "auto" else ""
        cells.append(f"{spent:.3f}{failed}{chosen}")
    print(f"| {name} | {loss.replace('_', ' ')} | {C:g} | {tol:.0e} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    print(f"| data | loss | C | tol | {' | '.join(WAYS)} |")
    print("|---" * (4 + len(WAYS)) + "|")
    for name, (X, y) in {
        f"{100_000 // share:,} x 512, float32": embedding_like(100_000 // share, 512, np.float32),
        f"{500_000 // share:,} x 54, unscaled": unscaled(500_000 // share, 54),
    }.items():
        for loss in ("squared_hinge", "logistic"):
            for C in (0.1, 1.0, 10.0, 100.0):
                for tol in (1e-3, 1e-6):
                    compare(name, X, y, loss, C, tol, options.repeats)


if __name__ == "__main__":
    main()
