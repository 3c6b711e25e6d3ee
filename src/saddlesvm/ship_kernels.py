"""``python -m saddlesvm.ship_kernels``: compile the kernels that a wheel for this system brings along.

They are compiled for :data:`~saddlesvm.runtime.compiler.PROCESSOR`, in a process of its own whose cache is
empty, and put into the package's folder, from where the wheel takes them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import scale

from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.estimators.svc import SVC, NuSVC
from saddlesvm.estimators.svm import SVR, NuSVR, OneClassSVM
from saddlesvm.estimators.warmup import warmup
from saddlesvm.runtime.compiler import FOLDER, PROCESSOR, SHIPPING

# What first fits of data above the small problems' size take: estimators' options for `warmup`.
COMBINATIONS: tuple[dict[str, Any], ...] = (
    {"loss": ("squared_hinge", "hinge", "logistic"), "dtype": ("float64", "float32")},
    {"loss": ("epsilon_insensitive", "squared_epsilon_insensitive", "squared")},
    {"loss": ("squared_hinge", "logistic"), "penalty": "l1", "layout": "dense"},
    {"loss": ("hinge", "squared_hinge"), "intercept": "free", "layout": "dense"},
    {"loss": "hinge", "multi_class": "ovo", "layout": "dense"},
    {"loss": "hinge", "multi_class": "crammer_singer", "layout": "dense"},
    {"loss": "logistic", "multi_class": "multinomial"},
    {"loss": "hinge", "kernel": "rbf"},
    {"loss": "epsilon_insensitive", "kernel": "rbf", "layout": "dense"},
)
ROWS, FEATURES = 30_000, 50  # of fits as users meet them first, beside those of `warmup`
FEW = ((150, 4, 3), (600, 30, 2), (2_000, 20, 2), (1_800, 64, 10))  # rows, features and classes of small sets
CLASSIFIERS: tuple[Any, ...] = (
    SVC(), SVC(kernel="linear"), NuSVC(nu=0.1), OneClassSVM(), LinearSVC(), LinearSVC(loss="hinge"),
    LinearSVC(loss="logistic"), LinearSVC(penalty="l1"),
)  # fmt: skip
REGRESSIONS: tuple[Any, ...] = (
    SVR(), SVR(kernel="linear"), NuSVR(), LinearSVR(), LinearSVR(loss="squared_epsilon_insensitive"),
)  # fmt: skip


def _compile_into(folder: Path) -> None:
    """The fits, in a process whose target is the portable processor."""
    SHIPPING.uses, SHIPPING.into = False, folder

    def watch(name: str, seconds: float) -> None:
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)

    for options in COMBINATIONS:
        warmup(**options, watch=watch)
    random = np.random.default_rng(0)
    y = random.integers(0, 2, ROWS)
    X = random.standard_normal((ROWS, FEATURES)) + 0.3 * y[:, None]
    for model in (LinearSVC(), LinearSVC(loss="logistic"), LinearSVC(penalty="l1"), LinearSVC(C="auto")):
        model.fit(X, y)
    LinearSVC(loss="hinge").fit(X.astype(np.float32), y)
    SVC().fit(X[:3000], y[:3000])
    for rows, features, classes in FEW:
        y = random.integers(0, classes, rows)
        X = random.standard_normal((rows, features)) + y[:, None]
        for model in (*CLASSIFIERS, *REGRESSIONS):
            model.fit(X, y if model in CLASSIFIERS else scale(y))
            watch(f"{model!r} on {rows} x {features}", model.seconds_compiling_)


def main() -> None:
    """Make the folder anew; the old one stays until the new one is whole."""
    with tempfile.TemporaryDirectory(dir=FOLDER.parent) as work:
        made = Path(work, "made")
        portable = {"NUMBA_CPU_NAME": PROCESSOR, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": os.path.join(work, "own")}
        subprocess.run([sys.executable, "-m", __spec__.name, os.fspath(made)], env=os.environ | portable, check=True)
        shutil.rmtree(FOLDER, ignore_errors=True)
        made.rename(FOLDER)
    files = [file for file in FOLDER.rglob("*") if file.is_file()]
    print(f"{len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB, in {FOLDER}")


if __name__ == "__main__":
    if sys.argv[1:]:
        _compile_into(Path(sys.argv[1]))
    else:
        main()
