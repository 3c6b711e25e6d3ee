"""Every kernel as plain Python, or with checked bounds, on small problems; and which kernels these fits have met.

    NUMBA_DISABLE_JIT=1 python -m tests.attack.kernels [--record]
    NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(mktemp -d) python -m tests.attack.kernels [--record]

The fits are one of each machine and solver of :mod:`support.resuming`, and of the estimators. Each must end as it may:
without an error, and with a finite certificate that is on the right side. A kernel is a function with one of the
decorators of :mod:`saddlesvm.runtime.compiled`. As plain Python it is met where it is called; compiled, where Numba has
compiled it, for itself or into another kernel (so the cache must be empty).
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from saddlesvm import SVC, SVR, KernelSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM
from saddlesvm.fit.outcome import Outcome
from saddlesvm.runtime.compiled import INTERPRETED, Compiled
from saddlesvm.runtime.small import Most
from support import csr, matrix
from support.resuming import CELLS, Cell, whole_run

from .page import RECORDS, keep, record_of
from .tally import Tally

SOURCE = Path(__file__).resolve().parents[2] / "src" / "saddlesvm"
DECORATORS = {"kernel", "allocating_kernel", "searching_kernel", "allocating_search", "inlined", "inlined_search"}
Place = tuple[str, int]  # a file, and the line of a function's first decorator
SEEN: set[CodeType] = set()


def kernels() -> dict[Place, str]:
    """The name of each kernel, by its place."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and DECORATORS & {
                getattr(one, "id", "") for one in node.decorator_list
            }:
                home = ".".join(file.relative_to(SOURCE).with_suffix("").parts)
                found[str(file), node.decorator_list[0].lineno] = f"{home}.{node.name}"
    return found


def called(frame: Any, event: str, argument: Any) -> None:
    """Note the code that a thread calls."""
    SEEN.add(frame.f_code)


def met() -> set[Place]:
    """The places of the functions that were called, or compiled."""
    compiled = [
        one for one in gc.get_objects() if type(one) is Compiled and one.made is not None and one.made.overloads
    ]
    codes = SEEN | {one.py_func.__code__ for one in compiled}
    return {(code.co_filename, code.co_firstlineno) for code in codes}


def small_fits(folder: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The name of each fit, and a function that makes it and returns its result."""
    for name, cell in one_of_each().items():
        yield name, partial(whole_run, cell, folder)
    X, targets = matrix(40, 4), matrix(40, 4)[:, 1]
    two, three = np.where(X[:, 0] > 0.0, 1, -1), np.arange(40) % 3
    kept = {"dense": X, "sparse": csr(X), "float32": X.astype(np.float32), "float16": X.astype(np.float16)}
    for kind, rows in kept.items():
        for machine in (LinearSVC(), LinearSVC(solver="dcd"), LinearSVC(penalty="l1"), LinearSVC(multi_class="ovo")):
            yield f"{machine}, {kind}", partial(machine.fit, rows, three)
        yield f"Crammer and Singer, {kind}", partial(LinearSVC(multi_class="crammer_singer").fit, rows, three)
        yield f"LinearSVR, {kind}", partial(LinearSVR(solver="dcd").fit, rows, targets)
        if kind == "float16":
            continue
        for classifier in (
            SVC(),
            NuSVC(),
            OneClassSVM(),
            *(KernelSVC(solver=one, max_iter=20) for one in ("sdca", "pegasos")),
        ):
            yield f"{classifier}, {kind}", partial(classifier.fit, rows, two)
        for regression in (SVR(), NuSVR()):
            yield f"{regression}, {kind}", partial(regression.fit, rows, targets)
    for kernel in ("poly", "sigmoid", "laplacian", "linear"):
        yield f"kernel {kernel}", partial(KernelSVC(kernel=kernel).fit, X, two)


def one_of_each() -> dict[str, Cell]:
    """One cell of each machine, kind of place and solver, on little data."""
    found: dict[tuple[str, ...], tuple[str, Cell]] = {}
    for name, cell in CELLS.items():
        machine, _, solver = name.partition(": ")
        threaded = INTERPRETED and "Parallel" in solver  # threads share work in compiled code only
        slow = machine.startswith("large") or (machine == "elastic net, sparse")  # minutes each as plain Python
        if not slow and not threaded:
            place = str("files" in machine) + str("sparse" in machine)
            found.setdefault((machine.split()[0].strip(","), place, solver.partition("(")[0]), (name, cell))
    return dict(found.values())


def wrong(result: Any) -> str:
    """What is wrong with a fit; "" where nothing is."""
    certificate = getattr(result, "certificate_", None) or result.certificate
    outcome = getattr(result, "outcome_", None) or result.outcome
    if outcome is Outcome.FAILED or not np.isfinite(certificate.primal):
        return f"it ended as {outcome} with {certificate}"
    return "" if certificate.gap >= 0.0 else f"its gap is {certificate.gap}"


def main() -> int:
    """Make all fits; 1 where one was wrong, or a kernel was not met."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.kernels", description=__doc__)
    parser.add_argument("--record", action="store_true", help="keep what came out, for docs/what-held.md")
    given = parser.parse_args()
    mode = (
        "plain Python"
        if INTERPRETED
        else "checked bounds"
        if os.environ.get("NUMBA_BOUNDSCHECK") == "1"
        else "compiled"
    )
    Most.values = Most.indices = -1  # nothing is too little for the kernels
    tally, known = Tally("kernels"), kernels()
    if INTERPRETED:
        threading.setprofile(called)
        sys.setprofile(called)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fitted in small_fits(Path(folder)):
            tally.cases += 1
            try:
                said = wrong(fitted())
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            tally.failures += [f"kernels as {mode}, {name}: {said}"] if said else []
            if tally.cases % 10 == 0:
                print(tally.cases, len({*known} - met()), flush=True)
    sys.setprofile(None)
    threading.setprofile(None)  # type: ignore[arg-type]
    missing = sorted(name for place, name in known.items() if place not in met())
    tally.outcomes[f"{mode}: fits"] = tally.cases
    tally.outcomes[f"{mode}: kernels met"] = len(known) - len(missing)
    tally.outcomes[f"{mode}: kernels not met"] = len(missing)
    print(tally, *tally.failures, f"not met: {', '.join(missing) or 'none'}", sep="\n")
    if given.record:
        keep(record_of(tally, 0, 0, 0.0), RECORDS)
    return int(bool(tally.failures or missing))


if __name__ == "__main__":
    sys.exit(main())
