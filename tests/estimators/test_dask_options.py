"""Dask: every option of the estimators in memory gives the same model there, or is refused before any work."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from saddlesvm import LinearSVC, LinearSVR
from saddlesvm.cluster import dask_engine, one_worker, over_passes
from saddlesvm.cluster.tasks import event_of
from saddlesvm.fit.outcome import NotCertifiedWarning, Outcome
from support import csr, distance_bound, matrix

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402

from saddlesvm.cluster.dask_engine import ClusterLostError, DaskEngine, name_losses  # noqa: E402

N, D = 400, 5


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def data(cuts: list[float]) -> tuple[np.ndarray, np.ndarray]:
    X = matrix(N, D)
    return X, np.array(["a", "b", "c", "d"])[np.digitize(X @ np.ones(D), cuts)]


def split(*arrays: np.ndarray) -> list[Any]:
    return [da.from_array(one, chunks=((60, 240, 100), -1)[: one.ndim]) for one in arrays]


def near(model: Any, reference: Any) -> bool:
    """Whether two certified models are as near as their gaps say they must be."""
    apart = np.hypot(
        np.linalg.norm(model.coef_ - reference.coef_), np.linalg.norm(model.intercept_ - reference.intercept_)
    )
    total = distance_bound(model.certificate_.gap, reference.certificate_.gap)
    return bool(apart <= np.sqrt(2.0) * total)  # the vector of two classes is the difference of two


@pytest.mark.parametrize("cuts", [[0.0], [-1.0, 1.0]], ids=["two", "three"])
@pytest.mark.parametrize("machine", ["crammer_singer", "multinomial"])
def test_joint_machines(machine: str, cuts: list[float], client: Any) -> None:
    X, y = data(cuts)
    A, b = split(X, y)
    options: dict[str, Any] = {"multi_class": machine, "tol": 1e-6, "C": 0.5, "class_weight": "balanced"}
    model, reference = LinearSVC(**options).fit(A, b), LinearSVC(**options).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED and model.coef_.shape == reference.coef_.shape
    assert near(model, reference)
    local = model
    assert local.get_params()["multi_class"] == machine
    assert np.array_equal(model.predict(A).compute(), local.predict(X))
    assert model.decision_function(A).compute().shape == local.decision_function(X).shape
    assert hasattr(model, "predict_proba") == (machine == "multinomial")
    if machine == "multinomial":
        assert np.array_equal(model.predict_proba(A).compute(), local.predict_proba(X))


def test_penalties(client: Any) -> None:
    X, y = data([0.0])
    X = np.column_stack([X, 1e-4 * matrix(N, D, 1)])
    A, b = split(X, y)
    for penalty in ("elasticnet", "l1"):
        options: dict[str, Any] = {"penalty": penalty, "l1_ratio": 0.5, "C": 0.02, "tol": 1e-5}
        model, reference = LinearSVC(**options).fit(A, b), LinearSVC(**options).fit(X, y)
        assert model.outcome_ is Outcome.CERTIFIED
        assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=2e-5)
        assert not model.coef_[0, D:].any() and model.coef_[0, :D].any()
        assert model.n_features_selected_ == reference.n_features_selected_
    net = LinearSVR(loss="squared", penalty="elasticnet", C=0.01, tol=1e-5).fit(A, X[:, 0])
    assert net.certificate_.primal == pytest.approx(
        LinearSVR(loss="squared", penalty="elasticnet", C=0.01, tol=1e-5).fit(X, X[:, 0]).certificate_.primal, rel=2e-5
    )


def test_pairs_with_balanced_classes(client: Any) -> None:
    X, y = data([-1.0, 1.0])
    A, b = split(X, y)
    for options in ({"class_weight": "balanced"}, {"class_weight": {"a": 2.0}}):
        given: dict[str, Any] = {"multi_class": "ovo", "tol": 1e-6} | options
        model, reference = LinearSVC(**given).fit(A, b), LinearSVC(**given).fit(X, y)
        assert model.certificate_.form == reference.certificate_.form
        assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=2e-6)
    columns = LinearSVC(multi_class="ovo").fit(A, b).decision_function(A)
    assert columns.compute().shape == columns.shape == (N, 3)


@pytest.mark.parametrize(("solver", "weight"), [("auto", "balanced"), ("newton", {"a": 4.0, "c": 0.5})])
def test_each_class_has_its_factor_in_its_own_problem(solver: str, weight: Any, client: Any) -> None:
    X, y = data([-1.0, 1.0])
    A, b = split(X, y)
    given: dict[str, Any] = {"class_weight": weight, "tol": 1e-3, "loss": "hinge", "C": 0.05}
    model, reference = LinearSVC(**given, solver=solver).fit(A, b), LinearSVC(**given).fit(X, y)
    found = [one.primal for one in model.certificates_]
    assert found == pytest.approx([one.primal for one in reference.certificates_], rel=2e-3)


def test_frames_names_and_types_of_rows(client: Any) -> None:
    X, y = data([0.0])
    A, b = split(X, y)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("vwxyz")), npartitions=2)
    model = LinearSVC().fit(frame, dd.from_pandas(pd.Series(y), npartitions=2))
    assert list(model.feature_names_in_) == list("vwxyz") == list(model.feature_names_in_)
    assert not hasattr(model.fit(A, b), "feature_names_in_")
    with pytest.raises(ValueError, match="X has 3 features, but LinearSVC is expecting 5"):
        model.predict(A[:, :3])
    before = model.coef_
    with pytest.raises(ValueError, match="1 class only"):
        model.fit(A, np.full(N, "a"))
    assert model.coef_ is before and model.classes_.tolist() == ["a", "b"]
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).predict(X).tolist() == model.predict(X).tolist()
    long = csr(matrix(N, D, density=0.5).astype(np.float32))
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    blocks = [da.from_delayed(dask.delayed(long[k : k + 100]), (100, D), long.dtype) for k in range(0, N, 100)]
    sparse_model = LinearSVC(tol=1e-5).fit(da.concatenate(blocks), y)
    assert near(sparse_model, LinearSVC(tol=1e-5).fit(long, y))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": "auto"}, "fit a model for each C"),
        ({"lam": 0.1, "multi_class": "ovo"}, "one machine only: give C"),
        ({"C": -1.0}, "C must be a positive"),
        ({"lam": 0.1, "C": 2.0}, "either C or lam"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_time": 0.0}, "max_time must be"),
        ({"solver": "newton:passes=2"}, "solver must be one of 'auto', 'newton', 'gather'"),
        ({"n_jobs": 2}, "one machine only"),
        ({"penalty": "l3"}, "penalty must be"),
        ({"multi_class": "all"}, "multi_class must be"),
        ({"multi_class": "crammer_singer", "intercept": "free"}, "no free intercept"),
        ({"multi_class": "multinomial", "penalty": "l1"}, "supports penalty='l2' only"),
        ({"multi_class": "multinomial", "loss": "hinge"}, "is the logistic loss's"),
        ({"class_weight": {"a": -1.0}}, "positive finite factors"),
        ({"memory": "lots"}, "memory must be"),
        ({"callbacks": print}, "callbacks must be"),
    ],
    ids=str,
)
def test_options_are_checked_as_in_memory(options: dict[str, Any], message: str, client: Any) -> None:
    X, y = data([0.0])
    A, b = split(X, y)
    with pytest.raises(ValueError, match=message):
        LinearSVC(**options).fit(A, b)


def test_every_class_needs_a_row_of_positive_weight(client: Any) -> None:
    X, y = data([0.0])
    A, b, s = split(X, y, (y == "a") * 1.0)
    with pytest.raises(ValueError, match="class 'b' has no row of positive weight"):
        LinearSVC().fit(A, b, s)
    with pytest.raises(ValueError, match="label type"):
        LinearSVC().fit(A, X[:, 0])


def test_a_task_that_kills_its_workers_is_not_asked_again(client: Any) -> None:
    killer = distributed.KilledWorker("task", SimpleNamespace(address="tcp://nowhere:1"), 3)
    with pytest.raises(ClusterLostError, match="a task ends every worker"):
        DaskEngine(client, []).survive(killer)
    with pytest.raises(ClusterLostError, match="a task ends every worker"), name_losses(client):
        raise killer


def test_partitions_are_not_waited_for_where_no_worker_is_left(monkeypatch: Any) -> None:
    monkeypatch.setattr(dask_engine, "PATIENCE", 0.1)
    options = {"n_workers": 0, "processes": False, "dashboard_address": None, "silence_logs": 50}
    X, y = data([0.0])
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as none, none.as_current():
        with pytest.raises(ClusterLostError, match="the cluster has had no worker"):
            LinearSVC().fit(*split(X, y))
        with pytest.raises(ClusterLostError, match="the cluster has had no worker"):
            LinearSVR().fit(*split(X, np.arange(len(X)) * 1.0))


BEGUN = threading.Event()  # set by the tasks below, whose workers are in this process
FIT, SETTLE = one_worker.fit_on_worker, over_passes.solve_on_worker


def fit_once_halted(part: Any, order: Any) -> Any:
    """A task that does its work once its fit is halted."""
    BEGUN.set()
    assert event_of(order.limit.name).wait(60.0)
    return FIT(part, order)


def solve_once_halted(found: Any, posed: Any, limit: Any) -> Any:
    """The same for the free rows."""
    BEGUN.set()
    assert event_of(limit.name).wait(60.0)
    return SETTLE(found, posed, limit)


@pytest.fixture
def waiting_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of the two methods that go on until their fit is halted."""
    BEGUN.clear()
    monkeypatch.setattr(one_worker, "fit_on_worker", fit_once_halted)
    monkeypatch.setattr(over_passes, "solve_on_worker", solve_once_halted)


@pytest.mark.parametrize("solver", ["gather", "newton"])
@pytest.mark.usefixtures("waiting_tasks")
def test_time_is_over_while_a_task_works(solver: str, client: Any) -> None:
    X, y = data([0.0])
    A, b = split(X, y)
    with pytest.warns(NotCertifiedWarning, match="time_limit"):
        model = LinearSVC(loss="hinge", solver=solver, tol=1e-15, max_time=0.5).fit(A, b)
    assert model.outcome_ is Outcome.TIME_LIMIT
    assert BEGUN.is_set()
    assert np.isfinite(model.certificate_.gap) or solver == "newton"


@pytest.mark.parametrize("solver", ["gather", "newton"])
@pytest.mark.usefixtures("keyboard", "waiting_tasks")
def test_ctrl_c_while_a_task_works(solver: str, client: Any) -> None:
    X, y = data([0.0])
    A, b = split(X, y)

    def press() -> None:
        if BEGUN.wait(60.0):
            os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    presser.start()
    with pytest.warns(NotCertifiedWarning, match="interrupted"):
        model = LinearSVC(loss="hinge", solver=solver, tol=1e-15).fit(A, b)
    presser.join()
    assert model.outcome_ is Outcome.INTERRUPTED
    assert np.isfinite(model.certificate_.gap) or solver == "newton"


@pytest.mark.parametrize("kind", [np.float16, np.int8])
def test_blocks_of_small_types_are_used_as_they_are(client: Any, kind: type) -> None:
    X, y = data([0.0])
    X = (20 * X).clip(-100, 100).astype(kind)
    model = LinearSVC(loss="hinge", C=1e-3, tol=1e-4).fit(*split(X, y))
    same = LinearSVC(loss="hinge", C=1e-3, tol=1e-4).fit(X.astype(np.float64), y)
    assert model.certificate_.relative_gap <= 1e-4
    assert near(model, same)
    np.testing.assert_array_equal(model.predict(X), model.predict(X.astype(np.float64)))
