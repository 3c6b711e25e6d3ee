"""Fits over the partitions of a Dask cluster.

The rows stay on the workers, which compute the duality gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

try:
    import dask
    from distributed import Client, default_client
except ImportError as error:
    from saddlesvm.runtime.extras import how_to_install

    raise ImportError(f"fits on a cluster need Dask: {how_to_install('dask')}") from error

import numpy as np

from saddlesvm.cluster.choice import choose_method
from saddlesvm.cluster.dask_engine import (
    ClusterLostError,
    DaskEngine,
    gather_results,
    name_losses,
)
from saddlesvm.cluster.method import ClusterMethod, ClusterPlan, Solution
from saddlesvm.cluster.one_worker import OneWorker
from saddlesvm.cluster.over_passes import PassRounds, room_for_rows
from saddlesvm.cluster.partition import Split, find_labels, find_shape, make_partition
from saddlesvm.cluster.sources import PartTasks
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.intercepts import InterceptName
from saddlesvm.rows.matrix import BadRowError
from saddlesvm.runtime.interrupts import catch_interrupts

__all__ = [
    "ClusterLostError",
    "Partitions",
    "current_client",
    "find_classes",
    "make_partitions",
    "name_losses",
    "solve",
]


def current_client() -> Client:
    """Return the client that this thread works with.

    Raises
    ------
    ValueError
        There is none.
    """
    try:
        return default_client()
    except ValueError:
        raise ValueError(
            "no Dask client: make one first (from distributed import Client; "
            "Client('tcp://host:port'), or Client() for this machine), or fit inside "
            "`with client.as_current():`; without a cluster, saddlesvm.data.convert makes one "
            "store of several files or stores"
        ) from None


def find_classes(client: Client, blocks: list[PartTasks]) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels of all partitions, and the sum of the row weights of each."""
    tasks = [dask.delayed(find_labels)(labels, s) for _, labels, s in blocks]
    found = gather_results(client, client.compute(tasks))
    # A partition without rows has an empty array of another type.
    filled = [labels for labels, _ in found if labels.size]
    classes = np.unique(np.concatenate(filled or [np.empty(0)]))
    sums = np.zeros(classes.size)
    for labels, weights in found:
        sums[np.searchsorted(classes, labels)] += weights
    return classes, sums


@dataclass
class Partitions:
    """The partitions on the workers, as futures.

    Attributes
    ----------
    client : Client
    parts : list of Future
    n, n_features, n_bytes : int
        Of all rows.
    """

    client: Client
    parts: list[Any]
    n: int
    n_features: int
    n_bytes: int


def make_partitions(
    client: Client,
    blocks: list[PartTasks],
    split: Split,
    labels: tuple[np.ndarray, np.ndarray | None] | None,
    intercept: tuple[InterceptName, float],
) -> Partitions:
    """Make the partitions of some tasks.

    Parameters
    ----------
    client : Client
    blocks : list of tuple
        Of :func:`~saddlesvm.cluster.sources.part_tasks`.
    split : Split
    labels : tuple, optional
        The classes, and the factors of the weights of their rows or None.
    intercept : tuple
        Its kind, and the value of its virtual feature.

    Raises
    ------
    ValueError
        They do not have the same features, or hold bad data.
    ClusterLostError
        There is no worker, or the scheduler is lost.
    """
    kind, scale = intercept
    classes, factors = labels or (None, None)
    make = dask.delayed(make_partition, pure=False)
    tasks = []
    for number, (X, y, s) in enumerate(blocks):
        task = make(
            X,
            y,
            s,
            classes,
            scale,
            kind,
            factors,
            number=number,
            multi_class=split.multi_class,
        )
        tasks.append(task)
    # The partitions stay on their workers; only their shapes come here.
    parts = client.compute(tasks)
    try:
        found = gather_results(client, [client.submit(find_shape, part) for part in parts])
    except BadRowError as error:
        where = f"That is row {error.row} of partition {error.place} (from 0)."
        raise ValueError(f"{error.message} {where}") from None

    shapes = np.array(found)
    n = int(shapes[:, 0].sum())
    # A partition without rows has no number of features to compare.
    widths = np.unique(shapes[shapes[:, 0] > 0, 1])
    if widths.size != 1:
        raise ValueError(
            f"the partitions must have the same number of features; found {widths.tolist()}"
        )
    return Partitions(client, parts, n, int(widths[0]), int(shapes[:, 2].sum()))


def solve(
    partitions: Partitions,
    plan: ClusterPlan,
    solver: str,
    memory: int,
    watch: Callable[[dict[str, Any]], bool],
) -> Solution:
    """Solve by the method that suits.

    Parameters
    ----------
    partitions : Partitions
    plan : ClusterPlan
    solver : {"auto", "newton", "gather"}
    memory : int
        Bytes of rows that may be brought together on a worker.
    watch : callable
        Gets the record of each round; True stops the fit.

    Raises
    ------
    ClusterLostError
        The scheduler is lost, or there is no worker; its `solution` is the best so far.
    """
    n_bytes = partitions.n_bytes
    parts = partitions.parts
    engine = DaskEngine(partitions.client, parts)
    method: ClusterMethod
    if choose_method(solver, plan, n_bytes, memory, len(parts)) == "gather":
        method = OneWorker(plan, engine, watch)
    else:
        most = room_for_rows(plan.n, n_bytes, plan.problems, memory)
        method = PassRounds(plan, engine, watch, most=most)
    try:
        with catch_interrupts() as stop:
            engine.stop = stop
            return method.run(stop)
    except ClusterLostError as lost:
        # The error carries the best model so far.
        if method.has_models():
            lost.solution = method.solution(Outcome.INTERRUPTED)
        raise
    except BaseException:
        engine.halt()
        raise
