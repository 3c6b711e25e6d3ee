"""Every machine, place and solver, killed at each certificate and after random steps: the same bits in the end.

A case is a cell of :mod:`support.resuming`, of which the suite kills a part at some places.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from support.resuming import CELLS, Cell, KillAt, differences, killed, whole_run

from .tally import Tally

STEPS = 20  # kills of a cell after so many random steps, beside those at its certificates
FIRST_STEPS = 200  # within which they strike


def resuming(folder: Path, seed: int, first: int, count: int) -> Tally:
    """Kill and resume the cells from number `first` on; there are as many cases as cells."""
    tally = Tally("resuming")
    for number, (name, cell) in list(enumerate(CELLS.items()))[first : first + count]:
        work = folder / f"resuming-{seed}-{number}"
        work.mkdir()
        struck, said = attacked(cell, work, np.random.default_rng([seed, number, 7]))
        tally.cases += 1
        tally.outcomes["kills of runs"] += struck
        tally.failures += [f"resuming {seed}:{number} ({name}): {one}" for one in said]
    return tally


def attacked(cell: Cell, work: Path, random: np.random.Generator) -> tuple[int, list[str]]:
    """The kills of a cell, and what ended otherwise than the undisturbed run."""
    whole = whole_run(cell, work)
    kills = [KillAt(place) for place in range(len(whole.trace))]
    kills += [KillAt(np.inf, steps) for steps in np.unique(random.integers(1, FIRST_STEPS, STEPS)).tolist()]
    struck, said = 0, []
    for kill in kills:
        told = vars(kill).copy()
        path = killed(cell, work, kill)
        if path is None:
            continue
        struck += 1
        other = differences(whole, whole_run(cell, work, path))
        if other:
            said.append(f"killed at {told}, it ends with another {', '.join(other)}")
    return struck, said
