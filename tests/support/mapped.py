"""Problems over mapped files, block by block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm import Store
from saddlesvm.fit.outcome import FitResult
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem, Rooms, make_problem
from saddlesvm.rows.files import BlockReader
from saddlesvm.rows.layouts import as_rows
from saddlesvm.rows.memory_plan import MemoryPlan, make_plan
from saddlesvm.rows.passes import FromFiles
from support import csr, distance_bound, matrix

N, D = 400, 7


def mapped(X: np.ndarray, folder: Path, name: str = "X.npy") -> np.ndarray:
    """The array, mapped from a file."""
    np.save(folder / name, X)
    return np.load(folder / name, mmap_mode="r")


def mapped_csr(X: np.ndarray, folder: Path) -> sparse.csr_array:
    """A CSR matrix over mapped arrays."""
    made = csr(X)
    parts = [mapped(part, folder, f"{name}.npy") for name, part in vars_of(made).items()]
    over = sparse.csr_array(X.shape, dtype=X.dtype)
    over.data, over.indices, over.indptr = parts
    return over


def vars_of(made: Any) -> dict[str, np.ndarray]:
    """The arrays of a CSR matrix."""
    return {"data": made.data, "indices": made.indices, "indptr": made.indptr}


def streamed(X: Any, y: np.ndarray, loss: Loss, plan: MemoryPlan | None = None, **options: Any) -> Problem:
    """A problem whose rows are read block by block, 24 chunks a block unless planned otherwise."""
    options = {"C": 0.5} | options
    kept_bytes = options.pop("kept_bytes", 0)
    rows = as_rows(X, 0.0 if options.get("intercept", "none") == "none" else 1.0)
    plan = plan or make_plan(rows, 2**30, 1)
    reader = BlockReader(rows, plan.edges, plan.per_block, np.zeros(y.size))
    rooms = Rooms(plan.row_array((y.size,)), kept_bytes=kept_bytes)
    return make_problem(files(reader), y, loss, rooms=rooms, **options)


def files(reader: BlockReader) -> FromFiles:
    """All rows of the files."""
    return FromFiles(reader, np.arange(reader.norms.size))


def close_enough(one: FitResult, other: FitResult) -> bool:
    """Whether two results in the C form are as near to each other as their gaps make them."""
    away = np.linalg.norm(one.coef - other.coef)
    return bool(away <= distance_bound(one.certificate.gap, other.certificate.gap))


def large_store(folder: Path) -> Store:
    """A store that is larger than half of the least memory."""
    X = matrix(40_000, 60).astype(np.float32)
    y = np.digitize(X[:, 0] + np.random.default_rng(0).normal(size=len(X)), [-1.0, 1.0])
    return Store.create(folder / "large.store", X, y, 1.0 + (np.arange(len(X)) % 2))


class StopAt:
    """A callback that ends a fit as a kill would, after some blocks."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def tick(self, epoch: float, estimate: float, seconds: float) -> None:
        """Count a step down."""
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1

    def __call__(self, record: Any) -> None:
        """Nothing to do at a certificate."""
