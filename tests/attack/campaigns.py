"""What is attacked, by name. A campaign runs the cases from a number on, and says what became of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from . import fuzzing, seeds
from .clocks import clocks
from .clusters import clusters
from .differential import differential
from .fits import fits
from .hunt import Findings, hunt
from .injected import injected
from .kills import conversions, kills
from .paths import paths
from .resuming import resuming
from .sharing import sharing
from .tally import Tally
from .workers import workers

# Takes a folder to work in, a seed, the first case and their number.
Campaign = Callable[..., Findings | Tally]


def files(kind: str, folder: Path, seed: int, first: int, count: int) -> Findings:
    """Damaged files of a kind."""
    return hunt(kind, folder, seed, first, count)


CAMPAIGNS: dict[str, Campaign] = {kind: partial(files, kind) for kind in seeds.PATTERNS}


def proven_paths(folder: Path, seed: int, first: int, count: int) -> Tally:
    """Certified paths, before independent fits at random C."""
    return paths(seed, first, count)


def time_limits(folder: Path, seed: int, first: int, count: int) -> Tally:
    """Time limits of each family of fits."""
    return clocks(seed, first, count)


def killed(folder: Path, seed: int, first: int, count: int) -> Tally:
    """Runs that are killed and go on."""
    return kills(folder, seed, first, count)


def workers_killed(folder: Path, seed: int, first: int, count: int) -> Tally:
    """Fits on a cluster whose workers are killed."""
    return workers(seed, first, count)


def processes_killed(folder: Path, seed: int, first: int, count: int) -> Tally:
    """Fits on a cluster whose scheduler, client or workers are killed."""
    return clusters(seed, first, count)


EVERYTHING: dict[str, Campaign] = CAMPAIGNS | {
    "fits": fits,
    "paths": proven_paths,
    "clocks": time_limits,
    "kills": killed,
    "conversions": conversions,
    "resuming": resuming,
    "injected": injected,
    "differential": differential,
    "sharing": sharing,
    "workers": workers_killed,
    "clusters": processes_killed,
}
if fuzzing.THERE:
    EVERYTHING["fuzzing"] = fuzzing.fuzzing

# Cases of a turn, of campaigns whose cases take longer than a moment; of others a thousand.
AT_A_TIME = {
    "paths": 20,
    "clocks": 20,
    "kills": 12,
    "conversions": 20,
    "resuming": 11,
    "injected": 200,
    "differential": 10,
    "sharing": 30,
    "workers": 10,
    "clusters": 10,
    "fuzzing": 500,
}

# Cases that once did harm: seed and number. They stay in the short run.
KEPT: dict[str, tuple[tuple[int, int], ...]] = {
    "model": ((21, 1138),),
    "store": ((1, 20), (1, 331)),
    "checkpoint": ((1, 37), (21, 3550)),
}


def prepare(folder: Path, solvers: tuple[str, ...] = tuple(seeds.SOLVERS)) -> None:
    """What all campaigns start from."""
    if not (folder / "sound").exists():
        seeds.make(folder / "sound", solvers)
