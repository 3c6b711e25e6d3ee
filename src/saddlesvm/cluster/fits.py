"""Fits over the partitions of a Dask cluster.

The partitions are made once, and each fit takes the method that suits. The rows stay on
the workers, which compute the duality gap.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

try:
    import dask
    from distributed import Client, default_client
except ImportError as error:
    from saddlesvm.runtime.extras import how_to_install

    raise ImportError(f"fits on a cluster need Dask: {how_to_install('dask')}") from error

import numpy as np

from saddlesvm.cluster.choice import MakeMethod, choose_method
from saddlesvm.cluster.dask_engine import (
    ClusterLostError,
    DaskEngine,
    gather_results,
    name_losses,
)
from saddlesvm.cluster.method import LEAST_SECONDS, ClusterPlan, Solution
from saddlesvm.cluster.partition import (
    Split,
    count_right,
    count_rows,
    find_labels,
    find_shape,
    make_partition,
    set_factors,
)
from saddlesvm.cluster.rounds import DualRounds, mix_partitions, needs_mixing, take_census
from saddlesvm.cluster.sources import PartTasks
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.intercepts import InterceptName
from saddlesvm.rows.matrix import BadRowError
from saddlesvm.runtime.interrupts import catch_interrupts

__all__ = [
    "ClusterFits",
    "ClusterLostError",
    "Partitions",
    "current_client",
    "find_classes",
    "make_partitions",
    "name_losses",
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
    """The partitions on the workers, as futures, and which problems are solved over them.

    Attributes
    ----------
    client : Client
    parts : list of Future
    split : Split
    n, n_features, n_bytes : int
        Of all rows.
    kept : dict
        Results that stay on the workers for the fits that follow.
    """

    client: Client
    parts: list[Any]
    split: Split
    n: int
    n_features: int
    n_bytes: int
    kept: dict[Any, Any] = field(default_factory=dict)

    def shares_right(self, W: np.ndarray) -> np.ndarray:
        """Return the share of each fold's rows that the models without it predict correctly."""
        engine = DaskEngine(self.client, self.parts)
        right, rows = engine.fetch(engine.persist(count_right, sum, W))
        return np.asarray(right / np.maximum(rows, 1))


def make_partitions(
    client: Client,
    blocks: list[PartTasks],
    split: Split,
    labels: tuple[np.ndarray, np.ndarray | None] | None,
    intercept: tuple[InterceptName, float],
    *,
    same_lambda: bool,
    seed: int,
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
    same_lambda : bool
        True if problems over some of the rows have the lambda of all rows, not the C.
    seed : int
        Of the folds.

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
            folds=split.folds,
            seed=seed,
        )
        tasks.append(task)
    # The partitions stay on their workers; only their shapes come here.
    parts = client.compute(tasks)
    try:
        found = gather_results(client, [client.submit(find_shape, part) for part in parts])
    except BadRowError as error:
        # The row was counted within its partition: add the rows of the partitions before it.
        raise count_before(client, blocks, error) from None

    shapes = np.array(found)
    n = int(shapes[:, 0].sum())
    # A partition without rows has no number of features to compare.
    widths = np.unique(shapes[shapes[:, 0] > 0, 1])
    if widths.size != 1:
        raise ValueError(
            f"the partitions must have the same number of features; found {widths.tolist()}"
        )
    if same_lambda:
        parts = keep_lambda(client, parts, n)
    return Partitions(client, parts, split, n, int(widths[0]), int(shapes[:, 2].sum()))


def count_before(client: Client, blocks: list[PartTasks], error: BadRowError) -> ValueError:
    """Return the error about a row of a partition, with the row's number among all rows."""
    count = dask.delayed(len)
    tasks = [count(y) for _, y, _ in blocks[: error.place]]
    before = sum(client.gather(client.compute(tasks)))
    where = f"That is row {before + error.row} of all, in partition {error.place} (from 0)."
    return ValueError(f"{error.message} {where}")


def keep_lambda(client: Client, parts: list[object], n: int) -> list[Any]:
    """Let problems over fewer rows have the lambda of all n rows, by factors on their weights."""
    counts = np.sum(
        gather_results(client, [client.submit(count_rows, part) for part in parts]), axis=0
    )
    if (counts == n).all():
        return parts
    # With m rows lambda is 1 / (C m); weights of n / m make it 1 / (C n).
    factors = n / np.maximum(counts, 1)
    return [client.submit(set_factors, part, factors, pure=False) for part in parts]


def mix_if_alike(client: Client, parts: list[object], classes: int, seed: int) -> list[Any]:
    """Mix the rows of partitions if each has rows of a kind."""
    census = gather_results(client, [client.submit(take_census, part) for part in parts])
    if not needs_mixing(np.array(census), classes):
        return parts
    return mix_partitions(parts, seed, functools.partial(client.submit, pure=False))


@dataclass(frozen=True)
class ClusterFits:
    """Fits of the same problems over the same partitions.

    Attributes
    ----------
    partitions : Partitions
    plan : ClusterPlan
    solver : {"auto", "newton", "gather", "rounds"}
    memory : int
        Bytes of rows that may be brought together on a worker.
    watch : callable
        Gets the record of each round; True stops the fit.
    """

    partitions: Partitions
    plan: ClusterPlan
    solver: str
    memory: int
    watch: Callable[[dict[str, Any]], bool]

    def solve(self, start: np.ndarray | None = None) -> Solution:
        """Solve by the method that suits; it begins at the weights of `start` if it can.

        Raises
        ------
        ClusterLostError
            The scheduler is lost, or there is no worker; its `solution` is the best so far.
        """
        plan = self.plan
        partitions = self.partitions
        began = time.perf_counter()
        make = choose_method(
            self.solver, plan, partitions.n_bytes, self.memory, len(partitions.parts)
        )
        found = self.run_method(functools.partial(make, start=start), make is DualRounds)
        is_last = make is DualRounds or self.solver != "auto" or plan.free
        if is_last or found.outcome is not Outcome.NO_PROGRESS:
            return found

        # The active set has no room for its rows: rounds go on in the time that is left.
        left = plan.max_time
        if left is not None:
            left = max(left - (time.perf_counter() - began), LEAST_SECONDS)
        other = replace(self, plan=replace(plan, max_time=left)).run_method(DualRounds, True)
        other.trace[:0] = found.trace
        return replace(other, rounds=found.rounds + other.rounds)

    def run_method(self, make: MakeMethod, mixes: bool) -> Solution:
        """Run a method on the partitions; `mixes` is True if it wants mixed rows."""
        client = self.partitions.client
        parts = self.partitions.parts
        if mixes:
            with name_losses(client):
                parts = mix_if_alike(client, parts, self.partitions.split.classes, self.plan.seed)
        engine = DaskEngine(client, parts, self.partitions.kept)
        method = make(self.plan, engine, self.watch)
        try:
            with catch_interrupts() as stop:
                engine.stop = stop
                return method.run(stop)
        except ClusterLostError as lost:
            # The error carries the best model so far.
            lost.solution = self.of_all_rows(method.solution(Outcome.INTERRUPTED))
            raise
        except BaseException:
            engine.halt()
            raise

    def solve_along(self, Cs: Sequence[float]) -> Iterator[tuple[float, Solution]]:
        """Yield a solution for each C, ascending; each begins at the last one's weights.

        It ends after Ctrl-C, and when the time is over that `max_time` allows for all.
        """
        start = None
        began = time.perf_counter()
        left = self.plan.max_time
        for C in sorted(float(value) for value in Cs):
            if self.plan.max_time is not None:
                left = self.plan.max_time - (time.perf_counter() - began)
                # The first C is fitted however short the time is.
                if start is not None and left <= 0.0:
                    return
            plan = replace(self.plan, C=C / self.plan.share, max_time=left)
            found = replace(self, plan=plan).solve(start)
            start = found.W
            yield C, found
            if found.outcome is Outcome.INTERRUPTED:
                return

    def of_all_rows(self, solution: Solution) -> Solution:
        """Return the part of a solution that left no fold out."""
        split = self.partitions.split
        # Problems that leave a fold out come first, those over all rows last.
        first = split.folds * split.n_kinds
        return replace(
            solution,
            W=solution.W[first * split.n_vectors :],
            certificates=solution.certificates[first:],
        )
