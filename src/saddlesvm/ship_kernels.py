"""``python -m saddlesvm.ship_kernels``: compile the kernels that a wheel for this system contains.

They are compiled for :data:`~saddlesvm.runtime.kernel_files.PROCESSOR` by fits in a process of its
own, whose cache is empty, and put into the package's folder, from which the wheel takes them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.preprocessing import scale

from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.fit.outcome import NotCertifiedWarning
from saddlesvm.kernel.svc import SVC, NuSVC
from saddlesvm.kernel.svm import SVR, NuSVR, OneClassSVM
from saddlesvm.runtime.clock import seconds_compiling
from saddlesvm.runtime.kernel_files import FOLDER, PROCESSOR, SHIPPING

# Shapes of rows. They have more values than small problems, which need no kernels.
TALL = (8_000, 8)  # Newton's equations over features
WIDE = (300, 600)  # Newton's equations over rows
TALLEST = (32_000, 8)  # of pairs of classes: each pair has half of the rows
OF_KERNELS = (400, 6)
EDGES = (0.25, 0.5, 0.75)  # quantiles of the targets between as many classes
BOTH = ("dense", "csr")
DENSE = ("dense",)
# What first fits of larger data take: estimators, layouts of their rows and precisions.
COMBINATIONS: tuple[tuple[Any, tuple[str, ...], tuple[str, ...]], ...] = (
    (LinearSVC(loss="squared_hinge"), BOTH, ("float64", "float32")),
    (LinearSVC(loss="hinge"), BOTH, ("float64", "float32")),
    (LinearSVC(loss="logistic"), BOTH, ("float64", "float32")),
    (LinearSVR(loss="epsilon_insensitive"), BOTH, ("float64",)),
    (LinearSVR(loss="squared_epsilon_insensitive"), BOTH, ("float64",)),
    (LinearSVR(loss="squared"), BOTH, ("float64",)),
    (LinearSVC(loss="squared_hinge", penalty="l1"), DENSE, ("float64",)),
    (LinearSVC(loss="logistic", penalty="l1"), DENSE, ("float64",)),
    (LinearSVC(loss="hinge", intercept="free"), DENSE, ("float64",)),
    (LinearSVC(loss="squared_hinge", intercept="free"), DENSE, ("float64",)),
    (LinearSVC(loss="hinge", multi_class="ovo"), DENSE, ("float64",)),
    (LinearSVC(loss="hinge", multi_class="crammer_singer"), DENSE, ("float64",)),
    (LinearSVC(loss="logistic", multi_class="multinomial"), BOTH, ("float64",)),
    (SVC(), BOTH, ("float64",)),
    (SVR(), DENSE, ("float64",)),
)
# The size of a first fit as many users make it.
ROWS = 30_000
FEATURES = 50
# Rows, features and classes of small sets.
SMALL_SETS = ((150, 4, 3), (600, 30, 2), (2_000, 20, 2), (1_800, 64, 10))
CLASSIFIERS: tuple[Any, ...] = (
    SVC(), SVC(kernel="linear"), NuSVC(nu=0.1), OneClassSVM(), LinearSVC(), LinearSVC(loss="hinge"),
    LinearSVC(loss="logistic"), LinearSVC(penalty="l1"),
)  # fmt: skip
REGRESSIONS: tuple[Any, ...] = (
    SVR(), SVR(kernel="linear"), NuSVR(), LinearSVR(),
    LinearSVR(loss="squared_epsilon_insensitive"),
)  # fmt: skip


def shapes_and_solvers(model: Any) -> tuple[tuple[tuple[int, int], str], ...]:
    """Return shapes of data, and solvers, that need all kernels of a model's default solver."""
    if isinstance(model, (SVC, SVR)):
        return ((OF_KERNELS, "auto"),)
    way = getattr(model, "multi_class", "ovr")
    if way == "ovo":
        return ((TALLEST, "dcd"), (TALLEST, "newton"), (TALLEST, "auto"))
    if way != "ovr":
        return ((TALL, "auto"),)
    if model.penalty != "l2":
        return ((TALL, "auto"), (WIDE, "auto"))
    return ((TALL, "dcd"), (TALL, "newton"), (WIDE, "newton"), (TALL, "auto"))


def compile_for(model: object, layout: str, dtype: str) -> None:
    """Compile the kernels of a model for a layout and a precision, by quick fits to drawn rows."""
    random = np.random.default_rng(0)
    needs_classes = getattr(model, "multi_class", "ovr") != "ovr"
    for shape, solver in shapes_and_solvers(model):
        rows = random.normal(size=shape)
        X: Any = rows.astype(dtype)
        if layout == "csr":
            X = sparse.csr_matrix(X)
        target: Any = rows[:, 0] + 0.5 * random.normal(size=shape[0])
        if needs_classes:
            target = np.digitize(target, np.quantile(target, EDGES))
        elif isinstance(model, (LinearSVC, SVC)):
            target = target > 0.0
        clone(model).set_params(solver=solver).fit(X, target)


def compile_into(folder: Path) -> None:
    """Compile the kernels by fits, in a process whose target is the portable processor."""
    SHIPPING.uses = False
    SHIPPING.into = folder

    def report(name: str, seconds: float) -> None:
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)

    for model, layouts, dtypes in COMBINATIONS:
        for layout, dtype in product(layouts, dtypes):
            before = seconds_compiling()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotCertifiedWarning)
                compile_for(model, layout, dtype)
            report(f"{model!r}, {layout}, {dtype}", seconds_compiling() - before)
    # First fits of the usual size.
    random = np.random.default_rng(0)
    y = random.integers(0, 2, ROWS)
    X = random.standard_normal((ROWS, FEATURES)) + 0.3 * y[:, None]
    for model in (
        LinearSVC(),
        LinearSVC(loss="logistic"),
        LinearSVC(penalty="l1"),
        LinearSVC(C="auto"),
    ):
        model.fit(X, y)
    LinearSVC(loss="hinge").fit(X.astype(np.float32), y)
    SVC().fit(X[:3000], y[:3000])
    # Small sets, with all machines.
    for rows, features, classes in SMALL_SETS:
        y = random.integers(0, classes, rows)
        X = random.standard_normal((rows, features)) + y[:, None]
        for model in (*CLASSIFIERS, *REGRESSIONS):
            model.fit(X, y if model in CLASSIFIERS else scale(y))
            report(f"{model!r} on {rows} x {features}", model.seconds_compiling_)


def main() -> None:
    """Replace the folder of kernels; the old folder stays until the new folder is complete."""
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as work:
        made = Path(work, "made")
        # Numba reads these when it is imported: hence a process of its own.
        portable = {
            "NUMBA_CPU_NAME": PROCESSOR,
            "NUMBA_CPU_FEATURES": "",
            "NUMBA_CACHE_DIR": os.path.join(work, "own"),
        }
        subprocess.run(
            [sys.executable, "-m", __spec__.name, os.fspath(made)],
            env=os.environ | portable,
            check=True,
        )
        shutil.rmtree(FOLDER, ignore_errors=True)
        made.rename(FOLDER)
    files = [file for file in FOLDER.rglob("*") if file.is_file()]
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    print(f"{len(files)} files, {megabytes:.1f} MB, in {FOLDER}")


if __name__ == "__main__":
    if sys.argv[1:]:
        compile_into(Path(sys.argv[1]))
    else:
        main()
