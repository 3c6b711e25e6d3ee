"""Checkpoints: a resumed run goes on from its last solution; foreign and damaged files are refused."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, NotCertifiedWarning
from saddlesvm.data import load_bundled
from saddlesvm.fit.checkpoint import FORMAT, Checkpoint, CheckpointWarning, checkpoint_of, digest_of
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.losses import Hinge, SquaredHinge
from saddlesvm.problem.penalties import L1, ElasticNet
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, SDCA, Newton, Pegasos
from saddlesvm.solvers.auto import Auto
from support import labels, matrix, small_problem
from support.fitting import SOLVERS, equal
from support.resuming import agree

every_solver = pytest.mark.parametrize("solver", SOLVERS, ids=repr)


def stop_at(epoch: float) -> Any:
    return lambda record: record.epoch >= epoch


@every_solver
def test_a_resumed_run_counts_on_and_ends_at_the_limits_of_an_undisturbed_one(solver: Any, tmp_path: Path) -> None:
    problem, limits = small_problem(Hinge(), C=0.1), Limits(tol=0.0, max_epochs=12, certify_every=2)
    undisturbed = fit(problem, solver, limits, seed=3)
    path = tmp_path / "run.ckpt"
    first = fit(problem, solver, limits, seed=3, checkpoint=Checkpoint(path), callbacks=[stop_at(6)])
    assert first.outcome is Outcome.INTERRUPTED and first.epochs < 8
    second = fit(problem, solver, limits, seed=3, checkpoint=Checkpoint(path))
    assert second.outcome is undisturbed.outcome
    assert abs(second.epochs - undisturbed.epochs) < 1.0
    assert list(second.trace)[: len(first.trace)] == list(first.trace)
    assert np.all(np.diff(second.trace.column("epoch")) >= 0.0)
    assert second.seconds_solving > first.seconds_solving
    assert agree(undisturbed, second)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("output", ["last", "random"])
def test_a_resumed_run_never_returns_a_worse_model_than_it_had(output: str, tmp_path: Path) -> None:
    problem, solver = small_problem(Hinge()), Pegasos(output=output)
    limits = Limits(tol=0.0, max_epochs=9, certify_every=1)
    for seed in range(8):
        path = tmp_path / f"{seed}.ckpt"
        first = fit(problem, solver, limits, seed=seed, checkpoint=Checkpoint(path), callbacks=[stop_at(8)])
        second = fit(problem, solver, limits, seed=seed, checkpoint=Checkpoint(path))
        assert second.certificate.primal <= first.certificate.primal
        assert second.certificate.dual >= first.certificate.dual
        assert np.all(np.diff(second.trace.column("primal")) <= 0.0)


@pytest.mark.parametrize("intercept", ["regularized", "free"])
def test_an_interrupted_fit_goes_on_to_its_certificate(intercept: str, tmp_path: Path) -> None:
    problem, limits = small_problem(Hinge(), intercept=intercept), Limits(tol=1e-7, max_epochs=10_000)
    undisturbed = fit(problem, DCD(), limits)
    checkpoint = Checkpoint(tmp_path / "run.ckpt")
    stop = threading.Event()
    stop.set()
    assert fit(problem, DCD(), limits, checkpoint=checkpoint, stop=stop).outcome is Outcome.INTERRUPTED
    resumed = fit(problem, DCD(), limits, checkpoint=checkpoint)
    assert resumed.outcome is undisturbed.outcome is Outcome.CERTIFIED
    gap = max(undisturbed.certificate.gap, resumed.certificate.gap)
    assert abs(undisturbed.certificate.primal - resumed.certificate.primal) <= gap
    finished = fit(problem, DCD(), limits, checkpoint=checkpoint)
    assert finished.outcome is Outcome.CERTIFIED
    assert finished.epochs <= resumed.epochs + 5


def test_a_run_that_goes_on_may_stand_as_long_as_an_undisturbed_one(tmp_path: Path) -> None:
    notes = load_bundled("banknote")
    given = {"loss": "hinge", "C": 100.0, "tol": 1e-6, "solver": "dcd", "random_state": 0}
    undisturbed = LinearSVC(**given).fit(notes.X, notes.y)
    half = int(undisturbed.n_iter_) // 2
    path = str(tmp_path / "half.ckpt")
    with pytest.warns(NotCertifiedWarning):
        LinearSVC(**given, max_iter=half, checkpoint=path).fit(notes.X, notes.y)
    assert LinearSVC(**given, checkpoint=path).fit(notes.X, notes.y).outcome_ is undisturbed.outcome_


def test_a_checkpoint_asks_for_a_number_of_steps_and_a_folder(tmp_path: Path) -> None:
    for number in (0, -1, 0.5, float("nan")):
        with pytest.raises(ValueError, match=f"every_steps must be at least 1, or None; got {number!r}"):
            Checkpoint(tmp_path / "run.ckpt", every_steps=number)
    with pytest.raises(ValueError, match="does not exist"):
        Checkpoint(tmp_path / "nowhere" / "run.ckpt")


def test_each_problem_of_several_has_a_file_of_its_own(tmp_path: Path) -> None:
    given = Checkpoint(tmp_path / "run.ckpt", every=5.0, every_steps=3)
    assert checkpoint_of(None, 0, 1, True) is None
    for index, problems, name in ((0, 1, "run.ckpt"), (0, 2, "run.ckpt.0"), (7, 9, "run.ckpt.7")):
        for form in (given, given.path):
            found = checkpoint_of(form, index, problems, seeded=form is given)
            assert found is not None
            assert found.path == tmp_path / name
            assert found.seeded == (form is given)
    assert given.path.name == "run.ckpt"
    of_given = checkpoint_of(given, 1, 2, True)
    assert of_given is not None
    assert (of_given.every, of_given.every_steps) == (5.0, 3)


def test_what_a_killed_run_left_of_its_file_goes_and_other_files_stay(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    left = [tmp_path / f".run.ckpt.{end}" for end in ("1.tmp", "ab.tmp")]
    others = [tmp_path / name for name in (".run.ckpt.1.other", ".other.ckpt.1.tmp", "run.ckpt.1.tmp")]
    for file in (*left, *others):
        file.write_text("half")
    fit(small_problem(Hinge()), DCD(), Limits(tol=0.0, max_epochs=2), checkpoint=Checkpoint(path, every_steps=1))
    assert not any(file.exists() for file in left)
    assert all(file.read_text() == "half" for file in others)


def test_a_checkpoint_is_also_written_on_the_way(tmp_path: Path) -> None:
    path, sizes = tmp_path / "run.ckpt", []
    fit(
        small_problem(Hinge()),
        SDCA(),
        Limits(tol=0.0, max_epochs=6, certify_every=2),
        checkpoint=Checkpoint(path, every=0.0),
        callbacks=[lambda record: sizes.append(path.exists())],
    )
    assert sizes == [False, True, True]


def test_float32_runs_resume(tmp_path: Path) -> None:
    X = matrix(60, 5).astype(np.float32)
    problem = make_problem(as_rows(X), labels(X, Hinge()), Hinge(), C=0.5)
    limits, checkpoint = Limits(tol=0.0, max_epochs=6, certify_every=2), Checkpoint(tmp_path / "run.ckpt")
    fit(problem, SDCA(), limits, checkpoint=checkpoint, callbacks=[stop_at(4)])
    assert agree(fit(problem, SDCA(), limits, checkpoint=checkpoint), fit(problem, SDCA(), limits))


@pytest.mark.parametrize(
    ("solver", "other", "word"),
    [
        (SDCA("cyclic"), {}, "solver"),
        (SDCA(), {"C": 0.6}, "C"),
        (SDCA(), {"n": 61}, "problem"),
        (SDCA(), {"weights": np.full(60, 2.0)}, "weights"),
        (SDCA(), {"intercept": "free"}, "problem"),
        (SDCA(), {"penalty": ElasticNet(0.5)}, "penalty"),
        (SDCA(), {"seed": 1}, "labels"),
    ],
)
def test_a_foreign_checkpoint_is_refused(solver: Any, other: dict[str, Any], word: str, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run.ckpt")
    fit(small_problem(Hinge()), SDCA(), Limits(max_epochs=2), checkpoint=checkpoint)
    with pytest.raises(ValueError, match="belongs to another fit") as error:
        fit(small_problem(Hinge(), **other), solver, Limits(max_epochs=2), checkpoint=checkpoint)
    assert word in str(error.value) and "run.ckpt" in str(error.value)


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        ({"C": 0.5}, {"lam": 1.0 / 30.0}, "form"),
        ({"lam": 1.0 / 30.0}, {"C": 0.5}, "form"),
        ({"seed": 1}, {"seed": 2}, "seed"),
    ],
)
def test_the_other_form_of_C_or_another_seed_is_another_fit(
    first: dict[str, float], second: dict[str, float], word: str, tmp_path: Path
) -> None:
    checkpoint = Checkpoint(tmp_path / "run.ckpt")

    def begun(given: dict[str, float]) -> Any:
        seed = int(given.get("seed", 0))
        form: dict[str, Any] = {name: one for name, one in given.items() if name != "seed"}
        return fit(small_problem(Hinge(), **form), SDCA(), Limits(max_epochs=2), seed=seed, checkpoint=checkpoint)

    begun(first)
    with pytest.raises(ValueError, match=word):
        begun(second)


def test_rows_of_the_same_norms_are_told_apart(tmp_path: Path) -> None:
    X = matrix(60, 5)
    problems = [make_problem(as_rows(rows), labels(X, Hinge()), Hinge(), C=0.5) for rows in (X, X[:, ::-1].copy())]
    checkpoint = Checkpoint(tmp_path / "run.ckpt")
    fit(problems[0], SDCA(), Limits(max_epochs=2), checkpoint=checkpoint)
    with pytest.raises(ValueError, match="belongs to another fit: rows"):
        fit(problems[1], SDCA(), Limits(max_epochs=2), checkpoint=checkpoint)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    path, problem = tmp_path / "run.ckpt", small_problem(Hinge())
    fit(problem, SDCA(), Limits(max_epochs=2), checkpoint=Checkpoint(path))
    whole = path.read_bytes()
    truncated = [whole[:size] for size in (0, 1, 10, len(whole) // 2, len(whole) - 1)]
    other_files = [b"not a checkpoint", b"\x80\x04N.", np.arange(3).tobytes()]
    random = np.random.default_rng(0)
    changed = []
    for place in random.integers(0, len(whole), 150):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(random.integers(8))
        changed.append(bytes(flipped))
    for damaged in truncated + other_files:
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"run\.ckpt"):
            fit(problem, SDCA(), Limits(max_epochs=2), checkpoint=Checkpoint(path))
    for damaged in changed:
        path.write_bytes(damaged)
        try:  # a bit that no one reads (a date) may change; nothing else than a clear refusal otherwise
            result = fit(problem, SDCA(), Limits(max_epochs=3), checkpoint=Checkpoint(path))
        except ValueError as error:
            assert "run.ckpt" in str(error)
        else:
            assert result.certificate.sound


def changed(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write a file of these arrays, whatever its digest says."""
    with path.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"point.w": np.zeros(7)},
        {"point.alpha": np.zeros(3)},
        {"point.w": np.full(6, np.nan)},
        {"point.alpha": np.array(["a"] * 60)},
        {"best.alpha": np.zeros((60, 2))},
        {"more": np.zeros(3)},
        {"state.w": np.zeros(6)},
        {"digest": np.zeros(32, dtype=np.uint8)},
        {"digest": np.zeros(3)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_file_whose_content_was_changed_is_refused(change: dict[str, np.ndarray], tmp_path: Path) -> None:
    path, problem = tmp_path / "run.ckpt", small_problem(Hinge(), C=0.1)
    fit(problem, SDCA(), Limits(tol=0.0, max_epochs=2), checkpoint=Checkpoint(path))
    with np.load(path) as stored:
        arrays = dict(stored)
    changed(path, arrays | change)
    with pytest.raises(ValueError, match=r"run.ckpt is not a readable checkpoint .its digest"):
        fit(problem, SDCA(), Limits(tol=0.0, max_epochs=3), checkpoint=Checkpoint(path))


@pytest.mark.parametrize("solver", [SDCA(), DCD(), Pegasos(), Newton(), Auto()], ids=repr)
@pytest.mark.parametrize("intercept", ["none", "free"])
def test_what_a_falsified_checkpoint_holds_is_not_believed(solver: Any, intercept: str, tmp_path: Path) -> None:
    """Dual variables out of their bounds, and weights of another model: every certificate is of the data."""
    if intercept == "free" and isinstance(solver, SDCA):
        solver = SDCA("cyclic")
    path, problem = tmp_path / "run.ckpt", small_problem(Hinge(), C=0.1, intercept=intercept)
    optimum = fit(problem, DCD(), Limits(tol=1e-9))
    fit(problem, solver, Limits(tol=0.0, max_epochs=2), checkpoint=Checkpoint(path))
    with np.load(path) as stored:
        arrays = dict(stored)
    for name in [name for name in arrays if name.endswith(("alpha", "w"))]:
        if arrays[name].dtype.kind == "f":
            arrays[name] = arrays[name] * 40.0 + 3.0
    del arrays["digest"]
    changed(path, arrays | {"digest": digest_of(arrays)})
    result = fit(problem, solver, Limits(tol=1e-3, max_epochs=200), checkpoint=Checkpoint(path))
    assert agree(optimum, result)


def test_another_npz_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    with path.open("wb") as file:
        np.savez(file, header=np.frombuffer(b'{"format": "something else"}', dtype=np.uint8))
    with pytest.raises(ValueError, match="not a readable checkpoint"):
        fit(small_problem(Hinge()), SDCA(), checkpoint=Checkpoint(path))


@pytest.mark.parametrize("further", [{}, {"mark": []}, {"mark": {}, "numbers": 3}, {"mark": {}, "numbers": {}}])
def test_a_header_without_its_parts_is_refused(further: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    header = json.dumps({"format": FORMAT} | further).encode()
    arrays = {"header": np.frombuffer(header, dtype=np.uint8)}
    with path.open("wb") as file:
        np.savez(file, digest=digest_of(arrays), **arrays)
    with pytest.raises(ValueError, match=r"not a readable checkpoint|belongs to another fit"):
        fit(small_problem(Hinge()), SDCA(), checkpoint=Checkpoint(path))


def test_a_checkpoint_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder: name a file in it"):
        Checkpoint(tmp_path)


def test_a_checkpoint_needs_its_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="folder"):
        Checkpoint(tmp_path / "missing" / "run.ckpt")


def test_the_automatic_solver_resumes_at_work_on_columns(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 300))
    problem = make_problem(as_rows(X), np.sign(X[:, 0]), SquaredHinge(), C=1.0, penalty=L1())
    for epochs in (2.0, None):
        result = fit(problem, Auto(), Limits(tol=1e-9, max_epochs=epochs), checkpoint=Checkpoint(tmp_path / "run"))
    assert result.outcome is Outcome.CERTIFIED


def test_a_full_disk_costs_the_checkpoint_and_not_the_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any, **more: Any) -> None:
        raise OSError(28, "No space left on device")

    problem, limits = small_problem(Hinge(), C=0.1), Limits(tol=0.0, max_epochs=4, certify_every=2)
    undisturbed = fit(problem, DCD(), limits, seed=3)
    monkeypatch.setattr(np, "savez", full)
    with pytest.warns(
        CheckpointWarning, match=r"run.ckpt: cannot be written: No space left on device\. The fit continues"
    ):
        disturbed = fit(problem, DCD(), limits, seed=3, checkpoint=Checkpoint(tmp_path / "run.ckpt", every_steps=1))
    assert equal(undisturbed, disturbed)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_may_not_be_written_is_refused_before_the_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ValueError, match=r"the folder of the checkpoint .*run.ckpt cannot be written to"):
        Checkpoint(tmp_path / "run.ckpt")
