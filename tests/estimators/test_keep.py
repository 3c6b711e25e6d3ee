"""keep="last" of every estimator, at every place: the solver's own point, and callbacks that see each iterate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

from saddlesvm import SVC, SVR, LinearSVC, LinearSVR, OneClassSVM, Pegasos, Store
from saddlesvm.cli import main
from saddlesvm.data import load_bundled
from saddlesvm.estimators.base import draw_seed
from saddlesvm.models.persistence import load, save
from saddlesvm.problem.losses import Hinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import DCD, SDCA
from saddlesvm.solvers.base import Budget
from support import Every, matrix

pytestmark = pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")
NOTES = load_bundled("banknote")
IRIS = load_iris(return_X_y=True)
LAM = 1e-4


def last_iterate(X: np.ndarray, y: np.ndarray, epochs: int, seed: int = 0, batch: int = 1) -> np.ndarray:
    """The last iterate of Pegasos, by its own steps."""
    problem, solver = make_problem(as_rows(X), y, Hinge(), lam=LAM), Pegasos(batch, output="last")
    state = solver.init(problem, draw_seed(0) + seed)
    state = solver.step(problem, state, Budget(len(y)))
    for _ in range(epochs - 1):
        state = solver.step(problem, state, Budget(len(y)))
    return float(state.numbers["scale"][0]) * state.w[:-1]


def objective(X: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    """The hinge's objective in the lambda form."""
    return float(0.5 * LAM * w @ w + np.maximum(0.0, 1.0 - y * (X @ w)).mean())


def pegasos(**options: Any) -> LinearSVC:
    """Pegasos with its last iterate, as published: no intercept, the hinge, lambda."""
    return LinearSVC(
        loss="hinge",
        lam=LAM,
        fit_intercept=False,
        random_state=0,
        solver=Pegasos(output="last"),
        keep="last",
        **options,
    )


def test_the_last_iterate_of_pegasos_is_no_better_than_the_best_model() -> None:
    model = pegasos(max_iter=5).fit(NOTES.X, NOTES.y)
    signs = np.where(NOTES.y == model.classes_[1], 1.0, -1.0)
    w = last_iterate(NOTES.X, signs, 5)
    assert np.array_equal(model.coef_[0], w)
    assert model.certificate_.primal == pytest.approx(objective(NOTES.X, signs, w), rel=1e-9)
    best = pegasos(max_iter=5).set_params(keep="best").fit(NOTES.X, NOTES.y)
    assert model.certificate_.primal >= best.certificate_.primal
    assert model.certificate_.gap >= model.certificate_.primal - best.certificate_.primal


def test_callbacks_see_the_iterates_from_which_a_curve_is_drawn() -> None:
    seen: list[tuple[float, np.ndarray, float]] = []
    model = pegasos(max_iter=6, tol=0.0)
    model.callbacks = [Every(1, lambda record: seen.append((record.epoch, record.coef, record.primal)))]
    model.fit(NOTES.X, NOTES.y)
    signs = np.where(NOTES.y == model.classes_[1], 1.0, -1.0)
    assert [epoch for epoch, _, _ in seen] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    for epoch, coef, primal in seen:
        assert np.array_equal(coef, last_iterate(NOTES.X, signs, int(epoch)))
        assert primal == pytest.approx(objective(NOTES.X, signs, coef), rel=1e-9)
    assert np.array_equal(seen[-1][1], model.coef_[0])


@pytest.mark.parametrize("split", ["ovr", "ovo"])
def test_each_of_several_classes_has_its_own_run(split: str) -> None:
    X, y = IRIS
    model = pegasos(max_iter=3, multi_class=split).fit(X, y)
    for k in range(3):
        if split == "ovr":
            rows, signs = X, np.where(y == k, 1.0, -1.0)
        else:
            first, second = [(0, 1), (0, 2), (1, 2)][k]
            kept = (y == first) | (y == second)
            rows, signs = np.ascontiguousarray(X[kept]), np.where(y[kept] == second, 1.0, -1.0)
        assert np.array_equal(model.coef_[k], last_iterate(rows, signs, 3, seed=k))
        assert model.certificates_[k].primal == pytest.approx(objective(rows, signs, model.coef_[k]), rel=1e-9)


@pytest.mark.parametrize("split", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("solver", [DCD(), SDCA()], ids=repr)
def test_the_weights_are_those_of_the_dual_variables(solver: Any, split: str) -> None:
    X, y = IRIS
    options = {} if split == "crammer_singer" else {"solver": solver, "loss": "hinge"}
    model = LinearSVC(
        multi_class=split, C=10.0, max_iter=2, tol=0.0, fit_intercept=False, random_state=0, keep="last", **options
    ).fit(X, y)
    pulled = model.dual_coef_ @ X
    np.testing.assert_allclose(model.coef_, pulled, rtol=1e-9, atol=1e-9 * np.abs(pulled).max())
    assert model.certificate_.gap > 0.0


def test_regression() -> None:
    X, target = IRIS[0][:, :3], IRIS[0][:, 3]
    model = LinearSVR(solver="dcd", max_iter=2, tol=0.0, fit_intercept=False, random_state=0, keep="last")
    model.fit(X, target)
    np.testing.assert_allclose(model.coef_, model.dual_coef_[0] @ X, rtol=1e-9)
    primal = 0.5 * model.coef_ @ model.coef_ + np.abs(X @ model.coef_ - target).sum()
    assert model.certificate_.primal == pytest.approx(primal, rel=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("solver", ["auto", "blocks"])
def test_over_files(loss: str, solver: str, tmp_path: Path) -> None:
    """The last point over a store: its certificate is that of its weights, and for the blocks these are w(alpha)."""
    X = matrix(60_000, 20)  # more than half of the least memory
    y = np.where(X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=len(X)) > 0.0, 1, -1)
    store = Store.create(tmp_path / "rows", X, y)
    model = LinearSVC(
        loss=loss, C=10.0, memory="16M", solver=solver, max_iter=3, tol=0.0, fit_intercept=False, random_state=0,
        keep="last",
    ).fit(store)  # fmt: skip
    [w], z = model.coef_, y * (X @ model.coef_[0])
    paid = {"hinge": np.maximum(0.0, 1.0 - z), "squared_hinge": np.maximum(0.0, 1.0 - z) ** 2}
    losses = paid.get(loss, np.logaddexp(0.0, -z))
    assert model.certificate_.primal == pytest.approx(0.5 * w @ w + 10.0 * losses.sum(), rel=1e-9)
    if solver == "blocks":
        np.testing.assert_allclose(w, model.dual_coef_[0] @ X, rtol=1e-9, atol=1e-9 * np.abs(w).max())


def test_a_checkpoint_over_files_continues_it(tmp_path: Path) -> None:
    X = matrix(60_000, 20)
    store = Store.create(tmp_path / "rows", X, np.where(X[:, 0] > X[:, 1], 1, -1))

    def until(epochs: int, **given: Any) -> LinearSVC:
        options: dict[str, Any] = {"memory": "16M", "solver": "blocks", "tol": 0.0, "random_state": 0, "keep": "last"}
        return LinearSVC(max_iter=epochs, callbacks=[Every(1)], **options | given).fit(store)

    whole = until(3)
    until(2, checkpoint=tmp_path / "run")
    for _ in range(2):  # the second time there is nothing left to do
        resumed = until(3, checkpoint=tmp_path / "run")
        ours, theirs = resumed.certificate_, whole.certificate_
        assert resumed.n_iter_ == 3
        assert ours.dual <= theirs.primal and theirs.dual <= ours.primal
        assert ours.relative_gap <= 2.0 * theirs.relative_gap


@pytest.mark.parametrize("solver", ["auto", "kernel-pegasos"])
def test_kernel_machines(solver: str) -> None:
    """The coefficients are those of the last record, whose certificate is the model's."""
    seen: list[Any] = []
    lam = {"lam": 1e-3} if "pegasos" in solver else {"C": 10.0}
    model = SVC(
        solver=solver, max_iter=3, tol=0.0, random_state=0, keep="last", intercept="none", **lam,
        callbacks=[Every(1, seen.append)],
    )  # fmt: skip
    X, y = NOTES.X[::5], NOTES.y[::5]
    model.fit(X, y)
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    assert np.array_equal(beta, seen[-1].coef)
    assert model.certificate_.primal == seen[-1].primal


@pytest.mark.parametrize(
    "model",
    [SVC(C=100.0), SVR(C=10.0), OneClassSVM(nu=0.2), OneClassSVM(kernel="linear", nu=0.2), LinearSVC(penalty="l1")],
    ids=repr,
)
def test_every_estimator_takes_it(model: Any) -> None:
    X, y = NOTES.X, NOTES.y
    model.set_params(keep="last", max_iter=1, tol=1e-9).fit(X, y)
    assert model.certificate_.sound
    model.set_params(keep="first")
    with pytest.raises(ValueError, match="keep must be 'best' or 'last'; got 'first'"):
        model.fit(X, y)


def test_it_is_a_parameter_of_saved_models(tmp_path: Path) -> None:
    model = pegasos(max_iter=1).fit(NOTES.X, NOTES.y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.keep == "last"
    assert np.array_equal(again.coef_, model.coef_)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "model")
    given = ["train", "banknote", "--loss", "hinge", "--lambda", str(LAM), "--intercept", "none"]
    for setting in ("max_iter=5", "solver=pegasos:output=last", "keep=last"):
        given += ["--set", setting]
    given += ["--model", place, "--json"]
    assert main(given) == 3
    facts = json.loads(capsys.readouterr().out)
    model = pegasos(max_iter=5).fit(NOTES.X, NOTES.y)
    assert np.array_equal(load(place).coef_, model.coef_)
    assert facts["quality"]["primal_objective"] == pytest.approx(model.certificate_.primal)


def test_certificates_rise_and_fall_with_the_iterates() -> None:
    """The trace of the last points is theirs: the primal objective of Pegasos is not monotone."""
    model = pegasos(max_iter=12, callbacks=[Every(1)], tol=0.0).fit(NOTES.X, NOTES.y)
    primal = model.trace_.column("primal")
    assert (np.diff(primal) > 0.0).any()
    assert primal[-1] == model.certificate_.primal
