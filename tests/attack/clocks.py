"""Time limits that are kept: what each family of fits takes of the processor where it is given too little time.

The limit is for the whole fit: preparation, certificates and all classes. A fit does one piece of work at least, such
as a pass over its rows for one class, and tells of each of its sub-problems, some 10 microseconds each.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm import SVC, SVR, KernelSVC, LinearSVC, LinearSVR, OneClassSVM
from saddlesvm.runtime.clock import seconds_compiling

from .tally import Tally

SHARE, MORE = 1.1, 0.1  # of the seconds asked for, and seconds besides: what a fit may take
Run = Callable[[float], Any]


def noise(n: int, d: int, classes: int, spread: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels that have nothing to do with each other: no machine is soon done with them."""
    random = np.random.default_rng(0)
    return random.normal(size=(n, d)) * 10.0 ** random.uniform(-spread, spread, d), random.integers(0, classes, n)


def linear(n: int, d: int, classes: int, spread: float = 0.0, **options: Any) -> Callable[[], Run]:
    """A linear machine over noise."""

    def prepared() -> Run:
        X, y = noise(n, d, classes, spread)
        return lambda seconds: LinearSVC(max_time=seconds, random_state=0, **options).fit(X, y)

    return prepared


def over_sparse_rows(**options: Any) -> Callable[[], Run]:
    """A linear machine over many features, most of them zero."""

    def prepared() -> Run:
        random = np.random.default_rng(0)
        X = sparse.random_array((20_000, 20_000), density=2e-3, rng=random, format="csr")
        y = random.integers(0, 2, 20_000)
        return lambda seconds: LinearSVC(max_time=seconds, random_state=0, **options).fit(X, y)

    return prepared


def kernel(kind: Any, n: int, classes: int, **options: Any) -> Callable[[], Run]:
    """A kernel machine over noise."""

    def prepared() -> Run:
        X, y = noise(n, 20, classes)
        return lambda seconds: kind(max_time=seconds, **options).fit(X, y)

    return prepared


def path() -> Run:
    """A certified path."""
    X, y = noise(20_000, 50, 2)
    return lambda seconds: LinearSVC.path(X, y, gap=1e-4, max_time=seconds, random_state=0)


def targets() -> Run:
    """A regression that no solver ends soon."""
    X, _ = noise(100_000, 50, 2)
    y = X.sum(axis=1) + np.random.default_rng(1).normal(size=len(X))
    return lambda seconds: LinearSVR(max_time=seconds, tol=1e-13, C=100.0, random_state=0).fit(X, y)


HARD = {"tol": 1e-9, "C": 100.0}
FAMILIES: dict[str, Callable[[], Run]] = {
    "one class of rows against the other": linear(200_000, 50, 2, loss="hinge", **HARD),
    "spread features, steep loss": linear(4_000, 500, 2, 3.0, loss="logistic", tol=1e-13, C=1e4),
    "300 classes, one against the rest": linear(60_000, 50, 300, **HARD),
    "300 classes, few rows": linear(3_000, 30, 300, **HARD),
    "100 classes, each pair": linear(3_000, 30, 100, multi_class="ovo", **HARD),
    "300 classes, each pair": linear(6_000, 30, 300, multi_class="ovo", **HARD),
    "Crammer and Singer, 300 classes": linear(3_000, 30, 300, multi_class="crammer_singer", tol=1e-9),
    "Crammer and Singer, C = 4e7": linear(120, 20, 3, multi_class="crammer_singer", tol=1e-12, C=4e7),
    "multinomial, 100 classes": linear(20_000, 100, 100, multi_class="multinomial", loss="logistic", tol=1e-12),
    "l1 norm": linear(5_000, 1_000, 2, penalty="l1", tol=1e-12, C=10.0),
    "l1 norm, sparse rows": over_sparse_rows(penalty="l1", tol=1e-12, C=10.0),
    "C chosen automatically": linear(60_000, 100, 2, loss="logistic", C="auto"),
    "path": path,
    "regression": targets,
    "kernel": kernel(KernelSVC, 20_000, 2, random_state=0),
    "kernel, 100 classes": kernel(SVC, 6_000, 100, C=100.0, tol=1e-6),
    "kernel with probabilities": kernel(SVC, 4_000, 2, probability=True),
    "kernel regression": kernel(SVR, 20_000, 100),
    "Pegasos": linear(100_000, 50, 2, loss="hinge", solver="pegasos", tol=1e-13),
    "a kernel's rows, all of one class": kernel(OneClassSVM, 3_000, 2),
}


def taken(run: Run, seconds: float) -> float:
    """Seconds of the processor that a fit takes, compilation excluded, where so many seconds are asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(0.02)  # compiles
        compiled, began = seconds_compiling(), time.process_time()
        run(seconds)
        return time.process_time() - began - (seconds_compiling() - compiled)


def clocks(seed: int, first: int, count: int, share: float = SHARE, more: float = MORE) -> Tally:
    """Hold the families of these numbers to time limits; even seeds ask for one second, odd ones for a tenth of one.

    A pair of 300 classes and others with tens of thousands of sub-problems are asked for a second always.
    """
    tally = Tally(name="clocks")
    for name in list(FAMILIES)[first : first + count]:
        asked = 0.1 if seed % 2 and "300 classes, each pair" not in name else 1.0
        spent = taken(FAMILIES[name](), asked)
        tally.cases += 1
        tally.outcomes[f"{name}: {asked:g} s asked, {max(spent, 0.0):.2f} s taken"] += 1
        if spent > share * asked + more:
            tally.failures.append(f"{name}: {asked:g} s were asked for, {spent:.2f} s taken")
    return tally
