"""Partitions of sorted rows are mixed: no row is lost, and the rounds go as if the rows had been shuffled."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.engine import Engine
from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.partition import join_partitions
from saddlesvm.cluster.rounds import (
    MOST_HANDS,
    DualRounds,
    deal_rows,
    mix_partitions,
    needs_mixing,
    take_census,
)
from saddlesvm.problem.losses import Hinge
from support import csr
from support.partitions import SIGNS, cut


def at_once(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


def sorted_rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=n) > 0.0, 1.0, -1.0)
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


@pytest.mark.parametrize("count", [2, 3, 4, 15, 16, 17, 30, 33, 64, 100])
def test_every_hand_is_taken_once_from_different_partitions(count: int) -> None:
    taken = []

    def submit(function: Any, *arguments: Any) -> Any:
        if function is deal_rows:
            return [(arguments[0], i) for i in range(arguments[1])]
        if isinstance(function, operator.itemgetter):
            return function(arguments[0])
        taken.append(arguments)
        return arguments

    assert len(mix_partitions(range(count), 0, submit)) == count
    assert len({hand for row in taken for hand in row}) == count * min(count, MOST_HANDS)
    assert all(len({partition for partition, _ in row}) == len(row) for row in taken)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("edges", [[100, 200, 300], [10, 380, 380], [0, 0, 399]])
def test_no_row_is_lost(edges: list[int], sparse: bool) -> None:
    X, y = sorted_rows(400)
    X[:, 3] = weights = np.arange(1.0, 401.0)
    before = cut(csr(X) if sparse else X, y, edges, SIGNS, weights)
    after = mix_partitions(before, 7, at_once)
    sizes = [part.size for part in after]
    assert sum(sizes) == 400 and max(sizes) - min(sizes) <= len(sizes) ** 2
    found = np.concatenate([part.weights for part in after])
    order = np.argsort(found)
    for name, told in (("y", 0.5 * (y + 1.0)), ("weights", weights), ("norms", (X * X).sum(axis=1) + 1.0)):
        np.testing.assert_allclose(np.concatenate([getattr(part, name) for part in after])[order], told)


def test_the_census_tells_sorted_rows_from_mixed_ones() -> None:
    X, y = sorted_rows(400)
    for labels, classes, kinds in ((y, SIGNS, 2), (np.sort(X[:, 1]), None, 0)):
        before = cut(X, labels, [100, 100, 300], classes)
        assert needs_mixing(np.array([take_census(part) for part in before]), kinds)
        after = mix_partitions(before, 0, at_once)
        assert not needs_mixing(np.array([take_census(part) for part in after]), kinds)
    assert not needs_mixing(np.array([take_census(part) for part in cut(X, y, [0], SIGNS)]), 2)
    assert join_partitions(deal_rows(before[1], 3, 0)).size == 0


def test_rounds_over_mixed_partitions_come_much_further() -> None:
    X, y = sorted_rows(8000)
    before = cut(X, y, [2000, 4000, 6000], SIGNS)
    plan = ClusterPlan(Hinge(), 1.0, 8000, 1, 4, tol=1e-3, max_rounds=40)
    gaps = [
        DualRounds(plan, Engine(parts)).run().certificates[0].relative_gap
        for parts in (before, mix_partitions(before, 0, at_once))
    ]
    assert gaps[0] > 0.5 and gaps[1] < 0.05
