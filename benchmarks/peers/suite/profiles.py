"""Performance profiles: for how many cells is a solver within a factor of the quickest one?

Source: Dolan and Moré (2002), "Benchmarking optimization software with performance profiles".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

Times = list[dict[str, float]]  # for each cell: solver -> seconds; a solver that did not get there is missing

# Okabe and Ito's colours, which people with colour blindness can tell apart; line styles and marks tell them apart too.
COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999933")
STYLES = ("-", "--", "-.", ":")
MARKS = "osD^vP*X"


def ratios(times: Times, solver: str) -> np.ndarray:
    """Seconds of a solver over those of the quickest one, for each cell; infinite where it did not get there."""
    return np.array([cell.get(solver, np.inf) / min(cell.values()) for cell in times if cell])


def share_within(ratio: np.ndarray, factor: float) -> float:
    """Share of the cells where the ratio is at most `factor`."""
    return float(np.mean(ratio <= factor)) if ratio.size else 0.0


def draw(panels: dict[str, Times], path: Path) -> None:
    """Draw a panel for each accuracy: share of the cells (up) within a factor of the quickest solver (across)."""
    from matplotlib.figure import Figure

    solvers = list(dict.fromkeys(name for times in panels.values() for cell in times for name in cell))
    figure = Figure(figsize=(4.6 * len(panels), 5.2), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (name, times) in zip(axes, panels.items(), strict=True):
        reached = [cell for cell in times if cell]
        for k, solver in enumerate(solvers):
            draw_line(axis, ratios(reached, solver), solver, k)
        axis.set(xscale="log", xlim=(1.0, 100.0), ylim=(0.0, 1.02), title=f"{name} ({len(reached)} cells)")
        axis.set_xlabel("times the seconds of the quickest solver")
        axis.grid(True, color="0.9")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("share of the cells")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False)
    figure.savefig(path, dpi=120)


def draw_line(axis, ratio: np.ndarray, title: str, k: int) -> None:  # type: ignore[no-untyped-def]
    """One solver of a panel."""
    steps = np.sort(ratio[np.isfinite(ratio)])
    across = np.concatenate([[1.0], steps, [1e6]])
    up = np.array([share_within(ratio, factor) for factor in across])
    axis.step(
        across, up, where="post", label=title, color=COLOURS[k % len(COLOURS)],
        linestyle=STYLES[k % len(STYLES)], marker=MARKS[k % len(MARKS)], markersize=4,
        linewidth=2.4 if k == 0 else 1.4,
    )  # fmt: skip
