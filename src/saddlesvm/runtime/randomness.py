"""A small seeded generator whose state is an array: it belongs to a fit, never to a thread.

The generator is splitmix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
generators"): one counter of 64 bits, so that it can be stored in a checkpoint.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddlesvm.runtime.compiled import inlined, kernel

U = np.uint64
# The constants of splitmix64.
INCREMENT = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
WORD = 2**64 - 1  # a mask of 64 bits
SEEDS = 2**31 - 1  # the largest seed that is drawn for a fit within another


def make_random(seed: int) -> np.ndarray:
    """Return the state of a generator, shape (1,), uint64."""
    return np.array([np.uint64(seed & WORD)], dtype=np.uint64)


@inlined
def next_random(state: np.ndarray) -> np.uint64:
    """Return the next 64 random bits."""
    state[0] += U(INCREMENT)
    z = state[0]
    z = (z ^ (z >> U(30))) * U(FIRST)
    z = (z ^ (z >> U(27))) * U(SECOND)
    return z ^ (z >> U(31))


@inlined
def below(state: np.ndarray, n: int) -> Any:
    """Return a random integer in [0, n), n under 2^32 (bias under n / 2^32)."""
    return np.int64(((next_random(state) >> U(32)) * U(n)) >> U(32))


@kernel
def shuffle(state: np.ndarray, items: np.ndarray, size: int) -> None:
    """Bring the first `size` items into random order (Fisher and Yates)."""
    for k in range(size - 1, 0, -1):
        j = below(state, k + 1)
        items[k], items[j] = items[j], items[k]


@inlined
def copy_items(items: np.ndarray, size: int, out: np.ndarray) -> None:
    """Set ``out[:size] = items[:size]``, without the buffer that an assignment of slices makes."""
    for k in range(size):
        out[k] = items[k]


@kernel
def deal(
    state: np.ndarray, items: np.ndarray, size: int, run: int, blocks: np.ndarray, out: np.ndarray
) -> None:
    """Put the first `size` items into `out` in random order, with `run` neighbours together.

    The items are cut into runs at random places; the runs are shuffled, and so is each in itself. A
    run of 1 gives a permutation. `blocks` is room for ``size // run + 2`` numbers of runs; runs of
    1 need none.
    """
    if run <= 1:
        copy_items(items, size, out)
        shuffle(state, out, size)
        return
    # The first run begins `shift` items before the first item.
    shift = below(state, run)
    count = (size + shift + run - 1) // run
    for k in range(count):
        blocks[k] = k
    shuffle(state, blocks, count)
    place = 0
    for k in range(count):
        start = blocks[k] * run - shift
        first = place
        # Put each item of the run into a random place among those before it (inside-out shuffle).
        for p in range(max(start, 0), min(start + run, size)):
            out[place] = items[p]
            j = first + below(state, place - first + 1)
            out[place], out[j] = out[j], out[place]
            place += 1


def draw(state: np.ndarray, n: int) -> int:
    """Return a random integer in [0, n), as :func:`below`, outside compiled code."""
    z = (int(state[0]) + INCREMENT) & WORD
    state[0] = z
    z = ((z ^ (z >> 30)) * FIRST) & WORD
    z = ((z ^ (z >> 27)) * SECOND) & WORD
    return (((z ^ (z >> 31)) >> 32) * n) >> 32
