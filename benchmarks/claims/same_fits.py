"""Whether a change of the package changed a fit: the weights of a grid of seeded fits, two source trees in turn.

    python -m benchmarks.claims.same_fits OLD/src NEW/src --data DIR [--minutes 60] [--quick]

Each tree fits in a process of its own. Weights, intercept and both objectives are compared bit by bit. Where they
differ, strong convexity says by how much they may: two models with certified gaps g and h (in the C form, the intercept
regularised) are at most ``sqrt(2 g) + sqrt(2 h)`` apart. The grid is walked through in a seeded random order, so that a
run that is cut short by `--minutes` has seen some of everything.

Source of the bound: R is 1-strongly convex, so that ``P(w) - P(w*) >= ||w - w*||^2 / 2``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.claims.old_and_new import dataset, environment

CLASSIFICATION = ("hinge", "squared_hinge", "smooth_hinge", "logistic")
REGRESSION = ("squared", "absolute", "epsilon_insensitive", "squared_epsilon_insensitive")
SOLVERS = ("auto", "dcd", "sdca", "pegasos", "newton")
SMALL, LARGE = ("banknote", "heart"), ("a9a", "rcv1-binary", "fashion")
QUICK_ROWS = 2_000
HUNDREDTH = "heart"  # its features have no scale in common: at C = 1 first-order solvers end uncertified
LIMITS = {"tol": 1e-3, "max_iter": 60}


class Cell(NamedTuple):
    """A fit of the grid."""

    data: str
    layout: str
    dtype: str
    loss: str
    solver: str
    seed: int
    intercept: str


class Fitted(NamedTuple):
    """What came out: weights and intercept, primal and dual objective; or the name of an error."""

    weights: list[float]
    primal: float
    dual: float
    error: str = ""


def grid(quick: bool) -> list[Cell]:
    """The fits, in a random order that is always the same."""
    small = itertools.product(
        SMALL, ("dense", "csr"), ("float64", "float32"), CLASSIFICATION + REGRESSION, SOLVERS, (0, 1),
        ("regularized", "free"),
    )  # fmt: skip
    large = itertools.product(
        LARGE, ("dense", "csr"), ("float64", "float32"), CLASSIFICATION + REGRESSION, SOLVERS, (0,), ("regularized",)
    )
    cells = [Cell(*one) for one in (*small, *(() if quick else large))]
    cells = [one for one in cells if is_posed(one) and not (quick and (one.seed or one.layout == "csr"))]
    random.Random(0).shuffle(cells)
    return cells


def is_posed(cell: Cell) -> bool:
    """Whether there are targets for the loss, and the rows are not sparse ones that would not fit when dense."""
    return not (cell.data == "rcv1-binary" and (cell.layout == "dense" or cell.loss in REGRESSION))


def rows_of(cell: Cell, found: dict[str, Any], folder: Path) -> tuple[Any, np.ndarray]:
    """Rows and labels in the layout and precision of a cell; for a regression the row sums give targets a spread."""
    if cell.data not in found:
        if cell.data in SMALL:
            from saddlesvm.data import load_bundled  # of the tree that this process measures

            table = load_bundled(cell.data)
            found[cell.data] = np.asarray(table.X, dtype=np.float64), np.asarray(table.y)
        else:
            found[cell.data] = dataset(cell.data, folder)
    X, y = found[cell.data]
    X = X.astype(cell.dtype)
    if cell.layout == "csr":
        X = sparse.csr_matrix(X)
    elif sparse.issparse(X):
        X = X.toarray()
    if cell.loss in REGRESSION:
        sums = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
        y = (y == np.unique(y)[-1]) + 0.1 * (sums % 1.0)
    return X, y


def fit(cell: Cell, found: dict[str, Any], folder: Path) -> Fitted:
    """One fit."""
    from saddlesvm import LinearSVC, LinearSVR  # of the tree that this process measures

    X, y = rows_of(cell, found, folder)
    kind = LinearSVR if cell.loss in REGRESSION else LinearSVC
    C = 0.01 if cell.data == HUNDREDTH else 1.0
    model = kind(loss=cell.loss, solver=cell.solver, C=C, intercept=cell.intercept, random_state=cell.seed, **LIMITS)
    try:
        model.fit(X, y)
    except Exception as error:
        return Fitted([], 0.0, 0.0, f"{type(error).__name__}: {error}")
    weights = np.concatenate([np.ravel(model.coef_), np.ravel(model.intercept_)]).astype(np.float64)
    return Fitted(weights.tolist(), model.certificate_.primal, model.certificate_.dual)


def serve(folder: Path) -> None:
    """Answer each line, a cell, with what its fit came to, until there are no more."""
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for line in sys.stdin:
        print(json.dumps(fit(Cell(*json.loads(line)), found, folder)), flush=True)


def difference(old: Fitted, new: Fitted) -> str:
    """How two fits differ; empty where they agree to the last bit."""
    if old == new:
        return ""
    if old.error or new.error or len(old.weights) != len(new.weights):
        return f"other results: {old.error or 'a fit'}; {new.error or 'a fit'}"
    apart = math.dist(old.weights, new.weights)
    allowed = sum(math.sqrt(2.0 * max(one.primal - one.dual, 0.0)) for one in (old, new))
    verdict = "within the certified gaps" if apart <= allowed else "BEYOND THE CERTIFIED GAPS"
    return f"weights {apart:.2e} apart, {allowed:.2e} allowed: {verdict}"


def compare(trees: Sequence[subprocess.Popen[str]], cells: Sequence[Cell], seconds: float) -> None:
    """Fit in both trees, say what differs as it is found, and how many agree."""
    began, same, done = time.monotonic(), 0, 0
    for cell in cells:
        if time.monotonic() - began > seconds:
            break
        for tree in trees:
            assert tree.stdin is not None
            print(json.dumps(cell), file=tree.stdin, flush=True)
        old, new = (Fitted(*json.loads(tree.stdout.readline())) for tree in trees if tree.stdout is not None)
        told = difference(old, new)
        done, same = done + 1, same + (not told)
        if told:
            print(" ".join(map(str, cell)), told, flush=True)
    print(f"{same} of {done} fits agree to the last bit ({len(cells)} in the grid)")


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, nargs="?", help="folder that holds the package saddlesvm")
    parser.add_argument("new", type=Path, nargs="?", help="another")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--quick", action="store_true", help="the small data sets, dense, with one seed")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.data)
        return
    if arguments.new is None:
        parser.error("two source trees are needed")
    command = [sys.executable, "-m", "benchmarks.claims.same_fits", "--serve", "--data", str(arguments.data)]
    home = Path(__file__).parents[2]
    trees = [
        subprocess.Popen(
            command, env=environment(source), cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for source in (arguments.old, arguments.new)
    ]
    compare(trees, grid(arguments.quick), 60.0 * arguments.minutes)
    for tree in trees:
        assert tree.stdin is not None
        tree.stdin.close()
        tree.wait()


if __name__ == "__main__":
    main()
