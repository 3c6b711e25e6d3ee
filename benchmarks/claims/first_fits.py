"""What a first fit takes above the same fit in a warm process, in processor seconds, each in a process of its own with
an empty cache of kernels: ``python benchmarks/claims/first_fits.py``, with the package as it is installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile

FIT = """
import sys, time
import numpy as np
import sklearn.svm
from saddlesvm import LinearSVC, SVC

random = np.random.default_rng(0)
y = random.integers(0, 2, 30_000)
X = random.standard_normal((30_000, 50)) + 0.3 * y[:, None]
name = sys.argv[1]
if name == "hinge, float32":
    X = X.astype(np.float32)
if name == "SVC, 3,000 rows":
    X, y = X[:3000], y[:3000]
made = {
    "default": lambda: LinearSVC(), "hinge, float32": lambda: LinearSVC(loss="hinge"),
    "logistic": lambda: LinearSVC(loss="logistic"), "l1": lambda: LinearSVC(penalty="l1"),
    "C='auto'": lambda: LinearSVC(C="auto"), "SVC, 3,000 rows": lambda: SVC(),
}[name]
seconds = []
for _ in range(3):
    began = time.process_time()
    made().fit(X, y)
    seconds.append(time.process_time() - began)
print(seconds[0], min(seconds[1:]))
"""
NAMES = ("default", "hinge, float32", "logistic", "l1", "C='auto'", "SVC, 3,000 rows")


def seconds_of(name: str) -> tuple[float, float]:
    """Processor seconds of the first fit of a process, and of the quickest later one."""
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        said = subprocess.run(
            [sys.executable, "-c", FIT, name], env=environment, capture_output=True, text=True, check=True
        )
    first, later = map(float, said.stdout.split())
    return first, later


def main() -> int:
    """Measure, print a line for each fit; 1 where one takes longer than asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-most", type=float, help="seconds above the warm fit")
    limit = parser.parse_args().at_most
    slow = False
    for name in NAMES:
        first, later = seconds_of(name)
        slow |= limit is not None and first - later > limit
        print(f"{name:16} first {first:5.2f} s, warm {later:5.2f} s, above {first - later:5.2f} s", flush=True)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
