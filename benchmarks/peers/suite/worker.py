"""A process for one solver and one problem: climb its ladder of fits, each begun anew, and tell of each in a line.

A job is read as JSON from standard input (see :class:`launch.Job`). Lines of JSON go to standard output, one an event:
"begin" and "done" of a fit, then "end" or "failed". Only ``fit`` is timed. What is imported, converted and loaded
before is not: a fit of a few hundred rows warms the solver up, and one that compiles kernels at its first use also fits
the data themselves once at its roughest rung. A quick fit is made twice, and the second one counts: the first may have
loaded what no fit before it had needed. "extra" is the peak of the process's memory during a fit above what it
was after the data had been read.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

WARM_ROWS = 300
TOGETHER = 3.0  # times the limit of one fit: what the fits of a climb may take together
# A climb ends without progress when the best of the last rungs left more than this share of the distance before them.
STALLED = 0.95
LAST = 3
QUICK = 0.3  # seconds of a fit, up to which it is made twice
# seconds and epochs of a fit
WORTH_WATCHING = 1.0
MANY_EPOCHS = 100


def main() -> None:
    """Read the job, do it, tell of it."""
    job = json.loads(sys.stdin.readline())
    out = private_output()
    if job["core"] is not None:
        os.sched_setaffinity(0, {job["core"]})
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=job["data"]) as scratch:
        try:
            for event in climb(job, Path(scratch)):
                print(json.dumps(event), file=out, flush=True)
        except Exception as error:
            told = str(error).strip().splitlines() or [""]
            print(json.dumps({"event": "failed", "why": f"{type(error).__name__}: {told[0]}"}), file=out, flush=True)


def private_output() -> Any:
    """Standard output for our lines alone: what a library prints goes to standard error."""
    kept = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return kept


def climb(job: dict[str, Any], scratch: Path) -> Any:
    """The events of a job."""
    from peers import PEERS, installed_version
    from task import float64_objective

    peer = PEERS[job["solver"]]
    name = peer.losses[job["loss"]]
    task, before = ready(job, peer, name, scratch)
    yield {"event": "loaded", "version": installed_version(peer)}
    adapter = peer.adapt(task, name)
    if peer.compiled:
        adapter.fit(peer.ladder[0])
    seen: list[float] = []
    spent = 0.0
    for rung in job["rungs"]:
        yield {"event": "begin", "rung": rung}
        forget_peak()
        model, seconds = timed(adapter, rung)
        if seconds <= QUICK:
            model, seconds = timed(adapter, rung)
        extra = peak_bytes() - before
        objective = float64_objective(task, adapter.weights(model))
        yield {
            "event": "done", "rung": rung, "seconds": seconds, "objective": objective, "extra": max(0, extra),
            **adapter.facts(model),
        }  # fmt: skip
        spent += seconds
        seen.append(objective / job["bound"] - 1.0 if job["bound"] else float("inf"))
        why = reason_to_stop(job, peer.rung, rung, seen, seconds, spent)
        if why:
            yield {"event": "end", "why": why}
            return
    yield {"event": "end", "why": "ladder climbed"}


def timed(adapter: Any, rung: float) -> tuple[Any, float]:
    """A fit, and its seconds."""
    began = time.perf_counter()
    model = adapter.fit(rung)
    return model, time.perf_counter() - began


def ready(job: dict[str, Any], peer: Any, name: str, scratch: Path) -> tuple[Any, int]:
    """The task, its solver warmed up on a few rows, and the memory of the process with the data read."""
    from task import Task

    X, y = load(Path(job["data"]))
    task = Task(X, y, job["loss"], job["C"], job["threads"], job["seed"], job["limit"], scratch)
    few = task.part(WARM_ROWS)
    warm = peer.adapt(few, name)
    warm.weights(warm.fit(peer.ladder[len(peer.ladder) // 2]))
    return task, resident_bytes()


def reason_to_stop(job: dict[str, Any], kind: str, rung: float, seen: list[float], seconds: float, spent: float) -> str:
    """Why not to climb on; empty if there is no reason."""
    if not job["climbing"]:
        return ""
    if seen[-1] <= job["target"]:
        return "reached"
    if seconds > job["limit"] or spent > TOGETHER * job["limit"]:
        return "time limit"
    far = kind == "epochs" and rung >= MANY_EPOCHS and seconds > WORTH_WATCHING and len(seen) > LAST
    return "no progress" if far and min(seen[-LAST:]) > STALLED * min(seen[:-LAST]) else ""


def load(folder: Path) -> tuple[Any, Any]:
    """Rows and labels from plain arrays, read into memory."""
    import numpy as np
    from scipy import sparse

    y = np.load(folder / "y.npy")
    if (folder / "values.npy").exists():
        return np.load(folder / "values.npy"), y
    parts = [np.load(folder / f"{part}.npy") for part in ("data", "indices", "indptr", "shape")]
    return sparse.csr_matrix((parts[0], parts[1], parts[2]), shape=tuple(int(size) for size in parts[3])), y


def status_bytes(key: str) -> int:
    """A memory figure of this process from the system's own account; 0 where there is none."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    found = [line for line in lines if line.startswith(key)]
    return int(found[0].split()[1]) * 1024 if found else 0


def resident_bytes() -> int:
    """Memory of this process now."""
    return status_bytes("VmRSS:")


def peak_bytes() -> int:
    """Largest memory of this process since :func:`forget_peak`."""
    return status_bytes("VmHWM:")


def forget_peak() -> None:
    """Begin a new account of the largest memory, where the system can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


if __name__ == "__main__":
    main()
