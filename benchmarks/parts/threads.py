"""What threads give: the same fits with 1, 2, 4, ... threads, in turn.

    python -m benchmarks.parts.threads --threads 1 2 --repeats 3

The rows are made here. Threads are those of `n_jobs`, and as many in the BLAS. The table has seconds, and behind them
how many times as quick as with one thread the fit is.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.common import embedding_like, interleaved, text_like
from saddlesvm import LinearSVC, LinearSVCCV

CS = np.logspace(-2, 2, 9)


def classes_of(X: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """Labels of several classes by noisy linear scores."""
    random = np.random.default_rng(seed)
    scores = X @ random.standard_normal((X.shape[1], count)).astype(X.dtype)
    return np.asarray(scores + 0.3 * random.standard_normal(scores.shape)).argmax(axis=1)


def make_cases(scale: float) -> dict[str, Callable[[int], Any]]:
    """Return fits by name, which take a number of threads."""
    tall, tall_y = embedding_like(int(400_000 * scale), 256, np.float32)
    half = tall[: int(200_000 * scale)].astype(np.float16)
    small, _ = embedding_like(int(40_000 * scale), 200, np.float32)
    small_y = classes_of(small, 10)
    text, text_y = text_like(int(60_000 * scale), 50_000, 60)
    pair_y = (small_y < 5).astype(int)

    def fit(X: Any, y: np.ndarray, threads: int, **options: Any) -> Any:
        return LinearSVC(n_jobs=threads, random_state=0, tol=1e-3, **options).fit(X, y)

    def choose(threads: int) -> Any:
        return LinearSVCCV(LinearSVC(tol=1e-3, random_state=0), Cs=CS, cv=5, n_jobs=threads).fit(small, pair_y)

    def follow(threads: int) -> Any:
        model = LinearSVC(n_jobs=threads, tol=1e-3, random_state=0)
        return model.path(small, pair_y)

    return {
        "logistic loss, float32": partial(fit, tall, tall_y, loss="logistic"),
        "squared hinge, float32": partial(fit, tall, tall_y),
        "logistic loss, float16": partial(fit, half, tall_y[: len(half)], loss="logistic"),
        "hinge, float32": partial(fit, tall, tall_y, loss="hinge", C=0.1),
        "hinge, sparse text": partial(fit, text, text_y, loss="hinge"),
        "ten classes, one against the rest": partial(fit, small, small_y),
        "ten classes, one against one": partial(fit, small, small_y, multi_class="ovo"),
        "ten classes, multinomial": partial(fit, small, small_y, loss="logistic", multi_class="multinomial"),
        "folds (5 x 9 values of C)": choose,
        "a certified path": follow,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows")
    given = parser.parse_args()
    print("| | " + " | ".join(f"{count} threads" for count in given.threads) + " |")
    print("|---|" + "---|" * len(given.threads))
    for name, fit in make_cases(given.scale).items():
        runs = {str(count): partial(fit_within, fit, count) for count in given.threads}
        for run in runs.values():
            run()  # kernels are compiled before the clock starts
        found = interleaved(runs, given.repeats)
        one = found[str(given.threads[0])][0]
        cells = [f"{found[str(count)][0]:.3f} ({one / found[str(count)][0]:.2f})" for count in given.threads]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def fit_within(fit: Callable[[int], Any], threads: int) -> Any:
    """Fit with so many threads, in the BLAS, too."""
    with threadpool_limits(threads):
        return fit(threads)


if __name__ == "__main__":
    main()
