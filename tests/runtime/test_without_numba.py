"""Without Numba, as in a browser, every kernel is the Python function that it is written as."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import importlib.util
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ("numba", "llvmlite") else find_spec(name, *rest)
sys.meta_path.insert(0, Absent())
import numpy as np
from scipy.sparse import csr_matrix, random
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from saddlesvm import LinearSVC, LinearSVR, NuSVC, OneClassSVM, SVC, SVR

X, y = load_wine(return_X_y=True)
X, binary = scale(X), (y == 1).astype(int)
wide = random(60, 600, density=0.03, random_state=0, format="csr")
fits = [
    (LinearSVC(loss="hinge"), X, y), (LinearSVC(C="auto"), X, binary), (LinearSVC(), csr_matrix(X), y),
    (LinearSVC(penalty="l1"), X, binary), (LinearSVC(multi_class="crammer_singer", loss="hinge"), X, y),
    (LinearSVC(multi_class="multinomial", loss="logistic"), X, y),
    (LinearSVC(solver="dcd"), X.astype(np.float32), binary),
    (LinearSVR(), X, y), (SVC(), X, y), (SVC(intercept="none"), X, binary), (NuSVC(), X, binary), (SVR(), X, y),
    (OneClassSVM(), X, None), (LinearSVC(penalty="l1"), wide, wide[:, :100].sum(axis=1).A1 > 1.2),
]
for model, rows, labels in fits:
    model.fit(rows, labels)
    print(type(model).__name__, model.outcome_ if hasattr(model, "outcome_") else "certified")
"""


def test_every_machine_is_certified() -> None:
    said = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=300)
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert len(lines) == 14 and all(line.endswith(" certified") for line in lines), said.stdout
