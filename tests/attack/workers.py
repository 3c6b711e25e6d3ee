"""Workers of a Dask cluster that are killed at random moments of fits: the model is that of an undisturbed one.

A case is a fit during which one worker's process is killed (SIGKILL); its nanny begins another. Sums over partitions
are added up in the order in which they come, so that weights agree as closely as both certificates say they must, and
not to the last bit.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from saddlesvm import LinearSVC
from saddlesvm.fit.outcome import Outcome

from .tally import Tally

WORKERS, ROWS, FEATURES, ROWS_OF_A_PART = 3, 3_000, 8, 250
FORMS: tuple[dict[str, Any], ...] = (
    {"solver": "newton", "loss": "squared_hinge"},
    {"solver": "newton", "loss": "hinge"},
    {"solver": "rounds", "loss": "squared_hinge", "C": 1e-3},
    {"solver": "newton", "loss": "logistic", "C": 100.0},
    {"solver": "gather", "multi_class": "crammer_singer", "C": 10.0},
    {"solver": "gather", "multi_class": "multinomial"},
    {"solver": "gather", "penalty": "l1", "C": 0.01},
    {"solver": "rounds", "penalty": "elasticnet", "C": 1e-3},
    {"solver": "newton", "loss": "hinge", "intercept": "free"},
    {"solver": "newton", "multi_class": "ovo", "loss": "logistic", "lam": 1e-3},
    {"solver": "rounds", "loss": "hinge", "C": 1e-3},
    {"solver": "rounds", "loss": "logistic", "C": 1e-3},
    {"solver": "gather", "loss": "hinge", "intercept": "free"},
    {"solver": "newton", "loss": "smooth_hinge"},
    {"solver": "auto", "loss": "squared_hinge", "C": 10.0},
)
TOL = 1e-5
PATIENCE = 240.0  # seconds for a killed worker to be there again


def workers(seed: int, first: int, count: int) -> Tally:
    """The cases of these numbers, on one cluster."""
    tally = Tally(name="workers")
    with local_cluster() as client:
        for number in range(first, first + count):
            random = np.random.default_rng([seed, number, 3])
            form = FORMS[number % len(FORMS)]
            client.wait_for_workers(WORKERS, timeout=PATIENCE)
            killed, said = struck(client, form, random)
            tally.cases += 1
            told = f"kills of workers, {form['solver']} with {told_apart(form)}"
            tally.outcomes[told if killed else "fits that were done before the kill"] += 1
            tally.failures += [f"workers {seed}:{number}: {form} {one}" for one in said]
    return tally


def told_apart(form: dict[str, Any]) -> str:
    """What a form is told apart by, beside its solver."""
    named = " ".join(str(form[name]) for name in ("multi_class", "penalty", "loss") if name in form)
    return f"{named}, {form['intercept']} intercept" if "intercept" in form else named


@contextlib.contextmanager
def local_cluster() -> Iterator[Any]:
    """Some workers in processes of their own, and a client."""
    import distributed

    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "silence_logs": 60}
    with distributed.LocalCluster(n_workers=WORKERS, **options) as cluster, distributed.Client(cluster) as client:
        yield client


def agree(model: Any, reference: Any) -> bool:
    """Whether two certificates of one problem have an optimum in common."""
    one, other = model.certificate_, reference.certificate_
    slack = 1e-9 * abs(other.primal)
    return bool(one.dual <= other.primal + slack and other.dual <= one.primal + slack)


def struck(client: Any, form: dict[str, Any], random: np.random.Generator, victims: int = 1) -> tuple[bool, list[str]]:
    """Whether workers were killed during a fit, and what was wrong at its end."""
    import dask.array as da

    from saddlesvm import dask as distributed_svm

    X = random.normal(size=(ROWS, FEATURES))
    seen = X @ random.normal(size=FEATURES) + random.normal(size=ROWS)
    y = np.digitize(seen, [-1.0, 1.0] if "multi_class" in form else [0.0])
    reference = LinearSVC(**form | {"solver": "auto"}, tol=TOL).fit(X, y)
    rows = da.from_array(X, chunks=(ROWS_OF_A_PART, -1))
    began = time.perf_counter()
    distributed_svm.LinearSVC(**form, tol=TOL).fit(rows, y)
    moment = random.uniform(0.0, time.perf_counter() - began)
    chosen = random.choice(sorted(client.run(os.getpid).values()), victims, replace=False)
    done, kills = threading.Event(), []

    def strike() -> None:
        if not done.wait(moment):
            for victim in chosen.tolist():
                os.kill(victim, signal.SIGKILL)
                kills.append(victim)

    killer = threading.Thread(target=strike)
    killer.start()
    try:
        model = distributed_svm.LinearSVC(**form, tol=TOL).fit(rows, y)
    except Exception as error:
        return bool(kills), [f"ended with {type(error).__name__}: {error}"]
    finally:
        done.set()
        killer.join()
    said = [] if model.outcome_ is Outcome.CERTIFIED else [f"ended as {model.outcome_}"]
    said += [] if agree(model, reference) else ["objectives are further apart than the certificates say"]
    if "penalty" in form or "lam" in form:
        return bool(kills), said  # how far weights may be apart is told for half a square in the C form
    apart = np.linalg.norm(model.coef_ - reference.coef_)
    allowed = sum(
        np.sqrt(2.0 * max(one.certificate_.gap, 1e-12 * one.certificate_.primal)) for one in (model, reference)
    )
    return bool(kills), said + ([] if apart <= allowed else [f"weights are {apart:.2g} from the undisturbed ones"])
