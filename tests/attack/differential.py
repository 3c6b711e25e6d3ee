"""One problem by every solver, place, precision and number of threads: no certificate above another's bound.

All fits of a case are of one problem, on the same numbers. Each proves a lower bound of its optimum, and has an
objective above it: so the largest of the bounds must not be above the smallest of the objectives, whatever ended them.
"""

from __future__ import annotations

import itertools
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import sparse

from saddlesvm import LinearSVC, LinearSVR, Store
from saddlesvm.rows import memory_plan

from .tally import Tally

LOSSES = ("hinge", "squared_hinge", "smooth_hinge", "logistic")
TARGET_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive", "squared", "absolute", "huber")
SOLVERS = ("auto", "dcd", "sdca", "newton", "pegasos")
LEAST = 1 << 12  # bytes of memory= that are allowed here, so that small stores are read block by block
EPOCHS = (1, 5, 200)


def differential(folder: Path, seed: int, first: int, count: int) -> Tally:
    """Fit these problems in every way, and compare the certificates."""
    tally = Tally("differential")
    for number in range(first, first + count):
        random = np.random.default_rng([seed, number, 8])
        work = folder / f"differential-{seed}-{number}"
        work.mkdir()
        with warnings.catch_warnings(), np.errstate(all="ignore"), patch.object(memory_plan, "LEAST_MEMORY", LEAST):
            warnings.simplefilter("ignore")
            kind, X, y, options = posed(random)
            told = []
            for way, design, given in ways(X, y, work):
                end = {"max_iter": int(random.choice(EPOCHS)), "tol": float(random.choice([1e-3, 1e-9]))}
                try:
                    model = kind(**options, **given, **end, random_state=0).fit(design, y)
                except ValueError:  # not every solver takes every problem
                    tally.outcomes["refused"] += 1
                    continue
                told.append((way, model.certificate_))
                tally.outcomes[f"{way.split()[0]} {model.outcome_}"] += 1
        shutil.rmtree(work)
        tally.cases += 1
        highest, lowest = max(told, key=lambda one: one[1].dual), min(told, key=lambda one: one[1].primal)
        if highest[1].dual > lowest[1].primal:
            tally.failures.append(
                f"differential {seed}:{number} {kind.__name__} {options}: {highest[0]} proves {highest[1].dual!r}, "
                f"{lowest[0]} has {lowest[1].primal!r}"
            )
    return tally


def posed(random: np.random.Generator) -> tuple[Any, np.ndarray, np.ndarray, dict[str, Any]]:
    """The estimator's class, rows that float32 holds, labels or targets, and the options of the problem."""
    n, d = int(random.integers(20, 400)), int(random.integers(1, 30))
    X = (random.normal(size=(n, d)) * 10.0 ** random.uniform(-2, 2, d)).astype(np.float32).astype(np.float64)
    X[random.random(X.shape) < 0.4] = 0.0
    score = X @ random.normal(size=d) + random.normal(size=n)
    options: dict[str, Any] = {
        "C": 10.0 ** random.uniform(-5, 3),
        "intercept": str(random.choice(["regularized", "free"])),
    }
    options["fit_intercept"] = bool(random.random() < 0.8)
    if random.random() < 0.6:
        y = np.where(score > np.quantile(score, random.uniform(0.1, 0.9)), 1, -1)
        return LinearSVC, X, y, options | {"loss": str(random.choice(LOSSES))}
    return LinearSVR, X, score, options | {"loss": str(random.choice(TARGET_LOSSES)), "epsilon": 0.1}


def ways(X: np.ndarray, y: np.ndarray, work: Path) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Each way of fitting: its name, the rows, and the estimator's options."""
    forms = {
        "dense": X,
        "csr": sparse.csr_array(X),
        "float32": X.astype(np.float32),
        "csr-float32": sparse.csr_array(X.astype(np.float32)),
    }
    for (form, design), solver in itertools.product(forms.items(), SOLVERS):
        yield f"{solver} {form}", design, {"solver": solver}
        if solver in ("auto", "dcd"):
            yield f"{solver} {form} with threads", design, {"solver": solver, "n_jobs": 2}
    for form, design in forms.items():
        store = Store.create(work / form, design, y)
        for solver in ("auto", "blocks"):
            yield f"{solver} {form} in a store", store, {"solver": solver, "memory": "16K"}
