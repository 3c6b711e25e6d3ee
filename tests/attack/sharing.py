"""Processes that work at one path at the same time: each ends as if it were alone, or says in one line why not.

A case is two processes that train with one checkpoint, save models to one file, or convert to one store.
"""

from __future__ import annotations

import os
import shutil
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from saddlesvm.data import DataError, Store, convert
from saddlesvm.estimators import persistence
from saddlesvm.fit.checkpoint import Checkpoint, CheckpointWarning
from saddlesvm.fit.loop import fit

from . import faults, seeds
from .kills import LIMITS, contents
from .tally import Tally

PROCESSES, TIMES = 2, 5  # and how often each does its work
LATER = 0.01  # seconds by which one begins at most after the other
Work = Callable[[Path], str]  # does its work in a folder, and says what became of it


def sharing(folder: Path, seed: int, first: int, count: int) -> Tally:
    """The cases of these numbers."""
    tally = Tally("sharing")
    for number in range(first, first + count):
        random = np.random.default_rng([seed, number, 13])
        work = folder / f"sharing-{seed}-{number}"
        (work / "live").mkdir(parents=True)
        name, check = list(KINDS.items())[number % len(KINDS)]
        ends, said = check(work, random)
        said += [f"{one} is left" for one in faults.left_over(work / "live", "file")]
        tally.cases += 1
        for end in ends:
            tally.outcomes[f"{name}: {end}"] += 1
        tally.failures += [f"sharing {seed}:{number} ({name}): {one}" for one in said]
        shutil.rmtree(work)
    return tally


def side_by_side(works: list[Work], folder: Path, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """What becomes of works that are done at the same time, some times each, and how they failed."""
    children = []
    for number, work in enumerate(works):
        later = random.uniform(0.0, LATER, TIMES)
        child = os.fork()
        if child == 0:
            try:
                ends = []
                for wait in later:
                    time.sleep(wait)
                    ends.append(work(folder / "live" / "file"))
                (folder / f"ends-{number}").write_text("\n".join(ends))
            except BaseException:
                (folder / f"failed-{number}").write_text(traceback.format_exc())
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    ends = [line for file in sorted(folder.glob("ends-*")) for line in file.read_text().splitlines()]
    return ends, [file.read_text()[-300:] for file in sorted(folder.glob("failed-*"))]


def training(folder: Path, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """Fits with one checkpoint."""
    name = str(random.choice(["dcd", "sdca", "pegasos", "newton", "joint"]))
    problem, solver = seeds.problem(name), seeds.SOLVERS[name]
    whole = fit(problem, solver, LIMITS, seed=1)
    fit(problem, solver, LIMITS, seed=1, checkpoint=Checkpoint(folder / "compiled"))

    def train(path: Path) -> str:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            result = fit(problem, solver, LIMITS, seed=1, checkpoint=Checkpoint(path, every_steps=1))
        odd = [str(one.message) for one in warned if not issubclass(one.category, CheckpointWarning)]
        same = np.array_equal(result.coef, whole.coef) and np.array_equal(result.alpha, whole.alpha)
        if odd or not same or result.rows_touched != whole.rows_touched:
            raise AssertionError(f"it ended with another result, and with the warnings {odd}")
        path.unlink(missing_ok=True) if os.getpid() % 2 else None  # so that others begin anew
        return "the same bits, with a warning" if warned else "the same bits"

    ends, said = side_by_side([train] * PROCESSES, folder, random)
    train(folder / "live" / "file")
    return ends, said


def saving(folder: Path, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """Models that are saved to one file, and loaded by both."""
    seeds.models(folder)
    both = [persistence.load(folder / f"{name}.model") for name in ("two", "targets")]
    known = {one.coef_.tobytes() for one in both}

    def save(number: int) -> Work:
        def work(path: Path) -> str:
            persistence.save(both[number], path)
            if persistence.load(path).coef_.tobytes() not in known:
                raise AssertionError("another model was loaded")
            return "one of the models"

        return work

    return side_by_side([save(0), save(1)], folder, random)


def converting(folder: Path, random: np.random.Generator) -> tuple[list[str], list[str]]:
    """Conversions to one store."""
    seeds.texts(folder)
    sources = [folder / "rows.libsvm", folder / "table.csv"]
    sound = [contents(convert(source, folder / f"{source.name}.store").path) for source in sources]

    def write(number: int) -> Work:
        def work(path: Path) -> str:
            try:
                convert(sources[number], path, overwrite=True)
            except DataError as error:
                if "\n" in str(error) or "another process" not in str(error):
                    raise
                return "refused: another process writes it"
            return "converted"

        return work

    ends, said = side_by_side([write(0), write(1)], folder, random)
    live = folder / "live" / "file"
    if not live.exists() or contents(Store(live).verify().path) not in sound:
        said.append("another store is there at the end")
    return ends, said


KINDS = {"training": training, "saving": saving, "converting": converting}
