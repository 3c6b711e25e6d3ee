"""After any fault: the old file or the whole new one, the same weights, one line that names the file."""

from __future__ import annotations

import contextlib
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from saddlesvm import LinearSVC, NotCertifiedWarning
from saddlesvm.data import DataError, Store, convert
from saddlesvm.data.model_file import load_model, save_model
from saddlesvm.fit.checkpoint import Checkpoint, CheckpointWarning
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits
from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD

from . import faults, sound

SAID = {"r.ckpt": CheckpointWarning}  # what says that a file could not be written; DataError for the others
LIMITS = Limits(tol=0.0, max_epochs=10, certify_every=1)
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # NumPy 1.26's open archives


def problem() -> Any:
    """Pose a small problem of two classes."""
    X, y = sound.data()
    rows = as_rows(sparse.csr_matrix(X), 1.0)
    return make_problem(rows, y.astype(float), Hinge(), C=1.0, intercept="regularized")


def train(path: Path) -> Any:
    """A fit with a checkpoint after every step."""
    return fit(problem(), DCD(), LIMITS, seed=1, checkpoint=Checkpoint(path, every_steps=1))


def bytes_of(store: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(store.iterdir()) if file.suffix == ".npy"}


def test_training_that_is_killed_at_every_write_ends_with_the_same_optimum(tmp_path: Path) -> None:
    whole = fit(problem(), DCD(), LIMITS, seed=1)
    train(tmp_path / "compile.ckpt")
    kills, number, path = 0, 0, tmp_path / "run" / "run.ckpt"
    path.parent.mkdir()
    found = tmp_path / "found.npz"

    def train_and_tell() -> None:
        result = train(path)
        np.savez(found, primal=result.certificate.primal, dual=result.certificate.dual, epochs=result.epochs)

    while faults.killed_at(number, train_and_tell):
        kills += 1
        number = (number + 1) % 6  # it goes on from the last checkpoint: some are always written before the end
        assert kills < 500
    result = np.load(found)
    assert kills >= 5 and float(result["epochs"]) == pytest.approx(whole.epochs, abs=1.0)
    assert float(result["dual"]) <= whole.certificate.primal and whole.certificate.dual <= float(result["primal"])
    assert faults.left_over(path.parent, "run.ckpt") == []


def test_a_conversion_that_is_killed_at_every_event_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    source, target = tmp_path / "rows.libsvm", tmp_path / "out" / "rows.store"
    target.parent.mkdir()
    X, y = sound.data()
    rows = [f"{label} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(row) if x) for row, label in zip(X, y)]  # noqa: B905
    source.write_text("\n".join(rows) + "\n")
    undisturbed = bytes_of(convert(source, tmp_path / "sound.store").path)
    number = 0
    while faults.killed_at(number, lambda: convert(source, target)):
        number += 1
        if target.exists():
            assert bytes_of(Store(target).path) == undisturbed
            shutil.rmtree(target)
    assert number >= 5
    assert bytes_of(Store(target).path) == undisturbed
    # A killed conversion leaves its unfinished folder, which no command takes for a store.
    for name in faults.left_over(target.parent, "rows.store"):
        assert name.endswith(".partial")
        with pytest.raises(DataError, match="interrupted conversion"):
            Store(target.parent / name)
        shutil.rmtree(target.parent / name)


def writers(folder: Path) -> dict[str, Any]:
    """What writes a file, by its name."""
    big = np.random.default_rng(0).normal(size=(200, 20))
    return {
        "m.model": lambda: save_model(folder / "m.model", "k", {"coef": big}, {}),
        "r.ckpt": lambda: train(folder / "r.ckpt"),
        "s.store": lambda: Store.create(folder / "s.store", big, np.arange(200) % 3),
    }


@pytest.mark.parametrize("name", ["m.model", "r.ckpt", "s.store"])
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, name: str) -> None:
    train(tmp_path / "compile.ckpt")
    (tmp_path / "compile.ckpt").unlink()
    write = writers(tmp_path)[name]
    for room in (0, 1, 100, 1_000, 2_500):
        with faults.room_for(room), pytest.raises(SAID.get(name, DataError), match=name) as error:
            write()
        assert "\n" not in str(error.value) and faults.left_over(tmp_path) == []
    write()
    assert faults.left_over(tmp_path, name) == []


@pytest.mark.parametrize("name", ["m.model", "r.ckpt", "s.store"])
def test_a_name_that_cannot_be_given_is_one_line_and_leaves_the_old_file(tmp_path: Path, name: str) -> None:
    write = writers(tmp_path)[name]
    write()
    old = (tmp_path / name).read_bytes() if name != "s.store" else None
    if name == "s.store":
        shutil.rmtree(tmp_path / name)
    if name == "r.ckpt":
        (tmp_path / name).unlink()  # a run that has ended writes nothing
        old = None
    for number in range(2):
        with (
            faults.at_event(number, faults.refuses, ("fsync", "replace", "rename")),
            pytest.raises(SAID.get(name, DataError), match=name) as error,
        ):
            write()
        assert "\n" not in str(error.value)
        assert faults.left_over(tmp_path, name) == []
    if old is not None:
        assert (tmp_path / name).read_bytes() == old
        if name == "m.model":
            assert load_model(tmp_path / name)[0] == "k"


def test_short_reads_change_nothing(tmp_path: Path) -> None:
    X, y = sound.data()
    store = Store.create(tmp_path / "s.store", X, y)
    models = []
    for fault in (None, faults.short_reads):
        model = LinearSVC(solver="blocks", max_iter=3, tol=1e-9, random_state=0, memory="16M")
        with fault() if fault else contextlib.nullcontext(), warnings.catch_warnings():
            warnings.simplefilter("ignore", NotCertifiedWarning)
            models.append(model.fit(store).coef_)
    assert np.array_equal(*models)
