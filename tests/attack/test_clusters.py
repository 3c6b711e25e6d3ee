"""Processes of a cluster that are killed: no fit hangs, the best model is kept, and nothing stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC
from saddlesvm.fit.outcome import Outcome

pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, and of sockets that its processes leave behind

from saddlesvm.dask import ClusterLostError  # noqa: E402

from . import clusters  # noqa: E402


@pytest.fixture
def running() -> Iterator[tuple[Any, Any]]:
    with (
        clusters.cluster() as (scheduler, address),
        clusters.silent().Client(address, set_as_default=True) as client,
    ):
        client._timeout = clusters.RECONNECTING
        yield scheduler, client


def posed() -> tuple[np.ndarray, np.ndarray]:
    return clusters.posed(np.random.default_rng(0))


def test_a_killed_scheduler_leaves_the_best_model(running: tuple[Any, Any]) -> None:
    X, y = posed()

    def kill(row: dict[str, Any]) -> None:
        if row["round"] == 2:
            running[0].kill()
            running[0].join()

    with pytest.raises(ClusterLostError, match="best model so far") as caught:
        clusters.fitted(X, y, callbacks=[kill])
    reference = LinearSVC(**clusters.FORM | {"solver": "auto"}, tol=clusters.TOL).fit(X, y)
    assert clusters.agree(caught.value.model, reference)


def test_a_scheduler_that_is_killed_before_a_fit_is_named(running: tuple[Any, Any]) -> None:
    running[0].kill()
    running[0].join()
    with pytest.raises(ClusterLostError, match="scheduler is lost"):
        clusters.fitted(*posed())


def test_a_killed_client_leaves_nothing_behind(running: tuple[Any, Any]) -> None:
    client = running[1]
    X, y = posed()
    with clusters.process(clusters.fitting, client.scheduler.address, X, y) as (_, hears):
        while hears() < 2:  # the process is killed after its second round
            pass
    assert clusters.fitted(X, y).outcome_ is Outcome.CERTIFIED
    assert clusters.tasks_in_the_end(client) == 0
