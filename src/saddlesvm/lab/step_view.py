"""The step view: a page that plays two solvers side by side, visit by visit."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from saddlesvm.data.errors import write_page
from saddlesvm.lab.plane import Plane, make_plane
from saddlesvm.lab.recorder import Recorder
from saddlesvm.lab.report import embed_json, escape, page_part
from saddlesvm.lab.runs import label_solver
from saddlesvm.problem.losses import Loss, loss_name, make_loss
from saddlesvm.runtime.data_types import LabelsLike, RowsLike
from saddlesvm.solvers import DCD, SDCA, Newton, Pegasos, parse_solver

LAMBDA = 0.05  # without C and lam: strong enough that a few passes show the course of a fit
MARGINS = (-3.0, 4.0)  # range of margins over which the loss is shown
MOST_EPOCHS = 100  # passes; each visit of a row is a frame of the page, of some 500 bytes
CURVE_POINTS = 81  # points of the loss's curve over these margins
# The bars reach at least to here; the multipliers of losses with bounded slopes stay below.
LARGEST_B = 1.0
WATCHED: dict[str, type[Any]] = {solver.name: solver for solver in (Pegasos, SDCA, DCD, Newton)}
SCRIPTS = ("watch_parts.js", "watch_panels.js", "watch.js")


@dataclass(frozen=True, eq=False)
class Watch:
    """Two recorded runs (or a single run) on the same clock, as :func:`watch` records them.

    Attributes
    ----------
    title : str
    scene : dict
        The contents of the page as plain data: rows, loss, optimum and, for each run, its frames.
    command : str
        The command that makes the page again.

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
        """Write the page as an HTML file, which needs no network; return its path.

        Raises
        ------
        DataError
            The file cannot be written.
        """
        return write_page(path, self.html())

    def html(self) -> str:
        """Return the page, with its styles, scripts and data inside."""
        parts = {
            "title": escape(self.title),
            "words": escape(self.scene["words"]),
            "command": escape(self.command),
            "style": page_part("watch.css"),
            "script": "".join(map(page_part, SCRIPTS)),
            "scene": embed_json(self.scene),
        }
        return Template(page_part("watch.html")).substitute(parts)


def watch(
    X: RowsLike,
    y: LabelsLike,
    *,
    solver: object = "pegasos",
    against: object = "dcd",
    loss: str | Loss = "hinge",
    C: float | None = None,
    lam: float | None = None,
    intercept: bool = True,
    epochs: float = 8.0,
    rows: int = 60,
    seed: int = 0,
    positive: object = None,
    name: str = "data",
    command: str = "",
) -> Watch:
    """Record one or two solvers, visit by visit, for the step view.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Two features are shown as they are. More are standardised and projected on their two
        principal components first, and the solvers work on these.
    y : array of shape (n,)
        Two classes, or several with `positive`.
    solver, against : str or solver object
        ``pegasos``, ``sdca``, ``dcd`` or ``newton``, with options as in
        ``pegasos:projection=true,batch_size=4``. ``against=None`` shows the solver alone. Iterates
        are shown, not averages.
    loss : str or Loss, default="hinge"
        A loss for classification.
    C, lam : float, optional
        One of them; ``lam=0.05`` by default.
    intercept : bool, default=True
        A regularised intercept, or none.
    epochs : float, default=8
        Passes over the rows, at most, up to 100 (40 steps of Newton's method); a run also ends at a
        relative gap of 1e-9.
    rows : int, default=60
        Rows at most, drawn at random.
    seed : int, default=0
        Seed for that choice and for the solvers' draws.
    positive : optional
        The class that is compared with the rest, if there are several.
    name : str
        The name of the data, for the title.
    command : str
        The command that makes the page again.

    Returns
    -------
    Watch
        Call its ``report(path)``.

    Raises
    ------
    ValueError
        A solver cannot be shown, the data have fewer than two features, or options do not work
        together.

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
        lam = LAMBDA
    if rows < 2:
        raise ValueError(f"rows must be at least 2; got {rows!r}")
    if not 0.0 < epochs <= MOST_EPOCHS:
        raise ValueError(f"epochs must be above 0, and at most {MOST_EPOCHS}; got {epochs!r}")
    solvers = [parse_watched(given) for given in (solver, against) if given is not None]
    plane = make_plane(
        X,
        y,
        make_loss(loss, task="classification"),
        strength={"C": C, "lam": lam},
        intercept=intercept,
        rows=rows,
        seed=seed,
        positive=positive,
        name=name,
    )
    scene = record_scene(plane, solvers, epochs, seed)
    versus = " against ".join(map(label_solver, solvers))
    return Watch(f"{versus} on {name}", scene, command)


def parse_watched(given: Any) -> Any:
    """Return a solver that can be shown, given by name or as an object, with its options."""
    if isinstance(given, str):
        name = given.partition(":")[0]
    else:
        name = getattr(given, "name", type(given).__name__)
    if name not in WATCHED:
        raise ValueError(f"the step view cannot show {name}: use one of {', '.join(WATCHED)}")
    return parse_solver(given, WATCHED) if isinstance(given, str) else given


def record_scene(plane: Plane, solvers: list[Any], epochs: float, seed: int) -> dict[str, Any]:
    """Record the solvers, and return the contents of the page as plain data."""
    problem = plane.problem
    runs = []
    ball = None
    for solver in solvers:
        frames = Recorder(plane, solver, seed).run(epochs)
        # A frame's list "b" has the numbers and the heights of bars in turns.
        heights = [abs(height) for frame in frames for height in frame["b"][1::2]]
        runs.append(
            {
                "label": label_solver(solver),
                "kind": solver.name,
                "frames": frames,
                "largest": max(LARGEST_B, float(f"{max(heights, default=LARGEST_B):.4g}")),
            }
        )
        # The ball that Pegasos projects on.
        if ball is None and isinstance(solver, Pegasos) and math.isfinite(solver.radius(problem)):
            ball = float(f"{solver.radius(problem):.6g}")
    return {
        "words": f"{plane.words} {problem.describe()}.",
        "axes": plane.axes,
        "classes": plane.classes,
        "X": np.round(plane.X, 4).tolist(),
        "y": plane.y.astype(int).tolist(),
        "lam": problem.lam,
        "loss": {"name": loss_name(problem.loss), "curve": loss_curve(problem.loss)},
        "lowest": float(f"{plane.lowest:.9g}"),
        "ball": ball,
        "runs": runs,
        "optimum": [float(f"{value:.6g}") for value in plane.optimum],
    }


def loss_curve(loss: Loss) -> list[list[float]]:
    """Return the loss of a row as a function of its margin ``y z``, as points."""
    margins = [float(margin) for margin in np.linspace(*MARGINS, CURVE_POINTS)]
    return [[round(margin, 4), round(float(loss.value(margin, 1.0)), 5)] for margin in margins]
