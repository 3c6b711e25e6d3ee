"""C="auto" beside C="auto" and ten folds of other code, fit by fit in turn: a table of choose-c.md.

OMP_NUM_THREADS=1 python benchmarks/claims/automatic_c_beside.py FOLDER OTHER-SOURCE [SET ...]

OTHER-SOURCE is the folder `src` of another checkout. Each of the three has a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import choosing_c
import numpy as np
from automatic_c import BUNDLED, LOSSES, Data, measure
from path_law import SETS
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from saddlesvm import LinearSVC, LinearSVCCV
from saddlesvm.data import load_bundled

NAMES = ("breast cancer", "digits", "banknote", "heart", "a9a", "30,000 x 50, made")
ROUNDS = 3


def load(name: str, folder: Path) -> Data:
    """The rows and labels of a set."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        return StandardScaler().fit_transform(X), y
    if name in ("banknote", "heart"):
        table = load_bundled(name)
        return StandardScaler().fit_transform(table.X), np.asarray(table.y)
    if name == NAMES[-1]:
        random = np.random.default_rng(0)
        X = random.standard_normal((50_000, 50))
        noise = 2.0 * random.standard_normal(len(X))
        return X, np.sign(X @ random.standard_normal(50) + noise)
    if name in ("skewed", "binary"):
        return choosing_c.sets(folder)[name]()
    return SETS[name](folder)


def work(how: str, name: str, loss: str, folder: Path) -> None:
    """Fit once for each line of the input; print the processor seconds and the error in per cent."""
    warnings.simplefilter("ignore")
    X, y = load(name, folder)
    X, X_test, y, y_test = train_test_split(X, y, train_size=0.6, random_state=0, stratify=y)
    model = (
        LinearSVCCV(LinearSVC(loss=loss, random_state=0), cv=10)
        if how == "folds"
        else LinearSVC(C="auto", loss=loss, random_state=0)
    )
    model.fit(X, y)  # compiles, or loads what is compiled
    for _ in sys.stdin:
        spent, error = measure(model, (X, y), (X_test, y_test), fits=1)
        print(spent, error, flush=True)


def workers(folder: Path, other: str, name: str, loss: str) -> Iterator[subprocess.Popen[str]]:
    """Start the processes of this code's C="auto", and of the other's C="auto" and folds."""
    for how, source in (("auto", None), ("auto", other), ("folds", other)):
        environment = dict(os.environ)
        if source is not None:
            environment["PYTHONPATH"] = source
            environment["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / "automatic-c-beside")
        yield subprocess.Popen(
            [sys.executable, __file__, "--work", how, name, loss, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )


def main(folder: Path, other: str, names: list[str]) -> None:
    """Print the table."""
    print("| data | loss | % wrong: auto, auto before, folds before | s, the same | of auto before | of folds before |")
    print("|---|---|---|---|---|---|")
    for name in names or NAMES:
        for loss in LOSSES:
            started = list(workers(folder, other, name, loss))
            found = np.empty((ROUNDS, len(started), 2))
            for k in range(ROUNDS):
                for place, process in enumerate(started):
                    assert process.stdin is not None
                    assert process.stdout is not None
                    process.stdin.write("\n")
                    process.stdin.flush()
                    found[k, place] = [float(word) for word in process.stdout.readline().split()]
            for process in started:
                process.communicate()
            seconds = found[:, :, 0].min(axis=0)
            errors = found[0, :, 1]
            wrong = ", ".join(f"{error:.2f}" for error in errors)
            took = ", ".join(f"{second:.3f}" for second in seconds)
            faster = " | ".join(f"{second / seconds[0]:.1f}" for second in seconds[1:])
            print(f"| {name} | {loss} | {wrong} | {took} | {faster} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work(*sys.argv[2:5], Path(sys.argv[5]))
    else:
        main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
