"""Two threads against one, and against two separate processes side by side: seconds of the same work in one run.

For every work three figures are taken in turn, and their medians compared: one thread alone, several threads, and one
thread in each of so many processes at the same time. What the processes lose to each other (they share nothing but the
memory and the last cache) no threads can win back: twice the time alone by the time side by side is the ceiling.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python -m benchmarks.parts.side_by_side [--only paths folds ...]

Run on a machine that does nothing else; the last column says how many cores other programs kept busy meanwhile, where
the system tells. ``--quick`` takes a tenth of the rows, and compiles what the others need.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common import embedding_like, text_like
from saddlesvm import LinearSVC, LinearSVCCV

Data = tuple[Any, np.ndarray]
Work = Callable[[Any, np.ndarray, int], Any]
CS = np.logspace(-2, 2, 9)


def classes_of(X: Any, count: int) -> np.ndarray:
    """Labels of so many classes: the largest of as many random linear scores, with noise."""
    random = np.random.default_rng(1)
    scores = X @ random.normal(size=(X.shape[1], count))
    return np.argmax(scores + 0.3 * scores.std() * random.normal(size=scores.shape), axis=1)


def dense(n: int, d: int, count: int = 2, dtype: Any = np.float64) -> Data:
    """Dense rows, with labels of two classes or of several."""
    X, y = embedding_like(n, d, dtype)
    return X, y if count == 2 else classes_of(X, count)


def sparse(n: int, count: int = 2) -> Data:
    """Text-like rows, with labels of two classes or of several."""
    X, y = text_like(n, 47_000, 75)
    return X, y if count == 2 else classes_of(X, count)


def every_C(loss: str) -> Work:
    """Every C between two ends, proven."""
    return lambda X, y, jobs: LinearSVC(loss=loss, random_state=0, n_jobs=jobs).path(X, y, C=(1e-2, 1e2))


def folds(loss: str) -> Work:
    """Nine values of C, five folds, and the chosen C for all rows."""

    def work(X: Any, y: np.ndarray, jobs: int) -> Any:
        return LinearSVCCV(LinearSVC(loss=loss, tol=1e-3, random_state=0), Cs=CS, n_jobs=jobs).fit(X, y)

    return work


def fit(loss: str, tol: float = 1e-3, C: float = 1.0, **options: Any) -> Work:
    """A single fit."""
    common = {"loss": loss, "tol": tol, "C": C, "fit_intercept": False, "random_state": 0, **options}
    return lambda X, y, jobs: LinearSVC(n_jobs=jobs, **common).fit(X, y)


def pairs(loss: str) -> Work:
    """Each class against each other one."""
    return fit(loss, multi_class="ovo")


def works(share: int) -> dict[str, dict[str, tuple[Callable[..., Data], tuple[Any, ...], Work]]]:
    """The works by their kinds: how to make the data, and what to do with them."""
    m = 20_000 // share
    return {
        "paths": {
            "every C, dense 20,000 x 100, logistic": (dense, (m, 100), every_C("logistic")),
            "every C, sparse 20,000 x 47,000, squared hinge": (sparse, (m,), every_C("squared_hinge")),
        },
        "folds": {
            "9 C x 5, dense 20,000 x 100, squared hinge": (dense, (m, 100), folds("squared_hinge")),
            "9 C x 5, dense 20,000 x 100, hinge": (dense, (m, 100), folds("hinge")),
            "9 C x 5, sparse 20,000 x 47,000, squared hinge": (sparse, (m,), folds("squared_hinge")),
        },
        "classes": {
            "10 classes, dense 20,000 x 200, squared hinge": (dense, (m, 200, 10), fit("squared_hinge")),
            "10 classes, dense 20,000 x 200, hinge": (dense, (m, 200, 10), fit("hinge")),
            "10 classes, sparse 20,000 x 47,000, squared hinge": (sparse, (m, 10), fit("squared_hinge")),
            "45 pairs, dense 20,000 x 200, squared hinge": (dense, (m, 200, 10), pairs("squared_hinge")),
            "45 pairs, sparse 20,000 x 47,000, hinge": (sparse, (m, 10), pairs("hinge")),
        },
        "newton": {
            "C = 100, dense 200,000 x 200, squared hinge": (dense, (10 * m, 200), fit("squared_hinge", 1e-6, 100.0)),
            "C = 100, dense 200,000 x 200, logistic": (dense, (10 * m, 200), fit("logistic", 1e-6, 100.0)),
            "C = 100, dense 20,000 x 1,200, squared hinge": (dense, (m, 1_200), fit("squared_hinge", 1e-6, 100.0)),
            "C = 100, dense 20,000 x 1,200, logistic": (dense, (m, 1_200), fit("logistic", 1e-6, 100.0)),
            "C = 100, sparse 100,000 x 47,000, logistic": (sparse, (5 * m,), fit("logistic", 1e-6, 100.0)),
            "C = 1, dense 100,000 x 512, squared hinge": (dense, (5 * m, 512), fit("squared_hinge")),
            "C = 1, dense 100,000 x 512, logistic": (dense, (5 * m, 512), fit("logistic")),
            "C = 1, dense 100,000 x 512, float32, logistic": (dense, (5 * m, 512, 2, np.float32), fit("logistic")),
        },
    }  # fmt: skip


def worker(place: Any, share: int) -> None:
    """Answer each (kind, name, threads, barrier) with the seconds of the work and of the processor, until None comes.

    What is asked for the first time is done once before, so that data are made and kernels compiled.
    """
    held: tuple[Any, Any] = (None, None)
    known: set[tuple[str, int]] = set()
    warnings.simplefilter("ignore", ConvergenceWarning)
    while (asked := place.recv()) is not None:
        kind, name, jobs, ready = asked
        make, sizes, work = works(share)[kind][name]
        if held[0] != (make, sizes):
            held = ((make, sizes), make(*sizes))
        if (name, jobs) not in known:
            work(*held[1], jobs)
            known.add((name, jobs))
        if ready:
            ready.wait()
        began = time.perf_counter()
        busy = time.process_time()
        work(*held[1], jobs)
        place.send((time.perf_counter() - began, time.process_time() - busy))


class Workers:
    """Separate processes that do the same work, at the same time or one of them alone.

    Attributes
    ----------
    own : float
        Processor seconds of the works so far.
    """

    def __init__(self, count: int, share: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.manager = context.Manager()
        self.start = self.manager.Barrier(count)
        self.own = 0.0
        self.ends = []
        for _ in range(count):
            here, there = context.Pipe()
            context.Process(target=worker, args=(there, share)).start()
            self.ends.append(here)

    def alone(self, kind: str, name: str, jobs: int) -> float:
        """Seconds of one process with `jobs` threads, the others idle."""
        self.ends[0].send((kind, name, jobs, None))
        return self._answer(self.ends[0])

    def together(self, kind: str, name: str) -> float:
        """Mean seconds of all processes at the same time, with one thread each."""
        for end in self.ends:
            end.send((kind, name, 1, self.start))
        return statistics.mean(self._answer(end) for end in self.ends)

    def _answer(self, end: Any) -> float:
        seconds, busy = end.recv()
        self.own += busy
        return float(seconds)


def busy_seconds() -> float:
    """Processor seconds that all programs of the machine have taken; NaN where the system does not say."""
    try:
        with open("/proc/stat") as told:
            user, nice, system, _, _, *interrupts = map(int, told.readline().split()[1:8])
    except OSError:
        return float("nan")
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")


def measured(workers: Workers, kind: str, name: str, count: int, repeats: int) -> str:
    """A line of the table: ms, times faster, the most that is to be had, the share of it, and what others took."""
    workers.alone(kind, name, count)  # data and kernels
    workers.together(kind, name)
    busy = busy_seconds()
    own = workers.own
    began = time.perf_counter()
    taken = [
        (workers.alone(kind, name, 1), workers.alone(kind, name, count), workers.together(kind, name))
        for _ in range(repeats)
    ]
    others = (busy_seconds() - busy - workers.own + own) / (time.perf_counter() - began)
    one, several, together = (statistics.median(times) for times in zip(*taken, strict=True))
    faster = one / several
    most = count * one / together
    return (
        f"{name:52s} {1e3 * one:8.0f} {1e3 * several:8.0f} {1e3 * together:8.0f} {faster:6.2f} {most:6.2f} "
        f"{faster / most:6.0%} {others:6.2f}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=list(works(1)), default=list(works(1)))
    parser.add_argument("--name", default="", help="works whose names have this in them only")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    count = options.threads
    workers = Workers(count, share)
    heads = f"{'1: ms':>8s} {count:>4d}: ms {'apart':>8s} {'faster':>6s} {'most':>6s} {'share':>6s} {'others':>6s}"
    print(f"{'work':52s} {heads}", flush=True)
    for kind in options.only:
        for name in (name for name in works(share)[kind] if options.name in name):
            print(measured(workers, kind, name, count, options.repeats), flush=True)
    for end in workers.ends:
        end.send(None)


if __name__ == "__main__":
    main()
