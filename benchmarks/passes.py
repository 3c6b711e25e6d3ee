"""What fewer passes would need: other steps and other orders of dual coordinate descent, by the gap after each pass.

Plain loops without shrinking on 50,000 x 512 dense rows, to see what a pass brings and not how long it takes:

    python benchmarks/passes.py

- plain: each row once a pass, in random order (what the solver does);
- blocks: a block of rows, in cache, is gone over twice before the next one (one reading, twice the arithmetic);
- over-relaxed: steps are longer by a factor (Mangasarian and Musicant 1999, "Successive overrelaxation for support
  vector machines");
- growing: the first passes' worth of visits goes to an eighth, a quarter and a half of the rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numba
import numpy as np

from common import embedding_like

PASSES = 12
Pass = tuple[float, np.ndarray, int, float]  # its cost in readings, the order, rows of a block gone over twice, factor


@numba.njit(fastmath=True)
def visit(
    X: np.ndarray, norms: np.ndarray, C: float, squared: bool, order: np.ndarray, factor: float,
    alpha: np.ndarray, w: np.ndarray,
) -> None:  # fmt: skip
    """Coordinate steps on the rows of `order`; labels are in the rows' signs."""
    bend = 0.5 / C if squared else 0.0
    top = np.inf if squared else C
    for i in order:
        z = np.float32(0.0)
        for j in range(w.size):
            z += X[i, j] * w[j]
        step = factor * (1.0 - z - bend * alpha[i]) / (norms[i] + bend)
        new = min(max(alpha[i] + step, 0.0), top)
        change = np.float32(new - alpha[i])
        alpha[i] = new
        if change != 0.0:
            for j in range(w.size):
                w[j] += change * X[i, j]


def relative_gap(X: np.ndarray, alpha: np.ndarray, C: float, squared: bool) -> float:
    """Of w(alpha) and alpha, in float64."""
    w = alpha @ X.astype(np.float64)
    short = np.maximum(0.0, 1.0 - X @ w)
    primal = 0.5 * w @ w + C * np.sum(short**2 if squared else short)
    dual = alpha.sum() - 0.5 * w @ w - (np.sum(alpha**2) / (4.0 * C) if squared else 0.0)
    return float((primal - dual) / dual) if dual > 0.0 else np.inf


def passes(n: int, kind: str) -> Iterator[Pass]:
    """The passes of a kind, for ever."""
    random = np.random.default_rng(0)
    name, _, value = kind.partition(" ")
    rows = random.permutation(n)
    for share in (0.125, 0.125, 0.25, 0.5) if name == "growing" else ():
        yield share, random.permutation(rows[: int(share * n)]), 0, 1.0
    while True:
        yield (
            1.0,
            random.permutation(n),
            int(value) if name == "blocks" else 0,
            float(value or 1) if name == "over" else 1.0,
        )


def gaps(X: np.ndarray, C: float, squared: bool, kind: str) -> list[float]:
    """The relative gap after each reading of the data."""
    norms, alpha, w = (
        np.einsum("ij,ij->i", X, X, dtype=np.float64),
        np.zeros(X.shape[0]),
        np.zeros(X.shape[1], np.float32),
    )
    found, read = [], 0.0
    for cost, order, block, factor in passes(X.shape[0], kind):
        for part in np.array_split(order, max(1, order.size // block)) if block else [order]:
            for _ in range(2 if block else 1):
                visit(X, norms, C, squared, part, factor, alpha, w)
        read += cost
        if read == int(read):
            found.append(relative_gap(X, alpha, C, squared))
        if read >= PASSES:
            return found
    raise AssertionError


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    options = parser.parse_args()
    X, y = embedding_like(options.rows, 512, np.float32)
    X *= y[:, None].astype(np.float32)
    print(f"{'loss':14s} {'C':>5s} {'kind':12s} gap after 4, 8 and {PASSES} readings")
    for squared in (False, True):
        for C in (0.01, 1.0):
            for kind in ("plain", "blocks 256", "blocks 1024", "over 1.2", "over 1.5", "growing"):
                found = gaps(X, C, squared, kind)
                text = " ".join(f"{gap:8.1e}" for gap in (found[3], found[7], found[PASSES - 1]))
                print(f"{'squared hinge' if squared else 'hinge':14s} {C:5g} {kind:12s} {text}", flush=True)


if __name__ == "__main__":
    main()
