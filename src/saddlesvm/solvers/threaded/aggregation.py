"""The rule by which threads, clusters and simulations add up the changes of several partitions.

Partition k improves its own dual variables against the shared w, with the quadratic term of its
sub-problem scaled by sigma:

    max  -C sum_{i in k} s_i phi_i*(-(a_i + d_i) / s_i) - w.v_k - (sigma / 2) ||v_k||^2,    v_k = C
    sum_{i in k} d_i x_i

which is coordinate ascent with ``sigma C`` in the place of C, on a w of its own that moves sigma
times as far. Then the changes of all partitions are added. With ``rho = ||sum_k v_k||^2 / sum_k
||v_k||^2`` (between 0 and the number K of partitions) the dual cannot fall if ``sigma >= rho``.
While sigma = K is always safe, it is mostly far too careful: the rule measures rho in each round,
and sigma follows it.

Source: Ma, Smith, Jaggi and others (2015), "Adding vs. averaging in distributed primal-dual
optimization", equations (9) and (11); rho is their sigma'_min along the step that was taken.
"""

from __future__ import annotations

import numpy as np

from saddlesvm.runtime.compiled import inlined, record_of
from saddlesvm.runtime.randomness import make_random, shuffle

# Neighbouring rows that stay in one partition: threads then seldom write to the same cache line.
BLOCK = 512
FADING = 0.9  # weight of the earlier rho in the new one, where rho falls
# The numbers that sigma follows: sigma itself, rho (rises at once, falls slowly), the least sigma
# may be.
SCALING = record_of("sigma", "rho", "least")


def new_scaling() -> np.ndarray:
    """The numbers that sigma follows, before anything was measured; shape (1,)."""
    return np.ones(1, SCALING)


@inlined
def measure_rho(scaling: np.ndarray, square_of_sum: float, sum_of_squares: float) -> None:
    """Measure rho of a round."""
    # rho = ||sum_k v_k||^2 / sum_k ||v_k||^2; 1 if nothing has moved.
    rho = square_of_sum / sum_of_squares if sum_of_squares > 0.0 else 1.0
    numbers = scaling[0]
    numbers.rho = max(rho, FADING * numbers.rho + (1.0 - FADING) * rho)


@inlined
def follow(scaling: np.ndarray, parts: int) -> None:
    """Let sigma follow rho, when the changes of all partitions have been brought together."""
    numbers = scaling[0]
    numbers.sigma = min(max(numbers.rho, numbers.least), float(parts))


@inlined
def be_careful(scaling: np.ndarray, parts: int) -> None:
    """After a fall of the dual, double the lower bound of sigma, up to the safe number."""
    numbers = scaling[0]
    numbers.least = min(2.0 * numbers.least, float(parts))
    numbers.sigma = max(numbers.sigma, numbers.least)


@inlined
def safe_share(linear_gain: float, square_of_sum: float) -> float:
    """The share of a change to take, in [0, 1].

    Along it the dual rises by at least ``share * linear_gain - share^2 square_of_sum / 2``, the
    gain without the quadratic term being concave: the share makes this largest, and is exactly 1 if
    all of the change does not lower the dual.
    """
    # share * linear_gain - share^2 square_of_sum / 2 is largest at their quotient.
    if linear_gain >= 0.5 * square_of_sum:
        return 1.0
    return max(linear_gain / square_of_sum, 0.0)


def deal_parts(members: np.ndarray, parts: int, seed: int) -> list[np.ndarray]:
    """Return the rows of each partition, ascending: blocks of neighbours, dealt at random."""
    # Blocks of neighbours keep the reads of a part in order; at least 16 of them make parts alike.
    size = max(1, min(BLOCK, members.size // (16 * parts)))
    count = -(-members.size // size)
    blocks = np.arange(count)
    shuffle(make_random(seed), blocks, count)
    # Blocks in a random order go to the parts in turn.
    owner = np.empty(count, dtype=np.intp)
    owner[blocks] = np.arange(count) % parts
    of_row = np.repeat(owner, size)[: members.size]
    return [np.ascontiguousarray(members[of_row == part]) for part in range(parts)]
