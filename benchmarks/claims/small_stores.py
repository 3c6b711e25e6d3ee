"""What a fit over a store costs that is a little larger than its memory: sweeps, bytes read, processor time.

    PYTHONPATH=SRC OMP_NUM_THREADS=1 python -m benchmarks.claims.small_stores --data DIR

`SRC` is the source tree to measure. Bytes are those that the process reads, of certificates too (Linux). The processor
time is the least of two fits, to a relative gap of 1e-3.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.claims.old_and_new import dataset
from benchmarks.claims.same_fits import made_rows
from saddlesvm import LinearSVC, Store

MEMORY = "16M"  # the least; the values of either store take more than half of it
MACHINES = (("ovr", "squared_hinge"), ("ovr", "logistic"), ("ovr", "hinge"), ("multinomial", "logistic"))


def bytes_read() -> int:
    """The bytes that this process has read so far, from files or their cache."""
    return int(Path("/proc/self/io").read_text().split()[1])


def measure(store: Store, **options: Any) -> str:
    """Fit twice; return a row of the table."""
    seconds = []
    for _ in range(2):
        model = LinearSVC(tol=1e-3, memory=MEMORY, max_time=100.0, random_state=0, **options)
        before = bytes_read()
        began = time.process_time()
        model.fit(store.X, store.y)
        seconds.append(time.process_time() - began)
        read = bytes_read() - before
    return f"{model.outcome_} | {model.n_iter_} | {read / 1e6:.0f} | {min(seconds):.2f} |"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"))
    folder = parser.parse_args().data
    warnings.simplefilter("ignore")
    for name, kinds in (("made", ("regularized", "free")), ("rcv1-binary", ("regularized",))):
        X, y = made_rows() if name == "made" else dataset(name, folder)
        with tempfile.TemporaryDirectory() as scratch:
            store = Store.create(Path(scratch) / "rows.store", X, y)
            for (classes, loss), kind, C in itertools.product(MACHINES, kinds, (0.01, 1.0)):
                if name == "made" or classes == "ovr":
                    row = measure(store, multi_class=classes, loss=loss, intercept=kind, C=C)
                    print(f"| {name} | {classes} | {loss} | {kind} | {C:g} | {row}", flush=True)


if __name__ == "__main__":
    main()
