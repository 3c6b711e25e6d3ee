"""Laws of every registered solver, one from outside the package among them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import support.own_solver  # noqa: F401 (registers a solver)
from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, register_solver
from saddlesvm.cli import main
from saddlesvm.data import DataError
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.models.persistence import load, save
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.problem import make_problem
from saddlesvm.rows.layouts import as_rows
from saddlesvm.solvers import SOLVERS
from saddlesvm.solvers.base import SolverBase
from support import csr, distance_bound, labels, matrix, named, plain_dual, plain_primal, small_problem

ON_FILES = ("blocks",)  # goes over files, block by block: tests/solvers/test_blocks.py
NAMES = [name for name in SOLVERS if name not in ON_FILES]
EVERY = pytest.mark.parametrize("name", NAMES)
LIMITS = Limits(tol=2e-3, max_epochs=20_000)
SOME = [Hinge(), SquaredHinge(), Logistic(), EpsilonInsensitive(0.2)]


@EVERY
@pytest.mark.parametrize("intercept", ["none", "regularized"])
@pytest.mark.parametrize("loss", SOME, ids=named)
def test_what_is_certified_is_true(name: str, loss: Loss, intercept: str) -> None:
    problem = small_problem(loss, n=40, C=0.05, intercept=intercept)
    result = fit(problem, SOLVERS[name](), LIMITS)
    assert result.outcome is Outcome.CERTIFIED, result.message
    primal, dual = plain_primal(problem, result.coef, result.intercept), plain_dual(problem, result.alpha)
    assert result.certificate.primal == pytest.approx(primal, rel=1e-9)
    assert result.certificate.dual == pytest.approx(dual, rel=1e-9)
    assert dual <= primal * (1.0 + 1e-12)
    assert primal - dual <= 1.001 * LIMITS.tol * primal


@EVERY
@pytest.mark.parametrize("form", ["csr", "float32", "repeated", "weight zero", "reversed"])
def test_the_optimum_does_not_depend_on_the_form(name: str, form: str) -> None:
    X = matrix(30, 4).astype(np.float32).astype(np.float64)
    y, times = labels(X, Hinge()), 1.0 + np.arange(30) % 3
    if form == "weight zero":
        times[::5] = 0.0
    whole = make_problem(as_rows(X), y, SquaredHinge(), C=0.05, weights=times)
    kept = times > 0.0
    made = {
        "csr": (csr(X), y, times),
        "float32": (X.astype(np.float32), y, times),
        "repeated": (np.repeat(X, times.astype(int), axis=0), np.repeat(y, times.astype(int)), None),
        "weight zero": (np.ascontiguousarray(X[kept]), y[kept], times[kept]),
        "reversed": (np.ascontiguousarray(X[::-1]), y[::-1].copy(), times[::-1].copy()),
    }
    rows, targets, weights = made[form]
    other = make_problem(as_rows(rows), targets, SquaredHinge(), C=0.05, weights=weights)
    first, second = (fit(problem, SOLVERS[name](), LIMITS) for problem in (whole, other))
    assert first.outcome is second.outcome is Outcome.CERTIFIED
    away = distance_bound(first.certificate.gap, second.certificate.gap)
    assert np.linalg.norm(first.coef - second.coef) <= away


@EVERY
def test_a_seed_repeats_a_fit_and_a_checkpoint_continues_it(name: str, tmp_path: Path) -> None:
    problem = small_problem(SquaredHinge(), n=40, C=0.05)
    whole, again = (fit(problem, SOLVERS[name](), LIMITS, seed=3) for _ in range(2))
    assert np.array_equal(whole.coef, again.coef)
    place = Checkpoint(tmp_path / "c", every=0.0)
    limits = Limits(tol=LIMITS.tol, max_epochs=2.0)
    stopped = fit(problem, SOLVERS[name](), limits, seed=3, checkpoint=place)
    resumed = fit(problem, SOLVERS[name](), LIMITS, seed=3, checkpoint=place)
    assert resumed.outcome is Outcome.CERTIFIED
    assert resumed.certificate.primal <= stopped.certificate.primal * (1.0 + 1e-12)
    away = distance_bound(whole.certificate.gap, resumed.certificate.gap)
    assert np.linalg.norm(whole.coef - resumed.coef) <= away


@EVERY
def test_no_time_still_gives_a_true_certificate(name: str) -> None:
    problem = small_problem(Hinge(), n=40)
    result = fit(problem, SOLVERS[name](), Limits(tol=1e-12, max_time=1e-9))
    assert result.outcome in (Outcome.TIME_LIMIT, Outcome.CERTIFIED)
    zero = plain_primal(problem, np.zeros(problem.n_features), 0.0)
    assert result.certificate.dual <= min(result.certificate.primal, zero) * (1.0 + 1e-12)


@EVERY
def test_the_estimators_take_it_by_name_and_as_an_object(name: str, tmp_path: Path) -> None:
    X = matrix(40, 4)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    for solver in (name, SOLVERS[name]()):
        model = LinearSVC(solver=solver, lam=0.1, tol=5e-3, random_state=0).fit(X, y)
        assert model.outcome_ is Outcome.CERTIFIED
        save(model, tmp_path / "m")
        assert load(tmp_path / "m").solver == solver
    assert LinearSVR(solver=name, lam=0.1, tol=5e-3, random_state=0).fit(X, X[:, 1]).outcome_ is Outcome.CERTIFIED


def test_the_command_line_takes_a_class_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "m")
    given = ["train", "toy", "--lambda", "0.1", "--tol", "1e-2", "--model", model]
    assert main([*given, "--import", "support.own_solver", "--set", "solver=forth-and-back:back=False"]) == 0
    assert load(model).solver == "forth-and-back:back=False"
    for text, said in (
        ("forth-and-forth", "unknown solver 'forth-and-forth'"),
        ("forth-and-back:up=True", "has no option 'up'; it has: back"),
    ):
        capsys.readouterr()
        assert main([*given, "--set", f"solver={text}"]) == 2
        assert said in capsys.readouterr().err


def test_a_file_with_a_solver_that_is_not_registered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = matrix(20, 3)
    with pytest.warns(NotCertifiedWarning):
        model = LinearSVC(solver=SOLVERS["forth-and-back"](), max_iter=1, tol=1e-9).fit(X, X[:, 0] > 0)
    save(model, tmp_path / "m")
    monkeypatch.delitem(SOLVERS, "forth-and-back")
    with pytest.raises(DataError, match="its solver is 'forth-and-back'; import the module that registers it first"):
        load(tmp_path / "m")


@dataclass(frozen=True)
class Unnamed(SolverBase):
    init = step = solution = lambda *given: None


@dataclass(frozen=True)
class Twin(Unnamed):
    name: ClassVar[str] = "dcd"


@dataclass(frozen=True)
class Half(SolverBase):
    name: ClassVar[str] = "half"
    init = lambda *given: None  # noqa: E731


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        (int, TypeError, "must be a frozen dataclass derived from"),
        (Half, TypeError, "the solver Half lacks step, solution"),
        (Unnamed, ValueError, "the solver Unnamed needs a name of letters"),
        (Twin, ValueError, "a solver named 'dcd' exists already, saddlesvm.solvers.dcd:DCD"),
    ],
)
def test_what_a_solver_lacks_is_named(kind: Any, error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        register_solver(kind)
