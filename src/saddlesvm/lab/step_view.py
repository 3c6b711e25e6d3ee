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
from saddlesvm.lab.contenders import parse_contenders
from saddlesvm.lab.dataset import make_dataset
from saddlesvm.lab.report import embedded, page_part, words
from saddlesvm.lab.step_record import Plane, Recorder, loss_curve, make_plane, watchable
from saddlesvm.problem.losses import Loss, loss_name, make_loss
from saddlesvm.solvers import Pegasos

MARGINS = (-3.0, 4.0)  # range of margins over which the loss is shown
LARGEST_B = 1.0  # upper end of the multipliers' range, at least; losses with bounded slopes stay within it


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
            "command": words(self.command),
            "style": page_part("watch.css"),
            "script": page_part("watch_parts.js") + page_part("watch.js"),
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
        Two classes, or several with `positive`.
    solver, against : str or solver object
        ``pegasos``, ``sdca``, ``dcd`` or ``newton``, with options as in ``pegasos:projection=true,batch_size=4``.
        ``against=None`` shows one alone. Iterates are shown, not averages.
    loss : str or Loss, default="hinge"
        One for classification.
    C, lam : float, optional
        One of them; ``lam=0.05`` when both are left out.
    intercept : bool, default=True
        A regularised intercept, or none.
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
        A solver that cannot be shown, fewer than two features, or options that do not fit.

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
    contenders = [parse_contenders(one)[0] for one in (solver, against) if one is not None]
    solvers = [watchable(one.solver) for one in contenders]
    data = make_dataset(X, y, name=name, positive=positive)
    made = make_loss(loss, task="classification")
    plane = make_plane(data, made, {"C": C, "lam": lam}, intercept, rows, seed)
    runs = [
        {"label": contender.label, "kind": one.name, "frames": Recorder(plane, one, seed).run(epochs)}
        for contender, one in zip(contenders, solvers, strict=True)
    ]
    scene = _scene(plane, solvers, runs, data.classes)
    versus = " against ".join(contender.label for contender in contenders)
    return Watch(f"{versus} on {name}", scene, command)


def _scene(plane: Plane, solvers: list[Any], runs: list[dict[str, Any]], classes: tuple[str, ...]) -> dict[str, Any]:
    """The contents of the page, as plain data."""
    problem = plane.problem
    radii = [one.radius(problem) for one in solvers if isinstance(one, Pegasos)]
    ball = next((radius for radius in radii if math.isfinite(radius)), None)
    largest = max((abs(value) for run in runs for frame in run["frames"] for value in frame["b"][1::2]), default=1.0)
    return {
        "words": f"{plane.words} {problem.describe()}.",
        "axes": plane.axes,
        "classes": classes,
        "X": np.round(plane.data.X, 4).tolist(),
        "y": problem.y.astype(int).tolist(),
        "lam": problem.lam,
        "loss": {"name": loss_name(problem.loss), "curve": loss_curve(problem.loss, *MARGINS)},
        "optimum": [float(f"{value:.6g}") for value in plane.optimum],
        "lowest": float(f"{plane.lowest:.9g}"),
        "ball": None if ball is None else float(f"{ball:.6g}"),
        "largest": max(LARGEST_B, float(f"{largest:.4g}")),
        "runs": runs,
    }
