"""The step view: two solvers, recorded one visit at a time, and the page that plays them.

Kernel Pegasos is recorded by its counts, dual ascent by its variables, and Crammer and Singer's
machine one row's block of variables at a time.

Rows are brought into the plane; a record says what each visit did to the model over them.
"""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.data.door import check_design, check_labels
from saddlesvm.data.errors import write_page
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult, Limits
from saddlesvm.kernel.decomposition import Decomposition
from saddlesvm.kernel.kernel_machine import OF_KERNELS
from saddlesvm.kernel.kernel_pegasos import KernelPegasos
from saddlesvm.kernel.kernel_problem import make_kernel_problem
from saddlesvm.kernel.mercer import Kernel, resolve_gamma
from saddlesvm.lab.dataset import Dataset, make_dataset
from saddlesvm.lab.report import embedded, page_part, words
from saddlesvm.lab.runs import Contender, contender
from saddlesvm.lab.study import Draws
from saddlesvm.problem.certificate import Evaluation, evaluate
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.losses import Loss, loss_name, make_loss
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.allowed import check
from saddlesvm.solvers import DCD, SDCA, Newton, Pegasos, parse_solver
from saddlesvm.solvers.base import Budget
from saddlesvm.solvers.crammer_singer import CrammerSinger, JointAscent

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
        The best weights and, in the last place, the intercept: shape (3,), a row for each class, or
        (0,) with a kernel.
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

    Two features stay as they are; more are standardised and projected on their two principal
    components.

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


def linear_plane(
    data: Dataset, loss: Loss, strength: dict[str, Any], intercept: bool, rows: int, seed: int
) -> Plane:
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
    return made_plane(
        drawn, plane.y, data.classes, problem, fit(problem, DCD(), OPTIMAL), data.name
    )


def intercept_name(regularized: bool) -> Any:
    """The name of the intercept of a step view."""
    return "regularized" if regularized else "none"


def made_plane(
    drawn: PlaneRows,
    y: np.ndarray,
    classes: tuple[str, ...],
    problem: Any,
    best: FitResult,
    name: str,
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
TIMED_SECONDS = 0.02  # limits of a timed run at full speed: seconds
MOST_TIMED = 10**6  # and rows


class Foresight:
    """Predicts the rows that a solver will visit next, from the generator's first state and the
    first order.
    """

    def __init__(self, solver: Any, state: Any) -> None:
        self.draws = Draws(int(state.random[0]))
        self.order = state.order.copy()
        self.position = 0
        self.sampling = solver.sampling

    def next(self, count: int) -> list[int]:
        """The rows of the next step."""
        if self.sampling == "subset":
            return [
                self._swapped(k, k + self.draws.below(self.order.size - k)) for k in range(count)
            ]
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
    tangents: ClassVar[type] = (
        Pegasos  # the solver whose lower plane is the tangent at the margin of the visit
    )

    def __init__(self, plane: Plane, solver: Any, seed: int) -> None:
        self.plane = plane
        self.solver = solver
        self.problem = plane.problem
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
        """Record visits until `epochs` passes (or Newton steps) are done or the gap is closed;
        returns the frames.
        """
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
        self,
        i: int,
        before: np.ndarray,
        bars: tuple[np.ndarray, np.ndarray],
        evaluation: Evaluation,
    ) -> dict[str, Any]:
        """What draws the effect of a visit on its row i: the lower plane."""
        x = self.plane.X[i]
        y = float(self.problem.y[i])
        was = y * (x @ before[:2] + before[2] * self.problem.scale)
        now = y * (x @ evaluation.coef + evaluation.intercept)
        return {"plane": self._lower_planes((was, now), (bars[0][i], bars[1][i]))}

    def _lower_planes(
        self, margins: tuple[float, float], slopes: tuple[float, float]
    ) -> list[float]:
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
        state = self.solver.step(
            self.problem, self.solver.init(self.problem, seed), Budget(self.plane.y.size)
        )
        seconds = 0.0
        first = int(state.rows_touched)
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
    return [
        [round(float(m), 4), round(float(loss.value(float(m), 1.0)), 5)]
        for m in np.linspace(low, high, count)
    ]


def kernel_plane(
    data: Dataset,
    loss: Loss,
    strength: dict[str, Any],
    intercept: bool,
    gamma: Any,
    rows: int,
    seed: int,
) -> Plane:
    """The plane of a problem with a Gaussian kernel.

    Parameters
    ----------
    data : Dataset
        For classification, with at least two features.
    loss : Loss
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    gamma : {"scale", "auto"} or float
    rows : int
        Most rows to draw, at random.
    seed : int

    Raises
    ------
    ValueError
        `gamma` is out of range, or the data have fewer than two features.
    """
    check("gamma", gamma, OF_KERNELS["gamma"])
    drawn = plane_rows(data.X, rows, seed)
    y = data.y[drawn.chosen]
    kernel = Kernel("rbf", resolve_gamma(gamma, drawn.X))
    problem: Any = make_kernel_problem(
        drawn.X, kernel, y, loss, intercept=intercept_name(intercept), **strength
    )[0]
    return made_plane(
        drawn, y, data.classes, problem, fit(problem, Decomposition(), OPTIMAL), data.name
    )


class KernelRecorder(Recorder):
    """One kernel solver, one visit at a time.

    A frame holds `scale`, for which the decision function is ``f = scale sum_j b_j y_j k(x_j, .)``
    with the counts b.
    """

    watched: ClassVar[tuple[type[Any], ...]] = (KernelPegasos,)
    tangents: ClassVar[type] = KernelPegasos

    def _reading(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Sums of kernel values at the rows, the bars, `scale`, and the factor with which the sums
        are margins.

        Pegasos judges a row by the sums of the last step and the factor of the new one.
        """
        state = self.state
        scale = float(self.solver.scale(self.problem)) / max(1, state.steps)
        return np.array(state.sums), np.abs(state.alpha), scale, scale

    def _model(self) -> np.ndarray:
        return self._reading()[0]

    def _bars(self, point: Any) -> np.ndarray:
        return self._reading()[1]

    def _described(self, evaluation: Evaluation) -> dict[str, Any]:
        return {"scale": float(f"{self._reading()[2]:.6g}")}

    def _visit(
        self,
        i: int,
        before: np.ndarray,
        bars: tuple[np.ndarray, np.ndarray],
        evaluation: Evaluation,
    ) -> dict[str, Any]:
        after, _, _, factor = self._reading()
        was, now = (float(self.problem.y[i] * factor * sums[i]) for sums in (before, after))
        return {"plane": self._lower_planes((was, now), (bars[0][i], bars[1][i]))}


COLOURS = 6  # classes that the page can tell apart


def classes_plane(
    X: Any,
    y: Any,
    loss: Loss,
    strength: dict[str, Any],
    intercept: bool,
    rows: int,
    seed: int,
    name: str,
) -> Plane:
    """The plane of the problem of all classes.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        With at least two features.
    y : array-like of shape (n,)
        Two to six classes.
    loss : Loss
        The hinge.
    strength : dict
        ``C`` or ``lam``.
    intercept : bool
        A regularised intercept, or none.
    rows : int
        Most rows to draw, at random.
    seed : int
    name : str

    Raises
    ------
    ValueError
        There are fewer than two classes among the rows drawn, or more than six.
    """
    design = check_design(X).plain
    labels = check_labels(y, design.shape[0])
    drawn = plane_rows(design, rows, seed)
    found, codes = np.unique(labels[drawn.chosen], return_inverse=True)
    if not 2 <= found.size <= COLOURS:
        raise ValueError(
            f"the step view of all classes shows 2 to {COLOURS} classes; the rows drawn have "
            f"{found.size}"
        )
    design = as_rows(np.ascontiguousarray(drawn.X), bias=1.0 if intercept else 0.0)
    problem = make_joint_problem(
        design,
        codes.astype(np.float64),
        found.size,
        loss,
        intercept=intercept_name(intercept),
        **strength,
    )
    best = fit(problem, CrammerSinger(), OPTIMAL)
    return made_plane(drawn, codes, tuple(map(str, found)), problem, best, name)


class ClassesRecorder(Recorder):
    """Dual ascent over one row's block of variables, one visit at a time.

    The bars of a frame are ``-a_ik`` of each row i against each rival k, at the place ``i K + k``.
    """

    watched: ClassVar[tuple[type[Any], ...]] = (JointAscent,)

    @staticmethod
    def shown(solver: Any) -> Any:
        """The solver without shrinking: every visit then computes all scores of one row."""
        return dataclasses.replace(solver, shrinking=False)

    def _visited(self, place: int) -> list[int]:
        return [int(self.state.order[place])]

    def _model(self) -> np.ndarray:
        W = np.array(self._point().w, dtype=np.float64)
        W[:, -1] *= self.problem.scale
        return W

    def _bars(self, point: Any) -> np.ndarray:
        return np.maximum(-point.alpha, 0.0).ravel()

    def _described(self, evaluation: Evaluation) -> dict[str, Any]:
        return {"w": short(np.column_stack([evaluation.coef, evaluation.intercept]).ravel())}

    def _visit(
        self,
        i: int,
        before: np.ndarray,
        bars: tuple[np.ndarray, np.ndarray],
        evaluation: Evaluation,
    ) -> dict[str, Any]:
        """The slopes ``G_k = e_ik + x_i . w_k`` of row i before and after the visit."""
        x = np.append(self.plane.X[i], 1.0)
        e = np.arange(len(self.plane.classes)) != self.plane.y[i]
        after = np.column_stack([evaluation.coef, evaluation.intercept])
        return {"slopes": short(np.concatenate([before @ x + e, after @ x + e]))}


MARGINS = (-3.0, 4.0)  # range of margins over which the loss is shown
LARGEST_B = (
    1.0  # upper end of the multipliers' range, at least; losses with bounded slopes stay within it
)
RECORDERS = {
    "linear": Recorder,
    "classes": ClassesRecorder,
    "kernel": KernelRecorder,
}  # by the kind of problem
WATCHED: dict[str, type[Any]] = {
    solver.name: solver for recorder in RECORDERS.values() for solver in recorder.watched
}
SCRIPTS = ("watch_parts.js", "watch_panels.js", "watch.js")


@dataclass(frozen=True, eq=False)
class Watch:
    """Two recorded runs (or one) on one clock, as :func:`watch` records them.

    Attributes
    ----------
    title : str
    scene : dict
        The contents of the page as plain data: rows, loss, optimum and, for each run, its frames.
    command : str
        What makes the page again.

    Examples
    --------
    >>> from saddlesvm.data import load_bundled
    >>> from saddlesvm.lab import watch
    >>> toy = load_bundled("toy")
    >>> seen = watch(toy.X, toy.y, solver="sdca", against=None, C=1.0, epochs=2)
    >>> "<script>" in seen.html()
    True
    """

    title: str
    scene: dict[str, Any] = field(repr=False)
    command: str = ""

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the HTML file, which needs no network; its path.

        Raises
        ------
        DataError
            The file cannot be written.
        """
        return write_page(path, self.html())

    def html(self) -> str:
        """The page, with its styles, script and data inside."""
        parts = {
            "title": words(self.title),
            "words": words(self.scene["words"]),
            "legend": page_part(f"legend_{self.scene['kind']}.html"),
            "command": words(self.command),
            "style": page_part("watch.css"),
            "script": "".join(map(page_part, SCRIPTS)),
            "scene": embedded(self.scene),
        }
        return Template(page_part("watch.html")).substitute(parts)


def watch(
    X: Any,
    y: Any,
    *,
    solver: Any = "pegasos",
    against: Any = "dcd",
    loss: str | Loss = "hinge",
    C: float | None = None,
    lam: float | None = None,
    intercept: bool = True,
    gamma: Any = "scale",
    epochs: float = 8.0,
    rows: int = 60,
    seed: int = 0,
    positive: Any = None,
    name: str = "data",
    command: str = "",
) -> Watch:
    """Record one or two solvers, visit by visit, for the step view.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        With d = 2 the rows are shown as they are; otherwise they are standardised and projected on
        their two principal components first, and the solvers work on these.
    y : array of shape (n,)
        Two classes, or several with `positive`; several for ``crammer_singer``.
    solver, against : str or solver object
        ``pegasos``, ``sdca``, ``dcd`` or ``newton``, with options as in
        ``pegasos:projection=true,batch_size=4``; ``kernel-pegasos``, with a Gaussian kernel; or
        ``crammer_singer``, for all classes at once. Both must solve the same problem.
        ``against=None`` shows one alone. Iterates are shown, not averages.
    loss : str or Loss, default="hinge"
        One for classification.
    C, lam : float, optional
        One of them; ``lam=0.05`` when both are left out.
    intercept : bool, default=True
        A regularised intercept, or none.
    gamma : {"scale", "auto"} or float, default="scale"
        Of the Gaussian kernel of kernel solvers, as in :class:`~saddlesvm.SVC`.
    epochs : float, default=8
        Passes over the rows, at most (40 steps of Newton's method); a run also ends at a relative
        gap of 1e-9.
    rows : int, default=60
        Rows at most, drawn at random.
    seed : int, default=0
        Seed for that choice and for the solvers' draws.
    positive : optional
        The class that is compared with the rest, if there are several.
    name : str
        Of the data, for the title.
    command : str
        What makes the page again.

    Returns
    -------
    Watch
        Call its ``report(path)``.

    Raises
    ------
    ValueError
        A solver that cannot be shown, two solvers of different problems, fewer than two features,
        or options that do not fit.

    Examples
    --------
    >>> import tempfile
    >>> from saddlesvm.data import load_bundled
    >>> from saddlesvm.lab import watch
    >>> toy = load_bundled("toy")
    >>> seen = watch(
    ...     toy.X, toy.y, solver="pegasos", against="dcd", C=1.0, epochs=2, name="toy"
    ... )
    >>> seen.report(tempfile.mkdtemp() + "/steps.html").name
    'steps.html'
    """
    if C is None and lam is None:
        lam = 0.05
    if rows < 2 or not epochs > 0.0:
        raise ValueError(
            f"rows must be at least 2 and epochs positive; got {rows!r} and {epochs!r}"
        )
    contenders = [_contender(one) for one in (solver, against) if one is not None]
    kind = _kind(contenders)
    made = make_loss(loss, task="classification")
    strength = {"C": C, "lam": lam}
    if kind == "classes":
        plane = classes_plane(X, y, made, strength, intercept, rows, seed, name)
    else:
        data = make_dataset(X, y, name=name, positive=positive)
        if kind == "kernel":
            plane = kernel_plane(data, made, strength, intercept, gamma, rows, seed)
        else:
            plane = linear_plane(data, made, strength, intercept, rows, seed)
    scene = _scene(kind, plane, contenders, epochs, seed)
    versus = " against ".join(one.label for one in contenders)
    return Watch(f"{versus} on {name}", scene, command)


def _contender(given: Any) -> Contender:
    """A solver that can be shown, and its options.

    Raises
    ------
    ValueError
        The solver does not work one row, or one Newton step, at a time, or the options do not fit.
    """
    name = (
        given.partition(":")[0]
        if isinstance(given, str)
        else getattr(given, "name", type(given).__name__)
    )
    if name not in WATCHED:
        raise ValueError(f"the step view cannot show {name}: use one of {', '.join(WATCHED)}")
    return contender(parse_solver(given, WATCHED) if isinstance(given, str) else given)


def _kind(contenders: list[Contender]) -> str:
    """The kind of problem that the solvers have in common.

    Raises
    ------
    ValueError
        They have none.
    """
    for kind, recorder in RECORDERS.items():
        if all(isinstance(one.solver, recorder.watched) for one in contenders):
            return kind
    names = [one.name for one in contenders]
    raise ValueError(
        f"{' and '.join(names)} solve different problems, and the step view plays both on one: "
        f"give another solver "
        f"as against, or against=None"
    )


def _scene(
    kind: str, plane: Plane, contenders: list[Contender], epochs: float, seed: int
) -> dict[str, Any]:
    """The contents of the page, as plain data."""
    problem = plane.problem
    recorder = RECORDERS[kind]
    runs = []
    for one in contenders:
        frames = recorder(plane, recorder.shown(one.solver), seed).run(epochs)
        largest = max(
            (value for frame in frames for value in map(abs, frame["b"][1::2])), default=LARGEST_B
        )
        run = {"label": one.label, "kind": one.name, "frames": frames}
        runs.append(run | {"largest": max(LARGEST_B, float(f"{largest:.4g}"))})
    radii = [one.solver.radius(problem) for one in contenders if isinstance(one.solver, Pegasos)]
    ball = next((radius for radius in radii if math.isfinite(radius)), None)
    scene = {
        "kind": kind,
        "words": f"{plane.words} {problem.describe()}.",
        "axes": plane.axes,
        "classes": plane.classes,
        "X": np.round(plane.X, 4).tolist(),
        "y": plane.y.astype(int).tolist(),
        "lam": problem.lam,
        "loss": {"name": loss_name(problem.loss), "curve": loss_curve(problem.loss, *MARGINS)},
        "lowest": float(f"{plane.lowest:.9g}"),
        "ball": None if ball is None else float(f"{ball:.6g}"),
        "runs": runs,
    }
    if kind == "kernel":
        return scene | {"gamma": problem.kernel.gamma, "offset": problem.offset}
    return scene | {"optimum": [float(f"{value:.6g}") for value in plane.optimum.ravel()]}
