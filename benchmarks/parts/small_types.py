"""Rows of one and two bytes a number beside float32 and float64: products with all rows, and an epoch of descent.

    python -m benchmarks.parts.small_types [--shape 40000 768] [--repeats 5]

One thread, processor time, all types in turn, the best of the repeats. "w in float32" is how solvers score rows far
from the optimum, "w in float64" how certificates do. Descent is an epoch of DCD for the hinge in random order, with
weights in float32 (in float64 for rows of float64).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import embedding_like
from saddlesvm import DCD
from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows, dot_rows
from saddlesvm.rows.small_types import bfloat16
from saddlesvm.solvers.base import Budget


def in_types(X: np.ndarray) -> dict[str, np.ndarray]:
    """The rows in each type; whole numbers are multiples of a 127th of the largest entry."""
    brain = (X.view(np.uint32) >> 16).astype(np.uint16).view(bfloat16)
    whole = np.round(X * (127.0 / np.abs(X).max())).astype(np.int8)
    return {
        "float64": X.astype(np.float64),
        "float32": X,
        "float16": X.astype(np.float16),
        "bfloat16": brain,
        "int8": whole,
    }


def spent(work: Callable[[], Any]) -> float:
    """Processor seconds of a call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def works(values: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], Any]]:
    """The pieces of work for the rows in one type."""
    X = as_rows(values)
    random = np.random.default_rng(0)
    members = np.arange(len(y), dtype=np.int32)
    out = np.empty(len(y))
    w = random.normal(size=values.shape[1] + 1)
    short = w.astype(np.float32)
    unit = float(np.mean(np.square(values[:1000].astype(np.float64)).sum(axis=1))) if values.dtype.kind == "i" else 1.0
    problem = make_problem(X, y, Hinge(), C=1.0 / unit)
    solver = DCD(shrinking=False)
    state = solver.init(problem, 0)
    assert state.w.dtype == X.dtype
    return {
        "pass, w in float32": lambda: dot_rows(X, members, short, out),
        "pass, w in float64": lambda: dot_rows(X, members, w, out),
        "descent": lambda: solver.step(problem, state, Budget(len(y))),
    }


def main() -> None:
    """Print million rows a second, and how many times those of float32."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=2, default=(40_000, 768), help="rows and columns")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    X, y = embedding_like(*options.shape, dtype=np.float32)
    made = {name: works(values, y) for name, values in in_types(X).items()}
    best: dict[tuple[str, str], float] = {}
    for repeat in range(options.repeats + 1):
        for name, pieces in made.items():
            for what, work in pieces.items():
                seconds = spent(work)
                if repeat:  # the first one compiles
                    best[what, name] = min(best.get((what, name), np.inf), seconds)
    for what in works(X[:10], y[:10]):
        speeds = {name: 1e-6 * len(y) / best[what, name] for name in made}
        print(f"{what:20s}" + "".join(f"  {name} {v:5.2f} ({v / speeds['float32']:.2f})" for name, v in speeds.items()))


if __name__ == "__main__":
    main()
