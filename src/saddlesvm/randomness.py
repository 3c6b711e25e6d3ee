"""A small seeded generator whose state is an array that is passed in: it belongs to one fit, never to a thread.

The generator is splitmix64 (Steele, Lea and Flood 2014): one 64-bit counter, so it can be stored in a checkpoint.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlesvm.compiled import inlined, kernel

U = np.uint64


def seeded(seed: int) -> np.ndarray:
    """The state of a generator, shape (1,), uint64."""
    return np.array([np.uint64(seed & 0xFFFFFFFFFFFFFFFF)], dtype=np.uint64)


@inlined
def next_random(state: np.ndarray) -> Any:
    """The next 64 random bits."""
    state[0] += U(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
    return z ^ (z >> U(31))


@inlined
def below(state: np.ndarray, n: int) -> Any:
    """A random integer in [0, n), n under 2^32 (bias under n / 2^32)."""
    return np.int64(((next_random(state) >> U(32)) * U(n)) >> U(32))


@kernel
def shuffle(state: np.ndarray, items: np.ndarray, size: int) -> None:
    """Bring the first `size` items into random order (Fisher and Yates)."""
    for k in range(size - 1, 0, -1):
        j = below(state, k + 1)
        items[k], items[j] = items[j], items[k]


@kernel
def draw(state: np.ndarray, n: int) -> int:
    """A random integer in [0, n), for callers outside compiled code."""
    return below(state, n)
