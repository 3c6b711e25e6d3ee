"""The hardest linear problems: the hinge with a large C on large sparse text with flipped labels, to small gaps.

    python -m benchmarks.claims.corner --rows 200000 --features 50000 --C 100
    python -m benchmarks.claims.corner --rows 100000 --features 47000 --C 10000

Prints the processor seconds of one thread at which each gap was proven first, certificates included, data not; then
those of every certificate. The data are `text_like` of ``benchmarks/common.py``, with 5 % of the labels flipped.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.common import text_like
from saddlesvm import LinearSVC

GAPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def flipped(y: np.ndarray, share: float) -> np.ndarray:
    """Labels of which a share is changed at random."""
    changed = np.random.default_rng(0).random(y.size) < share
    return np.where(changed, -y, y)


def main() -> None:
    """Fit once, and say when each gap was proven."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=50_000)
    parser.add_argument("--per-row", type=int, default=70)
    parser.add_argument("--flipped", type=float, default=0.05)
    parser.add_argument("--C", type=float, default=100.0)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    X, y = text_like(options.rows, options.features, options.per_row)
    y = flipped(y, options.flipped)
    LinearSVC(loss="hinge", tol=1e-6, random_state=0).fit(X[:2000], y[:2000])  # kernels are compiled
    seen: list[tuple[float, float]] = []
    model: Any = LinearSVC(
        loss="hinge", C=options.C, tol=options.tol, random_state=0, n_jobs=1, max_time=options.seconds,
        callbacks=[lambda record: seen.append((time.process_time() - began, record.relative_gap))],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        wall = time.perf_counter()
        model.fit(X, y)
    spent = time.process_time() - began
    passed = time.perf_counter() - wall
    print(f"{options.rows:,} x {options.features:,}, C = {options.C:g}: {model.outcome_} after {spent:.1f} s ", end="")
    print(f"({passed:.1f} s by the clock), gap {model.certificate_.relative_gap:.1e}")
    best = np.minimum.accumulate([gap for _, gap in seen])
    for gap in GAPS:
        when = [second for (second, _), least in zip(seen, best, strict=True) if least <= gap]
        print(f"  {gap:.0e}: {when[0]:.1f} s" if when else f"  {gap:.0e}: not reached")


if __name__ == "__main__":
    main()
