"""What a new process pays: import, the first fit with and without cached kernels, against the second fit.

python -m benchmarks.parts.startup
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

IMPORT = "import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
FITS = """
import json, sys, time
import numpy as np
from scipy import sparse
X = sparse.random(30_000, 100, density=0.1, format="csr", random_state=0)
y = np.where(X @ np.random.default_rng(0).normal(size=100) > 0, 1, -1)
from saddlesvm import LinearSVC
seconds = []
for _ in range(3):
    began = time.perf_counter()
    LinearSVC(random_state=0).fit(X, y)
    seconds.append(time.perf_counter() - began)
print(json.dumps(seconds))
"""


def python(code: str, cache: str) -> str:
    """What a new process prints."""
    env = os.environ | {"NUMBA_CACHE_DIR": cache}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as cache:
        cold = json.loads(python(FITS, cache))
        print(f"nothing cached: first fit {cold[0]:.3f} s, second {cold[1]:.3f} s: {cold[0] - cold[1]:.3f} s more")
        imports: dict[str, list[float]] = {"sklearn.svm": [], "saddlesvm": []}
        warm = []
        for _ in range(repeats):
            for module, times in imports.items():
                times.append(float(python(IMPORT.format(module=module), cache)))
            warm.append(json.loads(python(FITS, cache)))
        theirs, ours = (statistics.median(times) for times in imports.values())
        print(f"import: sklearn.svm {theirs:.3f} s, saddlesvm {ours:.3f} s: {ours - theirs:.3f} s more")
        first, second = (statistics.median(fits[k] for fits in warm) for k in (0, 1))
        print(f"kernels cached: first fit {first:.3f} s, second {second:.3f} s: {first - second:.3f} s more")


if __name__ == "__main__":
    main()
