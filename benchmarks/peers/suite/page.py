"""Make the page of a run: performance profiles, time to accuracy, memory, versions, machine, command.

    python benchmarks/peers/suite/page.py results.parquet --out docs/benchmarks.md

The picture is written beside the page. Only cells that were run to their end are on it.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import profiles
import results
from peers import PEERS

from saddlesvm.data import DataError, atomic_write

OURS = "saddlesvm"
TRUE = 1e-7  # relative gap of a bound that needs no remark
QUICK_CELL = 5e-3  # seconds; where both sides need less, a cell counts neither for nor against
LARGE = 50_000  # rows and features from which bytes for each of them are told
LOSS_WORDS = {"hinge": "hinge", "squared_hinge": "squared hinge", "logistic": "logistic"}


@dataclass(frozen=True)
class Duel:
    """Ours against the best peer of a cell.

    Attributes
    ----------
    ours, theirs : float
        Seconds; infinite for one that did not get there.
    peer : str
    floor : float
        Seconds after which the last peers that might have got there were stopped; infinite where none was.
    """

    ours: float
    theirs: float
    peer: str
    floor: float

    @property
    def factor(self) -> float:
        """How many times faster ours is; a lower bound where peers were stopped, NaN where nothing can be said."""
        if np.isfinite(self.theirs):
            return self.theirs / self.ours
        known = np.isfinite(self.ours) and np.isfinite(self.floor) and self.floor > self.ours
        return self.floor / self.ours if known else np.nan

    @property
    def counts(self) -> bool:
        """Whether it takes long enough to count, and a factor is known."""
        return min(max(self.ours, self.theirs), self.floor) >= QUICK_CELL and not np.isnan(self.factor)

    @property
    def lost(self) -> bool:
        """Whether the peer is ahead, in a cell that counts."""
        return self.counts and self.factor < 1.0


def duel_of(cell: pd.DataFrame, target: float) -> Duel:
    """Ours against the best peer of a cell, to a relative distance `target` from the optimum."""
    times = results.reach_times(cell, target)
    ours = times.get(OURS, (np.inf, 0.0))[0]
    peers = {name: seconds for name, (seconds, _) in times.items() if not PEERS[name].ours}
    best = min(peers, key=lambda name: peers[name]) if peers else ""
    rivals = [name for name in cell["solver"].unique() if name in PEERS and not PEERS[name].ours and name not in peers]
    floor = min((results.given_up_after(cell, name) for name in rivals), default=np.inf)
    return Duel(ours, peers.get(best, np.inf), best, floor)


def complete_cells(frame: pd.DataFrame) -> dict[tuple, pd.DataFrame]:  # type: ignore[type-arg]
    """The cells that were run to their end, in the order of the run."""
    groups = frame.groupby(results.CELL, sort=False)
    return {key: cell for key, cell in groups if (cell["solver"] == results.COMPLETE).any()}


def words(seconds: float) -> str:
    """Seconds for a table."""
    if not np.isfinite(seconds):
        return "-"
    return f"{seconds:.4f}" if seconds < 0.1 else f"{seconds:.3g}"


def factor_words(duel: Duel) -> str:
    """The factor of a duel; bold where the peer is ahead."""
    if np.isnan(duel.factor):
        return "-"
    if not np.isfinite(duel.theirs):
        return f"> {duel.factor:.1f}"
    if not duel.counts:
        return f"({duel.factor:.1f})"
    return f"**{duel.factor:.2f}: the peer is faster**" if duel.lost else f"{duel.factor:.1f}"


def speed_table(cells: dict, cores: int) -> list[str]:  # type: ignore[type-arg]
    """A section for each accuracy: seconds of ours and of the best peer in each cell, and what they come to."""
    lines: list[str] = []
    for target in results.TARGETS:
        lines += ["", f"### To a relative distance of {target:g}", ""]
        lines += [
            "| data | loss | C | ours, s | best peer, s | best peer | times as fast |",
            "|---|---|---|---|---|---|---|",
        ]
        duels = []
        for (data, loss, C, used), cell in cells.items():
            if used != cores:
                continue
            duel = duel_of(cell, target)
            duels.append(duel)
            title = PEERS[duel.peer].title if duel.peer else f"none within {words(duel.floor)} s"
            lines.append(
                f"| {data} | {LOSS_WORDS[loss]} | {C:g} | {words(duel.ours)} | {words(duel.theirs)} | {title} | "
                f"{factor_words(duel)} |"
            )
        lines += ["", summary(duels)]
    return lines


def summary(duels: list[Duel]) -> str:
    """What the duels of an accuracy come to."""
    counted = [duel for duel in duels if duel.counts]
    unsolved = sum(not np.isfinite(duel.ours) for duel in duels)
    missed = f" saddlesvm did not come within the distance in {unsolved} of all cells." if unsolved else ""
    if not counted:
        return f"No cell takes long enough to be counted.{missed}"
    factors = [duel.factor for duel in counted]
    mean = float(np.exp(np.mean(np.log(factors))))
    median = float(np.median(factors))
    bounds = sum(not np.isfinite(duel.theirs) for duel in counted)
    lost = sum(duel.lost for duel in counted)
    told = (
        f"Geometric mean over the {len(counted)} cells that count: saddlesvm is **{mean:.2f} times as fast** as the "
        f"best peer of each cell; the median is {median:.2f}. In {bounds} of these cells, the factor is a lower bound. "
        f"A peer is faster in {lost} of them.{missed}"
    )
    return textwrap.fill(told, 120)


def memory_table(cells: dict) -> list[str]:  # type: ignore[type-arg]
    """Median extra memory of each solver on each data set, in MiB, and ours in bytes for each row and feature."""
    frame = pd.concat(list(cells.values()))
    fits = frame[(frame["outcome"] == results.DONE) & frame["solver"].isin(list(PEERS))]
    table = fits.groupby(["data", "solver"], sort=False)["extra_bytes"].median().unstack("data")
    order = [name for name in PEERS if name in table.index]
    sizes = frame.groupby("data", sort=False)[["rows", "features"]].first().loc[table.columns]
    lines = ["| solver | " + " | ".join(table.columns) + " |", "|---" * (len(table.columns) + 1) + "|"]
    for name in order:
        found = (f"{value / 2**20:.1f}" if np.isfinite(value) else "" for value in table.loc[name])
        lines.append(f"| {PEERS[name].title} | " + " | ".join(found) + " |")
    places = sizes["rows"] + sizes["features"]
    if OURS in table.index and (places >= LARGE).any():
        each = (
            f"{value:.0f}" if count >= LARGE else ""
            for value, count in zip(table.loc[OURS] / places, places, strict=True)
        )
        lines.append("| ours, bytes for each row and feature | " + " | ".join(each) + " |")
    return lines


def version_table(frame: pd.DataFrame) -> list[str]:
    """The packages that were run, and what went wrong where."""
    lines = ["| solver | package | version |", "|---|---|---|"]
    for name in PEERS:
        found = sorted(set(frame.loc[(frame["solver"] == name) & (frame["version"] != ""), "version"]))
        if found:
            lines.append(f"| {PEERS[name].title} | {PEERS[name].distribution} | {', '.join(found)} |")
    failed = frame[frame["outcome"] == results.FAILED]
    for (name, remark), rows in failed.groupby(["solver", "remark"], sort=False):
        title = PEERS[name].title if name in PEERS else name
        cells = sorted({f"{row.data} ({LOSS_WORDS[row.loss]}, C = {row.C:g})" for row in rows.itertuples()})
        lines += ["", f"{title} could not be run on {', '.join(cells)}: {remark}."]
    return lines


def loosest_bound(cells: dict) -> str:  # type: ignore[type-arg]
    """A sentence on how near the reference bounds are to the optimum."""
    gaps = {key: float(cell["objective"].min()) / results.bound_of(cell) - 1.0 for key, cell in cells.items()}
    loose = [
        f"{data} ({LOSS_WORDS[loss]}, C = {C:g}): {gap:.1e}" for (data, loss, C, _), gap in gaps.items() if gap > TRUE
    ]
    told = "The bounds are within 1e-7 of the lowest objective that any solver found"
    return f"{told}, except: {'; '.join(loose)}." if loose else f"{told}, in every cell."


def profile_times(cells: dict, target: float, cores: int) -> profiles.Times:  # type: ignore[type-arg]
    """Seconds of each package in each cell: of its quickest solver; of ours, the automatic one."""
    told: profiles.Times = []
    for key, cell in cells.items():
        best: dict[str, float] = {OURS: np.inf}
        for name, (seconds, _) in results.reach_times(cell, target).items():
            package = PEERS[name].distribution
            if name == OURS or not PEERS[name].ours:
                best[package] = min(seconds, best.get(package, np.inf))
        if key[-1] == cores:
            told.append({package: seconds for package, seconds in best.items() if np.isfinite(seconds)})
    return told


def wrapped(command: str) -> str:
    """A command in lines that fit the column of a page."""
    lines = textwrap.wrap(command, 86, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return " \\\n".join(lines)


def page(frame: pd.DataFrame, picture: Path) -> str:
    """The whole page; the picture is drawn where `picture` says."""
    cells = complete_cells(frame)
    if not cells:
        raise DataError("no cell was run to its end: nothing to show")
    shown = pd.concat(list(cells.values()))
    cores = sorted({int(key[-1]) for key in cells})
    panels = {f"within {target:g}": profile_times(cells, target, cores[0]) for target in results.TARGETS}
    profiles.draw(panels, picture)
    lines = [INTRODUCTION.format(
        cells=len(cells), machine=", and ".join(shown["machine"].unique()), picture=picture.name,
        begun=len(frame.groupby(results.CELL)), cores=words_of_cores(cores[0]), bounds=loosest_bound(cells),
        command="\n".join(wrapped(f"python benchmarks/peers/suite/{one}") for one in shown["command"].unique()),
    )]  # fmt: skip
    for used in cores:
        lines += ["", f"## Time to accuracy, {words_of_cores(used)}", *speed_table(cells, used)]
    lines += ["", MEMORY, "", *memory_table(cells), "", "## The data", ""]
    lines += data_list(shown)
    lines += ["", "## Versions", "", *version_table(shown)]
    return "\n".join(lines) + "\n"


def data_list(frame: pd.DataFrame) -> list[str]:
    """What the data sets are."""
    first = frame.groupby("data", sort=False).first()
    return [
        f"- `{row.Index}`: {row.title}, {row.rows:,} x {row.features:,}, {row.dtype}, "
        f"{row.values / row.rows:.0f} values a row"
        for row in first[["title", "rows", "features", "values", "dtype"]].itertuples()
    ]


def words_of_cores(cores: int) -> str:
    """Cores in words."""
    return "one core" if cores == 1 else f"{cores} cores"


INTRODUCTION = """# Benchmarks against every peer

`benchmarks/peers/suite` makes this page; its README describes how fits are measured. A cell is a data set, a loss and a
C. {cells} cells were run to their end, of {begun} that were started, on: {machine}.

```sh
{command}
```

Every solver minimises $\\tfrac12 \\lVert w \\rVert^2 + C \\sum_i \\phi(y_i x_i^\\top w)$ without an intercept, in a
process of its own. Only the fit is timed: reading, converting, importing, compiling and loading are not. A solver is
fitted several times, from a rough setting to an exact one, each time from the beginning. The objective P of each result
is computed in float64. Its distance from the optimum is `P / D - 1`, where D is the lower bound that a certificate of
saddlesvm proves for the cell. A table has the seconds of the quickest setting that came within its distance, as medians
of repeated runs. {bounds}

The last column is the time of the best peer, divided by the time of saddlesvm:

- in bold: the peer is faster;
- in brackets: both need less than 5 ms, and the cell does not count in the means;
- "> f": no peer came within the distance before it was stopped, after f times the time of saddlesvm. The true factor is
  above f, and not known. The means count f;
- "-": no peer came within the distance, and saddlesvm did not either, or took longer than the peers were given.

![Performance profiles]({picture})

Performance profiles, {cores} (Dolan and Moré 2002). A line shows in which share of the cells (up) a package, with the
quickest of its solvers, takes at most so many times as long as the quickest package (across). Higher is better. The
right end of a line is the share of the cells that the package solves at all before it is stopped. Cells whose loss a
package lacks count as not solved."""

MEMORY = """## Memory

The table has the peak memory of the process during a fit, minus its memory with the data read, in MiB: the median over
all fits on a data set. Copies of the data in another form or precision are included. A data set of a few MiB fits into
memory that the process already has, and shows as little or nothing."""


def main(arguments: list[str] | None = None) -> int:
    """Make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, default=Path("benchmarks.md"))
    options = parser.parse_args(arguments)
    try:
        text = page(results.read(options.results), options.out.with_suffix(".png"))
        with atomic_write(options.out) as file:
            file.write(text.encode("utf-8"))
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
