"""Whether a change of the package changed a fit: a grid of seeded fits, two source trees in turn.

    python -m benchmarks.claims.same_fits OLD/src NEW/src [--data DIR] [--minutes 60] [--quick]

The grid has a cell for every place of the rows x machine x penalty x intercept, over made data; and one for every
solver x loss x layout x precision in memory, over real data. Each tree fits in a process of its own. Weights, intercept
and both objectives are compared bit by bit. Where they differ, strong convexity says by how much they may: two models
with certified gaps g and h (in the C form) have weights at most ``sqrt(2 g) + sqrt(2 h)`` apart, divided by the root of
the square's share in the penalty; where there is no square, or the weights are those of a kernel, either primal
objective is above the optimum by its gap at most. A refusal is compared by its words. The grid is walked through in a
seeded random order, so that a run that is cut short by `--minutes` has seen some of everything; `--quick` takes the
first grid alone, with one of the intercepts for each place, machine and penalty.

Source of the bound: R is m-strongly convex, so that ``P(w) - P(w*) >= m ||w - w*||^2 / 2``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import subprocess
import sys
import tempfile
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
CLASSES = ("ovr", "ovo", "crammer_singer", "multinomial")
KERNELS = ("kernel hinge", "kernel epsilon_insensitive")
PLACES = ("dense", "csr", "files", "store", "cluster")
PENALTIES = ("l2", "l1", "elasticnet")
INTERCEPTS = ("regularized", "free", "none")
SOLVERS = ("auto", "dcd", "sdca", "pegasos", "newton")
SMALL = ("banknote", "heart")
LARGE = ("a9a", "rcv1-binary", "fashion")
HUNDREDTH = "heart"  # its features have no scale in common: at C = 1 first-order solvers end uncertified
LIMITS = {"tol": 1e-3, "max_iter": 60}
L1_RATIO = 0.15
C_OF_PLACES = 0.1
FEATURES = 60
ROWS = 1_000
ROWS_OF_FILES = 24_000
PARTITIONS = 4
SWEEPS = 12  # epochs of a fit of made data, at most
MEMORY = "16M"  # the least; rows in files take more than half of it, and so are read block by block


class Cell(NamedTuple):
    """A fit of the grid."""

    place: str
    machine: str
    penalty: str
    intercept: str
    data: str = "made"
    dtype: str = "float64"
    solver: str = "auto"
    seed: int = 0


class Fitted(NamedTuple):
    """What came out: weights with intercepts last, primal and dual of each sub-problem; or words that refuse."""

    weights: list[list[float]]
    primal: list[float]
    dual: list[float]
    error: str = ""

    @property
    def gaps(self) -> list[float]:
        """The certified gap of each sub-problem."""
        return [max(p - d, 0.0) for p, d in zip(self.primal, self.dual, strict=True)]


def grid(quick: bool) -> list[Cell]:
    """The fits, in a random order that is always the same."""
    machines = CLASSIFICATION + REGRESSION + CLASSES
    cells = [Cell(*one) for one in itertools.product(PLACES, machines, PENALTIES, INTERCEPTS)]
    kernels = itertools.product(PLACES[:2], KERNELS[:-1], INTERCEPTS)
    cells += [Cell(place, one, "l2", kind) for place, one, kind in kernels]
    if quick:
        each = len(INTERCEPTS)
        cells = [cells[k + (k // each + k // each**2) % each] for k in range(0, len(cells), each)]
    else:
        cells += solvers_in_memory()
    cells += [Cell(place, KERNELS[-1], "l2", "free") for place in PLACES[:2]]
    random.Random(0).shuffle(cells)
    return cells


def solvers_in_memory() -> list[Cell]:
    """Every solver, loss, layout and precision in memory, over real data."""
    parts = ("dense", "csr"), CLASSIFICATION + REGRESSION, ("l2",)
    small = itertools.product(*parts, INTERCEPTS[:2], SMALL, ("float64", "float32"), SOLVERS, (0, 1))
    large = itertools.product(*parts, INTERCEPTS[:1], LARGE, ("float64", "float32"), SOLVERS, (0,))
    cells = [Cell(*one) for one in (*small, *large)]
    # Sparse rows would not fit when dense, and have no targets.
    return [one for one in cells if one.data != "rcv1-binary" or (one.place == "csr" and one.machine in CLASSIFICATION)]


def rows_of(cell: Cell, found: dict[str, Any], folder: Path) -> tuple[Any, np.ndarray]:
    """Rows and labels of a cell's data, in its layout and precision."""
    if cell.data not in found:
        if cell.data == "made":
            found["made"] = made_rows()
        elif cell.data in SMALL:
            from saddlesvm.data import load_bundled  # of the tree that this process measures

            table = load_bundled(cell.data)
            found[cell.data] = np.asarray(table.X, dtype=np.float64), np.asarray(table.y)
        else:
            found[cell.data] = dataset(cell.data, folder)
    X, y = found[cell.data]
    if cell.data == "made" and cell.place not in ("files", "store"):
        X = X[:ROWS]
        y = y[:ROWS]
    X = X.astype(cell.dtype)
    if cell.place in ("csr", "store"):
        X = sparse.csr_matrix(X)
    elif sparse.issparse(X):
        X = X.toarray()
    return X, targets_of(cell.machine, X, y)


def made_rows() -> tuple[np.ndarray, np.ndarray]:
    """Three overlapping classes; half of the values are zero."""
    random = np.random.default_rng(0)
    y = np.arange(ROWS_OF_FILES) % 3
    X = random.normal(size=(3, FEATURES))[y] + 2.0 * random.normal(size=(ROWS_OF_FILES, FEATURES))
    X[random.random(X.shape) < 0.5] = 0.0
    return X, y


def targets_of(machine: str, X: Any, y: np.ndarray) -> np.ndarray:
    """Classes; two of them; or for a regression a class and the row sums, which give targets a spread."""
    if machine in CLASSES:
        return y
    positive = y == np.unique(y)[-1]
    if machine.removeprefix("kernel ") in CLASSIFICATION:
        return positive
    return positive + 0.1 * (np.asarray(X.sum(axis=1), dtype=np.float64).ravel() % 1.0)


def model_of(cell: Cell) -> Any:
    """The estimator of a cell, of the tree that this process measures."""
    import saddlesvm

    C = 0.01 if cell.data == HUNDREDTH else 1.0 if cell.data != "made" else C_OF_PLACES
    given: dict[str, Any] = {"C": C, "intercept": cell.intercept, "random_state": cell.seed}
    if cell.machine in KERNELS:
        loss = cell.machine.removeprefix("kernel ")
        if loss in CLASSIFICATION:
            return saddlesvm.SVC(tol=LIMITS["tol"], **given)
        return saddlesvm.SVR(tol=LIMITS["tol"], C=C)  # its intercept is free
    given |= LIMITS | {"penalty": cell.penalty} | ({"max_iter": SWEEPS} if cell.data == "made" else {})
    if cell.penalty == "elasticnet":
        given["l1_ratio"] = L1_RATIO
    faces: Any = saddlesvm
    if cell.place == "cluster":
        import saddlesvm.dask

        faces = saddlesvm.dask
    else:
        given |= {"solver": cell.solver, "memory": MEMORY if cell.place in ("files", "store") else None}
    if cell.machine in CLASSES:
        given |= {"multi_class": cell.machine}
        return faces.LinearSVC(loss="logistic" if cell.machine == "multinomial" else "hinge", **given)
    return (faces.LinearSVR if cell.machine in REGRESSION else faces.LinearSVC)(loss=cell.machine, **given)


def placed(cell: Cell, X: Any, y: np.ndarray, scratch: Path) -> tuple[Any, Any]:
    """Rows and labels where the cell has them."""
    if cell.place == "files":
        if not (scratch / "X.npy").exists():
            np.save(scratch / "X.npy", X)
        return np.load(scratch / "X.npy", mmap_mode="r"), y
    if cell.place == "store":
        from saddlesvm import Store

        path = scratch / "rows.store"
        return (Store(path) if path.exists() else Store.create(path, X, y)).X, y
    if cell.place == "cluster":
        import dask.array
        from distributed import Client, default_client

        try:
            default_client()
        except ValueError:
            Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)
        size = len(X) // PARTITIONS
        return dask.array.from_array(X, chunks=(size, -1)), dask.array.from_array(np.asarray(y), chunks=size)
    return X, y


def fit(cell: Cell, found: dict[str, Any], folder: Path, scratch: Path) -> Fitted:
    """One fit."""
    X, y = rows_of(cell, found, folder)
    try:
        model = model_of(cell).fit(*placed(cell, X, y, scratch))
    except Exception as error:
        return Fitted([], [], [], f"{type(error).__name__}: {error}")
    if cell.machine in KERNELS:
        coef = model.dual_coef_
        intercept = np.ravel(model.intercept_)
        coef = coef.toarray() if sparse.issparse(coef) else np.atleast_2d(coef)  # as the rows are
        rows = [np.append(coef.ravel(), intercept)]
    else:
        coef = np.atleast_2d(model.coef_)
        rows = [np.append(one, b) for one, b in zip(coef, np.broadcast_to(model.intercept_, len(coef)), strict=True)]
    certificates = getattr(model, "certificates_", None) or [model.certificate_]
    told = [one.primal for one in certificates], [one.dual for one in certificates]
    return Fitted([np.asarray(one, dtype=np.float64).tolist() for one in rows], *told)


def serve(folder: Path) -> None:
    """Answer each line, a cell, with what its fit came to, until there are no more."""
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for line in sys.stdin:
            print(json.dumps(fit(Cell(*json.loads(line)), found, folder, Path(scratch))), flush=True)


def difference(cell: Cell, old: Fitted, new: Fitted) -> str:
    """How two fits differ; empty where they agree to the last bit."""
    if old == new:
        return ""
    if old.error or new.error or (np.shape(old.weights) != np.shape(new.weights) and cell.machine not in KERNELS):
        return f"OTHER RESULTS: {old.error or 'a fit'}; {new.error or 'a fit'}"
    if cell.penalty == "l1" or cell.machine in KERNELS:
        apart = max(abs(a - b) for a, b in zip(old.primal, new.primal, strict=True))
        allowed = max(old.gaps + new.gaps)
        what = "primal objectives"
    else:
        square = 1.0 - L1_RATIO if cell.penalty == "elasticnet" else 1.0
        last = None if cell.intercept == "regularized" else -1  # of a free intercept the bound says nothing
        apart = float(np.linalg.norm(np.subtract(old.weights, new.weights)[:, :last]))
        pairs = zip(old.gaps, new.gaps, strict=True)
        allowed = math.hypot(*(math.sqrt(2 * g / square) + math.sqrt(2 * h / square) for g, h in pairs))
        what = "weights"
    verdict = "within the certified gaps" if apart <= allowed else "BEYOND THE CERTIFIED GAPS"
    return f"{what} {apart:.2e} apart, {allowed:.2e} allowed: {verdict}"


def compare(trees: Sequence[subprocess.Popen[str]], cells: Sequence[Cell], seconds: float) -> bool:
    """Fit in both trees, say what differs as it is found, and how many agree; whether nothing differs by too much."""
    began = time.monotonic()
    same = 0
    done = 0
    fine = True
    refused = 0
    for cell in cells:
        if time.monotonic() - began > seconds:
            break
        for tree in trees:
            assert tree.stdin is not None
            print(json.dumps(cell), file=tree.stdin, flush=True)
        old, new = (Fitted(*json.loads(tree.stdout.readline())) for tree in trees if tree.stdout is not None)
        told = difference(cell, old, new)
        done = done + 1
        same = same + (not told)
        refused = refused + bool(new.error)
        fine = fine and "BEYOND" not in told and "OTHER" not in told
        if told:
            print(" ".join(map(str, cell)), told, flush=True)
    took = time.monotonic() - began
    print(f"{same} of {done} cells agree to the last bit, {refused} refused; {len(cells)} in the grid, {took:.0f} s")
    return fine


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, nargs="?", help="folder that holds the package saddlesvm")
    parser.add_argument("new", type=Path, nargs="?", help="another")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--quick", action="store_true", help="the made data, one intercept a cell")
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
    fine = compare(trees, grid(arguments.quick), 60.0 * arguments.minutes)
    for tree in trees:
        assert tree.stdin is not None
        tree.stdin.close()
        tree.wait()
    if not fine:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
