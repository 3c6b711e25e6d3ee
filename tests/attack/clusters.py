"""Processes of a Dask cluster that a test may kill: a scheduler, its workers, and a client that fits."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from saddlesvm import LinearSVC

WORKERS = 2
ROWS = 3_000
FEATURES = 8
ROWS_OF_A_PART = 250
TOL = 1e-5
FORM: dict[str, Any] = {"solver": "newton", "loss": "logistic", "C": 100.0}  # takes some rounds
PATIENCE = 240.0  # seconds for a process to begin
# Seconds for which a client looks for a lost scheduler; for its first connection it has ten times as long.
RECONNECTING = 3.0
AT_A_TIME = 0.05  # seconds between two looks
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__, "distributed", "dask.array", "saddlesvm.dask"])


@contextlib.contextmanager
def cluster() -> Iterator[tuple[Any, str]]:
    """Start a scheduler and, in another process, its workers; yield the process and its address."""
    with contextlib.ExitStack() as stack:
        scheduler, said = stack.enter_context(process(scheduling))
        address = said()
        _, begun = stack.enter_context(process(working, address))
        begun()
        yield scheduler, address


@contextlib.contextmanager
def process(work: Callable[..., Any], *arguments: Any) -> Iterator[tuple[Any, Any]]:
    """Start a process, and yield it with a function that returns its next message; kill it at the end."""
    hears, speaks = FORKS.Pipe(duplex=False)
    child = FORKS.Process(target=work, args=(speaks, *arguments))
    child.start()
    speaks.close()

    def said() -> Any:
        if not hears.poll(PATIENCE):
            raise TimeoutError(f"{work.__name__} says nothing")
        return hears.recv()

    try:
        yield child, said
    finally:
        child.kill()
        child.join()
        child.close()
        hears.close()


def scheduling(speaks: Any) -> None:
    """Run a scheduler, and send its address."""
    distributed = silent()

    async def schedule() -> None:
        async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard_address=":0") as scheduler:
            speaks.send(scheduler.address)
            await scheduler.finished()

    asyncio.run(schedule())


def working(speaks: Any, address: str) -> None:
    """Run the workers of a scheduler."""
    distributed = silent()

    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            made = [
                await stack.enter_async_context(distributed.Worker(address, nthreads=1, dashboard_address=":0"))
                for _ in range(WORKERS)
            ]
            speaks.send(len(made))
            await asyncio.gather(*(worker.finished() for worker in made))

    asyncio.run(work())


def fitting(speaks: Any, address: str, X: np.ndarray, y: np.ndarray) -> None:
    """Fit as a client; send 0 at the start, then the number of each round."""
    with silent().Client(address, set_as_default=True):
        speaks.send(0)
        fitted(X, y, callbacks=[lambda row: speaks.send(row["round"])])


def silent() -> Any:
    """Import distributed, and silence its messages about processes that a test kills."""
    import distributed

    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
    return distributed


def posed(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows and labels of two classes."""
    X = random.normal(size=(ROWS, FEATURES))
    score = X @ random.normal(size=FEATURES) + random.normal(size=ROWS)
    return X, np.digitize(score, [0.0])


def fitted(X: np.ndarray, y: np.ndarray, **options: Any) -> Any:
    """Fit a model to rows in partitions."""
    import dask.array as da

    rows = da.from_array(X, chunks=(ROWS_OF_A_PART, -1))
    return LinearSVC(**FORM, tol=TOL, **options).fit(rows, y)


def agree(model: Any, reference: Any) -> bool:
    """Return True if two certificates of one problem have an optimum in common."""
    one = model.certificate_
    other = reference.certificate_
    slack = 1e-9 * abs(other.primal)
    return bool(one.dual <= other.primal + slack and other.dual <= one.primal + slack)


def tasks_in_the_end(client: Any) -> int:
    """Count the tasks that a scheduler keeps after it has forgotten those that nobody needs."""
    gc.collect()  # the futures of a fit are in circles
    until = time.monotonic() + PATIENCE
    while (left := client.run_on_scheduler(tasks_left)) and time.monotonic() < until:
        time.sleep(AT_A_TIME)
    return int(left)


def tasks_left(dask_scheduler: Any) -> int:
    """Count the tasks that a scheduler knows."""
    return len(dask_scheduler.tasks)
