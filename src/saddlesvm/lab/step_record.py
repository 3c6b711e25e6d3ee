"""Records of linear solvers, one visit at a time: rows in the plane, the problem over them, and each visit's effect."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits
from saddlesvm.lab.dataset import Dataset, make_dataset
from saddlesvm.lab.study import Draws
from saddlesvm.problem.certificate import Evaluation, evaluate
from saddlesvm.problem.loss import Loss
from saddlesvm.solvers import DCD, SDCA, Newton, Pegasos
from saddlesvm.solvers.base import Budget

OPTIMAL = Limits(tol=1e-10, max_epochs=20_000.0)


@dataclass(frozen=True, eq=False)
class Plane:
    """Rows in the plane and their problem.

    Attributes
    ----------
    X : ndarray of shape (n, 2)
    y : ndarray of shape (n,)
        Labels -1 and +1, or class numbers.
    classes : tuple of str
        The names of the classes.
    problem : Problem
        A problem of one weight vector, of a kernel, or of all classes.
    words : str
        A sentence that says how the data were changed.
    axes : tuple of two str
    optimum : ndarray
        The best weights and, in the last place, the intercept: shape (3,), a row for each class, or (0,) with a kernel.
    lowest : float
        The lowest objective, in the problem's own form.
    """

    X: np.ndarray
    y: np.ndarray
    classes: tuple[str, ...]
    problem: Any
    words: str
    axes: tuple[str, str]
    optimum: np.ndarray
    lowest: float


class PlaneRows(NamedTuple):
    """Rows that were drawn and brought into the plane.

    Attributes
    ----------
    chosen : ndarray of int
        Their numbers among all rows.
    X : ndarray of shape (n, 2)
    axes : tuple of two str
        The names of the axes.
    words : str
        How the rows were drawn and changed.
    """

    chosen: np.ndarray
    X: np.ndarray
    axes: tuple[str, str]
    words: str


def plane_rows(X: Any, rows: int, seed: int) -> PlaneRows:
    """At most `rows` random rows of X, in the plane.

    Two features stay as they are; more are standardised and projected on their two principal components.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    rows : int
    seed : int

    Raises
    ------
    ValueError
        The data have fewer than two features.
    """
    n, d = X.shape
    if d < 2:
        raise ValueError(f"the step view needs at least two features; the data have {d}")
    count = min(rows, n)
    chosen = np.sort(np.random.default_rng(seed).permutation(n)[:count])
    seen = X[chosen].toarray() if sparse.issparse(X) else np.asarray(X[chosen])
    points, axes, done = _in_the_plane(np.asarray(seen, dtype=np.float64))
    few = "all rows" if count == n else f"{count} of {n:,} rows, drawn at random"
    return PlaneRows(chosen, points, axes, f"{few}; {done}")


def linear_plane(data: Dataset, loss: Loss, strength: dict[str, Any], intercept: bool, rows: int, seed: int) -> Plane:
    """The plane of a problem with one weight vector.

    Parameters
    ----------
    data : Dataset
        For classification, with at least two features.
    loss : Loss
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    rows : int
        Most rows to draw, at random.
    seed : int
    """
    drawn = plane_rows(data.X, rows, seed)
    plane = make_dataset(drawn.X, data.y[drawn.chosen], name=data.name)
    problem = plane.problem(loss, intercept=intercept_name(intercept), **strength)
    return made_plane(drawn, plane.y, data.classes, problem, fit(problem, DCD(), OPTIMAL), data.name)


def intercept_name(regularized: bool) -> Any:
    """The name of the intercept of a step view."""
    return "regularized" if regularized else "none"


def made_plane(
    drawn: PlaneRows, y: np.ndarray, classes: tuple[str, ...], problem: Any, best: FitResult, name: str
) -> Plane:
    """The plane of a problem and of its certified optimum."""
    optimum = np.column_stack([np.atleast_2d(best.coef), np.atleast_1d(best.intercept)])
    words = f"{name}: {drawn.words}."
    return Plane(drawn.X, y, classes, problem, words, drawn.axes, optimum, best.certificate.primal)


def _in_the_plane(X: np.ndarray) -> tuple[np.ndarray, tuple[str, str], str]:
    """Two columns, their names, and a sentence on their origin."""
    if X.shape[1] == 2:
        return np.ascontiguousarray(X), ("feature 1", "feature 2"), "the two features as they are"
    spread = X.std(axis=0)
    scaled = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    _, _, components = np.linalg.svd(scaled, full_matrices=False)
    words = f"{X.shape[1]} features standardised and projected on their two principal components"
    return np.ascontiguousarray(scaled @ components[:2].T), ("component 1", "component 2"), words


CERTIFIED = 1e-9  # relative gap at which a run ends
NEWTON_STEPS = 40  # most steps of Newton's method, each of several passes
NEVER = -1.0  # relative gap at which a solver would pause by itself
TIMED_SECONDS, MOST_TIMED = 0.02, 10**6  # limits of a timed run at full speed: seconds, and rows


class Foresight:
    """Predicts the rows that a solver will visit next, from the generator's first state and the first order."""

    def __init__(self, solver: Any, state: Any) -> None:
        self.draws = Draws(int(state.random[0]))
        self.order, self.position, self.sampling = state.order.copy(), 0, solver.sampling

    def next(self, count: int) -> list[int]:
        """The rows of the next step."""
        if self.sampling == "subset":
            return [self._swapped(k, k + self.draws.below(self.order.size - k)) for k in range(count)]
        return [self._one() for _ in range(count)]

    def _swapped(self, k: int, j: int) -> int:
        """The row at place k, once it has changed places with the row at j."""
        self.order[k], self.order[j] = self.order[j], self.order[k]
        return int(self.order[k])

    def _one(self) -> int:
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
        One that :meth:`shown` gave.
    seed : int
    """

    watched: ClassVar[tuple[type[Any], ...]] = (Pegasos, SDCA, DCD, Newton)
    tangents: ClassVar[type] = Pegasos  # the solver whose lower plane is the tangent at the margin of the visit

    def __init__(self, plane: Plane, solver: Any, seed: int) -> None:
        self.plane, self.solver, self.problem = plane, solver, plane.problem
        self.state = solver.init(self.problem, seed)
        self.foresight = Foresight(solver, self.state) if hasattr(solver, "sampling") else None
        self.batch = getattr(solver, "batch_size", 1)
        self.seconds_per_row = self._seconds_per_row(seed)
        self.bars = np.zeros(0)
        self.aside: list[int] = []
        self.frames: list[dict[str, Any]] = []
        self._append_frame([], None)

    @staticmethod
    def shown(solver: Any) -> Any:
        """The solver, with its last iterate as output in place of an average."""
        if isinstance(solver, (Pegasos, SDCA)):
            return dataclasses.replace(solver, output="last")
        return dataclasses.replace(solver, warm_up=0) if isinstance(solver, Newton) else solver

    def run(self, epochs: float) -> list[dict[str, Any]]:
        """Record visits until `epochs` passes (or Newton steps) are done or the gap is closed; returns the frames."""
        while not self._enough(epochs) and not self.state.satisfied:
            place = int(getattr(self.state, "position", 0))
            ahead = self.foresight.next(self.batch) if self.foresight else []
            before = self._model()
            self.state = self.solver.step(self.problem, self.state, Budget(self.batch))
            visited = ahead if self.foresight else self._visited(place)
            if self._append_frame(visited, before) <= CERTIFIED:
                break
        return self.frames

    def _enough(self, epochs: float) -> bool:
        if isinstance(self.solver, Newton):
            return len(self.frames) > NEWTON_STEPS
        return bool(self.state.rows_touched >= epochs * self.plane.y.size)

    def _visited(self, place: int) -> list[int]:
        """The row that was at this position of the pass."""
        return [int(self.state.sequence[place])] if isinstance(self.solver, DCD) else []

    def _point(self) -> Any:
        return self.solver.solution(self.problem, self.state)

    def _model(self) -> np.ndarray:
        """A copy of what the margins are computed from."""
        return np.array(self._point().w, dtype=np.float64)

    def _append_frame(self, rows: list[int], before: np.ndarray | None) -> float:
        """Append a frame; returns its relative gap."""
        point = self._point()
        evaluation = evaluate(self.problem, point, exact=True)
        bars = self._bars(point)
        earlier = self.bars if self.bars.size else np.zeros(bars.size)
        changed = np.flatnonzero(np.abs(bars - earlier) > 1e-12)
        frame: dict[str, Any] = {
            "rows": rows,
            "touched": int(self.state.rows_touched),
            "seconds": float(f"{self.state.rows_touched * self.seconds_per_row:.4g}"),
            "primal": float(f"{evaluation.certificate.primal:.7g}"),
            "dual": float(f"{evaluation.certificate.dual:.7g}"),
            "b": [value for i in changed for value in (int(i), float(f"{bars[i]:.5g}"))],
        }
        frame |= self._described(evaluation)
        if rows and before is not None:
            frame |= self._visit(rows[0], before, (earlier, bars), evaluation)
        self.bars = bars
        aside = self._set_aside()
        if aside != self.aside:
            self.aside = frame["aside"] = aside
        self.frames.append(frame)
        return evaluation.certificate.relative_gap

    def _bars(self, point: Any) -> np.ndarray:
        """The heights of the bars: b of each row."""
        assert point.alpha is not None
        return np.asarray(point.alpha * self.problem.y)

    def _described(self, evaluation: Evaluation) -> dict[str, Any]:
        """What draws the model."""
        return {"w": short(np.append(evaluation.coef, evaluation.intercept))}

    def _visit(
        self, i: int, before: np.ndarray, bars: tuple[np.ndarray, np.ndarray], evaluation: Evaluation
    ) -> dict[str, Any]:
        """What draws the effect of a visit on its row i: the lower plane."""
        x, y = self.plane.X[i], float(self.problem.y[i])
        was = y * (x @ before[:2] + before[2] * self.problem.scale)
        now = y * (x @ evaluation.coef + evaluation.intercept)
        return {"plane": self._lower_planes((was, now), (bars[0][i], bars[1][i]))}

    def _lower_planes(self, margins: tuple[float, float], slopes: tuple[float, float]) -> list[float]:
        """A row's margin, slope and height of its lower plane, before and after the visit."""
        loss = self.problem.loss
        if isinstance(self.solver, self.tangents):
            slopes = -loss.subgradient(margins[0], 1.0), -loss.subgradient(margins[0], 1.0)
        heights = (-loss.conjugate(float(slope), 1.0, 1.0) for slope in slopes)
        before, after = zip(margins, slopes, heights, strict=True)
        return short([*before, *after])

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
        state = self.solver.step(self.problem, self.solver.init(self.problem, seed), Budget(self.plane.y.size))
        seconds, first = 0.0, int(state.rows_touched)
        while seconds < TIMED_SECONDS and not state.satisfied and state.rows_touched < MOST_TIMED:
            began = time.perf_counter()
            state = self.solver.step(self.problem, state, Budget(MOST_TIMED, relative_gap=NEVER))
            seconds += time.perf_counter() - began
        return seconds / max(int(state.rows_touched) - first, 1)


def short(values: Sequence[float] | np.ndarray) -> list[float]:
    """The values to five digits."""
    return [float(f"{value:.5g}") for value in values]


def loss_curve(loss: Any, low: float, high: float, count: int = 81) -> list[list[float]]:
    """The loss of a row as a function of its margin ``y z``, as points."""
    return [[round(float(m), 4), round(float(loss.value(float(m), 1.0)), 5)] for m in np.linspace(low, high, count)]
