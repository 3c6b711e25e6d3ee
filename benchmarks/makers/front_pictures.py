"""Draw the two pictures of the README and the front page, each in light and in dark.

    python benchmarks/makers/front_pictures.py [--check]

``gap``: a fit's objective and its proven lower bound, epoch by epoch. ``speed``: seconds beside scikit-learn, from the
tables of docs/measurements (speed.md; small.md for the last line). With ``--check`` only the figures of ``speed`` are
compared with the tables.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.preprocessing import StandardScaler

from saddlesvm.data import load_bundled
from saddlesvm.lab import compare

DOCS = Path(__file__).parents[2] / "docs"
INK = {"light": ("#1f2933", "#b5451b", "#1d5fa8"), "dark": ("#e4e7eb", "#ff9e6d", "#7db8f2")}  # text, above, below
STYLE = {
    "svg.hashsalt": "saddlesvm",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
}


class Duel(NamedTuple):
    """A row of the tables: what was fitted, seconds of saddlesvm, seconds of scikit-learn, their ratio in words."""

    name: str
    ours: float
    theirs: float
    ratio: str


def read_cells(page: str, above: str) -> list[list[str]]:
    """Read the cells of the first table of a page below some text."""
    text = (DOCS / "measurements" / f"{page}.md").read_text(encoding="utf-8").partition(above)[2]
    table = re.search(r"(?:^\|.+\|\n)+", text, re.M)
    assert table is not None, f"{page}.md has no table below {above!r}"
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table[0].splitlines()[2:]]


def duels() -> list[Duel]:
    """Every row of the large problems, and of the small ones the one where saddlesvm compares worst."""
    large = [
        Duel(f"{data}, {loss}", float(ours), float(theirs), f"{ratio} x")
        for data, loss, ours, theirs, ratio, *_ in read_cells("speed", "## To the objective")
    ]
    small = []
    for data, estimator, ours, theirs, _ in read_cells("small", "Furthest behind"):
        seconds = (float(ours) / 1e3, float(theirs.rstrip("*")) / 1e3)
        small.append(Duel(f"{data}, {estimator}", *seconds, f"{seconds[1] / seconds[0]:.1f} x"))
    return [*large, min(small, key=lambda duel: duel.theirs / duel.ours)]


def curves() -> Any:
    """Epoch, best objective and best bound of a fit that is certified after every epoch."""
    notes = load_bundled("banknote")
    X = StandardScaler().fit_transform(notes.X)
    trace = compare(X, notes.y, solvers="sdca", C=0.1, tol=1e-3, certify_every=1.0).trace.head(8)
    return trace["epoch"].to_numpy(), trace["primal"].cummin().to_numpy(), trace["dual"].cummax().to_numpy()


def draw_gap(ax: Any, points: Any, ink: tuple[str, str, str]) -> None:
    """The objective comes down, the bound comes up; the band between them is the gap."""
    text, above, below = ink
    epochs, primal, dual = points
    ax.fill_between(epochs, dual, primal, color=above, alpha=0.16, linewidth=0)
    ax.plot(epochs, primal, color=above, linewidth=2.2, marker="o", markersize=4)
    ax.plot(epochs, dual, color=below, linewidth=2.2, marker="o", markersize=4)
    beside: dict[str, Any] = {"textcoords": "offset points", "fontsize": 11}
    ax.annotate("objective of the model", (epochs[1], primal[1]), (14, 2), color=above, **beside)
    ax.annotate("proven lower bound", (epochs[1], dual[1]), (14, -14), color=below, **beside)
    ax.annotate("the gap", (epochs[0], 0.75 * primal[0] + 0.25 * dual[0]), (10, 0), color=text, **beside)
    ax.set_xlabel("passes over 1,372 banknotes", color=text)
    ax.set_ylabel("objective", color=text)


def draw_speed(ax: Any, rows: list[Duel], ink: tuple[str, str, str]) -> None:
    """A line a problem, from the seconds of saddlesvm to those of scikit-learn."""
    text, theirs, ours = ink
    for k, row in enumerate(reversed(rows)):
        ax.plot([row.ours, row.theirs], [k, k], color=text, alpha=0.35, linewidth=1.5, zorder=1)
        ax.scatter([row.theirs], [k], color=theirs, s=36, zorder=2, label="scikit-learn" if k == 0 else None)
        ax.scatter([row.ours], [k], color=ours, s=36, marker="D", zorder=2, label="saddlesvm" if k == 0 else None)
        ax.annotate(
            row.ratio, (max(row.ours, row.theirs), k), (9, -4), textcoords="offset points", color=text, fontsize=9
        )
    ax.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
    ax.set_xscale("log")
    ax.set_xlim(right=9.0)
    ax.set_xticks([1e-3, 1e-2, 0.1, 1.0], ["1 ms", "10 ms", "0.1 s", "1 s"])
    ax.minorticks_off()
    ax.grid(axis="x", color=text, alpha=0.15)
    ax.set_xlabel("time of a fit on one core (log scale; shorter is better)", color=text)
    ax.legend(loc="lower right", frameon=False, labelcolor=text, ncols=2, bbox_to_anchor=(1.0, 1.0))


def save(name: str, size: tuple[float, float], draw: Any, given: Any, columns: int = 1) -> None:
    """Draw a picture in light and in dark; `draw` gets its panels, or the only one."""
    for kind, ink in INK.items():
        with plt.rc_context(STYLE):
            figure, panels = plt.subplots(1, columns, figsize=size, squeeze=False)
            draw(panels[0] if columns > 1 else panels[0, 0], given, ink)
            for ax in panels[0]:
                ax.tick_params(colors=ink[0])
                for side in ("left", "bottom"):
                    ax.spines[side].set_color(ink[0])
            figure.savefig(DOCS / "pictures" / f"{name}-{kind}.svg", transparent=True, metadata={"Date": None},
                           bbox_inches="tight")  # fmt: skip
            plt.close(figure)


def stale(rows: list[Duel]) -> list[str]:
    """The names and ratios that the drawn chart lacks."""
    drawn = (DOCS / "pictures" / "speed-light.svg").read_text(encoding="utf-8")
    return [word for row in rows for word in (row.name, row.ratio) if word not in drawn]


def drawn_or_checked(about: str, stale: Callable[[], list[str]], draw: Callable[[], None]) -> int:
    """Draw, or with ``--check`` only say what the drawing lacks; the exit code, 1 where it is out of date."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; say whether the drawing is out of date")
    if parser.parse_args().check:
        missing = stale()
        print(*missing or ["the drawing is up to date"], sep="\n")
        return 1 if missing else 0
    draw()
    return 0


def main() -> int:
    """Draw the pictures, or compare the figures of the chart with the tables."""
    rows = duels()

    def draw() -> None:
        save("gap", (5.6, 3.4), draw_gap, curves())
        save("speed", (7.4, 4.2), draw_speed, rows)

    return drawn_or_checked(__doc__, lambda: stale(rows), draw)


if __name__ == "__main__":
    sys.exit(main())
