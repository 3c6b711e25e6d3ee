"""Kills on the way: training with checkpoints, and conversions, that are killed at their writes and begun again.

A case is a run that is killed before one of its first writes, again and again, until it comes to its end. What it ends
with must be what an undisturbed run ends with, to the last bit, and nothing else may be left in its folder.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from saddlesvm.data import Store, convert
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits

from . import faults, seeds
from .tally import Tally

LIMITS = Limits(tol=0.0, max_epochs=10, certify_every=1)
TRAINED = ("dcd", "sdca", "pegasos", "newton", "joint")
EVENTS = 6  # writes, renames and the like, before one of which a run is killed
MOST = 500  # kills of one run


def kills(folder: Path, seed: int, first: int, count: int) -> Tally:
    """The cases of these numbers; the last kind of each round of numbers is a conversion, the others train."""
    tally = Tally(name="kills")
    for number in range(first, first + count):
        random = np.random.default_rng([seed, number, 2])
        kind = number % (len(TRAINED) + 1)
        work = folder / f"kills-{seed}-{number}"
        work.mkdir()
        if kind < len(TRAINED):
            struck, said = training(work, TRAINED[kind], random)
            tally.outcomes[f"kills of training with {TRAINED[kind]}"] += struck
        else:
            struck, said = conversion(work, random)
            tally.outcomes["kills of conversions"] += struck
        tally.cases += 1
        tally.failures += [f"kills {seed}:{number}: {one}" for one in said]
        shutil.rmtree(work)
    return tally


def conversions(folder: Path, seed: int, first: int, count: int) -> Tally:
    """The conversions of these numbers, and nothing else."""
    tally = Tally(name="conversions")
    for number in range(first, first + count):
        work = folder / f"conversions-{seed}-{number}"
        work.mkdir()
        struck, said = conversion(work, np.random.default_rng([seed, number, 4]))
        tally.cases += 1
        tally.outcomes["kills of conversions"] += struck
        tally.failures += [f"conversions {seed}:{number}: {one}" for one in said]
        shutil.rmtree(work)
    return tally


def training(work: Path, name: str, random: np.random.Generator) -> tuple[int, list[str]]:
    """The kills of a training, and what was wrong at its end."""
    problem, solver = seeds.problem(name), seeds.SOLVERS[name]
    whole = fit(problem, solver, LIMITS, seed=1)
    path, found = work / "run" / "run.ckpt", work / "found.npz"
    path.parent.mkdir()

    def train() -> None:
        result = fit(problem, solver, LIMITS, seed=1, checkpoint=Checkpoint(path, every_steps=1))
        np.savez(found, coef=result.coef, alpha=result.alpha, rows=result.rows_touched)

    struck = 0
    while struck < MOST and faults.killed_at(int(random.integers(EVENTS)), train):
        struck += 1
    if not found.exists():
        return struck, [f"{name} was not done after {struck} kills"]
    result = np.load(found)
    same = np.array_equal(result["coef"], whole.coef) and np.array_equal(result["alpha"], whole.alpha)
    said = [] if same and int(result["rows"]) == whole.rows_touched else [f"{name} ended with other weights"]
    left = faults.left_over(path.parent, "run.ckpt")
    return struck, said + ([f"{name} left {left}"] if left else [])


def conversion(work: Path, random: np.random.Generator) -> tuple[int, list[str]]:
    """The kills of a conversion, and what was wrong at its end."""
    source, target = work / "rows.libsvm", work / "out" / "rows.store"
    target.parent.mkdir()
    source.write_text(seeds.libsvm_text())
    sound = contents(convert(source, work / "sound.store").path)
    with faults.at_event(-1, lambda name: None) as events:
        convert(source, work / "counted.store")
    struck, said = 0, []
    while struck < MOST and faults.killed_at(
        int(random.integers(3 * events[0] + EVENTS)), lambda: convert(source, target, overwrite=True)
    ):
        struck += 1
        if target.exists() and contents(Store(target).verify().path) != sound:
            said.append(f"after kill {struck} a store with other contents was there")
    if not target.exists() or contents(Store(target).verify().path) != sound:
        said.append("another store was there at the end")
    left = faults.left_over(target.parent, "rows.store")
    return struck, said + ([f"the conversion left {left}"] if left else [])


def contents(store: Path) -> dict[str, bytes]:
    """The arrays of a store."""
    return {file.name: file.read_bytes() for file in sorted(store.iterdir()) if file.suffix == ".npy"}
