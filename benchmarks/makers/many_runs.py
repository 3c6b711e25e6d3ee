"""Many runs of Pegasos side by side in NumPy, each with its own random draws, to test theorems about probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

AT_A_TIME = 64  # iterations per draw of rows
Sampler = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


class Iterates(NamedTuple):
    """The iterates of all runs after T iterations.

    Attributes
    ----------
    T : int
    total : ndarray of shape (runs, d)
        ``w_1 + ... + w_T``: T times the average iterate.
    last : ndarray of shape (runs, d)
        ``w_{T+1}``, the result of the last step.
    random : ndarray of shape (runs, d)
        One of ``w_1 ... w_T`` each, drawn uniformly.
    """

    T: int
    total: np.ndarray
    last: np.ndarray
    random: np.ndarray


def sampler(X: np.ndarray, y: np.ndarray) -> Sampler:
    """Draw rows of data with replacement, as Pegasos does."""

    def draw(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        chosen = random.integers(0, y.size, count)
        return X[chosen], y[chosen]

    return draw


def pegasos_runs(
    draw: Sampler, lam: float, marks: Sequence[int], runs: int, *, projection: bool = False, seed: int = 0
) -> Iterator[Iterates]:
    """Run Pegasos on the hinge, one row an iteration, `runs` times at once.

    Parameters
    ----------
    draw : callable
        ``draw(random, count)`` gives `count` fresh rows of shape (count, d), and their labels -1 and +1.
    lam : float
    marks : sequence of int
        Iterations to report at, ascending.
    runs : int
    projection : bool, default=False
        Onto the ball of radius ``1 / sqrt(lam)``.
    seed : int, default=0

    Yields
    ------
    Iterates
        At every mark; the arrays are copies.
    """
    random = np.random.default_rng(seed)
    width = draw(random, 1)[0].shape[1]
    w, total, chosen = np.zeros((3, runs, width))
    done = 0
    for mark in marks:
        while done < mark:
            count = min(AT_A_TIME, mark - done)
            X, y = draw(random, count * runs)
            X = X.reshape(count, runs, width)
            y = y.reshape(count, runs)
            taken = random.random((count, runs)) * np.arange(done + 1, done + count + 1)[:, None] < 1.0
            for k in range(count):
                done += 1
                total += w
                if taken[k].any():
                    chosen[taken[k]] = w[taken[k]]
                pull = np.where(y[k] * np.einsum("rd,rd->r", w, X[k]) < 1.0, y[k], 0.0)
                w *= 1.0 - 1.0 / done
                w += (pull / (lam * done))[:, None] * X[k]
                if projection:
                    norms = np.sqrt(np.einsum("rd,rd->r", w, w))
                    w *= np.minimum(1.0, 1.0 / (math.sqrt(lam) * np.maximum(norms, 1e-300)))[:, None]
        yield Iterates(done, total.copy(), w.copy(), chosen.copy())
