"""Tasks that end early: at a limit of time, and when their fit is halted, also before they begin."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from saddlesvm.cluster.method import ClusterPlan
from saddlesvm.cluster.one_worker import FitOrder, OneWorker, fit_on_worker
from saddlesvm.cluster.over_passes import PassRounds
from saddlesvm.cluster.partition import Partition, make_partition
from saddlesvm.cluster.tasks import TaskLimit, event_of, halt, limit_task
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.losses import Hinge
from saddlesvm.runtime.clock import limit_step, time_is_up
from support import labels, matrix
from support.partitions import Engine

N, D = 400, 5


def parts() -> list[Partition]:
    X = matrix(N, D)
    y, classes = labels(X, Hinge()), np.array([-1.0, 1.0])
    return [make_partition(X[k::2], y[k::2], None, classes, 1.0, "regularized", number=k) for k in range(2)]


def plan(**options: Any) -> ClusterPlan:
    return ClusterPlan(Hinge(), 1.0, N, 1, D, **({"tol": 1e-6} | options))


def test_a_halted_fit_ends_its_tasks_and_no_others() -> None:
    with limit_task(TaskLimit("one")) as one, limit_task(TaskLimit("other")) as other:
        assert event_of("one") is one and not time_is_up()
        halt("one")
        assert one.is_set() and not other.is_set() and not time_is_up()
        halt("other")
        assert time_is_up()
        with limit_step(1e9):
            assert time_is_up()  # a step within a halted task
    assert not time_is_up()
    with limit_task(TaskLimit("one")):  # a task that had not begun
        assert time_is_up()
    with limit_task(TaskLimit("third", 0.0)):
        assert time_is_up()


def test_a_halted_task_has_a_model_with_a_certificate() -> None:
    halt("halted")
    [part] = [one for one in parts() if one.number == 0]
    found = fit_on_worker(part, FitOrder(0, plan(tol=1e-15), TaskLimit("halted")))
    assert found.outcome is Outcome.INTERRUPTED
    assert np.isfinite(found.certificate.gap)


def test_the_time_is_shared_by_tasks_that_wait_for_each_other() -> None:
    engine = Engine(parts())
    run = OneWorker(plan(max_time=1000.0), engine)
    assert run.limit_for(1).seconds == pytest.approx(1000.0, rel=0.1)
    assert run.limit_for(10).seconds == pytest.approx(100.0, rel=0.1)
    assert OneWorker(plan(), engine).limit_for(10).seconds == np.inf


@pytest.mark.parametrize("method", [OneWorker, PassRounds])
def test_no_time_at_all_leaves_a_model(method: Any) -> None:
    options = {"most": 40} if method is PassRounds else {}
    run = method(plan(max_time=1e-9, tol=1e-15), Engine(parts()), **options)
    solution = run.run()
    assert solution.outcome in (Outcome.TIME_LIMIT, Outcome.LIMITED_BY_ROUNDING)  # a task has 10 milliseconds
    assert solution.rounds == 1


def test_a_callback_stops_the_rounds() -> None:
    seen: list[dict[str, Any]] = []

    def ask(row: dict[str, Any]) -> bool:
        seen.append(row)
        return len(seen) == 2

    solution = PassRounds(plan(tol=1e-15), Engine(parts()), ask, most=40).run()
    assert (solution.outcome, solution.rounds) == (Outcome.INTERRUPTED, 2)


def cancelled_wait() -> BaseException:
    """What Dask raises where what it waits for is cancelled."""
    utils = pytest.importorskip("distributed.utils")

    async def cancelled() -> None:
        raise asyncio.CancelledError

    runner = utils.LoopRunner(asynchronous=False)
    runner.start()
    try:
        with pytest.raises(BaseException) as caught:
            utils.sync(runner.loop, cancelled)
    finally:
        runner.stop()
    return caught.value


def test_a_cancelled_wait_of_dask_is_a_loss() -> None:
    error = cancelled_wait()
    from saddlesvm.cluster.dask_engine import is_loss

    assert is_loss(error)
    assert not is_loss(UnboundLocalError("of a task"))
    assert is_loss(OSError())


@pytest.mark.parametrize("gone", [False, True])
def test_a_wait_that_dask_cuts_short_goes_on_while_the_task_does(gone: bool) -> None:
    error = cancelled_wait()
    from saddlesvm.cluster.dask_engine import DaskEngine

    class Client:
        status = "running"

        def scheduler_info(self, n_workers: int) -> dict[str, Any]:
            return {"workers": {"one": {"metrics": {"task_counts": {"executing": 1}}, "last_seen": 0.0}}}

    class Future:
        waits = 0

        def result(self, timeout: float) -> int:
            self.waits += 1
            if self.waits == 1:
                raise error
            if self.waits == 2:
                raise TimeoutError
            return 7

        def cancelled(self) -> bool:
            return gone

    engine, future = DaskEngine(Client(), []), Future()  # type: ignore[arg-type]
    if gone:
        with pytest.raises(UnboundLocalError):
            engine.result(future)
    else:
        assert engine.result(future) == 7 and future.waits == 3
