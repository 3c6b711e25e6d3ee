"""Runs over blocks that are stopped or killed and resumed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, Store
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.outcome import Outcome
from support import distance_bound
from support.mapped import large_store


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return large_store(tmp_path_factory.mktemp("stores"))


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
                assert {name: stored[name].shape for name in stored.files}["point.alpha"] == (40_000,)
    options: dict[str, Any] = {"memory": "16M", "C": 1e-3, "tol": 1e-3, "random_state": 0}
    resumed = LinearSVC(loss="hinge", **options, checkpoint=Checkpoint(path)).fit(large.X, large.y > 0)
    undisturbed = LinearSVC(loss="hinge", **options).fit(large.X, large.y > 0)
    assert resumed.outcome_ is Outcome.CERTIFIED
    gaps = [model.certificate_.gap for model in (resumed, undisturbed)]
    assert np.linalg.norm(resumed.coef_ - undisturbed.coef_) <= distance_bound(*gaps)
