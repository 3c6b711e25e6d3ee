"""Many classes of embeddings, to a proven gap, beside scikit-learn's lbfgs: time, memory and gap of each.

    python -m benchmarks.peers.many_classes                                 200,000 x 768 float16, 1,000 classes
    python -m benchmarks.peers.many_classes --rows 20000 --classes 100      quick
    python -m benchmarks.peers.many_classes --only multinomial --seconds-limit 240

The rows are made here: noisy points around a Gaussian centre a class, of norm 1. Each fit runs in a process of its own,
which makes the rows, imports and compiles what it needs on a few of them, and then fits once. Memory is the most
anonymous memory of the process above what it had before the fit, so that the rows do not count (Linux).

- multinomial: ``LinearSVC(multi_class="multinomial", loss="logistic", fit_intercept=False)``, ended by ``tol`` or by
  ``max_time``.
- lbfgs: ``LogisticRegression(fit_intercept=False)``, which has the same objective. It gets float32 rows, its ``tol`` is
  1e-12, and it is stopped from outside (in the callback of ``scipy.optimize.minimize``) as soon as its own objective is
  within ``tol`` of the lower bound that our fit has proven, or at the limit. No user can do that, as lbfgs knows no
  bound: it is the best case of every tolerance. Its objective is then computed anew in float64.
- one against the rest: ``LinearSVC(fit_intercept=False)``, the squared hinge, a problem for each class. Classes that
  the limit leaves no time for are counted.

The threads are those that users have: ``n_jobs=-1`` for ours, all cores in the BLAS and OpenMP for lbfgs. Both can be
limited by ``OMP_NUM_THREADS``, ``OPENBLAS_NUM_THREADS`` and ``--jobs``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any
from unittest import mock

import numpy as np
from scipy import optimize

from benchmarks.claims.out_of_core import MemoryWatch

NOISE = 5.0  # of the rows, in units of the spread of the centres: classes overlap
BLOCK = 5_000  # rows that are made, or judged, at a time
FEW_ROWS, FEW_CLASSES = 2_000, 20  # of the fit before the clock starts
SIDES = ("multinomial", "lbfgs", "one against the rest")


def make_rows(n: int, d: int, classes: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm 1 around a centre a class, rounded to float16 first so that each dtype has the same values."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((classes, d), dtype=np.float32)
    y = random.permutation(np.arange(n) % classes)
    X = np.empty((n, d), dtype=dtype)
    for first in range(0, n, BLOCK):
        some = slice(first, min(first + BLOCK, n))
        rows = centres[y[some]]
        rows += np.float32(NOISE) * random.standard_normal(rows.shape, dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        X[some] = rows.astype(np.float16)
    return X, y


def softmax_objectives(X: np.ndarray, y: np.ndarray, W: np.ndarray, C: float) -> tuple[float, float]:
    """The objective at weights of shape (K, d) in float64, and the dual objective at the best multiple of its pulls."""
    losses = 0.0
    entropies = 0.0
    pull = np.zeros(W.shape)
    for first in range(0, y.size, BLOCK):
        some = slice(first, first + BLOCK)
        rows = X[some].astype(np.float64)
        own = y[some]
        places = np.arange(own.size)
        scores = rows @ W.T
        scores -= scores.max(axis=1, keepdims=True)
        log_mass = np.log(np.exp(scores).sum(axis=1))
        losses += float((log_mass - scores[places, own]).sum())
        shares = np.exp(scores - log_mass[:, None])
        entropies += float((log_mass - (shares * scores).sum(axis=1)).sum())
        shares[places, own] -= 1.0
        pull -= C * (shares.T @ rows)
    charged = 0.5 * float(np.vdot(pull, pull))
    t = min(1.0, C * entropies / (2.0 * charged))
    return 0.5 * float(np.vdot(W, W)) + C * losses, t * C * entropies - t * t * charged


def fit_ours(options: argparse.Namespace, joint: bool) -> dict[str, Any]:
    """Fit ours once; return what it took and what it has proven."""
    from saddlesvm import LinearSVC

    way: dict[str, Any] = {"multi_class": "multinomial", "loss": "logistic"} if joint else {}
    common = {"C": options.C, "tol": options.tol, "fit_intercept": False, "random_state": 0, **way}
    X, y = make_rows(options.rows, options.features, options.classes, options.dtype)
    LinearSVC(**common).fit(X[:FEW_ROWS], y[:FEW_ROWS] % FEW_CLASSES)
    model = LinearSVC(n_jobs=options.jobs, max_time=options.seconds_limit, **common)
    found = measure_fit(model, X, y)
    if joint:
        proof = model.certificate_
        return found | {"gap": proof.relative_gap, "objective": proof.primal, "bound": proof.dual}
    gaps = np.array([proof.relative_gap for proof in model.certificates_])
    reached = gaps <= options.tol
    return found | {"gap": float(gaps.max()), "median": float(np.median(gaps)), "reached": int(reached.sum())}


def measure_fit(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Fit a model; return its seconds, its processor time, its peak of memory, and the bytes of the rows."""
    began = time.perf_counter()
    processor = time.process_time()
    with MemoryWatch() as memory:
        model.fit(X, y)
    return {
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - processor,
        "memory": memory.most,
        "rows": X.nbytes,
    }


def fit_lbfgs(options: argparse.Namespace, bound: float) -> dict[str, Any]:
    """Fit ``LogisticRegression`` until it is within `tol` of a lower bound, or at the limit of time."""
    from sklearn.linear_model import LogisticRegression

    X, y = make_rows(options.rows, options.features, options.classes, "float32")
    common = {"C": options.C, "tol": 1e-12, "fit_intercept": False}
    LogisticRegression(**common, max_iter=3).fit(X[:FEW_ROWS], y[:FEW_ROWS] % FEW_CLASSES)
    minimize = optimize.minimize
    iterations = 0

    def stop(intermediate_result: Any) -> None:
        nonlocal iterations
        iterations += 1
        # scikit-learn divides the objective by C and the number of rows.
        objective = options.C * y.size * float(intermediate_result.fun)
        if objective - bound <= options.tol * objective or time.perf_counter() - began > options.seconds_limit:
            raise StopIteration

    def minimize_until(*args: Any, **kwargs: Any) -> Any:
        return minimize(*args, **(kwargs | {"callback": stop}))

    model = LogisticRegression(**common, max_iter=10**6)
    began = time.perf_counter()
    with mock.patch.object(optimize, "minimize", minimize_until):
        found = measure_fit(model, X, y) | {"iterations": iterations}
    objective, own_bound = softmax_objectives(X, y, model.coef_.astype(np.float64), options.C)
    return found | {"objective": objective, "gap": 1.0 - bound / objective, "own gap": 1.0 - own_bound / objective}


def run_apart(side: str, bound: float) -> dict[str, Any]:
    """Run a side in a process of its own, with the options of this one; return what it has found."""
    command = [sys.executable, "-m", "benchmarks.peers.many_classes", *sys.argv[1:], "--side", side]
    ended = subprocess.run([*command, f"--bound={bound!r}"], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def describe(side: str, found: dict[str, Any], options: argparse.Namespace) -> str:
    """A line of the table."""
    notes = []
    if side == "lbfgs":
        notes = [f"{found['iterations']} iterations, own bound proves {found['own gap']:.1e}"]
    elif side == "one against the rest":
        notes = [f"{found['reached']:,} of {options.classes:,} classes certified, median gap {found['median']:.1e}"]
    elif found["gap"] > options.tol:
        notes = ["at the limit"]
    if side == "lbfgs" and found["gap"] > 1.001 * options.tol:
        notes.append("at the limit")
    cells = [
        side,
        f"{found['seconds']:.1f}",
        f"{found['processor']:.0f}",
        f"{found['memory'] / 1e6:,.0f}",
        f"{found['rows'] / 1e6:,.0f}",
        f"{found['gap']:.1e}",
        f"{found['objective']:.6g}" if "objective" in found else "",
        "; ".join(notes),
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table, a line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--dtype", default="float16", help="of the rows that our fits get")
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--tol", type=float, default=1e-3, help="relative gap")
    parser.add_argument("--jobs", type=int, default=-1, help="n_jobs of our fits")
    parser.add_argument("--seconds-limit", type=float, default=150.0, help="of each fit")
    parser.add_argument("--only", default="", help="sides whose name contains this; lbfgs needs multinomial's bound")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--bound", type=float, default=-np.inf, help="a lower bound that lbfgs is held against")
    options = parser.parse_args()
    if options.side:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if options.side == "lbfgs":
                found = fit_lbfgs(options, options.bound)
            else:
                found = fit_ours(options, options.side == "multinomial")
        print(json.dumps(found))
        return
    print(
        f"{options.rows:,} x {options.features}, {options.classes:,} classes, C = {options.C:g}, gap {options.tol:g}, "
        f"at most {options.seconds_limit:g} s each, {os.cpu_count()} cores\n"
    )
    head = ["fit", "seconds", "processor seconds", "MB above the rows", "MB of rows", "largest gap", "objective", ""]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    bound = options.bound
    for side in SIDES:
        if options.only not in side:
            continue
        found = run_apart(side, bound)
        bound = found.get("bound", bound)
        print(describe(side, found, options), flush=True)


if __name__ == "__main__":
    main()
