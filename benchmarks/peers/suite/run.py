"""Run the grid (data x loss x C x solver x tolerance) for this project and every peer that is installed.

    python benchmarks/peers/suite/run.py --data DIR --out results.parquet

Each solver has a process of its own for each cell of the grid, with a time limit for each fit. It climbs a ladder from
a rough fit to an exact one, each begun anew, until the objective, recomputed in float64, is within 1e-6 of the optimum:
of the lower bound that this project's own fit has proven. The quickest rungs that came within 1e-2, 1e-3 and 1e-6 are
then run again, in turn with those of the other solvers. `page.py` makes the page of it; `README.md` tells more.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import results
from command import options_of
from grid import SOURCES, Cell, write_arrays
from launch import Job, events
from peers import PEERS
from task import Peer

from saddlesvm.data import DataError
from saddlesvm.lab.machine import memory, processor
from saddlesvm.runtime.threads import usable_cores

TIGHTEST = 1e-9  # gap that the fit which gives the bound is asked for
TARGET = min(results.TARGETS)
LEAST = 0.5  # seconds that a fit of a peer may always take


class Suite:
    """A run of the grid: what has been measured, and where it is kept."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options = options
        self.scratch = scratch
        self.plan = options.plan
        self.out: Path = options.out
        self.cores = usable_cores() if options.cores == "all" else 1
        self.core = one_core() if self.cores == 1 else None
        self.frame = results.read(self.out) if options.resume and self.out.exists() else results.table([])
        self.places: dict[str, tuple[Path, dict[str, Any]]] = {}
        minutes = options.max_total_minutes
        self.deadline = time.monotonic() + 60.0 * minutes if minutes else float("inf")
        self.always = {
            "cores": self.cores, "command": options.command,
            "machine": f"{processor()}, {usable_cores()} cores, {memory()}",
        }  # fmt: skip

    def run(self, cells: list[Cell]) -> int:
        """Run cells until all are done or the time is up; how many were completed."""
        for count, cell in enumerate(cells):
            if not self.measure(cell):
                print(f"the time is up: {count} of {len(cells)} cells are complete; --resume goes on", flush=True)
                return count
        return len(cells)

    def measure(self, cell: Cell) -> bool:
        """All solvers on one cell; False when the time is up before that."""
        if self.has(cell, results.COMPLETE, 0):
            return True
        solvers = [peer for peer in self.options.solvers if cell.loss in peer.losses]
        jobs = [(results.REFERENCE, 0), *((peer.name, 0) for peer in solvers)]
        for name, repeat in jobs:
            if time.monotonic() > self.deadline:
                return False
            if not self.has(cell, name, repeat):
                self.climb(cell, name)
        for repeat in range(1, self.plan.repeats):
            for name, rungs in self.deciding(cell).items():
                if time.monotonic() > self.deadline:
                    return False
                if not self.has(cell, name, repeat):
                    self.again(cell, name, rungs, repeat)
        self.keep([self.row(cell, results.COMPLETE, 0) | {"outcome": results.ENDED}])
        return True

    def climb(self, cell: Cell, name: str) -> None:
        """The first run of a solver: its whole ladder. The reference is our own solver's tightest fit."""
        own = next(peer for peer in PEERS.values() if peer.ours)
        if name == results.REFERENCE:
            job = self.job(cell, own, (TIGHTEST,), self.plan.reference_limit)
            self.do(cell, name, own, replace(job, climbing=False), 0)
            return
        peer = PEERS[name]
        self.do(cell, name, peer, self.job(cell, peer, peer.ladder, self.limit(cell, peer)), 0)

    def again(self, cell: Cell, name: str, rungs: tuple[float, ...], repeat: int) -> None:
        """A further run of the rungs that decide."""
        job = self.job(cell, PEERS[name], rungs, self.plan.time_limit)
        self.do(cell, name, PEERS[name], replace(job, climbing=False), repeat)

    def job(self, cell: Cell, peer: Peer, rungs: tuple[float, ...], limit: float) -> Job:
        """What the worker is told."""
        bound = results.bound_of(self.rows_of(cell))
        place, _ = self.place(cell.data)
        return Job(
            solver=peer.name, loss=cell.loss, C=cell.C, data=str(place), rungs=rungs, climbing=True,
            bound=bound if bound > 0.0 else 0.0, target=TARGET, limit=limit, preparation=self.plan.preparation,
            threads=self.cores, seed=0, core=self.core,
        )  # fmt: skip

    def limit(self, cell: Cell, peer: Peer) -> float:
        """Seconds that a fit may take: for peers, a multiple of what ours needed."""
        if peer.ours:
            return self.plan.time_limit
        times = results.reach_times(self.rows_of(cell), TARGET)
        ours = min((seconds for name, (seconds, _) in times.items() if PEERS[name].ours), default=float("inf"))
        return min(self.plan.time_limit, max(LEAST, self.plan.give_up * ours))

    def do(self, cell: Cell, name: str, peer: Peer, job: Job, repeat: int) -> None:
        """Run a job and keep what it told."""
        told: list[dict[str, Any]] = []
        common = self.row(cell, name, repeat) | {"ladder": peer.rung, "limit": job.limit}
        for event in events(job, self.options.pythons.get(peer.name, sys.executable)):
            if event["event"] == "loaded":
                common["version"] = event["version"]
            elif event["event"] != "begin":
                told.append(common | outcome_of(event))
        self.keep(told)
        print(f"{cell}: {name:26} {summary(told, job.bound)}", flush=True)

    def deciding(self, cell: Cell) -> dict[str, tuple[float, ...]]:
        """The rungs that are worth running again: ours, and those of the peers that come near the best one."""
        cell_rows = self.rows_of(cell)
        chosen: dict[str, set[float]] = {}
        for target in results.TARGETS:
            times = results.reach_times(cell_rows[cell_rows["repeat"] == 0], target)
            best = min((seconds for name, (seconds, _) in times.items() if not PEERS[name].ours), default=0.0)
            for name, (seconds, rung) in times.items():
                if PEERS[name].ours or seconds <= self.plan.contenders * best:
                    chosen.setdefault(name, set()).add(rung)
        order = [peer.name for peer in self.options.solvers if peer.name in chosen]
        return {name: tuple(sorted(chosen[name], reverse=PEERS[name].rung == "tol")) for name in order}

    def place(self, name: str) -> tuple[Path, dict[str, Any]]:
        """Where the arrays of a data set are, and its sizes."""
        if name not in self.places:
            self.places[name] = write_arrays(SOURCES[name], self.options.data, self.scratch, self.plan.quick)
        return self.places[name]

    def row(self, cell: Cell, name: str, repeat: int) -> dict[str, Any]:
        """What the rows of a job have in common."""
        title = {"title": SOURCES[cell.data].title}
        problem = {"data": cell.data, "loss": cell.loss, "C": cell.C, "solver": name, "repeat": repeat}
        return self.always | title | problem | self.place(cell.data)[1]

    def has(self, cell: Cell, name: str, repeat: int) -> bool:
        """Whether a job was done, now or before."""
        return (cell.data, cell.loss, cell.C, self.cores, name, repeat) in results.done_jobs(self.frame)

    def rows_of(self, cell: Cell) -> pd.DataFrame:
        """What is known of a cell."""
        frame = self.frame
        same = (frame["data"] == cell.data) & (frame["loss"] == cell.loss) & (frame["C"] == cell.C)
        return frame[same & (frame["cores"] == self.cores)]

    def keep(self, rows: list[dict[str, Any]]) -> None:
        """Add rows, and write the file."""
        added = results.table(rows)
        self.frame = pd.concat([self.frame, added], ignore_index=True) if len(self.frame) else added
        results.write(self.frame, self.out)


def one_core() -> int | None:
    """A core that this process may use, for the workers to stay on; None where the system does not tell."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def outcome_of(event: dict[str, Any]) -> dict[str, Any]:
    """The columns that an event of a worker fills."""
    outcome = {"end": results.ENDED}.get(event["event"], event["event"])
    named = {"extra_bytes": event.get("extra"), "remark": event.get("why", ""), "outcome": outcome}
    return named | {key: event[key] for key in ("rung", "seconds", "objective", "bound", "epochs") if key in event}


def summary(told: list[dict[str, Any]], bound: float) -> str:
    """A line on a job."""
    fits = [row for row in told if row["outcome"] == results.DONE]
    end = told[-1]["remark"] if told else ""
    if not fits:
        return end
    near = f", within {fits[-1]['objective'] / bound - 1.0:.1e}" if bound else ""
    return f"{len(fits)} fits, the last in {fits[-1]['seconds']:.3f} s{near}; {end}"


def stopped(*_: object) -> None:
    """End as Ctrl-C does, the worker included, when the system asks to."""
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    """Run the suite."""
    options, cells = options_of(arguments, __doc__ or "")
    with tempfile.TemporaryDirectory(prefix="suite-") as scratch:
        try:
            Suite(options, Path(scratch)).run(cells)
        except KeyboardInterrupt:
            print("interrupted; --resume goes on", file=sys.stderr)
            return 130
        except DataError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stopped)
    sys.exit(main())
