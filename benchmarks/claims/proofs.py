"""Do proofs, canonical weights and forgetting hold what their pages say?

    python -m benchmarks.claims.proofs campaigns --count 10000
    python -m benchmarks.claims.proofs plain DATA.svm
    python -m benchmarks.claims.proofs digests DATA.svm --loss hinge --C 100
    python -m benchmarks.claims.proofs changes DATA.svm --count 100
    python -m benchmarks.claims.proofs forgetting DATA.svm --count 9

`campaigns` draws problems whose proofs must agree with their certificates, and tampers with proofs. `plain` measures
the check of a proof by the checker's file alone. `digests` fits by several solvers, orders, layouts and threads, and in
a process whose kernels are compiled for a generic processor. `changes` forgets and adds rows, and compares each digest
with that of a fit from nothing. `forgetting` measures changes beside new fits: of a model right after its fit, of one
that has forgotten a row before, of one that gets its data again, and of one that learns the rows. Times are processor
time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm import DCD, SDCA, LinearSVC, Newton, NotCertifiedWarning, checker
from saddlesvm.data import Store, read

ROOT = Path(__file__).resolve().parents[2]
LOSSES = ("squared_hinge", "logistic")
GENERIC = """
import sys
from saddlesvm import LinearSVC
from saddlesvm.data import read
table = read(sys.argv[1])
print(getattr(LinearSVC(loss=sys.argv[2], C=float(sys.argv[3]), canonical=20).fit(table.X, table.y), "digest_", "none"))
"""


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of some work, and what it returned."""
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def campaigns(count: int) -> None:
    """Both campaigns, and what they came to."""
    sys.path.insert(0, str(ROOT / "tests"))
    from attack.proofs import agreements, forgeries

    with tempfile.TemporaryDirectory() as folder:
        for campaign in (agreements, forgeries):
            seconds, found = timed(lambda campaign=campaign: campaign(Path(folder), 1, 0, count))
            print(found, *found.failures, f"{seconds:.0f} s", sep="\n  ", flush=True)


def plain(data: str) -> None:
    """The check in plain Python: seconds, and bytes of the proof."""
    table = read(data)
    for loss in ("hinge", *LOSSES):
        model = LinearSVC(loss=loss, tol=1e-6, random_state=0).fit(table.X, table.y)
        made, proof = timed(lambda model=model: model.proof(table.X, table.y))
        text = json.dumps(proof)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "proof.json")
            path.write_text(text)
            before = os.times().children_user
            run = [sys.executable, "-I", "-S", checker.__file__, str(path), data]
            said = subprocess.run(run, capture_output=True, text=True).stdout.strip()
            seconds = os.times().children_user - before
        listed = len(proof["parts"][0]["multipliers"])
        print(f"{loss}: {len(text):,} bytes, {listed} multipliers, made in {made:.1f} s, checked in {seconds:.1f} s")
        print(f"  {said}", flush=True)


def on_cluster(options: dict[str, Any], table: Any) -> Any:
    """A model of rows in two parts, on two workers of Dask."""
    import dask.array as da
    from distributed import Client, LocalCluster

    half = -(-table.X.shape[0] // 2)
    X = da.from_array(table.X.toarray(), chunks=(half, -1))
    y = da.from_array(np.asarray(table.y), chunks=half)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        return LinearSVC(**options).fit(X, y)


def digests(data: str, losses: tuple[str, ...], C: float) -> None:
    """Digests of one problem by all the ways to its optimum."""
    table = read(data)
    order, columns = (np.random.default_rng(0).permutation(size) for size in table.X.shape)
    for loss in losses:
        options: dict[str, Any] = {"loss": loss, "C": C, "canonical": 20, "random_state": 0}
        found = {}
        for solver in ("auto", DCD(), SDCA(), Newton()):
            found[str(solver)] = LinearSVC(**options, solver=solver).fit(table.X, table.y)
        found["4 threads"] = LinearSVC(**options, n_jobs=4).fit(table.X, table.y)
        found["permuted rows"] = LinearSVC(**options).fit(table.X[order], table.y[order])
        if table.X.shape[1] < 1000:
            found["dense"] = LinearSVC(**options).fit(table.X.toarray(), table.y)
            found["two Dask workers"] = on_cluster(options, table)
        with tempfile.TemporaryDirectory() as folder:
            store = Store.create(Path(folder, "data.store"), table.X, table.y)
            found["store"] = LinearSVC(**options).fit(store)
        told = {name: getattr(model, "digest_", "none") for name, model in found.items()}
        permuted = LinearSVC(**options).fit(table.X[:, columns], table.y).coef_
        same = permuted[0].tolist() == found["auto"].coef_[0, columns].tolist()
        run = [sys.executable, "-c", GENERIC, data, loss, str(C)]
        with tempfile.TemporaryDirectory() as cache:
            other = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": cache}
            told["generic"] = subprocess.run(run, capture_output=True, text=True, env=os.environ | other).stdout.strip()
        print(loss, *(f"{name}: {one[:16]}" for name, one in told.items()), f"permuted columns: {same}", sep="\n  ")
        print(f"  {len({*told.values()})} digest", flush=True)


def changes(data: str, count: int) -> None:
    """Rows forgotten and added, beside fits from nothing: equal digests."""
    table, random = read(data), np.random.default_rng(0)
    n = table.X.shape[0]
    for loss in LOSSES:
        options: dict[str, Any] = {"loss": loss, "canonical": 20, "random_state": 0}
        base = LinearSVC(**options).fit(table.X, table.y)
        equal = unknown = 0
        for number in range(count):
            gone = random.choice(n, int(random.choice([1, 1, n // 100])), replace=False)
            kept = np.setdiff1d(np.arange(n), gone)
            fresh = LinearSVC(**options).fit(table.X[kept], table.y[kept])
            if number % 2:
                model = deepcopy(fresh).update(table.X[gone], table.y[gone], former=(table.X[kept], table.y[kept]))
                fresh = base
            else:
                model = deepcopy(base).forget(gone, table.X, table.y)
            open_weights = model.ambiguous_, fresh.ambiguous_
            same = not any(open_weights) and model.digest_ == fresh.digest_
            equal, unknown = equal + same, unknown + any(open_weights)
            what = f"{'adding' if number % 2 else 'forgetting'} {gone.size} of {n}"
            told = "equal" if same else f"weights not proven: {open_weights[0]}, of a new fit {open_weights[1]}"
            print(
                f"{loss}: change {number + 1}, {what}: {told if same or any(open_weights) else 'DIFFERENT'}", flush=True
            )
        print(f"{loss}: {count} changes, {equal} equal, {unknown} not proven", flush=True)


def twin(model: Any) -> Any:
    """A model that has what this one keeps of its fit; a copy has no training data."""
    own = object.__new__(type(model))
    vars(own).update(vars(model))
    return own


def forgetting(data: str, count: int) -> None:
    """Times of changes of some rows beside those of new fits: medians over `count` draws of the rows, interleaved."""
    table, random = read(data), np.random.default_rng(0)
    n = table.X.shape[0]
    for loss in ("hinge", *LOSSES):
        base = LinearSVC(loss=loss, random_state=0).fit(table.X, table.y)
        once = twin(base).forget([0])
        for rows in (1, n // 100, n // 10):
            times: dict[str, list[float]] = {"forget": [], "again": [], "data given": [], "update": [], "fit": []}
            for _ in range(count):
                gone = random.choice(n - 1, rows, replace=False)
                kept = np.setdiff1d(np.arange(n), gone)
                X, y, more = table.X[kept], table.y[kept], (table.X[gone], table.y[gone])
                for least in (False, True):  # the first round warms up
                    fresh, given = LinearSVC(loss=loss, random_state=0), deepcopy(base)
                    work: dict[str, Callable[[], Any]] = {
                        "fit": lambda fresh=fresh, X=X, y=y: fresh.fit(X, y),
                        "forget": lambda base=base, gone=gone: twin(base).forget(gone),
                        "again": lambda once=once, gone=gone: twin(once).forget(gone),
                        "data given": lambda given=given, gone=gone: given.forget(gone, table.X, table.y),
                        "update": lambda fresh=fresh, more=more: twin(fresh).update(*more),
                    }
                    for name, one in work.items():
                        seconds = timed(one)[0]
                        if least:
                            times[name].append(seconds)
            middle = {name: float(np.median(each)) for name, each in times.items()}
            told = (f"{name} {1e3 * one:.2f} ms ({middle['fit'] / one:.1f})" for name, one in middle.items())
            print(f"{loss}: {rows} of {n} rows: {', '.join(told)}", flush=True)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("campaigns", "plain", "digests", "changes", "forgetting"))
    parser.add_argument("data", nargs="?")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--loss", nargs="+", default=LOSSES, help="of digests")
    parser.add_argument("--C", type=float, default=1.0, help="of digests")
    given = parser.parse_args()
    warnings.simplefilter("ignore", NotCertifiedWarning)
    if given.what == "campaigns":
        campaigns(given.count)
    elif given.what == "changes":
        changes(given.data, given.count)
    elif given.what == "forgetting":
        forgetting(given.data, given.count)
    elif given.what == "plain":
        plain(given.data)
    else:
        digests(given.data, tuple(given.loss), given.C)


if __name__ == "__main__":
    main()
