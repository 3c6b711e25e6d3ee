"""The step view: two solvers, recorded one visit at a time, and the page that plays them.

Kernel Pegasos is recorded by its counts, dual ascent by its variables, and Crammer and Singer's machine one row's block
of variables at a time.
"""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any, ClassVar

import numpy as np

from saddlesvm.data.door import check_design, check_labels
from saddlesvm.data.errors import write_page
from saddlesvm.estimators.kernel_machine import OF_KERNELS
from saddlesvm.fit.loop import fit
from saddlesvm.lab.dataset import Dataset, make_dataset
from saddlesvm.lab.report import embedded, page_part, words
from saddlesvm.lab.runs import Contender, options_of, parse
from saddlesvm.lab.step_record import (
    OPTIMAL,
    Plane,
    Recorder,
    intercept_name,
    linear_plane,
    loss_curve,
    made_plane,
    plane_rows,
    short,
)
from saddlesvm.problem.certificate import Evaluation
from saddlesvm.problem.crammer_singer import make_joint_problem
from saddlesvm.problem.kernel import make_kernel_problem
from saddlesvm.problem.losses import Loss, loss_name, make_loss
from saddlesvm.rows.kernels import Kernel, resolve_gamma
from saddlesvm.rows.layouts import as_rows
from saddlesvm.runtime.allowed import check
from saddlesvm.solvers import Pegasos
from saddlesvm.solvers.crammer_singer import CrammerSinger, JointAscent
from saddlesvm.solvers.kernel.decomposition import KernelDecomposition
from saddlesvm.solvers.kernel.pegasos import KernelPegasos
from saddlesvm.solvers.kernel.stochastic import KernelSDCA


def kernel_plane(
    data: Dataset, loss: Loss, strength: dict[str, Any], intercept: bool, gamma: Any, rows: int, seed: int
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
    problem: Any = make_kernel_problem(drawn.X, kernel, y, loss, intercept=intercept_name(intercept), **strength)[0]
    return made_plane(drawn, y, data.classes, problem, fit(problem, KernelDecomposition(), OPTIMAL), data.name)


class KernelRecorder(Recorder):
    """One kernel solver, one visit at a time.

    A frame holds `scale`, for which the decision function is ``f = scale sum_j b_j y_j k(x_j, .)`` with the bars b:
    for Pegasos its counts, for dual ascent its variables.
    """

    watched: ClassVar[tuple[type[Any], ...]] = (KernelPegasos, KernelSDCA)
    tangents: ClassVar[type] = KernelPegasos

    def _reading(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Sums of kernel values at the rows, the bars, `scale`, and the factor with which the sums are margins.

        Pegasos judges a row by the sums of the last step and the factor of the new one.
        """
        state, C = self.state, float(self.problem.C)
        if isinstance(self.solver, KernelPegasos):
            scale = float(self.solver.scale(self.problem)) / max(1, state.steps)
            return np.array(state.sums), np.abs(state.alpha), scale, scale
        return np.array(state.f), np.abs(state.beta) / C, C, 1.0

    def _model(self) -> np.ndarray:
        return self._reading()[0]

    def _bars(self, point: Any) -> np.ndarray:
        return self._reading()[1]

    def _described(self, evaluation: Evaluation) -> dict[str, Any]:
        return {"scale": float(f"{self._reading()[2]:.6g}")}

    def _visit(
        self, i: int, before: np.ndarray, bars: tuple[np.ndarray, np.ndarray], evaluation: Evaluation
    ) -> dict[str, Any]:
        after, _, _, factor = self._reading()
        was, now = (float(self.problem.y[i] * factor * sums[i]) for sums in (before, after))
        return {"plane": self._lower_planes((was, now), (bars[0][i], bars[1][i]))}


COLOURS = 6  # classes that the page can tell apart


def classes_plane(
    X: Any, y: Any, loss: Loss, strength: dict[str, Any], intercept: bool, rows: int, seed: int, name: str
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
        raise ValueError(f"the step view of all classes shows 2 to {COLOURS} classes; the rows drawn have {found.size}")
    design = as_rows(np.ascontiguousarray(drawn.X), bias=1.0 if intercept else 0.0)
    problem = make_joint_problem(
        design, codes.astype(np.float64), found.size, loss, intercept=intercept_name(intercept), **strength
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
        self, i: int, before: np.ndarray, bars: tuple[np.ndarray, np.ndarray], evaluation: Evaluation
    ) -> dict[str, Any]:
        """The slopes ``G_k = e_ik + x_i . w_k`` of row i before and after the visit."""
        x, e = np.append(self.plane.X[i], 1.0), np.arange(len(self.plane.classes)) != self.plane.y[i]
        after = np.column_stack([evaluation.coef, evaluation.intercept])
        return {"slopes": short(np.concatenate([before @ x + e, after @ x + e]))}


MARGINS = (-3.0, 4.0)  # range of margins over which the loss is shown
LARGEST_B = 1.0  # upper end of the multipliers' range, at least; losses with bounded slopes stay within it
RECORDERS = {"linear": Recorder, "classes": ClassesRecorder, "kernel": KernelRecorder}  # by the kind of problem
WATCHED: dict[str, type[Any]] = {solver.name: solver for recorder in RECORDERS.values() for solver in recorder.watched}
SCRIPTS = ("watch_parts.js", "watch_panels.js", "watch.js")
LEGENDS = {
    "linear": (
        ("The plane", "Rows of the two classes; the row just drawn has a ring, rows set aside by shrinking are faint. "
         "The full line is w, the dashed lines are the margins."),
        ("The weights", "The path of w, the optimum as a cross, and the ball of radius 1 / sqrt(lambda) that holds it; "
         "the circle is solid where the solver projects onto it."),
        ("The lower plane", "The loss of the row just drawn and the plane of slope -b below it: dashed before the "
         "visit, solid after. Where the plane touches the loss at the row's margin, the row is optimal."),
        ("The bars", "b of every row: the weight with which it pulls at w. Pegasos has no b of its own; its bars show "
         "how often a row was violated when drawn."),
    ),
    "kernel": (
        ("The plane", "Rows of the two classes; the row just drawn has a ring. The full curve is where the decision "
         "function f is 0, the dashed curves are where it is -1 and 1."),
        ("The lower plane", "The loss of the row just drawn and the plane of slope -b below it: dashed before the "
         "visit, solid after. For Pegasos it is the tangent at the margin by which the row is judged."),
        ("The bars", "For Pegasos, how often each row was violated when drawn: the counts, which only grow. For dual "
         "ascent, b of each row, which may return to zero."),
    ),
    "classes": (
        ("The plane", "Rows of all classes; the row just drawn has a ring. The full lines are where two classes have "
         "the same score, and no other class a higher one; beyond a dashed line, the rows of its colour pay nothing."),
        ("The weights", "The path of the weights of each class; the crosses are the optimum."),
        ("The slopes", "e + x . w of the row just drawn, by class: circles before the visit, dots after. The step "
         "makes the slopes of those classes equal that share in it: the threshold beta is their level."),
        ("The bars", "The weight of every row against its rivals, in the rivals' colours; a whole bar is at most 1."),
    ),
}  # fmt: skip


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
        legend = (f"<li><b>{words(name)}.</b> {words(text)}</li>" for name, text in LEGENDS[self.scene["kind"]])
        parts = {
            "title": words(self.title),
            "words": words(self.scene["words"]),
            "legend": "\n".join(legend),
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
        With d = 2 the rows are shown as they are; otherwise they are standardised and projected on their two principal
        components first, and the solvers work on these.
    y : array of shape (n,)
        Two classes, or several with `positive`; several for ``crammer_singer``.
    solver, against : str or solver object
        ``pegasos``, ``sdca``, ``dcd`` or ``newton``, with options as in ``pegasos:projection=true,batch_size=4``;
        ``kernel-pegasos`` or ``kernel-sdca``, with a Gaussian kernel; or ``crammer_singer``, for all classes at once.
        Both must solve the same problem. ``against=None`` shows one alone. Iterates are shown, not averages.
    loss : str or Loss, default="hinge"
        One for classification.
    C, lam : float, optional
        One of them; ``lam=0.05`` when both are left out.
    intercept : bool, default=True
        A regularised intercept, or none.
    gamma : {"scale", "auto"} or float, default="scale"
        Of the Gaussian kernel of kernel solvers, as in :class:`~saddlesvm.SVC`.
    epochs : float, default=8
        Passes over the rows, at most (40 steps of Newton's method); a run also ends at a relative gap of 1e-9.
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
        A solver that cannot be shown, two solvers of different problems, fewer than two features, or options that do
        not fit.

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
        raise ValueError(f"rows must be at least 2 and epochs positive; got {rows!r} and {epochs!r}")
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
    versus = " against ".join(contender.label for contender in contenders)
    return Watch(f"{versus} on {name}", scene, command)


def _contender(given: Any) -> Contender:
    """A solver that can be shown, and its options.

    Raises
    ------
    ValueError
        The solver does not work one row, or one Newton step, at a time, or the options do not fit.
    """
    name = given.partition(":")[0] if isinstance(given, str) else getattr(given, "name", type(given).__name__)
    if name not in WATCHED:
        raise ValueError(f"the step view cannot show {name}: use one of {', '.join(WATCHED)}")
    solver = parse(given, WATCHED) if isinstance(given, str) else given
    return Contender(solver, options_of(solver))


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
        f"{' and '.join(names)} solve different problems, and the step view plays both on one: give another solver "
        f"as against, or against=None"
    )


def _scene(kind: str, plane: Plane, contenders: list[Contender], epochs: float, seed: int) -> dict[str, Any]:
    """The contents of the page, as plain data."""
    problem, recorder = plane.problem, RECORDERS[kind]
    runs = []
    for contender in contenders:
        frames = recorder(plane, recorder.shown(contender.solver), seed).run(epochs)
        largest = max((value for frame in frames for value in map(abs, frame["b"][1::2])), default=LARGEST_B)
        run = {"label": contender.label, "kind": contender.name, "frames": frames}
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
