"""The same fits on machines of different kinds: equal digests of canonical weights, and certificates that agree.

    python -m tests.attack.elsewhere FILE            fit what the file has not yet; write what each came to
    python -m tests.attack.elsewhere ONE OTHER ...   compare such files, and keep what they came to

``.ci/aarch64`` runs it on an emulated processor. The rows are made of whole numbers, so that they are the same bytes
everywhere. A certificate is refuted where its bound is above the objective that another machine found.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm import SVC, SVR, KernelSVC, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

from .page import RECORDS, keep, record_of
from .tally import Tally

KIND = "machines"


def rows(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels of three classes, and targets, from whole numbers and divisions by powers of two."""
    state, drawn = seed, []
    for _ in range(n * d):
        state = (6364136223846793005 * state + 1442695040888963407) % 2**64
        drawn.append((state >> 44) % 4097 - 2048)
    X = np.array(drawn, np.float64).reshape(n, d) / 1024.0
    score = X[:, 0] - 0.5 * X[:, 1] + 0.25 * X[:, 2] * X[:, 3]
    return X, (score > -0.5).astype(int) + (score > 0.5), score


def fits() -> Iterator[tuple[str, Any, np.ndarray, np.ndarray]]:
    """Each fit: its name, the model, rows and targets."""
    X, three, score = rows(90, 5, 1)
    two = (three > 0).astype(int)
    for loss in ("hinge", "squared_hinge", "logistic"):
        yield f"{loss} by auto", LinearSVC(loss=loss, canonical=20, random_state=0), X, two
    for intercept in ("regularized", "free"):
        yield f"{intercept} intercept", LinearSVC(intercept=intercept, canonical=20, random_state=0), X, two
    for way in ("ovr", "ovo"):
        yield f"three classes, {way}", LinearSVC(multi_class=way, canonical=20, random_state=0), X, three
    yield "three classes, multinomial", LinearSVC(multi_class="multinomial", random_state=0), X, three
    yield "l1", LinearSVC(penalty="l1", random_state=0), X, two
    for loss in ("squared", "squared_epsilon_insensitive", "huber"):
        yield f"{loss} regression", LinearSVR(loss=loss, canonical=20, random_state=0), X, score
    for kind in (SVC, NuSVC, KernelSVC):
        yield kind.__name__, kind(), X, two
    for kind in (SVR, NuSVR):
        yield kind.__name__, kind(), X, score
    yield "OneClassSVM", OneClassSVM(nu=0.2), X, score
    many, classes, targets = rows(2500, 8, 2)  # what follows is compiled
    yield "many rows, float32", LinearSVC(random_state=0), many.astype(np.float32), classes > 0
    yield "many rows, regression", LinearSVR(loss="squared", canonical=20, random_state=0), many, targets
    for solver in ("newton", "dcd", "sdca"):
        for loss in ("squared_hinge", "hinge", "logistic"):
            yield f"{loss} by {solver}", LinearSVC(loss=loss, solver=solver, canonical=20, random_state=0), X, two
    yield "many rows, dual descent", LinearSVC(solver="dcd", canonical=20, random_state=0), many, classes > 0
    yield "three classes, crammer_singer", LinearSVC(multi_class="crammer_singer", random_state=0), X, three
    yield "elasticnet", LinearSVC(penalty="elasticnet", random_state=0), X, two


def came_to(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """What a fit came to."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y)
        except ValueError as error:
            return {"outcome": f"refused: {error}"}
    proof = model.certificate_
    return {
        "outcome": str(model.outcome_),
        "digest": getattr(model, "digest_", ""),
        "ambiguous": int(getattr(model, "ambiguous_", 0)),
        "primal": float(proof.primal),
        "dual": float(proof.dual),
        "seconds": round(time.process_time() - began, 2),
    }


def here() -> str:
    """The kind of this machine's processor, and what the kernels were compiled for."""
    return " ".join([platform.machine(), *([os.environ["NUMBA_CPU_NAME"]] if "NUMBA_CPU_NAME" in os.environ else [])])


def compared(told: dict[str, dict[str, dict[str, Any]]]) -> Tally:
    """Compare the fits of machines, by their names."""
    tally, (first, *others) = Tally(KIND), told
    for other, name in ((other, name) for other in others for name in told[first] if name in told[other]):
        one, two = told[first][name], told[other][name]
        tally.cases += 1
        wrong = [] if one["outcome"] == two["outcome"] else [f"{one['outcome']} and {two['outcome']}"]
        if not wrong and one["outcome"] == "certified":
            lowest = min(one["primal"], two["primal"])
            wrong += ["a bound above an objective"] if max(one["dual"], two["dual"]) > lowest else []
            same = one["digest"] == two["digest"]
            wrong += [] if same or one["ambiguous"] or two["ambiguous"] else ["two digests"]
            held = "one digest" if one["digest"] and same else "certificates agree"
            tally.outcomes[f"{first} and {other}: {held}"] += not wrong
        else:
            tally.outcomes[f"{first} and {other}: {one['outcome']}"] += not wrong
        tally.failures += [f"{KIND} {first} and {other}: {name}: {said}" for said in wrong]
    return tally


def main(given: list[str]) -> int:
    """Fit, or compare; 1 where machines disagree."""
    if len(given) == 1:
        path = Path(given[0])
        found = json.loads(path.read_text())[here()] if path.exists() else {}
        for name, model, X, y in fits():
            if name not in found:
                found[name] = came_to(model, X, y)
                path.write_text(json.dumps({here(): found}))
                print(f"{here()} {name}: {found[name]}", flush=True)
        return 0
    began = time.monotonic()
    tally = compared({key: value for path in given for key, value in json.loads(Path(path).read_text()).items()})
    keep(record_of(tally, 0, 0, time.monotonic() - began), RECORDS)
    print(tally, *tally.failures, sep="\n  ")
    return int(bool(tally.failures))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
