"""Runs over blocks that are stopped or killed and resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, Store
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import Hinge, SquaredHinge
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import Blocks
from saddlesvm.solvers.second_order.over_files import ActiveSetOnFiles, NewtonOnFiles
from support import distance_bound, labels, matrix
from support.mapped import D, N, StopAt, large_store, mapped, streamed


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return large_store(tmp_path_factory.mktemp("stores"))


def falsified(path: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None]) -> None:
    """Change the header and the arrays of a checkpoint."""
    with np.load(path) as stored:
        arrays = {name: stored[name].copy() for name in stored.files}
    header = json.loads(arrays["header"].tobytes())
    change(header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def claim_much(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Let every figure that proves something prove more than it does."""
    for point in header["points"].values():
        point["certificate"] |= {"dual": 0.999_999 * point["certificate"]["primal"]}
    for name in ("paid", "last_primal_paid"):
        if header["state"].get(name, 0.0) > 0.0:
            header["state"][name] *= 0.5
    if "state.walk_sums" in arrays:
        arrays["state.walk_sums"][0] *= 0.5
    if "narrow_dual" in header["state"]:
        header["state"]["narrow_dual"] = 0.999_999 * header["state"]["narrow_primal"]


@pytest.mark.parametrize("solver", [Blocks(), NewtonOnFiles(), ActiveSetOnFiles()], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("more", [0.0, 1.0, 400.0])
def test_what_a_falsified_checkpoint_claims_is_not_believed(solver: Any, more: float, tmp_path: Path) -> None:
    X = matrix(N, D).astype(np.float32)
    loss = SquaredHinge() if isinstance(solver, NewtonOnFiles) else Hinge()
    file, y, path = mapped(X, tmp_path), labels(X, Hinge()), tmp_path / "run"
    begun = Limits(tol=1e-12, certify_every=1)

    def problem() -> Problem:
        return streamed(file, y, loss, C=1.0, intercept="regularized")

    with pytest.raises(KeyboardInterrupt):
        fit(problem(), solver, begun, callbacks=[StopAt(30)], checkpoint=Checkpoint(path, 1e9, 1))
    falsified(path, claim_much)
    result = fit(problem(), solver, Limits(tol=1e-6, max_epochs=4.0 + more), checkpoint=Checkpoint(path))
    memory = make_problem(as_rows(X, 1.0), y, loss, C=1.0, intercept="regularized")
    true = evaluate(memory, Point(np.append(result.coef, result.intercept), result.alpha), given_offset=True)
    allowed = 1e-9 * true.certificate.primal
    assert result.certificate.primal >= true.certificate.primal - true.certificate.rounding - allowed
    assert result.certificate.dual <= true.certificate.dual + true.certificate.rounding + allowed
    if result.outcome is Outcome.CERTIFIED:
        assert true.certificate.relative_gap <= 1.1e-6


TRAIN = """
import sys
from saddlesvm import LinearSVC, Store
from saddlesvm.fit.checkpoint import Checkpoint
store, path = sys.argv[1:]
checkpoint = Checkpoint(path, every_steps=1)
model = LinearSVC(loss="hinge", memory="16M", C=1e-3, tol=1e-3, random_state=0, checkpoint=checkpoint)
store = Store(store)
print("ready", flush=True)
model.fit(store.X, store.y > 0)
"""


def test_a_killed_run_leaves_a_whole_checkpoint_or_none(large: Store, tmp_path: Path) -> None:
    path = tmp_path / "run"
    random = np.random.default_rng(0)
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", TRAIN, str(large.path), str(path)], stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            run.stdout.readline()
            try:
                run.wait(float(random.uniform(0.05, 0.6)))
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
        if path.exists():
            with np.load(path) as stored:
                assert {name: stored[name].shape for name in stored.files}["state.alpha"] == (40_000,)
    options: dict[str, Any] = {"memory": "16M", "C": 1e-3, "tol": 1e-3, "random_state": 0}
    resumed = LinearSVC(loss="hinge", **options, checkpoint=Checkpoint(path)).fit(large.X, large.y > 0)
    undisturbed = LinearSVC(loss="hinge", **options).fit(large.X, large.y > 0)
    assert resumed.outcome_ is Outcome.CERTIFIED
    gaps = [model.certificate_.gap for model in (resumed, undisturbed)]
    assert np.linalg.norm(resumed.coef_ - undisturbed.coef_) <= distance_bound(*gaps)
