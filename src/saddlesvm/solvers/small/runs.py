"""The loop of the methods for small problems, whose runs take their steps side by side.

The methods are Newton's (:mod:`.small_newton`) and an interior point method
(:mod:`.interior_point`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np

from saddlesvm.solvers.small.dense import Ends, FoundWeights


class Runs(ABC):
    """The points that the runs of a method stand at, one for each of K problems.

    Attributes
    ----------
    words : tuple of str
        What a step is called, and what the rows do that :meth:`count_active` counts.
    are_together : bool
        True if the runs of several problems take their steps together.
    """

    words: ClassVar[tuple[str, str]]
    are_together: bool = True

    @abstractmethod
    def take_step(self) -> np.ndarray:
        """Take a step of each run; return about the gaps or less, NaN if a run gains nothing."""

    @abstractmethod
    def point(self) -> FoundWeights:
        """Return weights and dual points, with their objectives."""

    @abstractmethod
    def pick(self, chosen: np.ndarray) -> Self:
        """Return some of the runs."""

    @abstractmethod
    def count_active(self) -> int:
        """Return how many rows bend, or have free dual variables."""


def advance(
    runs: Runs, ends: Ends, relative_gap: float, most: int, live: np.ndarray | None = None
) -> None:
    """Let runs take steps until each has come to the gap, or gains nothing; `most` steps at most.

    `live` are the numbers of the runs among the ends; all by default.
    """
    if live is None:
        live = np.arange(ends.steps.size)
    for step in range(1, most + 1):
        gaps = runs.take_step()
        ends.steps[live] += 1

        # Objectives are computed at the end, and once a gap may be small enough, or is no number.
        near = ~(gaps > relative_gap * ends.primal[live])
        if step == most:
            near[:] = True
        if not near.any():
            continue
        ends.stuck[live] = ~np.isfinite(gaps)
        ends.keep(live, runs.point())

        # Runs that have ended leave the others.
        going = ~near | ((ends.gaps()[live] > relative_gap) & ~ends.stuck[live])
        if going.all():
            continue
        if not going.any():
            break
        live = live[going]
        runs = runs.pick(going)
