"""Every machine, place and solver, killed at each write of its checkpoint and at random moments: the same bits at last.

A case is a cell of :mod:`support.resuming`, of which the suite kills a part at some places. The process that has
compiled a cell's kernels forks the processes that are killed, so that a kill takes milliseconds.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import FitResult
from support.resuming import CELLS, Cell, bits, differences, whole_run

from . import faults
from .tally import Tally

MOMENTS = 20  # random moments at which each cell is killed
MOST_WRITES = 40  # writes before which a cell is killed; of more, so many are evenly chosen
NEVER = 10**9  # seconds, or steps, after which a checkpoint is due
NAME = "run.ckpt"


def resuming(folder: Path, seed: int, first: int, count: int) -> Tally:
    """Kill and resume the cells from number `first` on; there are as many cases as cells."""
    tally = Tally("resuming")
    for number, (name, cell) in list(enumerate(CELLS.items()))[first : first + count]:
        work = folder / f"resuming-{seed}-{number}"
        work.mkdir()
        random = np.random.default_rng([seed, number, 7])
        whole = whole_run(cell, work)
        most = calls_before_the_end(cell, work)  # which also compiles what a checkpoint needs
        at_writes, said = killed_at_writes(cell, work, whole)
        at_random, other = killed_at_random(cell, work, bits(whole), most, random)
        tally.cases += 1
        tally.outcomes["kills of runs at a write"] += at_writes
        tally.outcomes["kills of runs at random moments"] += at_random
        tally.failures += [f"resuming {seed}:{number} ({name}): {one}" for one in said + other]
        shutil.rmtree(work)
    return tally


def killed_at_writes(cell: Cell, work: Path, whole: FitResult) -> tuple[int, list[str]]:
    """The kills before each call that syncs, renames or removes, and what ended otherwise than the undisturbed run.

    A kill leaves the files that were there: their contents are kept before each call, and a run resumes from each (of
    many, from some that are evenly chosen).
    """
    live, place = work / "live", work / "place"
    live.mkdir()
    left: dict[tuple[tuple[str, bytes], ...], int] = {}

    def keep(number: int, name: str) -> None:
        # the temporary name has a random end, of which nothing depends
        contents = sorted((file.name[: len(".run.ckpt.1")], file.read_bytes()) for file in live.iterdir())
        left.setdefault(tuple(contents), number)

    with faults.each_event(keep) as events:
        run(cell, work, live)
    keep(events[0], "the end")
    said, chosen = [], list(left.items())
    chosen = chosen[:: -(-len(chosen) // MOST_WRITES)]
    for contents, number in chosen:
        place.mkdir()
        for name, body in contents:
            (place / (name if name == NAME else f"{name}.tmp")).write_bytes(body)
        other = differences(whole, run(cell, work, place, NEVER))
        said += [f"killed at write {number}, it ends with another {', '.join(other)}"] if other else []
        said += [f"killed at write {number}, it leaves {more}" for more in faults.left_over(place, NAME)]
        shutil.rmtree(place)
    return len(chosen), said


def killed_at_random(
    cell: Cell, work: Path, whole: list[Any], most: int, random: np.random.Generator
) -> tuple[int, list[str]]:
    """The kills at random moments, again and again until a run ends, and what ended otherwise.

    A moment is a number of calls of Python functions, so that a case is the same whenever it is made again.
    """
    live, found = work / "random", work / "found"
    live.mkdir()
    struck, said = 0, []

    def train() -> None:
        found.write_bytes(pickle.dumps(bits(run(cell, work, live))))

    while struck < MOMENTS:
        (live / NAME).unlink(missing_ok=True)
        found.unlink(missing_ok=True)
        before = struck
        while struck < MOMENTS and killed_after(int(random.integers(1, most + 1)), train):
            struck += 1
        if not found.exists():
            train()
        if pickle.loads(found.read_bytes()) != whole:
            said.append(f"after {struck - before} kills it ends with another result")
    left = faults.left_over(live, NAME)
    return struck, said + ([f"it leaves {left}"] if left else [])


def run(cell: Cell, work: Path, live: Path, every_steps: int = 1) -> FitResult:
    """A run that begins with the checkpoint that is there, and writes it after so many steps."""
    checkpoint = Checkpoint(live / NAME, NEVER, every_steps)
    return fit(cell.make(work), cell.solver, cell.limits, seed=3, checkpoint=checkpoint)


@contextlib.contextmanager
def at_call(strike: Callable[[int], None]) -> Iterator[None]:
    """Hand the number of each call of a Python function to a function of its own."""
    count = 0

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        if event == "call":
            count += 1
            strike(count)

    sys.setprofile(called)
    try:
        yield
    finally:
        sys.setprofile(None)


def calls_before_the_end(cell: Cell, work: Path) -> int:
    """The number of calls of Python functions that a run makes."""
    numbers = [0]
    for name in ("compiled", "counted"):
        live = work / name
        live.mkdir()
        with at_call(lambda number: numbers.__setitem__(0, number)):
            run(cell, work, live)
    return numbers[0]


def killed_after(calls: int, work: Callable[[], Any]) -> bool:
    """Do some work in a process that is killed after so many calls; whether it was."""

    def strike(number: int) -> None:
        if number == calls:
            os.kill(os.getpid(), signal.SIGKILL)

    def struck() -> None:
        with at_call(strike):
            work()

    return faults.killed_in_child(struck)
