"""The rounds as tasks of a Dask cluster: partitions and their dual variables are futures, wherever Dask keeps them.

The engine pins nothing to a worker and opens no connection of its own. A worker that dies takes results with it; Dask
computes them again from the last copies, which are on two workers. Where that fails too, the partition begins anew at
its last copy, or at zero, and the engine rebuilds w from the dual variables at hand: any dual variables are feasible.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from functools import cached_property
from typing import Any

import numpy as np
from distributed import Client, KilledWorker, wait

from saddlesvm.cluster.engine import Combine, DualsLost, Engine, Late, Pick, Stopped, Task
from saddlesvm.cluster.part import Order, RoundSums, first_duals
from saddlesvm.cluster.tasks import Answer, at, bytes_of, halt

BRANCHES = 8  # reports that one task adds up
KEEP_EVERY = 5  # rounds between two copies of the dual variables on a second worker
POLL = 1.0  # seconds between two looks at whether the cluster is still there
GRACE = 10.0  # seconds in which tasks that listen are to end
PATIENCE = 60.0  # seconds to wait for a worker where there is none, or where none does anything
STANDSTILLS = 3  # times that all workers may stand still in one fit; then the cluster counts as lost
LOSSES = (CancelledError, OSError)  # errors raised where results, or the worker that had them, are gone
UNKNOWN = (KeyError, ValueError)  # errors of `replicate` where the scheduler knows a worker, or a result, no longer


class ClusterLostError(RuntimeError):
    """The scheduler is lost, there is no worker, or rows are lost that cannot be computed again.

    `model` is the best model so far, with its certificate; None where there is none yet.

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


class StandstillError(OSError):
    """A task has not ended, and no worker has done anything for a while: the scheduler has lost it."""


def is_loss(error: BaseException) -> bool:
    """Whether results, or the worker that had them, are gone.

    distributed's ``sync``, where what it waits for is cancelled, fails as it reads a result that nobody has set.
    """
    if not isinstance(error, UnboundLocalError):
        return isinstance(error, LOSSES)
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].name == "sync" and "distributed" in frames[-1].filename


def rows_lost(which: str) -> ClusterLostError:
    """The error for rows that nobody has any more."""
    return ClusterLostError(
        f"the rows {which} were lost with a worker, and Dask cannot compute them again: they had been put there by "
        "scatter. Give delayed blocks, files or stores instead, or scatter with broadcast=True"
    )


def workers_lost(loss: KilledWorker) -> ClusterLostError:
    """The error for a task that several workers did not survive."""
    return ClusterLostError(f"a task ends every worker that runs it, perhaps for lack of memory: {loss}")


def check_scheduler(client: Client, cause: BaseException) -> None:
    """Raise ClusterLostError where the scheduler of a client is gone."""
    if client.status != "running":
        raise ClusterLostError(f"the Dask scheduler is lost (the client is {client.status})") from cause


@contextlib.contextmanager
def naming_losses(client: Client) -> Iterator[None]:
    """Raise ClusterLostError where the scheduler is gone, or rows that Dask cannot compute again."""
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
        if isinstance(loss, StandstillError):
            raise ClusterLostError(str(loss)) from loss
        raise


class Standstill:
    """Since when no worker of a cluster has computed or received anything, as far as the scheduler has heard."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.since: float | None = None
        self.heard: dict[str, float] = {}  # when the scheduler had last heard of each worker then

    def seconds(self) -> float:
        """How long the cluster has stood still, with the workers it has now; one not heard of since counts as busy."""
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        if any(is_busy(worker["metrics"]) for worker in workers.values()):
            self.since = None
            return 0.0
        heard = {name: worker["last_seen"] for name, worker in workers.items()}
        if self.since is None or heard.keys() - self.heard.keys():
            self.since, self.heard = time.monotonic(), heard
        if any(seen == self.heard.get(name) for name, seen in heard.items()):
            return 0.0
        return time.monotonic() - self.since


def is_busy(metrics: dict[str, Any]) -> bool:
    """Whether a worker with these metrics computes or receives something."""
    tasks, transfers = metrics.get("task_counts", {}), metrics.get("transfer", {})
    return bool(tasks.get("executing") or transfers.get("incoming_bytes"))


class Persisted:
    """The results of a round, kept on a worker; made when it is first asked for, and again where it was lost.

    Parameters
    ----------
    make : callable
        Returns the task that makes it.
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
        """Have it made again."""
        self.made = None


class DaskEngine(Engine):
    """Carries out rounds on a cluster.

    Parameters
    ----------
    client : distributed.Client
    parts : list of futures of Part
    problems : int
    kept : dict, optional
        What :meth:`persist_there` has made, for the engines of further fits over the same partitions.
    """

    def __init__(
        self, client: Client, parts: list[Any], problems: int, kept: dict[Any, Persisted] | None = None
    ) -> None:
        super().__init__(parts, problems)
        self.client, self.done = client, 0
        self.kept: list[Any] = []
        self.there: dict[Any, Persisted] = {} if kept is None else kept
        self.shared: list[Any] = []
        self.stop = threading.Event()  # set by Ctrl-C
        self.name = uuid.uuid4().hex
        self.halted_at: float | None = None
        self.known: set[str] = set()  # workers that partitions were dealt out to
        self.standstills = 0

    @cached_property
    def duals(self) -> list[Any]:
        """The dual variables of the partitions, as futures; zero at first."""
        duals = super().duals
        self.kept = list(duals)
        return duals

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """A task that may run anywhere, and again."""
        return self.client.submit(work, *arguments, pure=False, retries=2)

    def together(self, results: list[Any], combine: Combine) -> Any:
        """The result of `combine`, added up on the workers."""
        return self.result(self.tree(results, combine))

    def improve(self, W: np.ndarray, order: Order) -> Answer:
        """Do one round; a loss raises `restarts` by one, and DualsLost."""
        try:
            self.welcome()
            report = super().improve(W, order)
            self.done += 1
            if self.done % KEEP_EVERY == 0:
                self.keep()
            return report
        except Exception as loss:
            self.recover(loss)
            raise DualsLost from loss

    @cached_property
    def places(self) -> list[np.ndarray]:
        """The places of w that each partition has."""
        return list(self.client.gather(super().places))

    def share(self, W: np.ndarray) -> list[Any]:
        """Put what each partition needs of w on a worker; keep it while Dask may compute a result again from it.

        Where all of w is needed, that is once for all partitions: the other workers take it from there.
        """
        if not any(places.size for places in self.places):
            self.sent = W.nbytes
            given = self.scattered([W.copy()]) * self.parts
        else:
            cut = [at(W, places) for places in self.places]
            self.sent = bytes_of(cut) // self.parts
            given = self.scattered(cut)
        self.shared.append(given)
        return list(given)

    def scattered(self, given: list[Any]) -> list[Any]:
        """What is given, on the workers; an OSError where the one that received it is gone."""
        still = Standstill(self.client)
        while True:
            try:
                return list(self.client.scatter(given, hash=False, timeout=POLL))
            except KeyError as error:  # the scheduler does not know a worker any more
                raise OSError("a worker has gone while it received data") from error
            except TimeoutError as slow:  # there is no worker
                self.check_standstill(still, slow)

    def keep(self) -> None:
        """Copy the dual variables to a second worker; what came before is not needed any more."""
        wait(self.duals, timeout=PATIENCE)
        self.copied(self.duals, n=2)
        self.kept, self.shared = list(self.duals), self.shared[-1:]

    def recover(self, loss: BaseException) -> None:
        """Go on from the last copies, or from zero where there is none; any other error than a loss is raised again.

        After a standstill nobody knows what the scheduler still has: the dual variables begin at zero.
        """
        self.survive(loss)
        fresh = []
        for part, duals in zip(self.rows, self.kept, strict=True):
            there = duals.status == "finished" and not isinstance(loss, StandstillError)
            fresh.append(duals if there else self.run(first_duals, part, self.problems))
        self.duals = fresh

    def weights(self, order: Order) -> np.ndarray:
        """``w`` of the dual variables; after a loss, of those that are left."""
        while True:
            try:
                return super().weights(order)
            except Exception as loss:
                self.recover(loss)

    def sums(self, W: np.ndarray, order: Order) -> RoundSums:
        """The sums of the certificate; a loss raises `restarts` by one, and DualsLost."""
        try:
            return super().sums(W, order)
        except Exception as loss:
            self.recover(loss)
            raise DualsLost from loss

    def persist(self, work: Task, together: Combine, given: Any) -> Persisted:
        """What `together` makes of the answers of `work`, a few at a time, kept on the workers; made anew after a
        loss."""
        return Persisted(functools.partial(self.spread, work, together, given))

    def persist_there(self, work: Task, together: Combine) -> Persisted:
        """The same, made once for all fits over these partitions."""
        if work not in self.there:
            self.there[work] = self.persist(work, together, None)
        return self.there[work]

    def returned(self, persisted: Persisted, what: Callable[[Any], Any] | None) -> Any:
        """`what` of something persisted; all of it without `what`."""
        return self.surely(
            lambda: self.result(self.run(what, persisted.future) if what else persisted.future), persisted
        )

    def map_each(
        self, persisted: Persisted, pick: Pick, what: Callable[[Any, Any], Any], given: Sequence[tuple[int, Any]]
    ) -> list[Any]:
        """For each place and what is given for it: ``what(pick(persisted, place), given)``, side by side."""

        def all_of() -> list[Any]:
            picked = [self.run(pick, persisted.future, place) for place, _ in given]
            tasks = [self.run(what, one, posed) for one, (_, posed) in zip(picked, given, strict=True)]
            return [self.result(task, listens=True) for task in tasks]

        return list(self.surely(all_of, persisted))

    def spread(self, work: Task, together: Combine, given: Any) -> Any:
        """The task whose result is what `together` makes of the answers of `work`."""
        self.welcome()
        [shared] = self.scattered([given])
        return self.tree([self.run(work, part, shared) for part in self.rows], together)

    def welcome(self) -> None:
        """Give workers that have joined since copies of their share of the partitions: Dask sends tasks to the rows."""
        there = set(self.client.nthreads())
        late = sorted(there - self.known) if self.known else []
        self.known = there
        if not late or not all(part.done() for part in self.rows):
            return
        each = max(1, len(self.rows) // len(there))
        for number, worker in enumerate(late):
            mine = self.rows[number * each : (number + 1) * each]
            if mine:
                self.copied(mine, n=1, workers=[worker])

    def copied(self, results: list[Any], **where: Any) -> None:
        """Put copies of results on further workers; do without where a worker, or a result, is gone by then."""
        try:
            self.client.replicate(results, **where)
        except Exception as error:
            if not (is_loss(error) or isinstance(error, UNKNOWN)):
                raise

    def surely(self, ask: Callable[[], Any], persisted: Persisted) -> Any:
        """What `ask` returns; after a loss anew, from the partitions on."""
        while True:
            try:
                return ask()
            except Exception as loss:
                self.survive(loss)
                persisted.forget()

    def survive(self, loss: BaseException) -> None:
        """Count a loss of results, or of a worker; any other error is raised again.

        Dask raises KilledWorker where one task was on several workers that died: asked again, it would kill the next.
        """
        check_scheduler(self.client, loss)
        if isinstance(loss, KilledWorker):
            raise workers_lost(loss) from loss
        if not is_loss(loss):
            raise loss
        if isinstance(loss, StandstillError) and self.standstills >= STANDSTILLS:
            raise ClusterLostError(f"no worker did anything for {PATIENCE:.0f} s, {STANDSTILLS} times") from loss
        gone = [place for place, part in enumerate(self.rows) if part.status == "cancelled"]
        if gone:
            raise rows_lost(f"of partition {gone[0]}") from loss
        self.restarts += 1

    def tree(self, reports: list[Any], together: Combine) -> Any:
        """The result of `together` on reports, a few at a time, on the workers that hold them."""
        while len(reports) > 1:
            groups = [reports[k : k + BRANCHES] for k in range(0, len(reports), BRANCHES)]
            reports = [self.run(together, group) if len(group) > 1 else group[0] for group in groups]
        return reports[0]

    def result(self, future: Any, listens: bool = False) -> Any:
        """Wait for the result of a task, as long as there is a cluster that can compute it.

        `listens` says that the task ends early where the fit is halted, and has a result then.

        Raises
        ------
        Stopped, Late
            Ctrl-C was pressed, or the time of the fit is over, and there is nothing to wait for.
        StandstillError
            The task has not ended, and no worker has done anything for a while.
        """
        still = Standstill(self.client)
        while True:
            try:
                left = self.end - time.perf_counter()
                return future.result(timeout=min(POLL, left) if left > 0.0 else POLL)
            except TimeoutError as slow:
                self.check_standstill(still, slow, listens)
            except UnboundLocalError as cut:  # on a busy machine, Dask cancels a wait at its end, and not the task
                if not is_loss(cut) or future.cancelled():
                    raise
                self.check_standstill(still, cut, listens)

    def check_standstill(self, still: Standstill, slow: Exception, listens: bool = False) -> None:
        """Raise one of the errors of :meth:`result` where a further wait is of no use."""
        self.give_up_in_time(listens, slow)
        check_scheduler(self.client, slow)
        if still.seconds() <= PATIENCE:
            return
        if not still.heard:
            raise ClusterLostError(f"the cluster has had no worker for {PATIENCE:.0f} s") from slow
        self.standstills += 1
        raise StandstillError(f"no worker has done anything for {PATIENCE:.0f} s") from slow

    def give_up_in_time(self, listens: bool, slow: Exception) -> None:
        """Halt the fit where Ctrl-C asks for it, or its time is over; raise where no result of it is worth a wait."""
        now, stopped = time.perf_counter(), self.stop.is_set()
        if not stopped and (now < self.end or not (listens or self.has_model)):
            return
        if self.halted_at is None:
            self.halted_at = now
            self.halt()
        if not listens or now - self.halted_at > GRACE:
            raise (Stopped if stopped else Late) from slow

    def halt(self) -> None:
        """End the tasks of this fit that listen; workers that do not answer hold nobody up."""

        def halt_workers() -> None:
            with contextlib.suppress(Exception):
                self.client.run(halt, self.name, on_error="ignore")

        threading.Thread(target=halt_workers, daemon=True).start()

    @property
    def threads(self) -> int:
        """Tasks that may run at the same time."""
        return max(sum(self.client.nthreads().values()), 1)


def gathered(client: Client, results: list[Any]) -> list[Any]:
    """The results of tasks, waited for as long as there is a cluster that can compute them.

    Raises
    ------
    ClusterLostError
        There is no worker, or the scheduler is lost.
    """
    engine = DaskEngine(client, results, 1)
    return list(engine.result(engine.run(list, results)))
