"""The picture of the front page, drawn from a fit when the manual is built: the gap closing, in light and in dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from sphinx.application import Sphinx

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from saddlesvm.data import load_bundled
from saddlesvm.lab import compare

INK = {
    "light": ("#1f2933", "#b5451b", "#1d5fa8"),
    "dark": ("#e4e7eb", "#ff9e6d", "#7db8f2"),
}


def curves() -> Any:
    """Epoch, best objective and best bound of a fit that is certified after every epoch."""
    notes = load_bundled("banknote")
    X = StandardScaler().fit_transform(notes.X)
    trace = compare(
        X, notes.y, solvers="sdca", C=0.1, tol=1e-3, certify_every=1.0
    ).trace.head(8)
    return (
        trace["epoch"].to_numpy(),
        trace["primal"].cummin().to_numpy(),
        trace["dual"].cummax().to_numpy(),
    )


def draw(points: Any, path: Path, kind: str) -> None:
    """The primal objective comes down, the dual bound comes up; what is between them is the gap."""
    ink, above, below = INK[kind]
    plt.rcParams["svg.hashsalt"] = "saddlesvm"
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    epochs, primal, dual = points
    ax.fill_between(epochs, dual, primal, color=above, alpha=0.16, linewidth=0)
    ax.plot(epochs, primal, color=above, linewidth=2.2, marker="o", markersize=4)
    ax.plot(epochs, dual, color=below, linewidth=2.2, marker="o", markersize=4)
    beside = {"textcoords": "offset points", "fontsize": 11}
    ax.annotate(
        "objective of the model", (epochs[1], primal[1]), (14, 2), color=above, **beside
    )
    ax.annotate(
        "proven lower bound", (epochs[1], dual[1]), (14, -14), color=below, **beside
    )
    ax.annotate(
        "the gap",
        (epochs[0], 0.75 * primal[0] + 0.25 * dual[0]),
        (10, 0),
        color=ink,
        **beside,
    )
    ax.set_xlabel("epochs", color=ink)
    ax.tick_params(colors=ink)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(ink)
    figure.tight_layout()
    figure.savefig(path, transparent=True, metadata={"Date": None})
    plt.close(figure)


def make(app: Sphinx) -> None:
    """Draw both pictures, unless they are newer than this file."""
    folder = Path(app.srcdir, "_static", "made")
    folder.mkdir(parents=True, exist_ok=True)
    paths = {kind: folder / f"gap-{kind}.svg" for kind in INK}
    if all(
        path.exists() and path.stat().st_mtime > Path(__file__).stat().st_mtime
        for path in paths.values()
    ):
        return
    points = curves()
    for kind, path in paths.items():
        draw(points, path, kind)


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", make)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
