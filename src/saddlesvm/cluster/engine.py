"""The place where rounds are carried out: an engine keeps the partitions and their dual variables, and runs work there.

A round is written once, over three things that a place knows: how to run work on a partition, how to add up what
partitions return, and how to bring w to them. :class:`Engine` does all of it in this process, one partition after the
other: the simulation, and the reference for :class:`~saddlesvm.cluster.dask_engine.DaskEngine`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from saddlesvm.cluster.part import (
    Order,
    Part,
    RoundSums,
    duals_of,
    first_duals,
    improve,
    places_of,
    report_of,
    sums_of,
    sums_together,
    total,
    vectors_together,
    weights_of,
)
from saddlesvm.cluster.tasks import Answer, at, bytes_of, whole

Task = Callable[[Part, Any], Any]  # work for one partition
Pick = Callable[[Any, int], Any]  # of what is left there, what is for one place
Combine = Callable[[list[Any]], Any]  # one result of several


class Late(Exception):
    """A wait that was given up because the time of the fit is over."""


class Stopped(KeyboardInterrupt):
    """A wait that was given up because Ctrl-C asked the rounds to end; another Ctrl-C is a plain KeyboardInterrupt."""


class DualsLost(Exception):
    """Dual variables were lost; the engine goes on with others, which determine w: any are feasible."""


class Engine:
    """Carries out rounds where the partitions are, and keeps their dual variables there.

    Parameters
    ----------
    parts : list
        The partitions: :class:`~saddlesvm.cluster.part.Part`, or what stands for one where the engine works.
    problems : int

    Attributes
    ----------
    parts : int
        Number of partitions.
    restarts : int
        How many times dual variables were lost.
    sent : int
        Bytes of w that a partition got in the last round, in the mean.
    name : str
        Of the fit, for tasks that end when it is halted.
    end : float
        The perf_counter at which the time of the fit is over.
    has_model : bool
        Whether there is one to return where a round is given up.
    """

    name = ""
    end = float("inf")
    has_model = False

    def __init__(self, parts: list[Any], problems: int) -> None:
        self.rows, self.problems = parts, problems
        self.parts, self.restarts, self.sent = len(parts), 0, 0

    @property
    def threads(self) -> int:
        """Tasks that may run at the same time."""
        return 1

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """The result of `work`, or what stands for it where the engine works."""
        return work(*arguments)

    def together(self, results: list[Any], combine: Combine) -> Any:
        """The result of `combine` on results of :meth:`run`."""
        return combine(results)

    def share(self, W: np.ndarray) -> list[Any]:
        """What each partition needs of w, where the partition is; sets `sent`."""
        given = [at(W, places) for places in self.places]
        self.sent = bytes_of(given) // max(self.parts, 1)
        return given

    @cached_property
    def duals(self) -> list[Any]:
        """The dual variables of the partitions, zero at first."""
        return [self.run(first_duals, part, self.problems) for part in self.rows]

    @cached_property
    def places(self) -> list[np.ndarray]:
        """The places of w that each partition has."""
        return [self.run(places_of, part) for part in self.rows]

    def pairs(self) -> list[tuple[Any, Any]]:
        """Each partition with its dual variables."""
        return list(zip(self.rows, self.duals, strict=True))

    def improve(self, W: np.ndarray, order: Order) -> Answer:
        """One round: a :class:`~saddlesvm.cluster.part.Report`, with what it cost; or DualsLost, as :meth:`sums`."""
        given = zip(self.pairs(), self.share(W), strict=True)
        both = [self.run(improve, part, duals, w, order) for (part, duals), w in given]
        self.duals = [self.run(duals_of, one) for one in both]
        report: Answer = self.together([self.run(report_of, one) for one in both], total)
        return report

    def weights(self, order: Order) -> np.ndarray:
        """``w`` of the dual variables, anew from the rows; shape (problems, d + 1)."""
        shares = [self.run(weights_of, part, duals, order) for part, duals in self.pairs()]
        return whole(self.together(shares, vectors_together))

    def sums(self, W: np.ndarray, order: Order) -> RoundSums:
        """The sums of the certificate of W and the dual variables."""
        given = zip(self.pairs(), self.share(W), strict=True)
        shares = [self.run(sums_of, part, duals, w, order) for (part, duals), w in given]
        sums: RoundSums = self.together(shares, sums_together)
        return sums

    def total(self, work: Task, together: Combine, given: Any) -> Any:
        """The result of `together` on the answers of `work` for all partitions; neither changes what it gets."""
        return self.returned(self.persist(work, together, given), None)

    def persist(self, work: Task, together: Combine, given: Any) -> Any:
        """The same, kept where the rows are, for :meth:`returned` and :meth:`map_each`."""
        return self.together([self.run(work, part, given) for part in self.rows], together)

    def persist_there(self, work: Task, together: Combine) -> Any:
        """The same, made once for all fits over these partitions."""
        return self.persist(work, together, None)

    def returned(self, persisted: Any, what: Callable[[Any], Any] | None) -> Any:
        """`what` of something persisted, which it does not change; all of it without `what`."""
        return what(persisted) if what else persisted

    def map_each(
        self, persisted: Any, pick: Pick, what: Callable[[Any, Any], Any], given: Sequence[tuple[int, Any]]
    ) -> list[Any]:
        """For each place and what is given for it: ``what(pick(persisted, place), given)``, carried out there."""
        return [what(pick(persisted, place), posed) for place, posed in given]
