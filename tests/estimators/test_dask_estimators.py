"""Dask: the same models as on one machine, whatever holds the data, also when a worker dies; no row at the client."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import r2_score

from saddlesvm import LinearSVC, LinearSVCCV, LinearSVR, Store
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.losses import Hinge, Squared
from support import csr, distance_bound, labels, matrix

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, and of sockets that its processes leave behind

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

from saddlesvm.cluster import dask_engine  # noqa: E402
from saddlesvm.dask import ClusterLostError  # noqa: E402

N, D = 900, 6


@contextlib.contextmanager
def processes(workers: int) -> Iterator[Any]:
    """A client of so many workers, each in a process of its own."""
    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with processes(3) as client:
        yield client


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = matrix(N, D, seed)
    return X, labels(X, Hinge(), seed)


def near(model: Any, reference: Any) -> bool:
    """Whether two certified models are as near as their gaps say they must be."""
    pairs = zip(np.atleast_2d(model.coef_), np.atleast_2d(reference.coef_), strict=True)
    offsets = np.abs(np.atleast_1d(model.intercept_) - np.atleast_1d(reference.intercept_))
    gaps = zip(model.certificates_, reference.certificates_, strict=True)
    return all(
        np.hypot(np.linalg.norm(one - other), offset) <= distance_bound(mine.gap, theirs.gap)
        for (one, other), offset, (mine, theirs) in zip(pairs, offsets, gaps, strict=True)
    )


def test_dense_rows(client: Any) -> None:
    X, y = data()
    A = da.from_array(X, chunks=(200, -1))
    model = LinearSVC(C=0.002, tol=1e-3, solver="newton", random_state=0).fit(A, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert near(model, LinearSVC(C=0.002, tol=1e-6).fit(X, y))
    assert len(model.trace_) == model.n_iter_


def test_predictions_stay_lazy(client: Any) -> None:
    X, y = data()
    A = da.from_array(X, chunks=(250, 4))
    model = LinearSVC(C=0.002, tol=1e-3).fit(A, da.from_array(np.where(y > 0, "yes", "no"), chunks=100))
    local = model
    for method in ("predict", "decision_function"):
        lazy = getattr(model, method)(A)
        assert isinstance(lazy, da.Array)
        assert np.array_equal(lazy.compute(), getattr(local, method)(X))
        assert np.array_equal(getattr(model, method)(X), getattr(local, method)(X))
    score = model.score(A, da.from_array(np.where(y > 0, "yes", "no"), chunks=250))
    assert score == local.score(X, np.where(y > 0, "yes", "no"))


def test_lists_of_delayed_blocks_and_of_futures(client: Any) -> None:
    X, y = data()
    parts = [slice(k, k + 300) for k in range(0, N, 300)]
    whole = LinearSVC(C=0.002, tol=1e-3, random_state=0).fit(da.from_array(X, chunks=(300, -1)), y)
    for make in (dask.delayed, client.scatter):
        A, b = ([make(one[part]) for part in parts] for one in (X, y))
        model = LinearSVC(C=0.002, tol=1e-3, random_state=0).fit(A, b)
        assert near(model, whole)
    with pytest.raises(ValueError, match=r"dask.delayed\(model.predict\)"):
        model.predict(A)
    with pytest.raises(ValueError, match="y must be a list with a block for each; got a ndarray"):
        LinearSVC().fit(A, y)
    X = X.copy()
    X[512, 3] = np.nan
    with pytest.raises(ValueError, match=r"row 212, column 3 .* That is row 212 of partition 1"):
        LinearSVC().fit([dask.delayed(X[part]) for part in parts], b)


def test_many_classes_with_weights(client: Any) -> None:
    X, _ = data()
    y = np.digitize(X @ np.ones(D), [-1.0, 1.0])
    s = np.random.default_rng(0).integers(0, 3, N).astype(float)
    A, b, c = (da.from_array(one, chunks=(300, -1)[: one.ndim]) for one in (X, y, s))
    model = LinearSVC(loss="hinge", C=0.002, tol=1e-3, class_weight="balanced").fit(A, b, c)
    reference = LinearSVC(loss="hinge", C=0.002, tol=1e-5, class_weight="balanced").fit(X, y, s)
    assert model.outcome_ is Outcome.CERTIFIED
    assert near(model, reference)
    assert model.decision_function(A).compute().shape == (N, 3)


def test_sparse_blocks(client: Any) -> None:
    X = matrix(N, D, density=0.4)
    y = labels(X, Hinge())
    S = csr(X)
    blocks = [da.from_delayed(dask.delayed(S[k : k + 300]), (300, D), X.dtype) for k in range(0, N, 300)]
    model = LinearSVC(C=0.002, tol=1e-3, fit_intercept=False).fit(da.concatenate(blocks), y)
    assert near(model, LinearSVC(C=0.002, tol=1e-6, fit_intercept=False).fit(S, y))


def test_data_frames_and_regression(client: Any) -> None:
    import pandas as pd

    X, _ = data()
    y = labels(X, Squared())
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(D)])
    X_dd, y_dd = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    model = LinearSVR(C=0.002, tol=1e-3, loss="squared_epsilon_insensitive", epsilon=0.1).fit(X_dd, y_dd)
    reference = LinearSVR(C=0.002, tol=1e-6, loss="squared_epsilon_insensitive", epsilon=0.1).fit(X, y)
    assert np.linalg.norm(model.coef_ - reference.coef_) <= distance_bound(
        model.certificate_.gap, reference.certificate_.gap
    )
    assert list(model.feature_names_in_) == list(frame.columns)
    assert r2_score(y, model.predict(X_dd).compute()) == pytest.approx(model.score(frame, y))


def test_stores_are_delayed_blocks(client: Any, tmp_path: Path) -> None:
    X, y = data()
    paths = [str(tmp_path / f"{k}.store") for k in range(2)]
    for k, path in enumerate(paths):
        Store.create(path, X[k::2], y[k::2])
    with pytest.raises(ValueError, match=r"list of stores.*dask.delayed\(load\)"):
        LinearSVC().fit(paths)
    stores = [dask.delayed(Store)(path) for path in paths]
    model = LinearSVC(C=0.002, tol=1e-3).fit([store.X for store in stores], [store.y for store in stores])
    assert near(model, LinearSVC(C=0.002, tol=1e-6).fit(X, y))


def test_a_large_C_takes_few_rounds(client: Any) -> None:
    X, _ = data()
    y = np.digitize(X @ np.ones(D), [-1.0, 1.0])
    A = da.from_array(X, chunks=((100, 300, 500), (D,)))
    model = LinearSVC(loss="logistic", C=100.0, tol=1e-6).fit(A, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.n_iter_ <= 15
    assert near(model, LinearSVC(loss="logistic", C=100.0, tol=1e-6).fit(X, y))


def test_a_free_intercept(client: Any) -> None:
    X, y = data()
    A = da.from_array(X + 3.0, chunks=(300, -1))
    model = LinearSVC(intercept="free", tol=1e-6).fit(A, y)
    reference = LinearSVC(intercept="free", tol=1e-6).fit(X + 3.0, y)
    assert model.outcome_ is Outcome.CERTIFIED
    apart = np.linalg.norm(model.coef_ - reference.coef_)
    assert apart <= distance_bound(model.certificate_.gap, reference.certificate_.gap)
    assert model.intercept == "free"
    hinge = LinearSVC(intercept="free", loss="hinge", tol=1e-6).fit(A, y)
    assert hinge.outcome_ is Outcome.CERTIFIED and hinge.n_iter_ == 1


def test_the_hinge_by_newtons_method(client: Any) -> None:
    X, _ = data()
    y = np.digitize(X @ np.ones(D), [0.0, 1.0])
    A = da.from_array(X, chunks=((100, 0, 300, 500), (D,)))
    reference = LinearSVC(loss="hinge", C=10.0, tol=1e-6).fit(X, y)
    for solver in ("newton", "gather"):
        model = LinearSVC(loss="hinge", C=10.0, tol=1e-6, solver=solver).fit(A, y)
        assert model.outcome_ is Outcome.CERTIFIED
        assert near(model, reference)


def test_pairs(client: Any) -> None:
    X, _ = data()
    y = np.digitize(X @ np.ones(D), [-1.0, 0.0, 1.0])
    A = da.from_array(X, chunks=((100, 300, 500), (D,)))
    pairs = LinearSVC(C=0.5, tol=1e-6, multi_class="ovo").fit(A, y)
    reference = LinearSVC(C=0.5, tol=1e-6, multi_class="ovo").fit(X, y)
    assert near(pairs, reference)
    assert np.array_equal(pairs.predict(A).compute(), reference.predict(X))
    assert np.allclose(pairs.decision_function(X), pairs.decision_function(X))
    with pytest.raises(ValueError, match="a path takes rows of this machine; on a cluster fit a model for each C"):
        LinearSVC().path(A, y, C=(0.1, 10.0))
    with pytest.raises(ValueError, match="LinearSVCCV takes rows of this machine"):
        LinearSVCCV(cv=3).fit(A, y)


def test_tasks_have_names() -> None:
    X, y = data()
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):
        client.get_task_stream()  # from now on the scheduler notes tasks
        model = LinearSVC(loss="logistic", C=1.0, tol=1e-9, solver="newton").fit(da.from_array(X, chunks=(100, -1)), y)
        names = [str(task["key"]) for task in client.get_task_stream()]
    assert sum(name.startswith("answer_pass-") for name in names) == 9 * model.n_iter_


def test_a_worker_that_is_killed() -> None:
    X, y = data()
    killed: list[int] = []

    def kill(row: dict[str, Any]) -> None:
        if row["round"] >= 2 and not killed:
            killed.append(worker)
            os.kill(worker, signal.SIGKILL)

    A = da.from_array(X, chunks=(100, -1))
    with processes(2) as client:  # its own: the system may take long to begin another worker, or never do it
        worker = next(iter(client.run(os.getpid).values()))
        model = LinearSVC(C=0.002, tol=1e-5, solver="newton", callbacks=[kill]).fit(A, y)
    assert killed
    assert model.outcome_ is Outcome.CERTIFIED
    assert near(model, LinearSVC(C=0.002, tol=1e-6).fit(X, y))


def test_a_worker_that_goes_while_it_receives_data_ends_no_fit(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data()
    scatter, lost = client.scatter, list[str]()

    def lose(given: Any, **how: Any) -> Any:
        if len(lost) < 2:
            lost.append("tcp://127.0.0.1:1")
            raise KeyError(lost[-1])  # as the scheduler, of a worker that it does not have any more
        return scatter(given, **how)

    A = da.from_array(X, chunks=(100, -1))
    monkeypatch.setattr(client, "scatter", lose)
    model = LinearSVC(C=0.002, tol=1e-5, solver="newton", random_state=0).fit(A, y)
    assert len(lost) == 2 and model.outcome_ is Outcome.CERTIFIED


def test_a_fit_whose_last_worker_goes_ends_with_the_best_model(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data()
    monkeypatch.setattr(dask_engine, "PATIENCE", 0.5)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
    ) as cluster:

        def leave(row: dict[str, Any]) -> None:
            if row["round"] == 1:
                cluster.scale(0)
                cluster.sync(cluster._correct_state)  # until the worker has gone

        model = LinearSVC(loss="logistic", C=100.0, tol=1e-12, solver="newton", random_state=0, callbacks=[leave])
        with (
            distributed.Client(cluster) as client,
            client.as_current(),
            pytest.raises(ClusterLostError, match="no worker") as caught,
        ):
            model.fit(da.from_array(X, chunks=(100, -1)), y)
    assert np.isfinite(caught.value.model.certificate_.gap)


@pytest.mark.parametrize("before", [False, True])
def test_scattered_rows_that_die_with_their_worker_are_named(before: bool) -> None:
    X, y = data()
    parts = [slice(k, k + 300) for k in range(0, N, 300)]

    def kill(row: dict[str, Any]) -> None:
        if row["round"] == 1:
            os.kill(worker, signal.SIGKILL)

    model = LinearSVC(loss="logistic", C=100.0, tol=1e-12, solver="newton", random_state=0, callbacks=[kill])
    with processes(1) as client:  # with another worker, Dask may have copied the rows to it
        worker = next(iter(client.run(os.getpid).values()))
        A = [client.scatter(X[part]) for part in parts]
        b = [dask.delayed(y[part]) for part in parts]
        if before:
            os.kill(worker, signal.SIGKILL)
        with pytest.raises(ClusterLostError, match=r"cannot compute them again: .* scatter") as caught:
            model.fit(A, b)
    assert before or ("partition 0" in str(caught.value) and np.isfinite(caught.value.model.certificate_.gap))


def test_bad_input_is_told_apart(client: Any) -> None:
    X, y = data()
    A = da.from_array(X, chunks=(300, -1))
    with pytest.raises(ValueError, match="rows on a cluster"):
        LinearSVC(solver="gather").fit(X, y)
    with pytest.raises(ValueError, match="NaN in row 7"):
        LinearSVC().fit(da.where(A[7, 0] == A, np.nan, A), y)
    with pytest.raises(ValueError, match="1 class only"):
        LinearSVC().fit(A, np.ones(N))
    with pytest.raises(ValueError, match="partitions of X"):
        LinearSVC().fit(A, y[:-1])
    with pytest.raises(ValueError, match="'auto', 'newton', 'gather'; got 'sdca'"):
        LinearSVC(solver="sdca").fit(A, y)


def test_limits_are_kept_and_told(client: Any) -> None:
    X, y = data()
    with pytest.warns(Warning, match="epoch_limit"):
        model = LinearSVC(tol=1e-9, max_iter=2).fit(da.from_array(X, chunks=(300, -1)), y)
    assert (model.n_iter_, model.outcome_) == (2, Outcome.EPOCH_LIMIT)


def test_a_time_limit_ends_the_rounds(client: Any) -> None:
    X, y = data()
    with pytest.warns(Warning, match="time_limit"):
        model = LinearSVC(loss="logistic", tol=1e-15, max_time=0.3, solver="newton", C=1e4).fit(
            da.from_array(X, chunks=(300, -1)), y
        )
    assert model.outcome_ is Outcome.TIME_LIMIT
    assert np.isfinite(model.certificate_.gap)


def test_ctrl_c_ends_the_rounds_with_the_best_model(client: Any, keyboard: Any) -> None:
    X, y = data()

    def interrupt(row: dict[str, Any]) -> None:
        if row["round"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(Warning, match="interrupted"):
        model = LinearSVC(tol=1e-15, max_iter=50, solver="newton", callbacks=[interrupt]).fit(
            da.from_array(X, chunks=(300, -1)), y
        )
    assert (model.n_iter_, model.outcome_) == (3, Outcome.INTERRUPTED)
    assert np.isfinite(model.certificate_.gap)


def test_a_scheduler_that_goes_away_leaves_the_best_model() -> None:
    X, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
        )
        client = distributed.Client(cluster, set_as_default=False)
        client._timeout = 3.0  # seconds for which it looks for a lost scheduler; a busy machine takes longer to connect

        def stop(row: dict[str, Any]) -> None:
            if row["round"] == 3:
                cluster.close()

        fitted = LinearSVC(loss="logistic", C=0.002, tol=1e-14, solver="newton", callbacks=[stop])
        with client.as_current(), pytest.raises(ClusterLostError, match="best model so far") as caught:
            fitted.fit(da.from_array(X, chunks=(300, -1)), y)
        client.close()
    model = caught.value.model
    assert not hasattr(fitted, "coef_")  # a fit that raises leaves the estimator as it was
    assert 0.0 < model.certificate_.relative_gap < 1.0
    assert model.coef_.shape == (1, D)


def test_without_dask_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['dask'] = None; import saddlesvm; import saddlesvm.dask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "pip install '.[dask]'" in done.stderr
