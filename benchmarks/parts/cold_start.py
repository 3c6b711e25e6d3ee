"""What the first fit of a new environment takes: processor seconds, a new kernel cache for each row, imports apart.

python -m benchmarks.parts.cold_start
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

FIRST = """
import time
import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from saddlesvm import SVC, LinearSVC, LinearSVR
X, y = load_breast_cancer(return_X_y=True)
thirds = np.digitize(X[:, 0], np.quantile(X[:, 0], [1 / 3, 2 / 3]))
S = sparse.csr_matrix(X)
S64 = S.copy()
S64.indices, S64.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
large = np.tile(X / X.max(axis=0), (20, 1))
began = time.process_time()
model = {text}
print(time.process_time() - began, model.seconds_compiling_)
"""
FITS = {
    "LinearSVC()": "LinearSVC().fit(X, y)",
    "float32": "LinearSVC().fit(X.astype(np.float32), y)",
    "CSR, int32 indices": "LinearSVC().fit(S, y)",
    "CSR, int64 indices": "LinearSVC().fit(S64, y)",
    "hinge": "LinearSVC(loss='hinge').fit(X, y)",
    "logistic": "LinearSVC(loss='logistic').fit(X, y)",
    "free intercept": "LinearSVC(intercept='free').fit(X, y)",
    "one against the rest": "LinearSVC().fit(X, thirds)",
    "one against one": "LinearSVC(multi_class='ovo').fit(X, thirds)",
    "Crammer and Singer": "LinearSVC(multi_class='crammer_singer').fit(X, thirds)",
    "LinearSVR()": "LinearSVR().fit(X, y)",
    "elastic net": "LinearSVC(penalty='elasticnet').fit(X, y)",
    "solver='dcd'": "LinearSVC(solver='dcd', max_time=1.0, tol=1e-2).fit(X, y)",
    "kernel": "SVC().fit(X, y)",
    "l1 norm": "LinearSVC(penalty='l1').fit(X, y)",
    "multinomial": "LinearSVC(multi_class='multinomial').fit(X, thirds)",
    "11,380 x 30": "LinearSVC().fit(large, np.tile(y, 20))",
}


def seconds_of(text: str) -> tuple[float, float]:
    """Processor seconds of a fit in a new process with a new cache, and the seconds that it spent compiling."""
    with tempfile.TemporaryDirectory() as cache:
        env = os.environ | {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
        code = FIRST.replace("{text}", text)
        told = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    taken, compiling = (float(word) for word in told.stdout.split())
    return taken, compiling


def main() -> None:
    """Print the table."""
    print(f"{'first fit':24} {'processor s':>12} {'compiling s':>12}")
    for name, text in FITS.items():
        taken, compiling = seconds_of(text)
        print(f"{name:24} {taken:12.2f} {compiling:12.2f}", flush=True)


if __name__ == "__main__":
    main()
