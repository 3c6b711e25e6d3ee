"""Probes of many classes on embeddings: processor seconds, peak memory and accuracy, beside scikit-learn's.

    python -m benchmarks.claims.probes                                 20,000 x 384, 100 classes
    python -m benchmarks.claims.probes --shape 20000 256 1000 --dtype float16
    python -m benchmarks.claims.probes --shape 200000 768 1000 --dtype float16 --resident --only multinomial

The rows are made here: noisy points around a centre a class, of norm 1; a tenth is held out. One thread. The peak is
that of the arrays made above the rows (tracemalloc), in a second run of ours. For large shapes `--resident` takes it
from the memory of the process in the only run (Linux), trains on all rows, and shows each certificate as it is proven,
with the processor seconds so far. scikit-learn's ``LogisticRegression`` (lbfgs), ``SGDClassifier`` and
``RidgeClassifier`` get float32 rows and their own defaults but for C and alpha; of 500 classes and more lbfgs gets
tol=1e-6, because it stops at weights of zero with 1e-4. Our fits prove a relative gap of 1e-2 of every problem; nobody
else proves anything.
"""

from __future__ import annotations

import argparse
import resource
import time
import tracemalloc
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from threadpoolctl import threadpool_limits

from benchmarks.claims.out_of_core import MemoryWatch
from saddlesvm import LinearSVC

WAYS: dict[str, dict[str, Any]] = {
    "ovr, logistic": {"loss": "logistic"},
    "ovr, squared hinge": {},
    "multinomial": {"multi_class": "multinomial", "loss": "logistic"},
    "Crammer and Singer": {"multi_class": "crammer_singer", "loss": "hinge"},
}


def embeddings(n: int, d: int, classes: int, noise: float = 5.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm 1 around a centre a class, float32, and their classes."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((classes, d), dtype=np.float32)
    y = np.arange(n) % classes
    X = centres[y] + np.float32(noise) * random.standard_normal((n, d), dtype=np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, y


def measured(model: Any, X: np.ndarray, y: np.ndarray, held_out: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
    """Processor seconds of a fit, and its accuracy on the rows held out."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        began = time.process_time()
        model.fit(X, y)
        return time.process_time() - began, float(model.score(*held_out))


def peak(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Bytes of the arrays that a fit makes at most at one time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracemalloc.start()
        model.fit(X, y)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(found)


def resident() -> int:
    """Bytes of memory that the process has now (Linux)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def show_large(name: str, way: dict[str, Any], C: float, X: np.ndarray, y: np.ndarray, most: float | None) -> None:
    """Fit once; print every certificate, the seconds, and the memory above the rows."""
    began = time.process_time()
    wall = time.perf_counter()

    def show(record: Any) -> None:
        spent = f"{time.process_time() - began:.0f} s of processor time, {time.perf_counter() - wall:.0f} s"
        print(f"  {record.problem} pass {record.epoch:.1f}, gap {record.relative_gap:.1e}, {spent}", flush=True)

    model = LinearSVC(C=C, tol=1e-2, random_state=0, callbacks=[show], max_time=most, **way)
    with warnings.catch_warnings(), threadpool_limits(1), MemoryWatch(resident) as memory:
        warnings.simplefilter("ignore")
        model.fit(X, y)
    worst = max(one.relative_gap for one in np.atleast_1d(np.array(model.certificates_, dtype=object)))
    print(
        f"{name}: gap {worst:.1e}, {time.process_time() - began:.0f} s of processor time, "
        f"{time.perf_counter() - wall:.0f} s, {memory.most / 1e6:.0f} MB above the rows of {X.nbytes / 1e6:.0f} MB",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", type=int, nargs=3, default=(20_000, 384, 100), help="rows, columns, classes")
    parser.add_argument("--dtype", default="float32", help="of the rows that our fits get")
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--only", default="", help="ways whose name contains this")
    parser.add_argument(
        "--resident", action="store_true", help="one run of ours, on all rows, with the process's memory"
    )
    parser.add_argument("--most", type=float, help="seconds of each fit, with --resident")
    options = parser.parse_args()
    if options.resident:
        X, y = embeddings(*options.shape)
        X = X.astype(options.dtype)
        some = slice(0, 5000)
        for name, way in WAYS.items():
            if options.only in name:
                LinearSVC(tol=0.1, random_state=0, **way).fit(
                    X[some, :50], y[some] % 20
                )  # imports are no memory of a fit
                show_large(name, way, options.C, X, y, options.most)
        return
    X, y = embeddings(*options.shape)
    last = len(y) // 10
    held_out = (X[:last], y[:last])
    X = X[last:]
    y = y[last:]
    rows = X.astype(options.dtype)
    print(f"{options.shape}, {options.dtype}, C = {options.C:g}: rows of {rows.nbytes / 2**20:.0f} MiB")
    ours = {name: LinearSVC(C=options.C, tol=1e-2, random_state=0, **way) for name, way in WAYS.items()}
    others = {
        "LogisticRegression, lbfgs": LogisticRegression(C=options.C, tol=1e-4 if options.shape[2] < 500 else 1e-6),
        "SGDClassifier, log_loss": SGDClassifier(loss="log_loss", alpha=1.0 / (options.C * len(y)), random_state=0),
        "RidgeClassifier": RidgeClassifier(alpha=1.0 / options.C),
    }
    for name, model in {**ours, **others}.items():
        if options.only not in name:
            continue
        seconds, accuracy = measured(model, rows if name in ours else X, y, held_out)
        told = ""
        if name in ours:
            proofs = np.atleast_1d(np.array(model.certificates_, dtype=object))
            worst = max(one.relative_gap for one in proofs)
            told = f"  gap {worst:.1e}  peak {peak(model, rows, y) / rows.nbytes:.1f} times the rows"
        print(f"{name:26s} {seconds:8.1f} s  accuracy {accuracy:.3f}{told}", flush=True)


if __name__ == "__main__":
    main()
