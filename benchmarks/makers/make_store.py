"""A dense float32 store of any size: Gaussian rows of norm about 1, labels of linear rules with noise.

python -m benchmarks.makers.make_store big.store --gigabytes 4 --features 512
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from saddlesvm.data import Store, StoreWriter

NOISE = 0.3  # standard deviation beside scores of standard deviation 1
BLOCK_BYTES = 16 << 20


def make_store(path: str, gigabytes: float, features: int, seed: int, classes: int = 2) -> Store:
    """Write the rows block by block; each block has a random stream of its own."""
    shape = features if classes == 2 else (features, classes)
    rule = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    n_rows = max(2, int(gigabytes * 1e9 / (4 * features)))
    step = max(1, BLOCK_BYTES // (4 * features))
    with StoreWriter(path, dtype=np.float32) as writer:
        for start in range(0, n_rows, step):
            random = np.random.default_rng([seed, start])
            count = min(step, n_rows - start)
            X = random.standard_normal((count, features), dtype=np.float32)
            X /= np.float32(np.sqrt(features))
            scores = X @ rule
            scores = scores + NOISE * random.standard_normal(scores.shape)
            writer.append(X, np.where(scores > 0, 1, -1) if classes == 2 else np.argmax(scores, axis=1))
    return Store(path)


def main() -> None:
    """Make it and say how large it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", help="the folder to make")
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--features", type=int, default=512)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began = time.perf_counter()
    store = make_store(**{name: one for name, one in vars(options).items() if name != "store"}, path=options.store)
    spent = time.perf_counter() - began
    print(f"{store.path}: {store.shape[0]:,} x {store.shape[1]}, {store.n_bytes / 1e9:.2f} GB, {spent:.1f} s")


if __name__ == "__main__":
    main()
