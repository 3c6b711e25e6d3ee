"""Run a solver one visit at a time, and record the effect of each visit."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.fit.limits import Limits
from saddlesvm.fit.loop import fit
from saddlesvm.lab.dataset import Dataset, make_dataset
from saddlesvm.lab.study.cases import Draws
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.loss import Loss
from saddlesvm.problem.problem import Problem
from saddlesvm.solvers import DCD, SDCA, Newton, Pegasos
from saddlesvm.solvers.base import Budget

WATCHED = (Pegasos, SDCA, DCD, Newton)
CERTIFIED = 1e-9  # relative gap at which a run ends
NEWTON_STEPS = 40  # most steps of Newton's method, each of several passes
NEVER = -1.0  # relative gap at which a solver would pause by itself
TIMED_SECONDS, MOST_TIMED = 0.02, 10**6  # limits of a timed run at full speed: seconds, and rows


def watchable(solver: Any) -> Any:
    """The solver, with its last iterate as output in place of an average.

    Raises
    ------
    ValueError
        The solver does not work one row, or one Newton step, at a time.
    """
    if type(solver) not in WATCHED:
        names = ", ".join(kind.name for kind in WATCHED)
        raise ValueError(f"the step view shows {names}; it cannot show {solver.name}")
    if isinstance(solver, (Pegasos, SDCA)):
        return dataclasses.replace(solver, output="last")
    return dataclasses.replace(solver, warm_up=0) if isinstance(solver, Newton) else solver


class Foresight:
    """Predicts the rows that Pegasos or SDCA will visit next, from the generator's first state and the first order."""

    def __init__(self, solver: Any, state: Any) -> None:
        self.draws = Draws(int(state.random[0]))
        self.order, self.position, self.sampling = state.order.copy(), 0, solver.sampling

    def next(self) -> int:
        """The next row."""
        if self.sampling == "replacement":
            return int(self.order[self.draws.below(self.order.size)])
        if self.position == 0 and self.sampling == "permutation":
            self.draws.shuffle(self.order)
        row = int(self.order[self.position])
        self.position = (self.position + 1) % self.order.size
        return row


class Recorder:
    """One solver on the plane's problem, one visit at a time.

    Parameters
    ----------
    plane : Plane
    solver : solver object
        One that :func:`watchable` gave.
    seed : int
    """

    def __init__(self, plane: Plane, solver: Any, seed: int) -> None:
        self.plane, self.solver, self.problem = plane, solver, plane.problem
        self.state = solver.init(self.problem, seed)
        self.foresight = Foresight(solver, self.state) if isinstance(solver, (Pegasos, SDCA)) else None
        self.batch = getattr(solver, "batch_size", 1)
        self.seconds_per_row = self._seconds_per_row(seed)
        self.alpha = np.zeros(self.problem.y.size)
        self.aside: list[int] = []
        self.frames: list[dict[str, Any]] = []
        self._note([], None)

    def run(self, epochs: float) -> list[dict[str, Any]]:
        """Record visits until `epochs` passes (or Newton steps) are done or the gap is closed; returns the frames."""
        while not self._enough(epochs) and not self.state.satisfied:
            before = self._place_in_pass()
            ahead = [self.foresight.next() for _ in range(self.batch)] if self.foresight else []
            w = np.array(self._point().w, dtype=np.float64)
            self.state = self.solver.step(self.problem, self.state, Budget(self.batch))
            visited = ahead if self.foresight else self._visited(before)
            if self._note(visited, w) <= CERTIFIED:
                break
        return self.frames

    def _enough(self, epochs: float) -> bool:
        if isinstance(self.solver, Newton):
            return len(self.frames) > NEWTON_STEPS
        return bool(self.state.rows_touched >= epochs * self.problem.y.size)

    def _place_in_pass(self) -> int:
        """The position of dual coordinate descent in its pass."""
        return int(self.state.position) if isinstance(self.solver, DCD) else 0

    def _visited(self, place: int) -> list[int]:
        return [int(self.state.sequence[place])] if isinstance(self.solver, DCD) else []

    def _point(self) -> Point:
        return self.solver.solution(self.problem, self.state)

    def _note(self, rows: list[int], w_before: np.ndarray | None) -> float:
        """Append a frame; returns its relative gap."""
        point = self._point()
        evaluation = evaluate(self.problem, point, exact=True)
        assert point.alpha is not None
        w = np.append(evaluation.coef, evaluation.intercept)
        b = point.alpha * self.problem.y
        changed = np.flatnonzero(np.abs(b - self.alpha) > 1e-12)
        frame: dict[str, Any] = {
            "rows": rows,
            "touched": int(self.state.rows_touched),
            "seconds": float(f"{self.state.rows_touched * self.seconds_per_row:.4g}"),
            "w": _short(w),
            "primal": float(f"{evaluation.certificate.primal:.7g}"),
            "dual": float(f"{evaluation.certificate.dual:.7g}"),
            "b": [value for i in changed for value in (int(i), float(f"{b[i]:.5g}"))],
        }
        if rows and w_before is not None:
            frame["plane"] = self._plane_of(rows[0], w_before, b, w)
        self.alpha = b
        aside = self._set_aside()
        if aside != self.aside:
            self.aside = frame["aside"] = aside
        self.frames.append(frame)
        return evaluation.certificate.relative_gap

    def _plane_of(self, i: int, w_before: np.ndarray, b: np.ndarray, w: np.ndarray) -> list[float]:
        """Row i's margin, slope and height of its lower plane, before and after the visit."""
        x, y, loss = self.plane.data.X[i], float(self.problem.y[i]), self.problem.loss
        margins = y * (x @ w_before[:2] + w_before[2] * self.problem.scale), y * (x @ w[:2] + w[2])
        slopes = self.alpha[i], b[i]
        if isinstance(self.solver, Pegasos):  # its plane is the tangent at the margin of the visit
            slopes = -loss.subgradient(margins[0], 1.0), -loss.subgradient(margins[0], 1.0)
        heights = (-loss.conjugate(float(slope), 1.0, 1.0) for slope in slopes)
        before, after = zip(margins, slopes, heights, strict=True)
        return _short(np.array([*before, *after]))

    def _set_aside(self) -> list[int]:
        """The rows that shrinking has set aside."""
        if not isinstance(self.solver, DCD):
            return []
        kept = self.state.order[: self.state.active]
        gone = np.ones(self.problem.y.size, dtype=bool)
        gone[kept] = False
        return [int(i) for i in np.flatnonzero(gone | (self.state.aside > 0))]

    def _seconds_per_row(self, seed: int) -> float:
        """Seconds for a row visit at full speed, measured on a run of its own."""
        state = self.solver.step(self.problem, self.solver.init(self.problem, seed), Budget(self.problem.y.size))
        seconds, first = 0.0, int(state.rows_touched)
        while seconds < TIMED_SECONDS and not state.satisfied and state.rows_touched < MOST_TIMED:
            began = time.perf_counter()
            state = self.solver.step(self.problem, state, Budget(MOST_TIMED, relative_gap=NEVER))
            seconds += time.perf_counter() - began
        return seconds / max(int(state.rows_touched) - first, 1)


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


OPTIMAL = Limits(tol=1e-10, max_epochs=20_000.0)


@dataclass(frozen=True, eq=False)
class Plane:
    """Rows in the plane and their problem.

    Attributes
    ----------
    data : Dataset
        The rows, of shape (n, 2).
    problem : Problem
    words : str
        A sentence that says how the data were changed.
    axes : tuple of two str
    optimum : ndarray of shape (3,)
        The best weights and, in the last place, the intercept.
    lowest : float
        The lowest objective, in the problem's own form.
    """

    data: Dataset
    problem: Problem
    words: str
    axes: tuple[str, str]
    optimum: np.ndarray
    lowest: float


def make_plane(data: Dataset, loss: Loss, strength: dict[str, Any], intercept: bool, rows: int, seed: int) -> Plane:
    """Draw rows, bring them into the plane, and find the optimum.

    Two features stay as they are; more are centred and projected on their two principal components, and the solvers
    work on these.

    Parameters
    ----------
    data : Dataset
        For classification, with two features at least.
    loss : Loss
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    rows : int
        Most rows to draw, at random.
    seed : int
    """
    X, y = data.X, data.y
    n, d = X.shape
    if d < 2:
        raise ValueError(f"the step view needs two features at least; the data have {d}")
    count = min(rows, n)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:count])
    seen = X[chosen].toarray() if sparse.issparse(X) else np.asarray(X[chosen])
    points, axes, done = _in_the_plane(np.asarray(seen, dtype=np.float64))
    few = "all rows" if count == n else f"{count} of {n:,} rows, drawn at random"
    plane = make_dataset(points, y[chosen], name=data.name)
    problem = plane.problem(loss, intercept="regularized" if intercept else "none", **strength)
    best = fit(problem, DCD(), OPTIMAL)
    optimum = np.append(best.coef, best.intercept)
    return Plane(plane, problem, f"{data.name}: {few}; {done}.", axes, optimum, best.certificate.primal)


def _in_the_plane(X: np.ndarray) -> tuple[np.ndarray, tuple[str, str], str]:
    """Two columns, their names, and a sentence on their origin."""
    if X.shape[1] == 2:
        return np.ascontiguousarray(X), ("feature 1", "feature 2"), "the two features as they are"
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    _, _, components = np.linalg.svd(scaled, full_matrices=False)
    words = f"{X.shape[1]} features standardised and projected on their two principal components"
    return np.ascontiguousarray(scaled @ components[:2].T), ("component 1", "component 2"), words


def loss_curve(loss: Any, low: float, high: float, count: int = 81) -> list[list[float]]:
    """The loss of a row as a function of its margin ``y z``, as points."""
    return [[round(float(m), 4), round(float(loss.value(float(m), 1.0)), 5)] for m in np.linspace(low, high, count)]
