"""Rows cut into partitions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from saddlesvm.cluster.partition import Partition, make_partition
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import is_classification

SIGNS = np.array([-1.0, 1.0])


class Engine:
    """Does the work of partitions in this process, as saddlesvm.cluster.dask_engine.DaskEngine does it on a cluster."""

    name, end, has_model, restarts, threads = "", float("inf"), False, 0, 1

    def __init__(self, parts: list[Partition]) -> None:
        self.parts = parts

    def persist(self, work: Any, combine: Any, given: Any = None) -> Any:
        return combine([work(part, given) for part in self.parts])

    def fetch(self, persisted: Any, what: Any = None) -> Any:
        return what(persisted) if what else persisted

    def map_each(self, persisted: Any, pick: Any, what: Any, given: Any) -> list[Any]:
        return [what(pick(persisted, number), argument) for number, argument in given]


def classes_of(loss: Loss) -> np.ndarray | None:
    """The classes of a loss for two; None for targets."""
    return SIGNS if is_classification(loss) else None


def cut(
    X: Any, y: np.ndarray, cuts: list[int], classes: Any, weights: Any = None, kind: Any = "regularized", **options: Any
) -> list[Partition]:
    """The rows between neighbouring cuts, one partition each; `options` are those of make_partition."""
    spans, scale = [slice(*ends) for ends in pairwise([0, *cuts, len(y)])], 0.0 if kind == "none" else 1.0
    given = [None if weights is None else weights[span] for span in spans]
    return [
        make_partition(X[span], y[span], s, classes, scale, kind, number=k, **options)
        for k, (span, s) in enumerate(zip(spans, given, strict=True))
    ]
