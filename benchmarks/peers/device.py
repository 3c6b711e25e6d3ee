"""Rows on a GPU: our Newton's method beside scikit-learn's lbfgs, both on tensors of torch where they lie.

    python -m benchmarks.peers.device --shape 1000000 768 --dtype float16 --loss logistic --repeats 3

Rows are Gaussian, of length about 1 times `--scale`, and labels follow a linear rule with noise. Both get the same
objective, with a free intercept. scikit-learn's tolerance is on the gradient, so it runs at several tolerances; the
objective of each is recomputed in float64 on the device, and its distance from our proven lower bound is shown beside.
scikit-learn dispatches by the array API (SCIPY_ARRAY_API=1), which LogisticRegression has from version 1.9 on.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import sklearn
import torch
from sklearn.linear_model import LogisticRegression

from saddlesvm import LinearSVC

BLOCK = 100_000  # rows that are widened at a time, where data are made and objectives recomputed


def made(n: int, d: int, dtype: str, scale: float, classes: int, device: str) -> tuple[Any, Any]:
    """Return Gaussian rows of length about `scale` on a device, and noisy labels of a linear rule."""
    generator = torch.Generator(device=device).manual_seed(0)
    X = torch.empty((n, d), dtype=getattr(torch, dtype), device=device)
    W = torch.randn((d, classes), generator=generator, device=device)
    y = torch.empty(n, dtype=torch.int64, device=device)
    for first in range(0, n, BLOCK):
        rows = torch.randn((min(BLOCK, n - first), d), generator=generator, device=device)
        noise = torch.randn((rows.shape[0], classes), generator=generator, device=device)
        y[first : first + BLOCK] = (rows @ W / d**0.5 + 0.3 * noise).argmax(dim=1)
        X[first : first + BLOCK] = (rows * (scale / d**0.5)).to(X.dtype)
    return X, y


def objective(X: Any, y: Any, coef: Any, intercept: Any, C: float, loss: str) -> float:
    """Return the objective in float64, computed on the device."""
    coef = torch.as_tensor(coef, device=X.device).double()
    intercept = torch.as_tensor(intercept, device=X.device).double()
    paid = 0.0
    for first in range(0, X.shape[0], BLOCK):
        scores = X[first : first + BLOCK].double() @ coef.T + intercept
        own = y[first : first + BLOCK]
        if scores.shape[1] > 1:
            paid += float(torch.nn.functional.cross_entropy(scores, own, reduction="sum"))
            continue
        margins = scores[:, 0] * (2.0 * own.double() - 1.0)
        if loss == "logistic":
            paid += float(torch.nn.functional.softplus(-margins).sum())
        else:
            paid += float((torch.clamp(1.0 - margins, min=0.0) ** 2).sum())
    return 0.5 * float((coef**2).sum()) + C * paid


def timed(work: Callable[[], Any], repeats: int) -> tuple[list[float], Any]:
    """Return the seconds of each run, all work of the device included, and the last result."""
    seconds = []
    for _ in range(repeats):
        synchronize()
        began = time.perf_counter()
        result = work()
        synchronize()
        seconds.append(time.perf_counter() - began)
    return seconds, result


def synchronize() -> None:
    """Wait for the device."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    """Print a table for one shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", type=int, nargs=2, default=(1_000_000, 768))
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--loss", default="logistic", choices=["logistic", "squared_hinge", "hinge"])
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--without-peer", action="store_true")
    given = parser.parse_args()

    n, d = given.shape
    X, y = made(n, d, given.dtype, given.scale, given.classes, given.device)
    name = torch.cuda.get_device_name() if given.device == "cuda" else "CPU"
    print(
        f"\n{n:,} x {d} {given.dtype}, {given.classes} classes, {given.loss}, C = {given.C:g}, tol = {given.tol:g}, "
        f"on {name}; torch {torch.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}"
    )
    print("| | first run, s | median, s | objective | above the proven bound |\n|---|---|---|---|---|")
    bound = fit_ours(X, y, given)
    if given.loss == "logistic" and not given.without_peer:
        fit_peer(X, y, given, bound)


def fit_ours(X: Any, y: Any, given: argparse.Namespace) -> float:
    """Fit our model, print its line and the memory it took, and return the proven bound."""
    options = {"loss": given.loss, "C": given.C, "tol": given.tol, "intercept": "free"}
    if given.classes > 2:
        options["multi_class"] = "multinomial"
    on_gpu = given.device == "cuda"
    before = 0
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    model = LinearSVC(**options)
    seconds, _ = timed(lambda: model.fit(X, y), given.repeats)
    peak = torch.cuda.max_memory_allocated() - before if on_gpu else 0
    bound = model.certificates_[0].dual
    recomputed = objective(X, y, model.coef_, model.intercept_, given.C, given.loss)
    line(f"saddlesvm ({model.outcome_})", seconds, recomputed, bound)
    if on_gpu:
        share = peak / (X.numel() * X.element_size())
        print(f"| memory of the device above the rows: {share:.2f} of them | | | | |")
    return bound


def fit_peer(X: Any, y: Any, given: argparse.Namespace, bound: float) -> None:
    """Fit scikit-learn's model at several tolerances, and print their lines."""
    # Half precision overflows in sums of so many rows: the peer gets float32, and the cast is not counted.
    wide = X if X.dtype == torch.float32 else X.float()
    for tol in (1e-3, 1e-4, 1e-5, 1e-6):
        peer = LogisticRegression(C=given.C, tol=tol, max_iter=10_000)
        with sklearn.config_context(array_api_dispatch=True), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, fitted = timed(partial(peer.fit, wide, y), given.repeats)
        recomputed = objective(X, y, fitted.coef_, fitted.intercept_, given.C, given.loss)
        line(f"lbfgs, tol = {tol:g}, {int(max(fitted.n_iter_))} iterations", seconds, recomputed, bound)


def line(name: str, seconds: list[float], recomputed: float, bound: float) -> None:
    """Print one line of the table."""
    above = (recomputed - bound) / abs(recomputed)
    median = statistics.median(seconds)
    print(f"| {name} | {seconds[0]:.2f} | {median:.2f} | {recomputed:.8g} | {above:.1e} |", flush=True)


if __name__ == "__main__":
    main()
