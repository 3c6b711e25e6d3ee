"""What an epoch must move and do, against what this machine's memory delivers in the same run.

For dense and sparse rows in float32 and float64: the bytes and the operations of an epoch of dual coordinate descent
(hinge loss), the seconds of a plain read of the same arrays, of reads in the order of the epoch, without and with the
solvers' fetches, and of the epoch itself, and what its arithmetic alone would take, measured on rows that fit into the
cache. Rows are visited in the order of the data, in short runs of neighbours (which is what the solver does), and one
by one in random order.

    OMP_NUM_THREADS=1 python -m benchmarks.parts.roofline --picture docs/measurements/roofline.png
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import embedding_like, text_like
from saddlesvm.lab.machine import memory, processor
from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import Dense, Rows, as_rows
from saddlesvm.rows.prefetch import prefetch_row
from saddlesvm.runtime.compiled import kernel
from saddlesvm.runtime.threads import usable_cores
from saddlesvm.solvers import DCD
from saddlesvm.solvers.base import Budget

RUN = DCD().run_length
ORDERED = "in order"
RUNS = f"runs of {RUN}"
SINGLE = "one by one"
SOLVERS = {
    ORDERED: DCD(permutation=False, shrinking=False),
    RUNS: DCD(shrinking=False),
    SINGLE: DCD(shrinking=False, run_length=1),
}
PER_ROW = {"order": 8, "alpha": 16, "label": 8, "norm": 8}  # bytes a visit reads (and writes: alpha)
NEVER = -1.0  # no estimate of a gap is below it: a call does all of its visits
SETTLING = 3  # epochs before the first that is timed
CACHED = 2**18  # bytes of rows that stay in the cache
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
COLOURS = ("#0072B2", "#56B4E9", "#E69F00", "#D55E00", "#CC79A7")  # Okabe and Ito


@kernel
def read_all(values: np.ndarray) -> float:
    """Sum of an array: every byte of it once, in order."""
    total = values.dtype.type(0)
    for p in range(values.size):
        total += values[p]
    return total


@kernel
def read_rows(values: np.ndarray, starts: np.ndarray, order: np.ndarray, X: Rows, fetching: bool) -> float:
    """Sum of an array, row by row in the order given; row i is ``values[starts[i]:starts[i + 1]]``. With the fetches of
    the solvers, or without."""
    total = values.dtype.type(0)
    for k in range(order.size):
        if fetching:
            prefetch_row(X, order, k, order.size)
        for p in range(np.uint64(starts[order[k]]), np.uint64(starts[order[k] + 1])):
            total += values[p]
    return total


@dataclass(frozen=True)
class Line:
    """A line of the table: seconds, bytes and operations of an epoch."""

    name: str
    order: str
    moved: float
    operations: float
    plain: float
    read: float
    fetched: float
    epoch: float
    arithmetic: float


def quickest(work: Callable[[], Any], repeats: int) -> float:
    """Least seconds of several calls, after one that is not counted."""
    work()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


def problem_of(X: Any, y: np.ndarray, C: float = 1.0) -> Problem:
    """The rows with hinge loss."""
    design = as_rows(X)
    return make_problem(design, y, Hinge(), C=C)


def arrays_of(problem: Problem) -> tuple[list[np.ndarray], np.ndarray]:
    """The arrays that hold the rows, flat, and where each row begins in them."""
    X = problem.X
    if isinstance(X, Dense):
        n, d = X.values.shape
        return [X.values.reshape(-1)], np.arange(0, n * d + 1, d)
    return [X.data, X.indices], X.indptr


def visits(rows: int, order: str) -> np.ndarray:
    """The rows in an order like that of an epoch."""
    if order == ORDERED:
        return np.arange(rows)
    length = RUN if order == RUNS else 1
    starts = np.random.default_rng(0).permutation(np.arange(0, rows, length))
    listed = (starts[:, None] + np.arange(length)).ravel()
    return listed[listed < rows]


def epochs(problem: Problem, solver: DCD, repeats: int, at_once: int = 1) -> tuple[float, float]:
    """Least seconds of an epoch under way, so many to a call, and the median share of the rows that are moved."""
    state = solver.init(problem, 0)
    rows = problem.X.n_rows
    taken = []
    moving = []
    for k in range(SETTLING + repeats):
        before = state.alpha.copy()
        touched = state.rows_touched
        began = time.perf_counter()
        state = solver.step(problem, state, Budget(at_once * rows, relative_gap=NEVER))
        spent = (time.perf_counter() - began) * rows / (state.rows_touched - touched)
        if k >= SETTLING:
            taken.append(spent)
            moving.append(float(np.mean(state.alpha != before)))
    return min(taken), statistics.median(moving)


def operations_of(problem: Problem, moving: float) -> float:
    """Additions and multiplications of an epoch that moves this share of the rows."""
    return 2.0 * problem.X.n_values * (1.0 + moving)


def seconds_a_value(X: Any, y: np.ndarray, solver: DCD, moving: float, repeats: int) -> float:
    """Of an epoch if memory were free: of rows that fit into the cache, at the C where about as many of them move."""
    row = (X.nnz / X.shape[0] if hasattr(X, "nnz") else X.shape[1]) * (X.dtype.itemsize + 4)
    count = max(16, int(CACHED / row))
    found = []
    for C in STRENGTHS:
        few = problem_of(X[:count], y[:count], C)
        taken, share = epochs(few, solver, repeats, at_once=50)
        found.append((abs(share - moving), taken / few.X.n_values))
    return min(found)[1]


def read_in_order(
    X: Rows, arrays: list[np.ndarray], starts: np.ndarray, order: np.ndarray, fetching: bool, repeats: int
) -> float:
    """Least seconds of a read of the rows in an order. The fetches are those of all arrays at once."""
    first, *others = arrays

    def read() -> None:
        read_rows(first, starts, order, X, fetching)
        for array in others:
            read_rows(array, starts, order, X, False)

    return quickest(read, repeats)


def measure(name: str, X: Any, y: np.ndarray, repeats: int) -> list[Line]:
    """The lines of a data set."""
    problem = problem_of(X, y)
    arrays, starts = arrays_of(problem)
    plain = quickest(lambda: [read_all(array) for array in arrays], repeats)
    moved = sum(array.nbytes for array in arrays) + problem.X.n_rows * sum(PER_ROW.values())
    lines = []
    for order, solver in SOLVERS.items():
        reads = (problem.X, arrays, starts, visits(problem.X.n_rows, order))
        read, fetched = (read_in_order(*reads, fetching, repeats) for fetching in (False, True))
        epoch, moving = epochs(problem, solver, repeats)
        operations = operations_of(problem, moving)
        free = problem.X.n_values * seconds_a_value(X, y, solver, moving, repeats)
        lines.append(Line(name, order, moved, operations, plain, read, fetched, epoch, free))
    return lines


def data_sets(share: int) -> dict[str, tuple[Any, np.ndarray]]:
    """Dense and sparse rows in both precisions, a share of the full size."""
    dense, dense_y = embedding_like(100_000 // share, 512)
    text, text_y = text_like(100_000 // share, 47_000, 70)
    text.indices, text.indptr = text.indices.astype(np.int32), text.indptr.astype(np.int32)
    return {
        "dense float32": (dense.astype(np.float32), dense_y),
        "dense float64": (dense, dense_y),
        "sparse float32": (text.astype(np.float32), text_y),
        "sparse float64": (text, text_y),
    }


HEADER = (
    "| rows | order | must move, MB | operations, M | plain read, ms | read in this order, ms | fetched ahead, ms | "
    "arithmetic alone, ms | epoch, ms | epoch / plain read | GB/s |\n" + "|---" * 11 + "|"
)


def words(line: Line) -> str:
    """A line of the table."""
    milliseconds = (1e3 * seconds for seconds in (line.plain, line.read, line.fetched, line.arithmetic, line.epoch))
    figures = " | ".join(f"{figure:.1f}" for figure in milliseconds)
    return (
        f"| {line.name} | {line.order} | {line.moved / 1e6:.0f} | {line.operations / 1e6:.0f} | {figures} | "
        f"{line.epoch / line.plain:.2f} | {line.moved / line.epoch / 1e9:.1f} |"
    )


def draw(lines: list[Line], path: Path) -> None:
    """Bars for each kind of rows: plain read, read one by one, arithmetic, and the epoch in both random orders."""
    from matplotlib.figure import Figure

    runs, single = ([line for line in lines if line.order == order] for order in (RUNS, SINGLE))
    parts = {
        "plain read": [line.plain for line in runs],
        "read, rows one by one": [line.read for line in single],
        "arithmetic alone (rows in the cache)": [line.arithmetic for line in runs],
        f"epoch, {RUNS}": [line.epoch for line in runs],
        "epoch, rows one by one": [line.epoch for line in single],
    }
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    axis = figure.subplots()
    width = 0.8 / len(parts)
    for k, (label, seconds) in enumerate(parts.items()):
        places = np.arange(len(runs)) + (k - 2) * width
        bars = axis.bar(places, 1e3 * np.array(seconds), 0.94 * width, label=label, color=COLOURS[k])
        axis.bar_label(bars, fmt="%.0f", fontsize=8, padding=1)
    axis.set_xticks(range(len(runs)), [line.name for line in runs])
    axis.set_ylabel("milliseconds")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print the table; draw it where a picture is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--share", type=int, default=1, help="use one row in this many")
    parser.add_argument("--picture", type=Path, help="a .png file to draw")
    options = parser.parse_args()
    print(f"{processor()}, {usable_cores()} cores, {memory()}\n\n{HEADER}", flush=True)
    lines: list[Line] = []
    for name, (X, y) in data_sets(options.share).items():
        lines += measure(name, X, y, options.repeats)
        print("\n".join(words(line) for line in lines[-len(SOLVERS) :]), flush=True)
    if options.picture:
        draw(lines, options.picture)


if __name__ == "__main__":
    main()
