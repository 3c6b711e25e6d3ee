"""Start a worker for a job, listen to it, and end it when a fit takes longer than it may."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

WORKER = Path(__file__).resolve().parent / "worker.py"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")
GRACE = 1.0  # seconds beyond the limit of a fit, for solvers that keep the limit themselves


@dataclass(frozen=True)
class Job:
    """What one worker does.

    Attributes
    ----------
    solver, loss : str
    C : float
    data : str
        Folder with the arrays of the data set.
    rungs : tuple of float
        Of the solver's ladder.
    climbing : bool
        Stop at the target, at the time limit or without progress; False does all rungs.
    bound : float
        Lower bound of the optimum; 0 where it is not known.
    target : float
        Relative distance from the optimum that is near enough.
    limit, preparation : float
        Seconds for one fit, and for everything between two fits (reading, converting, evaluating).
    threads, seed : int
    core : int or None
        The core that the process stays on.
    """

    solver: str
    loss: str
    C: float
    data: str
    rungs: tuple[float, ...]
    climbing: bool
    bound: float
    target: float
    limit: float
    preparation: float
    threads: int
    seed: int
    core: int | None


def environment(threads: int) -> dict[str, str]:
    """The environment of a worker: so many threads in every library."""
    return {**os.environ, **dict.fromkeys(THREADS, str(threads)), "PYTHONDONTWRITEBYTECODE": "1"}


def events(job: Job, python: str = sys.executable) -> Iterator[dict[str, Any]]:
    """What a worker tells, as it tells it; a last event "killed" or "failed" where it did not end by itself."""
    with tempfile.TemporaryFile() as complaints:
        process = subprocess.Popen(
            [python, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True,
            env=environment(job.threads), start_new_session=True,
        )  # fmt: skip
        lines: queue.Queue[str] = queue.Queue()
        listener = threading.Thread(target=listen, args=(process, lines), daemon=True)
        listener.start()
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(asdict(job)) + "\n")
            process.stdin.flush()
            yield from heard(job, process, lines, complaints)
        finally:
            end(process)
            listener.join()


def heard(job: Job, process: Any, lines: queue.Queue[str], complaints: Any) -> Iterator[dict[str, Any]]:
    """Events until the worker ends, or until it is silent for too long."""
    fitting: dict[str, Any] | None = None
    doing = "getting ready"
    while True:
        began = time.perf_counter()
        try:
            line = lines.get(timeout=job.limit + GRACE if fitting else job.preparation)
        except queue.Empty:
            waited = time.perf_counter() - began
            if fitting:
                yield {"event": "killed", "rung": fitting["rung"], "seconds": waited, "why": "time limit"}
            else:
                yield {"event": "failed", "why": f"more than {waited:.0f} s of {doing}"}
            return
        if not line:
            yield {"event": "failed", "why": f"the process ended: {last_words(process, complaints)}"}
            return
        event = json.loads(line)
        fitting = event if event["event"] == "begin" else None
        doing = "evaluating" if event["event"] == "done" else doing
        yield event
        if event["event"] in ("end", "failed"):
            return


def listen(process: Any, lines: queue.Queue[str]) -> None:
    """Pass the lines of a process on; an empty one at its end."""
    for line in process.stdout:
        lines.put(line)
    lines.put("")


def end(process: subprocess.Popen[str]) -> None:
    """End a worker and what it has started, and wait for it."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def last_words(process: subprocess.Popen[str], complaints: Any) -> str:
    """The last line that a process wrote to standard error, or its exit code."""
    process.wait()
    complaints.seek(0)
    said = complaints.read().decode("utf-8", "replace").strip().splitlines()
    return said[-1][:200] if said else f"exit code {process.returncode}"
