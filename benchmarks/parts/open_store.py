"""Milliseconds to open a sparse store, and to check its indices at the first use.

python -m benchmarks.parts.open_store --gigabytes 1
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data import Store, StoreWriter

VALUES_A_ROW = 80
FEATURES = 100_000
BLOCK = 50_000  # rows


def block(random: np.random.Generator, rows: int) -> tuple[Any, np.ndarray]:
    """Rows with one value in each of 80 runs of features, and labels of the first one."""
    width = FEATURES // VALUES_A_ROW
    places = random.integers(0, width, (rows, VALUES_A_ROW)) + width * np.arange(VALUES_A_ROW)
    values = random.standard_normal((rows, VALUES_A_ROW), dtype=np.float32)
    starts = np.arange(0, rows * VALUES_A_ROW + 1, VALUES_A_ROW)
    X = sparse.csr_matrix((values.ravel(), places.astype(np.int32).ravel(), starts), shape=(rows, FEATURES))
    return X, np.where(values[:, 0] > 0, 1, -1)


def milliseconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """The time of a call, and its result."""
    began = time.perf_counter()
    result = work()
    return 1e3 * (time.perf_counter() - began), result


def main() -> None:
    """Print a line of a table for each repetition."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    random = np.random.default_rng(0)
    rows = int(options.gigabytes * 1e9 / (8 * VALUES_A_ROW))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.store")
        with StoreWriter(path, dtype=np.float32) as writer:
            for start in range(0, rows, BLOCK):
                writer.append(*block(random, min(BLOCK, rows - start)))
        print("| GB | open, ms | first use of the rows, ms | next use, ms |")
        print("|---|---|---|---|")
        for _ in range(options.repeats):
            opening, store = milliseconds(lambda: Store(path))
            checking, _ = milliseconds(lambda: store.matrix())  # noqa: B023
            again, _ = milliseconds(lambda: store.matrix())  # noqa: B023
            print(f"| {store.n_bytes / 1e9:.2f} | {opening:.2f} | {checking:.0f} | {again:.2f} |")


if __name__ == "__main__":
    main()
