"""All partitions in one process, one after the other: the simulation, and the reference of the cluster's engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from saddlesvm.cluster.part import (
    Duals,
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
from saddlesvm.cluster.places import at, whole
from saddlesvm.cluster.rounds import Pick, Task
from saddlesvm.cluster.tasks import Answer


class InProcess:
    """An engine without a cluster.

    Parameters
    ----------
    parts : list of Part
    problems : int
    """

    name = ""
    end = float("inf")
    has_model = False
    threads = 1

    def __init__(self, parts: list[Part], problems: int) -> None:
        self.rows = parts
        self.problems = problems
        self.parts = len(parts)
        self.restarts = self.sent = 0

    @cached_property
    def duals(self) -> list[Duals]:
        """The dual variables of the partitions, zero at first."""
        return [first_duals(part, self.problems) for part in self.rows]

    @cached_property
    def places(self) -> list[np.ndarray]:
        """The places of w that each partition has."""
        return [places_of(part) for part in self.rows]

    def improve(self, W: np.ndarray, order: Order) -> Answer:
        """One round."""
        given = [at(W, places) for places in self.places]
        self.sent = sum(one.nbytes for one in given) // max(self.parts, 1)
        both = [improve(part, duals, one, order) for (part, duals), one in zip(self._pairs(), given, strict=True)]
        self.duals = [duals_of(one) for one in both]
        return total([report_of(one) for one in both])

    def weights(self, order: Order) -> np.ndarray:
        """``w`` of the dual variables."""
        return whole(vectors_together([weights_of(part, duals, order) for part, duals in self._pairs()]))

    def sums(self, W: np.ndarray, order: Order) -> RoundSums:
        """The sums of the certificate."""
        return sums_together([sums_of(part, duals, W, order) for part, duals in self._pairs()])

    def total(self, work: Task, together: Callable[[list[Any]], Any], given: Any) -> Any:
        """The result of `together` on the answers of `work` for all partitions."""
        return together([work(part, given) for part in self.rows])

    persist = total

    def persist_there(self, work: Task, together: Callable[[list[Any]], Any]) -> Any:
        """The same."""
        return self.total(work, together, None)

    def returned(self, left: Any, what: Callable[[Any], Any]) -> Any:
        """`what` of something left there."""
        return what(left)

    def map_each(
        self, left: Any, pick: Pick, what: Callable[[Any, Any], Any], given: Sequence[tuple[int, Any]]
    ) -> list[Any]:
        """For each place and what is given for it: ``what(pick(left, place), given)``."""
        return [what(pick(left, place), posed) for place, posed in given]

    def _pairs(self) -> list[tuple[Part, Duals]]:
        return list(zip(self.rows, self.duals, strict=True))
