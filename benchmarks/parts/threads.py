"""Threads within one fit: seconds to the same certified gap with one thread and with several, interleaved medians.

Run on a machine that does nothing else. BLAS is kept to one thread, so that its idle threads do not spin on the cores:

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python -m benchmarks.parts.threads

With ``--busy`` a loop that never rests runs on each core at the same time: threads must then not be slower than one.

``--newton`` has fits that Newton's method dominates (C = 100, to 1e-6), one of them of eight classes.

With ``--ceiling`` the same fits by as many separate processes as threads, which share nothing but the memory and the
caches of the machine: what they take longer at the same time than alone, no threads can win back.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from benchmarks.common import embedding_like, interleaved, text_like
from saddlesvm import LinearSVC

Data = tuple[Any, np.ndarray]
LOSSES = ("hinge", "squared_hinge", "logistic")
SMOOTH = LOSSES[1:]


def data_sets(share: int) -> dict[str, Callable[[], Data]]:
    """The two large problems, the dense one in both precisions, and a small one that threads cannot help."""
    n = 100_000 // share
    return {
        f"sparse {n:,} x 47,000": lambda: text_like(n, 47_000, 75),
        f"dense {n:,} x 512": lambda: embedding_like(n, 512),
        f"dense {n:,} x 512, float32": lambda: embedding_like(n, 512, np.float32),
        "dense 2,000 x 50": lambda: embedding_like(2_000, 50),
    }


def newton_sets(share: int) -> dict[str, Callable[[], Data]]:
    """Dense problems on which Newton's method passes over the rows, factors large matrices, and solves for classes."""
    n = 200_000 // share

    def classes() -> Data:
        X, _ = embedding_like(n // 4, 200)
        return X, np.argmax(X @ np.random.default_rng(1).normal(size=(200, 8)), axis=1)

    return {
        f"dense {n:,} x 200": lambda: embedding_like(n, 200),
        f"dense {n // 10:,} x 1,200": lambda: embedding_like(n // 10, 1_200),
        f"dense {n // 4:,} x 200, 8 classes": classes,
    }


def compare(name: str, X: Any, y: np.ndarray, loss: str, options: argparse.Namespace) -> None:
    """A line of the table."""
    common: dict[str, Any] = {
        "loss": loss, "tol": options.tol, "fit_intercept": False, "random_state": 0, "solver": options.solver,
        "C": 100.0 if options.newton else 1.0,
    }  # fmt: skip

    def fit(jobs: int) -> Callable[[], LinearSVC]:
        return lambda: LinearSVC(n_jobs=jobs, **common).fit(X, y)

    fit(1)(), fit(options.threads)()  # compile
    table = interleaved({"one": fit(1), "several": fit(options.threads)}, options.repeats)
    one, first = table["one"]
    several, second = table["several"]
    print(
        f"{name:30s} {loss:14s} {1e3 * one:9.1f} {1e3 * several:9.1f} {one / several:6.2f} {np.max(first.n_iter_):7d} "
        f"{np.max(second.n_iter_):7d} {first.certificate_.relative_gap:8.1e} {second.certificate_.relative_gap:8.1e}",
        flush=True,
    )


def fits_in_a_process(place: int, start: Any, name: str, share: int, loss: str, tol: float, repeats: int) -> float:
    """Median seconds of a fit by one thread on a core of its own, begun when all processes are ready."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[place % len(cores)]})
    X, y = data_sets(share)[name]()
    model = LinearSVC(loss=loss, tol=tol, fit_intercept=False, random_state=0).fit(X, y)
    start.wait()
    return interleaved({"alone": lambda: model.fit(X, y)}, repeats)["alone"][0]


def ceiling(name: str, loss: str, options: argparse.Namespace) -> None:
    """How many times faster so many threads could be at best, by what separate processes lose to each other."""
    context = multiprocessing.get_context("spawn")
    medians = []
    with context.Manager() as manager:
        for count in (1, options.threads):
            start = manager.Barrier(count)
            with ProcessPoolExecutor(count, mp_context=context) as pool:
                common = (start, name, 10 if options.quick else 1, loss, options.tol, 3 * options.repeats)
                running = [pool.submit(fits_in_a_process, place, *common) for place in range(count)]
                medians.append(statistics.mean(one.result() for one in running))
    alone, together = medians
    best = options.threads * alone / together
    print(f"{name:30s} {loss:14s} {1e3 * alone:9.1f} {1e3 * together:9.1f} {best:6.2f}", flush=True)


def rest_never() -> None:
    """Keep a core busy until somebody ends this process."""
    while True:
        pass


@contextmanager
def busy_cores() -> Iterator[None]:
    """A loop on every core that this process may use, for the time of the context."""
    context = multiprocessing.get_context("spawn")
    loops = [context.Process(target=rest_never, daemon=True) for _ in os.sched_getaffinity(0)]
    for loop in loops:
        loop.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--solver", default="auto")
    parser.add_argument("--tol", type=float)
    parser.add_argument("--newton", action="store_true", help="fits that Newton's method dominates")
    parser.add_argument("--ceiling", action="store_true", help="separate processes instead of threads")
    parser.add_argument("--busy", action="store_true", help="beside a loop that never rests on each core")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    options = parser.parse_args()
    options.tol = options.tol or (1e-6 if options.newton else 1e-3)
    sets = (newton_sets if options.newton else data_sets)(10 if options.quick else 1)
    if options.ceiling:
        print(f"{'data':30s} {'loss':14s} {'alone: ms':>9s} {options.threads:>3d} at once {'at best':>6s}")
        for name in data_sets(10 if options.quick else 1):
            for loss in LOSSES:
                ceiling(name, loss, options)
        return
    print(
        f"{'data':30s} {'loss':14s} {'1: ms':>9s} {options.threads:>6d}: ms {'ratio':>6s} {'epochs':>15s} {'gaps':>17s}"
    )
    with busy_cores() if options.busy else nullcontext():
        for name, make in sets.items():
            X, y = make()
            for loss in SMOOTH if options.newton else LOSSES:
                compare(name, X, y, loss, options)


if __name__ == "__main__":
    main()
