"""The scheduler of a Dask cluster, a client, a worker, or all workers at once are killed at random moments of fits.

Without its scheduler a fit ends soon with :class:`~saddlesvm.dask.ClusterLostError`, which has the best model so far
where there is one. A client that is killed leaves nothing behind: the scheduler forgets its tasks, and the same fit of
another client, on the same workers, ends certified. Without workers, a fit waits for the next ones, which nannies
begin, and ends certified too.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import logging
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from saddlesvm import LinearSVC
from saddlesvm.fit.outcome import Outcome

from .tally import Tally
from .workers import (
    FEATURES,
    FORMS,
    ROWS,
    ROWS_OF_A_PART,
    TOL,
    WORKERS as LOCAL_WORKERS,
    agree,
    local_cluster,
    struck,
    told_apart,
)

WORKERS = 2
SOON = 60.0  # seconds after the loss of the scheduler, in which a fit is to end
PATIENCE = 240.0  # seconds for a process to begin
RECONNECTING = (
    3.0  # seconds for which a client looks for a lost scheduler; to connect at first it has ten times as long
)
Attack = Callable[[dict[str, Any], np.random.Generator], tuple[str, list[str]]]
AT_A_TIME = 0.05  # seconds between two looks
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__, "distributed", "dask.array", "saddlesvm.dask"])


def clusters(seed: int, first: int, count: int) -> Tally:
    """The cases of these numbers: schedulers, clients, a worker and all workers in turn."""
    tally = Tally(name="clusters")
    with contextlib.ExitStack() as stack:
        client = functools.cache(lambda: stack.enter_context(local_cluster()))

        def without_workers(form: dict[str, Any], random: np.random.Generator, victims: int) -> tuple[str, list[str]]:
            client().wait_for_workers(LOCAL_WORKERS, timeout=PATIENCE)
            killed, said = struck(client(), form, random, victims)
            return "the fit has ended" if killed else "", said

        attacks: tuple[tuple[str, Attack], ...] = (
            ("a scheduler", without_scheduler),
            ("a client", after_a_client),
            ("a worker", functools.partial(without_workers, victims=1)),
            ("all workers", functools.partial(without_workers, victims=LOCAL_WORKERS)),
        )
        for number in range(first, first + count):
            form = FORMS[number // len(attacks) % len(FORMS)]
            kind, attack = attacks[number % len(attacks)]
            ended, said = attack(form, np.random.default_rng([seed, number, 11]))
            tally.cases += 1
            named = f"kills of {kind}, {form['solver']} with {told_apart(form)}"
            tally.outcomes[f"{named}: {ended}" if ended else "fits that were done before the kill"] += 1
            tally.failures += [f"clusters {seed}:{number}: {form} {one}" for one in said]
    return tally


@contextlib.contextmanager
def cluster() -> Iterator[tuple[Any, str]]:
    """The process of a scheduler, with workers in another process, and its address."""
    with contextlib.ExitStack() as stack:
        scheduler, said = stack.enter_context(process(scheduling))
        address = said()
        _, begun = stack.enter_context(process(working, address))
        begun()
        yield scheduler, address


@contextlib.contextmanager
def process(work: Callable[..., Any], *arguments: Any) -> Iterator[tuple[Any, Any]]:
    """A process that does some work, and a function that returns what it says next; it is killed at the end."""
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
    """Be a scheduler, and say its address."""
    distributed = silent()

    async def schedule() -> None:
        async with distributed.Scheduler(host="127.0.0.1", port=0, dashboard_address=":0") as scheduler:
            speaks.send(scheduler.address)
            await scheduler.finished()

    asyncio.run(schedule())


def working(speaks: Any, address: str) -> None:
    """Be the workers of a scheduler."""
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


def fitting(speaks: Any, address: str, form: dict[str, Any], X: np.ndarray, y: np.ndarray) -> None:
    """Be a client that fits; say when it begins, and the number of each round."""
    with silent().Client(address, set_as_default=True):
        speaks.send(0)
        fitted(form, X, y, callbacks=[lambda row: speaks.send(row["round"])])


def silent() -> Any:
    """The package distributed, which says nothing of what is lost on purpose."""
    import distributed

    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
    return distributed


def posed(form: dict[str, Any], random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels."""
    X = random.normal(size=(ROWS, FEATURES))
    seen = X @ random.normal(size=FEATURES) + random.normal(size=ROWS)
    return X, np.digitize(seen, [-1.0, 1.0] if "multi_class" in form else [0.0])


def fitted(form: dict[str, Any], X: np.ndarray, y: np.ndarray, **options: Any) -> Any:
    """The model of rows in partitions."""
    import dask.array as da

    return LinearSVC(**form, tol=TOL, **options).fit(da.from_array(X, chunks=(ROWS_OF_A_PART, -1)), y)


def seconds_of(form: dict[str, Any], X: np.ndarray, y: np.ndarray) -> float:
    """The seconds of an undisturbed fit, after one that loads what it needs."""
    fitted(form, X, y)
    began = time.perf_counter()
    fitted(form, X, y)
    return time.perf_counter() - began


def without_scheduler(form: dict[str, Any], random: np.random.Generator) -> tuple[str, list[str]]:
    """What a fit whose scheduler was killed ended with, "" where it was not in time; and what was wrong with it."""
    from saddlesvm.dask import ClusterLostError

    distributed = silent()
    X, y = posed(form, random)
    with cluster() as (scheduler, address), distributed.Client(address) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client._timeout = RECONNECTING
        moment, done, killed = random.uniform(0.0, seconds_of(form, X, y)), threading.Event(), []

        def strike() -> None:
            if not done.wait(moment):
                os.kill(scheduler.pid, signal.SIGKILL)
                killed.append(time.perf_counter())

        killer = threading.Thread(target=strike)
        killer.start()
        try:
            model, error = fitted(form, X, y), None
        except Exception as raised:
            model, error = None, raised
        finally:
            done.set()
            killer.join()
        ended = time.perf_counter()
    if not killed:
        return "", [] if model is not None else [f"ended with {error!r} before the kill"]
    said = [] if ended - killed[0] < SOON else [f"ended {ended - killed[0]:.0f} s after the loss of the scheduler"]
    if model is not None:
        return "had all its results", said
    if not isinstance(error, ClusterLostError):
        return "another error", [*said, f"ended with {error!r}"]
    best = error.model
    if best is None:
        return "ClusterLostError before the first model", said
    reference = LinearSVC(**form | {"solver": "auto"}, tol=TOL).fit(X, y)
    return "ClusterLostError with a model", said + ([] if agree(best, reference) else ["its certificate is refuted"])


def after_a_client(form: dict[str, Any], random: np.random.Generator) -> tuple[str, list[str]]:
    """What another client comes to after a client was killed during a fit."""
    distributed = silent()
    X, y = posed(form, random)
    with cluster() as (_, address), distributed.Client(address) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        moment = random.uniform(0.0, seconds_of(form, X, y))
        with process(fitting, address, form, X, y) as (child, said):
            said()
            child.join(moment)
            struck = child.is_alive()
        model = fitted(form, X, y)
        left = tasks_in_the_end(client)
    said = [] if model.outcome_ is Outcome.CERTIFIED else [f"the next fit ended as {model.outcome_}"]
    return "the next fit is certified" if struck else "", said + ([f"{left} tasks are left"] if left else [])


def tasks_in_the_end(client: Any) -> int:
    """The number of tasks of which a scheduler still knows when all that nobody needs is forgotten."""
    gc.collect()  # the futures of a fit are in circles
    until = time.monotonic() + PATIENCE
    while (left := client.run_on_scheduler(tasks_left)) and time.monotonic() < until:
        time.sleep(AT_A_TIME)
    return int(left)


def tasks_left(dask_scheduler: Any) -> int:
    """The number of tasks of which a scheduler knows."""
    return len(dask_scheduler.tasks)
