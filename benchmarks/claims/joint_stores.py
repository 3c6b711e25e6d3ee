"""Multinomial regression from a store with memory for a fraction of it, beside the same fits in memory.

    python -m benchmarks.claims.joint_stores --data FOLDER --memory 64M

FOLDER holds ``fashion-mnist`` with its four idx files: 60,000 x 784 float32, 188 MB. Sweeps (in memory: epochs),
seconds of the processor and on the clock, and anonymous memory above that before the fit, sampled every 5 ms; kernels
are compiled before.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.claims.out_of_core import MemoryWatch
from benchmarks.peers.multiclass import fashion, show
from saddlesvm import LinearSVC, Store

CASES = (("multinomial", 1e-4),)
LONGEST = 100.0  # seconds of a fit


def line_of(way: str, C: float, tol: float, X: Any, y: np.ndarray, memory: str | None) -> list[str]:
    """One fit, from the store where `memory` is given."""
    model = LinearSVC(multi_class=way, C=C, tol=tol, memory=memory, max_time=LONGEST, random_state=0)
    begun = time.perf_counter()
    spent = time.process_time()
    with MemoryWatch() as watch:
        model.fit(X, y)
    spent = time.process_time() - spent
    wall = time.perf_counter() - begun
    gap = f"{model.certificate_.relative_gap:.0e}"
    told = [f"{model.n_iter_:.0f}", gap, f"{spent:.1f}", f"{wall:.1f}", f"{watch.most / 2**20:.0f}"]
    return [way, f"{C:g}", memory or "all", *told]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--memory", default="64M")
    parser.add_argument("--only", default="", help="machines whose name contains this")
    parser.add_argument("--C", type=float, nargs="+", default=[0.01, 0.1, 1.0])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = fashion(options.data, "train")
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder) / "clothes.store", np.ascontiguousarray(X, dtype=np.float32), y)
        inside = np.array(store.X)
        for way, tol in CASES:
            if options.only not in way:
                continue
            for rows, memory in ((store, "16M"), (inside, None)):
                line_of(way, 1e-4, 0.3, rows, y, memory)  # compiles
            for C in options.C:
                for rows, memory in ((store, options.memory), (inside, None)):
                    lines.append(line_of(way, C, tol, rows, y, memory))
                    print(*lines[-1], flush=True)
    show(
        "Joint machines from a store", ["machine", "C", "memory", "epochs", "gap", "processor s", "wall s", "MB"], lines
    )


if __name__ == "__main__":
    main()
