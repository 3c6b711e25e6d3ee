"""What certified paths and leave-one-out cost, and whether any fit contradicts a claim (docs/measurements/paths.md).

OMP_NUM_THREADS=1 python benchmarks/claims/paths.py FOLDER        # with a9a.bz2 and rcv1-binary.bz2
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm import LinearSVC, NotCertifiedWarning, leave_one_out
from saddlesvm.data import read

LOSSES = ("hinge", "squared_hinge", "logistic")
ENDS = (1e-3, 1e3)
GRID = np.geomspace(*ENDS, 13)


def spent(work: Any, *given: Any, **options: Any) -> tuple[float, Any]:
    """Processor seconds of a call, and what it returned."""
    began = time.process_time()
    made = work(*given, **options)
    return time.process_time() - began, made


def contradictions(path: Any, X: Any, y: np.ndarray, loss: str, count: int) -> int:
    """Random C at which a fit to 1e-9 contradicts what the path claims."""
    wrong = 0
    for C in 10.0 ** np.random.default_rng(0).uniform(-3, 3, count):
        claim = path.certificate(C)
        best = LinearSVC(loss=loss, C=C, tol=1e-9, max_time=20, random_state=0).fit(X, y).certificate_
        rounding = 1e-11 * best.primal
        wrong += claim.dual > best.primal + rounding or best.dual > claim.primal + rounding
    return wrong


def measure(name: str, X: Any, y: np.ndarray, gaps: tuple[float, ...], checked: int) -> None:
    """Print a row for each loss and gap."""
    for loss in LOSSES:
        LinearSVC(loss=loss, random_state=0).fit(X, y)  # compile
        LinearSVC(loss=loss, random_state=0).path(X, y, C=(1.0, 2.0), gap=1e-2)
        fits = [spent(LinearSVC(loss=loss, C=C, tol=1e-3, random_state=0).fit, X, y)[0] for C in GRID]
        for gap in gaps:
            model = LinearSVC(loss=loss, random_state=0)
            seconds, path = spent(model.path, X, y, C=ENDS, gap=gap)
            wrong = contradictions(path, X, y, loss, checked)
            print(
                f"| {name} | {loss} | {gap:g} | {len(path.knots)} | {seconds:.2f} | {max(fits):.2f} | {sum(fits):.2f} "
                f"| {seconds / max(fits):.1f} | {wrong} of {checked} |",
                flush=True,
            )
        model = LinearSVC(loss=loss, random_state=0).fit(X, y)
        leave_one_out(model, X, y)
        seconds, found = spent(leave_one_out, model, X, y)
        print(f"leave-one-out, {name}, {loss}, C = 1: error {found.error:.4f}, {seconds:.3f} s", flush=True)


def main(folder: Path) -> None:
    """Print the tables."""
    warnings.simplefilter("ignore", NotCertifiedWarning)
    print(
        "| data | loss | gap | fits | s, path | s, hardest fit to 1e-3 | s, 13 fits | path / hardest | contradicted |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, gaps, checked in (("a9a", (1e-2, 1e-3), 200), ("rcv1-binary", (1e-2,), 20)):
        table = read(folder / f"{name}.bz2")
        measure(name, sparse.csr_matrix(table.X), np.asarray(table.y), gaps, checked)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
