"""The recorder of the step view: a solver on a plane's problem, recorded visit by visit.

A record (a frame) says what each visit did to the model.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.lab.plane import Plane
from saddlesvm.problem.certificate import Evaluation, evaluate
from saddlesvm.runtime.randomness import draw, make_random
from saddlesvm.solvers import DCD, SDCA, Newton, Pegasos
from saddlesvm.solvers.base import Budget

if TYPE_CHECKING:
    from saddlesvm.problem.certificate import Point

CERTIFIED = 1e-9  # relative gap at which a run ends
NEWTON_STEPS = 40  # steps of Newton's method at most, each of several passes
NEVER = -1.0  # relative gap that no solver reaches, so that none pauses by itself
# A run at full speed is timed until one of these is reached (guessed).
TIMED_SECONDS = 0.02
MOST_TIMED = 10**6  # rows
CHANGED = 1e-12  # difference of a bar's height from which on it has changed


class Draws:
    """The random generator of a solver with this seed: splitmix64 (Steele, Lea and Flood 2014).

    Parameters
    ----------
    seed : int

    Examples
    --------
    >>> from saddlesvm.lab.recorder import Draws
    >>> draws = Draws(0)
    >>> [draws.below(10) for _ in range(5)]
    [8, 4, 0, 9, 1]
    >>> order = [0, 1, 2, 3]
    >>> draws.shuffle(order)
    >>> sorted(order)
    [0, 1, 2, 3]
    """

    def __init__(self, seed: int) -> None:
        self.state = make_random(seed)

    def below(self, n: int) -> int:
        """Return a random integer from 0 to n - 1, for n below 2^32."""
        return draw(self.state, n)

    def shuffle(self, items: Any) -> None:
        """Bring a list or an array into random order, in place (Fisher and Yates)."""
        for k in range(len(items) - 1, 0, -1):
            j = self.below(k + 1)
            items[k], items[j] = items[j], items[k]


class Foresight:
    """Predicts the rows that a solver will visit next, from the seed and the first order."""

    def __init__(self, solver: Any, state: Any) -> None:
        self.draws = Draws(int(state.random[0]))
        self.order = state.order.copy()
        self.position = 0
        self.sampling = solver.sampling

    def next(self, count: int) -> list[int]:
        """Return the rows of the next step."""
        if self.sampling == "subset":
            return [self._draw_without_replacement(k) for k in range(count)]
        return [self._next_row() for _ in range(count)]

    def _draw_without_replacement(self, k: int) -> int:
        """Swap a random later row into place k of the order, and return it."""
        j = k + self.draws.below(self.order.size - k)
        self.order[k], self.order[j] = self.order[j], self.order[k]
        return int(self.order[k])

    def _next_row(self) -> int:
        """Return the next row of independent draws, or of a pass."""
        if self.sampling == "replacement":
            return int(self.order[self.draws.below(self.order.size)])
        # A new order at the beginning of each pass.
        if self.position == 0 and self.sampling == "permutation":
            self.draws.shuffle(self.order)
        row = int(self.order[self.position])
        self.position = (self.position + 1) % self.order.size
        return row


class Recorder:
    """A linear solver on the plane's problem, recorded visit by visit.

    Parameters
    ----------
    plane : Plane
    solver : solver object
        Its iterates are shown: no averages, and no other solver first.
    seed : int
    """

    def __init__(self, plane: Plane, solver: Any, seed: int) -> None:
        if isinstance(solver, (Pegasos, SDCA)):
            solver = dataclasses.replace(solver, output="last")
        if isinstance(solver, Newton):
            solver = dataclasses.replace(solver, warm_up=0)
        self.plane = plane
        self.solver = solver
        self.problem = plane.problem
        self.state = solver.init(self.problem, seed)
        self.foresight: Foresight | None = None
        if isinstance(solver, Pegasos):
            self.foresight = Foresight(solver, self.state)
        self.batch = getattr(solver, "batch_size", 1)
        self.seconds_per_row = self._measure_seconds_per_row(seed)
        self.bars = np.zeros(0)
        self.aside: list[int] = []
        self.frames: list[dict[str, Any]] = []
        # The first frame shows the start.
        self._append_frame([], None)

    def run(self, epochs: float) -> list[dict[str, Any]]:
        """Record visits until `epochs` passes are done or the gap is closed; return the frames."""
        while not self._has_reached(epochs) and not self.state.satisfied:
            # The rows of a step are known before it, or can be read afterwards.
            position = int(getattr(self.state, "position", 0))
            visited = self.foresight.next(self.batch) if self.foresight else []
            before = np.array(self._point().w, dtype=np.float64)
            self.state = self.solver.step(self.problem, self.state, Budget(self.batch))
            if not self.foresight:
                visited = self._rows_at(position)
            if self._append_frame(visited, before) <= CERTIFIED:
                break
        return self.frames

    def _has_reached(self, epochs: float) -> bool:
        """Return True if the run has had its passes, or its Newton steps."""
        if isinstance(self.solver, Newton):
            return len(self.frames) > NEWTON_STEPS
        return bool(self.state.rows_touched >= epochs * self.plane.y.size)

    def _rows_at(self, position: int) -> list[int]:
        """Return the row that was at this position of the pass; empty for a pass over all rows."""
        if isinstance(self.solver, (DCD, SDCA)):
            return [int(self.state.sequence[position])]
        return []

    def _point(self) -> Point:
        """Return the current solution."""
        return self.solver.solution(self.problem, self.state)

    def _append_frame(self, rows: list[int], before: np.ndarray | None) -> float:
        """Append a frame for a visit of these rows, and return its relative gap."""
        point = self._point()
        evaluation = evaluate(self.problem, point, exact=True)
        # The height of a bar: b of its row.
        assert point.alpha is not None
        bars = np.asarray(point.alpha * self.problem.y)
        earlier = self.bars if self.bars.size else np.zeros(bars.size)
        # Only the bars that changed: number and height in turns.
        changes: list[float] = []
        for i in np.flatnonzero(np.abs(bars - earlier) > CHANGED):
            changes += [int(i), float(f"{bars[i]:.5g}")]
        frame: dict[str, Any] = {
            "rows": rows,
            "touched": int(self.state.rows_touched),
            "seconds": float(f"{self.state.rows_touched * self.seconds_per_row:.4g}"),
            "primal": float(f"{evaluation.certificate.primal:.7g}"),
            "dual": float(f"{evaluation.certificate.dual:.7g}"),
            "b": changes,
        }
        frame["w"] = round_values(np.append(evaluation.coef, evaluation.intercept))
        if rows and before is not None:
            frame["plane"] = self._visit_planes(rows[0], before, (earlier, bars), evaluation)
        self.bars = bars
        aside = self._rows_set_aside()
        if aside != self.aside:
            self.aside = aside
            frame["aside"] = aside
        self.frames.append(frame)
        return evaluation.certificate.relative_gap

    def _visit_planes(
        self,
        i: int,
        before: np.ndarray,
        bars: tuple[np.ndarray, np.ndarray],
        evaluation: Evaluation,
    ) -> list[float]:
        """Return margin, slope and height of row i's lower plane, before and after its visit."""
        x = self.plane.X[i]
        y = float(self.problem.y[i])
        earlier = y * (x @ before[:2] + before[2] * self.problem.scale)
        now = y * (x @ evaluation.coef + evaluation.intercept)
        loss = self.problem.loss
        slopes = (bars[0][i], bars[1][i])
        if isinstance(self.solver, Pegasos):
            # The tangent at the margin of the visit.
            tangent = -loss.subgradient(earlier, 1.0)
            slopes = (tangent, tangent)
        planes = []
        for margin, slope in zip((earlier, now), slopes, strict=True):
            # By conjugacy, the plane of this slope that touches the loss from below.
            planes += [margin, slope, -loss.conjugate(float(slope), 1.0, 1.0)]
        return round_values(planes)

    def _rows_set_aside(self) -> list[int]:
        """Return the rows that shrinking has set aside."""
        if not isinstance(self.solver, DCD):
            return []
        is_aside = np.ones(self.problem.y.size, dtype=bool)
        is_aside[self.state.order[: self.state.active]] = False
        is_aside |= self.state.aside > 0
        return [int(i) for i in np.flatnonzero(is_aside)]

    def _measure_seconds_per_row(self, seed: int) -> float:
        """Return the seconds of a row visit at full speed, measured on a run of its own."""
        # The first pass may compile: it is not timed.
        state = self.solver.init(self.problem, seed)
        state = self.solver.step(self.problem, state, Budget(self.plane.y.size))
        first = int(state.rows_touched)
        seconds = 0.0
        while seconds < TIMED_SECONDS and not state.satisfied and state.rows_touched < MOST_TIMED:
            began = time.perf_counter()
            state = self.solver.step(self.problem, state, Budget(MOST_TIMED, relative_gap=NEVER))
            seconds += time.perf_counter() - began
        return seconds / max(int(state.rows_touched) - first, 1)


def round_values(values: Sequence[float] | np.ndarray) -> list[float]:
    """Round values to five digits, so that the page stays small."""
    return [float(f"{value:.5g}") for value in values]
