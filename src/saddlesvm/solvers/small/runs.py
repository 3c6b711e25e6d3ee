"""The loop of the methods for small problems, whose runs take their steps side by side.

The methods are Newton's (:mod:`.small_newton`) and an interior point method
(:mod:`.interior_point`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from saddlesvm.runtime.clock import time_is_up
from saddlesvm.solvers.small.dense import BestPoints, RunPoints


class Runs(ABC):
    """The points that the runs of a method stand at, one for each of K problems.

    Attributes
    ----------
    step_together : bool
        True if the runs of several problems take their steps together.
    """

    step_together: bool = True

    @abstractmethod
    def take_step(self) -> np.ndarray:
        """Take a step of each run; return estimates of the gaps, NaN if a run gains nothing."""

    @abstractmethod
    def point(self) -> RunPoints:
        """Return weights and dual points, with their objectives."""

    @abstractmethod
    def pick(self, chosen: np.ndarray) -> Self:
        """Return some of the runs."""

    @abstractmethod
    def count_active(self) -> int:
        """Return how many rows bend, or have free dual variables."""


def advance(
    runs: Runs, best: BestPoints, relative_gap: float, most: int, live: np.ndarray | None = None
) -> None:
    """Let runs take steps until each has come to the gap, gains nothing, or has no time left.

    They take `most` steps at most, and at least one.

    `live` are the places of the runs in the arrays of `best`; all by default.
    """
    if live is None:
        live = np.arange(best.steps.size)
    for step in range(1, most + 1):
        gaps = runs.take_step()
        best.steps[live] += 1

        # The objectives are computed once an estimated gap is small enough, or NaN, and at the end.
        near = ~(gaps > relative_gap * best.primal[live])
        is_near = any(near.tolist())
        is_last = step == most or (not is_near and time_is_up())
        if not (is_near or is_last):
            continue
        best.stuck[live] = ~np.isfinite(gaps)
        best.keep(live, runs.point())

        # Runs that have ended leave the others.
        going = (best.gaps()[live] > relative_gap) & ~best.stuck[live]
        if is_last or not any(going.tolist()):
            break
        if all(going.tolist()):
            continue
        live = live[going]
        runs = runs.pick(going)
