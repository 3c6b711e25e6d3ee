"""Record two solvers and write the page that plays them."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from saddlesvm.data.atomic import write_page
from saddlesvm.lab.contenders import Contender, options_of, parse
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.lab.report import embedded, page_part, words
from saddlesvm.lab.step_classes import ClassesRecorder, classes_plane
from saddlesvm.lab.step_kernel import KernelRecorder, kernel_plane
from saddlesvm.lab.step_plane import Plane, linear_plane
from saddlesvm.lab.step_record import Recorder, loss_curve
from saddlesvm.problem.losses import Loss, loss_name, make_loss
from saddlesvm.solvers import Pegasos

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
