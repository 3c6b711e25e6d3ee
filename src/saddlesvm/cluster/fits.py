"""Fits over the partitions of a Dask cluster: the partitions are made once, and each fit takes the method that suits.

The rows stay where they are. In each round every partition sends and receives one number per feature, and the workers
compute the duality gap where the data are. See :mod:`saddlesvm.cluster.rounds`.
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

from saddlesvm.cluster.dask_engine import ClusterLostError, DaskEngine, gathered, naming_losses
from saddlesvm.cluster.methods import ClusterSolver, Method, chosen
from saddlesvm.cluster.mixing import alike, census, mixed
from saddlesvm.cluster.part import Split, count_right, labels_of, make_part, rows_of_problems, with_factors
from saddlesvm.cluster.rounds import Rounds, Solution, Training
from saddlesvm.cluster.sources import PartTasks
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.intercepts import InterceptName
from saddlesvm.rows.matrix import BadRowError
from saddlesvm.runtime.interrupts import catch_interrupts

__all__ = [
    "ClusterFits", "ClusterLostError", "Partitions", "classes_and_weights", "client_in_force", "naming_losses",
]  # fmt: skip


def client_in_force() -> Client:
    """The client that this thread works with.

    Raises
    ------
    ValueError
        There is none.
    """
    try:
        return default_client()
    except ValueError:
        raise ValueError(
            "no Dask client: make one first (from distributed import Client; Client('tcp://host:port'), or Client() "
            "for this machine), or fit inside `with client.as_current():`"
        ) from None


def classes_and_weights(client: Client, blocks: list[PartTasks]) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels of all partitions, ascending, and the sum of the row weights of each."""
    found = gathered(client, client.compute([dask.delayed(labels_of)(labels, s) for _, labels, s in blocks]))
    classes = np.unique(np.concatenate([labels for labels, _ in found if labels.size] or [np.empty(0)]))
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
        What is left on the workers for the fits that follow.
    """

    client: Client
    parts: list[Any]
    split: Split
    n: int
    n_features: int
    n_bytes: int
    kept: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def made(
        cls,
        client: Client,
        blocks: list[PartTasks],
        split: Split,
        labels: tuple[np.ndarray, np.ndarray | None] | None,
        intercept: tuple[InterceptName, float],
        *,
        same_lambda: bool,
        seed: int,
    ) -> Partitions:
        """The partitions of these tasks.

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
            Problems over some of the rows have the lambda of all, and not the C.
        seed : int

        Raises
        ------
        ValueError
            They do not have the same features, or hold bad data.
        ClusterLostError
            There is no worker, or the scheduler is lost.
        """
        classes, factors = labels or (None, None)
        how = {"multi_class": split.multi_class, "folds": split.folds, "seed": seed}
        make = functools.partial(dask.delayed(make_part, pure=False), **how)
        kind, scale = intercept
        tasks = [make(X, y, s, classes, scale, kind, factors, place=place) for place, (X, y, s) in enumerate(blocks)]
        parts = client.compute(tasks)
        try:
            shapes = np.array(gathered(client, [client.submit(shape_of, part) for part in parts]))
        except BadRowError as error:
            raise among_all_rows(client, blocks, error) from None
        n, widths = int(shapes[:, 0].sum()), np.unique(shapes[shapes[:, 0] > 0, 1])
        if widths.size != 1:
            raise ValueError(f"the partitions must have the same number of features; found {widths.tolist()}")
        if same_lambda:
            parts = with_same_lambda(client, parts, n)
        return cls(client, parts, split, n, int(widths[0]), int(shapes[:, 2].sum()))

    def shares_right(self, W: np.ndarray) -> np.ndarray:
        """The share of each fold's rows that the models which left it out tell right, shape (folds,)."""
        engine = DaskEngine(self.client, self.parts, self.split.problems)
        right, rows = engine.total(count_right, sum, W)
        return np.asarray(right / np.maximum(rows, 1))


def among_all_rows(client: Client, blocks: list[PartTasks], error: BadRowError) -> ValueError:
    """The error about a row of a partition, with the row's number among all rows."""
    count = dask.delayed(len)
    before = sum(client.gather(client.compute([count(y) for _, y, _ in blocks[: error.place]])))
    where = f"That is row {before + error.row} of all, in partition {error.place} (from 0)."
    return ValueError(f"{error.message} {where}")


@dataclass(frozen=True)
class ClusterFits:
    """Fits of the same problems over the same partitions.

    Attributes
    ----------
    partitions : Partitions
    plan : Training
        What to solve.
    solver : ClusterSolver
    memory : int
        Bytes of rows that may be brought together on a worker.
    watch : callable
        Gets the facts of each round; True stops the fit.
    """

    partitions: Partitions
    plan: Training
    solver: ClusterSolver
    memory: int
    watch: Callable[[dict[str, Any]], bool]

    def solution(self, start: np.ndarray | None = None) -> Solution:
        """The solution by the method that suits; begun at the weights of `start` where the method can.

        Raises
        ------
        ClusterLostError
            The scheduler is lost, or there is no worker; its `solution` is the best so far.
        """
        plan, began = self.plan, time.perf_counter()
        choice = chosen(self.solver.name, plan, self.partitions.n_bytes, self.memory, len(self.partitions.parts))
        found = self._carried_out(functools.partial(choice, start=start))
        last = choice is Rounds or self.solver.name != "auto" or plan.free
        if last or found.outcome is not Outcome.NO_PROGRESS:
            return found
        rest = plan.max_time and max(plan.max_time - (time.perf_counter() - began), 0.01)
        other = replace(self, plan=replace(plan, max_time=rest))._carried_out(Rounds)
        other.trace[:0] = found.trace
        return replace(other, rounds=found.rounds + other.rounds)

    def _carried_out(self, choice: Method) -> Solution:
        """The result of a method on the partitions."""
        client, parts, plan = self.partitions.client, self.partitions.parts, self.plan
        if getattr(choice, "func", choice) is Rounds:
            with naming_losses(client):
                parts = _mixed_where_alike(client, parts, self.partitions.split.classes, plan.seed)
        engine = DaskEngine(client, parts, plan.problems, self.partitions.kept)
        run = choice(plan, engine, self.watch)
        try:
            with catch_interrupts() as stop:
                engine.stop = stop
                return run.run(stop)
        except ClusterLostError as lost:
            lost.solution = self.of_all_rows(run.solution(Outcome.INTERRUPTED))
            raise
        except BaseException:
            engine.halt()
            raise

    def along(self, Cs: Sequence[float]) -> Iterator[tuple[float, Solution]]:
        """A solution for each C, ascending; each is begun at the last one's weights, over the same partitions.

        It ends with Ctrl-C, and where the time is over that `max_time` allows for all.
        """
        start, began, limit = None, time.perf_counter(), self.plan.max_time
        for C in sorted(float(one) for one in Cs):
            left = None if limit is None else limit - (time.perf_counter() - began)
            if start is not None and left is not None and left <= 0.0:
                return
            plan = replace(self.plan, C=C / self.plan.share, max_time=left)
            found = replace(self, plan=plan).solution(start)
            start = found.W
            yield C, found
            if found.outcome is Outcome.INTERRUPTED:
                return

    def of_all_rows(self, solution: Solution) -> Solution:
        """The part of a solution that left no fold out."""
        split = self.partitions.split
        first = split.folds * split.kinds
        return replace(solution, W=solution.W[first * split.vectors :], certificates=solution.certificates[first:])


def _mixed_where_alike(client: Client, parts: list[Any], classes: int, seed: int) -> list[Any]:
    """The partitions, mixed where each holds rows that are all alike."""
    if not alike(np.array(gathered(client, [client.submit(census, part) for part in parts])), classes):
        return parts
    return mixed(parts, seed, functools.partial(client.submit, pure=False))


def with_same_lambda(client: Client, parts: list[Any], n: int) -> list[Any]:
    """The partitions with factors for which the C of all n rows means the same lambda for problems over fewer rows."""
    counts = np.sum(gathered(client, [client.submit(rows_of_problems, part) for part in parts]), axis=0)
    if (counts == n).all():
        return parts
    return [client.submit(with_factors, part, n / np.maximum(counts, 1), pure=False) for part in parts]


def shape_of(part: Any) -> tuple[int, int, int]:
    """Rows, features and bytes of a partition."""
    return part.size, part.X.n_features, part.nbytes
