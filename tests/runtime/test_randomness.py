"""The generator: splitmix64, owned by one fit."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from saddlesvm.runtime.randomness import deal, draw, make_random, shuffle

PUBLISHED = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]


def test_draws_are_the_published_splitmix64() -> None:
    state = make_random(1234567)
    assert [draw(state, 2**32 - 1) for _ in PUBLISHED] == [((z >> 32) * (2**32 - 1)) >> 32 for z in PUBLISHED]


@given(seed=st.integers(-(2**70), 2**70), n=st.integers(1, 10**6))
def test_a_draw_is_below_its_limit_and_repeatable(seed: int, n: int) -> None:
    first, second = make_random(seed), make_random(seed)
    drawn = [draw(first, n) for _ in range(20)]
    assert drawn == [draw(second, n) for _ in range(20)]
    assert all(0 <= each < n for each in drawn)
    assert first[0] == second[0]


@given(seed=st.integers(0, 2**64 - 1), count=st.integers(1, 50), part=st.floats(0.0, 1.0))
def test_a_shuffle_permutes_the_part_it_was_given(seed: int, count: int, part: float) -> None:
    items = np.arange(count, dtype=np.int32)
    size = int(part * count)
    shuffle(make_random(seed), items, size)
    assert sorted(items[:size]) == list(range(size))
    assert list(items[size:]) == list(range(size, count))


def test_shuffles_are_uniform() -> None:
    state, n, rounds = make_random(1), 6, 6000
    counts = np.zeros((n, n))
    for _ in range(rounds):
        items = np.arange(n, dtype=np.int32)
        shuffle(state, items, n)
        counts[np.arange(n), items] += 1
    expected = rounds / n
    chi_squared = ((counts - expected) ** 2 / expected).sum()  # (n - 1)^2 = 25 degrees of freedom
    assert chi_squared < 60.1  # the 0.9999 quantile


def test_other_seeds_give_other_orders() -> None:
    orders = set()
    for seed in range(20):
        items = np.arange(30, dtype=np.int32)
        shuffle(make_random(seed), items, 30)
        orders.add(tuple(items))
    assert len(orders) == 20


@given(seed=st.integers(0, 2**64 - 1), size=st.integers(0, 200), run=st.integers(1, 20))
def test_dealt_runs_are_permutations_of_neighbours_that_stay_together(seed: int, size: int, run: int) -> None:
    items = np.arange(size, dtype=np.int32) * 3
    out, blocks = np.full(size, -1, dtype=np.int32), np.empty(size // max(run, 1) + 2, dtype=np.int32)
    deal(make_random(seed), items, size, run, blocks, out)
    assert sorted(out) == list(items)
    if run > 1:
        # each run lies within `run` neighbours, so leaving one for another happens once for each of them
        shift = draw(make_random(seed), run)
        owner = (out // 3 + shift) // run
        assert np.count_nonzero(np.diff(owner)) == max(0, np.unique(owner).size - 1)


def test_dealt_runs_are_in_random_order_and_shuffled_in_themselves() -> None:
    state, size, run, rounds = make_random(3), 40, 8, 3000
    items, out, blocks = np.arange(size, dtype=np.int32), np.empty(size, dtype=np.int32), np.empty(8, dtype=np.int32)
    places = np.zeros((rounds, size))
    for k in range(rounds):
        deal(state, items, size, run, blocks, out)
        places[k, out] = np.arange(size)
    middle, spread = (size - 1) / 2, np.sqrt((size**2 - 1) / 12 / rounds)
    assert np.abs(places.mean(axis=0) - middle).max() < 6 * spread
    before = np.mean(places[:, 10] < places[:, 11])
    assert abs(before - 0.5) < 6 * 0.5 / np.sqrt(rounds)
