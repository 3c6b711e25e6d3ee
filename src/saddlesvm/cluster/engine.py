"""The engine that does the work of partitions: in this process, partition by partition.

A method on a cluster is written over three things that an engine knows: run a task on a partition,
add up what partitions return, and keep a result beside the rows. :class:`Engine` does all of it
here: for tests, and as the reference for :class:`~saddlesvm.cluster.dask_engine.DaskEngine`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from saddlesvm.cluster.partition import Partition

Task = Callable[[Partition, Any], Any]  # work for one partition
Pick = Callable[[Any, int], Any]  # takes the share of one problem out of a kept result
Combine = Callable[[list[Any]], Any]  # makes one result of several


class OutOfTime(Exception):
    """No result was waited for any longer, because the time of the fit is over."""


class Stopped(KeyboardInterrupt):
    """No result was waited for any longer, because Ctrl-C ended the fit."""


class Engine:
    """Does the work of partitions in this process.

    Parameters
    ----------
    parts : list
        The partitions: :class:`~saddlesvm.cluster.partition.Partition`, or futures of them.

    Attributes
    ----------
    restarts : int
        How many times results were lost.
    name : str
        Of the fit, for tasks that end when it is halted.
    end : float
        The perf_counter at which the time of the fit is over.
    has_model : bool
        Whether there is a model to return if a round is given up.
    """

    name = ""
    end = float("inf")
    has_model = False

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts
        self.restarts = 0

    @property
    def threads(self) -> int:
        """Tasks that may run at the same time."""
        return 1

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of `work`, or its future."""
        return work(*arguments)

    def send(self, value: object) -> Any:
        """Bring a value to the partitions, for arguments of :meth:`run`."""
        return value

    def add_up(self, results: list[object], combine: Combine) -> Any:
        """Wait for results of :meth:`run`, and return what `combine` makes of them."""
        return combine(results)

    def survive(self, loss: Exception) -> bool:
        """Count a loss of results; return True if finished results are still there.

        Any other error is raised again.
        """
        raise loss

    def has(self, result: Any) -> bool:
        """Return True if a result of :meth:`run` is finished, and was not lost."""
        return True

    def persist(self, work: Task, combine: Combine, given: object = None) -> Any:
        """Keep what `combine` makes of the answers of `work`, beside the rows.

        :meth:`fetch` and :meth:`map_each` take it.
        """
        return combine([self.run(work, part, given) for part in self.parts])

    def persist_once(self, work: Task, combine: Combine) -> Any:
        """Do the same once for all fits over these partitions."""
        return self.persist(work, combine)

    def fetch(self, persisted: Any, what: Callable[[Any], Any] | None = None) -> Any:
        """Return `what` of something persisted; all of it without `what`."""
        return what(persisted) if what else persisted

    def map_each(
        self,
        persisted: Any,
        pick: Pick,
        what: Callable[[Any, Any], Any],
        given: Sequence[tuple[int, Any]],
    ) -> list[Any]:
        """Return ``what(pick(persisted, number), argument)`` for pairs of these."""
        return [what(pick(persisted, number), argument) for number, argument in given]
