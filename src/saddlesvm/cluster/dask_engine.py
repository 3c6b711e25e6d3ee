"""The work of partitions as tasks of a Dask cluster.

Rows and results are futures, wherever Dask keeps them. The engine pins nothing to a worker and
opens no connection of its own. If a worker dies, its results are gone. Dask computes rows again
from their source, and what was persisted is asked for again.
"""

from __future__ import annotations

import contextlib
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from distributed import Client, KilledWorker

from saddlesvm.cluster.partition import Partition
from saddlesvm.cluster.tasks import OutOfTime, Stopped, halt

Task = Callable[[Partition, Any], Any]  # work for one partition
Pick = Callable[[Any, int], Any]  # takes the share of one problem out of a persisted result
Combine = Callable[[list[Any]], Any]  # makes one result of several

BRANCHES = 8  # reports that one task adds up; a guess
POLL = 1.0  # seconds between two looks at whether the cluster is still there; a guess
GRACE = 10.0  # seconds in which tasks that listen are to end; a guess
PATIENCE = 60.0  # seconds to wait for a worker; a guess
RETRIES = 2  # times that Dask runs a task again
# Errors that are raised if results, or the worker that had them, are gone.
LOSSES = (CancelledError, OSError)


class ClusterLostError(RuntimeError):
    """The scheduler is lost, there is no worker, or rows are lost that cannot be computed again.

    `model` is the best model so far, with its certificate; None if there is none yet.

    Examples
    --------
    >>> from saddlesvm.dask import ClusterLostError
    >>> def fit_or_keep(model, X, y):
    ...     try:
    ...         return model.fit(X, y)
    ...     except ClusterLostError as lost:
    ...         return lost.model  # the best one so far, with its certificate
    """

    model: Any = None
    solution: Any = None  # the weights and certificates that `model` is made of


def is_loss(error: BaseException) -> bool:
    """Return True if results, or the worker that had them, are gone."""
    if not isinstance(error, UnboundLocalError):
        return isinstance(error, LOSSES)
    # `sync` of distributed fails so if what it waits for is cancelled.
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].name == "sync" and "distributed" in frames[-1].filename


def rows_lost(which: str) -> ClusterLostError:
    """Return the error for rows that nobody has any more."""
    return ClusterLostError(
        f"the rows {which} were lost with a worker, and Dask cannot compute them again: they had "
        "been put there by scatter. Give delayed blocks, files or stores instead, or scatter with "
        "broadcast=True"
    )


def workers_lost(loss: KilledWorker) -> ClusterLostError:
    """Return the error for a task that several workers did not survive."""
    return ClusterLostError(
        f"a task ends every worker that runs it, perhaps for lack of memory: {loss}"
    )


def check_scheduler(client: Client, cause: BaseException) -> None:
    """Raise ClusterLostError if the scheduler of a client is gone."""
    if client.status != "running":
        raise ClusterLostError(
            f"the Dask scheduler is lost (the client is {client.status})"
        ) from cause


@contextlib.contextmanager
def name_losses(client: Client) -> Iterator[None]:
    """Raise ClusterLostError if the scheduler is gone, or rows that Dask cannot compute again."""
    try:
        yield
    except KilledWorker as loss:
        raise workers_lost(loss) from loss
    except Exception as loss:
        if not is_loss(loss):
            raise
        check_scheduler(client, loss)
        if isinstance(loss, CancelledError):
            raise rows_lost("of a partition") from loss
        raise


class Persisted:
    """The results of a round on a worker; made when first asked for, and again if lost.

    Parameters
    ----------
    make : callable
        Returns the task that makes them.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.made: Any = None

    @property
    def future(self) -> Any:
        """The task, or its result."""
        if self.made is None:
            self.made = self.make()
        return self.made

    def forget(self) -> None:
        """Have the results made again."""
        self.made = None


class DaskEngine:
    """Does the work of partitions on a cluster.

    Parameters
    ----------
    client : distributed.Client
    parts : list of futures of Partition

    Attributes
    ----------
    restarts : int
        How many times results were lost.
    name : str
        Of the fit, for tasks that end when it is halted.
    end : float
        The perf_counter at which the time of the fit is over.
    has_model : bool
        True if there is a model to return if a round is given up.
    """

    def __init__(self, client: Client, parts: list[Any]) -> None:
        self.client = client
        self.parts = parts
        self.restarts = 0
        self.name = uuid.uuid4().hex
        self.end = float("inf")
        self.has_model = False
        self.stop = threading.Event()  # set by Ctrl-C
        self.halted_at: float | None = None
        self.alone_since: float | None = None  # when there was no worker any more

    @property
    def threads(self) -> int:
        """Tasks that may run at the same time."""
        return max(sum(self.client.nthreads().values()), 1)

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a task that may run anywhere, and again."""
        return self.client.submit(work, *arguments, pure=False, retries=RETRIES)

    def send(self, value: object) -> Any:
        """Put a value on a worker, from which the others take it."""
        self.alone_since = None
        while True:
            try:
                [there] = self.client.scatter([value], hash=False, timeout=POLL)
            except KeyError as error:
                # The scheduler does not know a worker any more.
                raise OSError("a worker has gone while it received data") from error
            except TimeoutError as slow:
                # There is no worker.
                self.check_wait(slow)
            else:
                return there

    def tree(self, results: Sequence[object], combine: Combine) -> Any:
        """Return the task that combines results, a few at a time, on the workers that hold them."""
        while len(results) > 1:
            groups = [results[k : k + BRANCHES] for k in range(0, len(results), BRANCHES)]
            results = [self.run(combine, group) if len(group) > 1 else group[0] for group in groups]
        return results[0]

    def persist(self, work: Task, combine: Combine, given: object = None) -> Persisted:
        """Keep what `combine` makes of the answers of `work` on the workers.

        :meth:`fetch` and :meth:`map_each` take it.
        """

        def make() -> Any:
            shared = self.send(given)
            return self.tree([self.run(work, part, shared) for part in self.parts], combine)

        return Persisted(make)

    def fetch(self, persisted: Persisted, what: Callable[[Any], Any] | None = None) -> Any:
        """Return `what` of something persisted; all of it without `what`."""

        def ask() -> Any:
            there = persisted.future
            return self.result(self.run(what, there) if what else there)

        return self.insist(ask, persisted)

    def map_each(
        self,
        persisted: Persisted,
        pick: Pick,
        what: Callable[[Any, Any], Any],
        given: Sequence[tuple[int, Any]],
    ) -> list[Any]:
        """Return ``what(pick(persisted, number), argument)`` for pairs, made side by side."""

        def ask() -> list[Any]:
            tasks = []
            for number, argument in given:
                picked = self.run(pick, persisted.future, number)
                tasks.append(self.run(what, picked, argument))
            return [self.result(task, listens=True) for task in tasks]

        return list(self.insist(ask, persisted))

    def insist(self, ask: Callable[[], object], persisted: Persisted) -> Any:
        """Return what `ask` returns; after a loss ask again, from the partitions on."""
        while True:
            try:
                return ask()
            except Exception as loss:
                self.survive(loss)
                persisted.forget()

    def survive(self, loss: Exception) -> None:
        """Count a loss of results, or of a worker; raise any other error again.

        So is KilledWorker: one task was on several workers that died, and would kill the next.
        """
        check_scheduler(self.client, loss)
        if isinstance(loss, KilledWorker):
            raise workers_lost(loss) from loss
        if not is_loss(loss):
            raise loss
        # Lost rows end the fit; lost results are computed once more.
        gone = [number for number, part in enumerate(self.parts) if part.status == "cancelled"]
        if gone:
            raise rows_lost(f"of partition {gone[0]}") from loss
        self.restarts += 1

    def result(self, future: Any, listens: bool = False) -> Any:
        """Wait for the result of a task, as long as there is a cluster that can compute it.

        `listens` says that the task ends early if the fit is halted, and has a result then.

        Raises
        ------
        Stopped, OutOfTime
            Ctrl-C was pressed, or the time of the fit is over, and there is nothing to wait for.
        ClusterLostError
            There has been no worker for a while.
        """
        self.alone_since = None
        while True:
            left = self.end - time.perf_counter()
            try:
                return future.result(timeout=min(POLL, left) if left > 0.0 else POLL)
            except TimeoutError as slow:
                self.check_wait(slow, listens)
            except UnboundLocalError as cut:
                # On a busy machine Dask may cancel a wait at its end, but not the task.
                if not is_loss(cut) or future.cancelled():
                    raise
                self.check_wait(cut, listens)

    def check_wait(self, slow: Exception, listens: bool = False) -> None:
        """Raise one of the errors of :meth:`result` if a further wait is of no use."""
        self.give_up_in_time(listens, slow)
        check_scheduler(self.client, slow)
        if self.client.scheduler_info(n_workers=-1)["workers"]:
            self.alone_since = None
            return
        # The wait begins anew if a worker has joined.
        now = time.monotonic()
        if self.alone_since is None:
            self.alone_since = now
        if now - self.alone_since > PATIENCE:
            raise ClusterLostError(f"the cluster has had no worker for {PATIENCE:.0f} s") from slow

    def give_up_in_time(self, listens: bool, slow: Exception) -> None:
        """Halt the fit after Ctrl-C or in the end; raise if no result is worth a wait."""
        now = time.perf_counter()
        is_stopped = self.stop.is_set()
        is_late = now >= self.end and (listens or self.has_model)
        if not (is_stopped or is_late):
            return
        if self.halted_at is None:
            self.halted_at = now
            self.halt()
        # Tasks that listen have a result soon.
        if listens and now - self.halted_at <= GRACE:
            return
        if is_stopped:
            raise Stopped from slow
        raise OutOfTime from slow

    def halt(self) -> None:
        """End the tasks of this fit that listen; workers that do not answer hold nobody up."""

        def halt_workers() -> None:
            with contextlib.suppress(Exception):
                self.client.run(halt, self.name, on_error="ignore")

        threading.Thread(target=halt_workers, daemon=True).start()


def gather_results(client: Client, results: list[object]) -> list[Any]:
    """Return the results of tasks, waited for as long as there is a cluster that can compute them.

    Raises
    ------
    ClusterLostError
        There is no worker, or the scheduler is lost.
    """
    engine = DaskEngine(client, results)
    return list(engine.result(engine.run(list, results)))
