"""All partitions in one process, one after the other: the simulation, and the reference of the cluster's engine."""

from __future__ import annotations

import numpy as np

from saddlesvm.cluster.part import Duals, Order, Part, Report, first_duals, improve, sums_of, total, weights_of


class InProcess:
    """An engine without a cluster.

    Parameters
    ----------
    parts : list of Part
    problems : int
    """

    def __init__(self, parts: list[Part], problems: int) -> None:
        self.rows = parts
        self.duals = [first_duals(part, problems) for part in parts]
        self.parts = len(parts)
        self.restarts = 0

    def improve(self, W: np.ndarray, order: Order) -> Report:
        """One round."""
        both = [improve(part, duals, W, order) for part, duals in zip(self.rows, self.duals, strict=True)]
        self.duals = [duals for duals, _ in both]
        return total([report for _, report in both])

    def weights(self, order: Order) -> np.ndarray:
        """``w`` of the dual variables."""
        return total([weights_of(part, duals, order) for part, duals in self._pairs()]).moves

    def sums(self, W: np.ndarray, order: Order) -> Report:
        """The sums of the certificate."""
        return total([sums_of(part, duals, W, order) for part, duals in self._pairs()])

    def _pairs(self) -> list[tuple[Part, Duals]]:
        return list(zip(self.rows, self.duals, strict=True))
