"""A fit that ends at a gap in the units of the objective, beside the relative one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddlesvm import LinearSVC, LinearSVR, NotCertifiedWarning, OneClassSVM, Store
from saddlesvm.cli import main
from saddlesvm.data import load_bundled
from saddlesvm.estimators.fitted import fitted_value
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.models.persistence import load
from saddlesvm.problem.losses import Hinge, SquaredHinge
from saddlesvm.solvers import SOLVERS
from support import matrix, plain_dual, plain_primal, small_problem
from support.resuming import agree

NOTES = load_bundled("banknote")
NAMES = [name for name in SOLVERS if name != "blocks"]


@pytest.mark.parametrize("form", [{"C": 0.05}, {"lam": 0.2}], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_every_solver_ends_at_it(name: str, form: dict[str, float]) -> None:
    problem = small_problem(SquaredHinge(), n=40, **form)
    size = problem.unit * plain_primal(problem, np.zeros(problem.n_features), 0.0)
    gap = 5e-3 * size
    result = fit(problem, SOLVERS[name](), Limits(tol=0.0, gap=gap, max_epochs=20_000))
    assert result.outcome is Outcome.CERTIFIED
    assert 0.0 <= result.certificate.gap <= gap
    apart = plain_primal(problem, result.coef, result.intercept) - plain_dual(problem, result.alpha)
    assert problem.unit * apart <= gap * 1.001


def test_the_first_of_two_gaps_ends_it() -> None:
    problem = small_problem(Hinge(), C=1.0)
    by_tol = fit(problem, SOLVERS["dcd"](), Limits(tol=1e-2))
    assert by_tol.reason.startswith("relative gap")
    loose = fit(problem, SOLVERS["dcd"](), Limits(tol=1e-6, gap=2.0 * by_tol.certificate.gap))
    assert loose.reason.startswith("gap")
    assert loose.certificate.relative_gap > 1e-6
    tight = fit(problem, SOLVERS["dcd"](), Limits(tol=1e-2, gap=1e-9))
    assert tight.reason == by_tol.reason


def test_a_negative_objective_has_a_gap_as_well() -> None:
    model = OneClassSVM(nu=0.2, tol=0.0, gap=0.5).fit(NOTES.X[::8])
    assert model.outcome_ is Outcome.CERTIFIED
    assert model.certificate_.primal < 0.0
    assert model.certificate_.gap <= 0.5


@pytest.mark.parametrize("solver", ["auto", "blocks"])
def test_over_files(solver: str, tmp_path: Path) -> None:
    X = matrix(60_000, 20)  # more than half of the least memory
    store = Store.create(tmp_path / "rows", X, np.where(X[:, 0] > X[:, 1], 1, -1))
    model = LinearSVC(solver=solver, memory="16M", tol=0.0, gap=50.0, random_state=0).fit(store)
    assert model.outcome_ is Outcome.CERTIFIED
    assert fitted_value(model).reads_blocks
    assert 0.0 <= model.certificate_.gap <= 50.0


@pytest.mark.parametrize("split", ["ovr", "ovo", "crammer_singer"])
def test_it_counts_for_each_sub_problem(split: str) -> None:
    X, y = NOTES.X, np.digitize(NOTES.X[:, 0], [-1.0, 2.0])
    model = LinearSVC(multi_class=split, C=10.0, tol=0.0, gap=0.3, random_state=0).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    assert all(one.gap <= 0.3 for one in model.certificates_)


def test_a_fit_that_misses_it_says_so() -> None:
    with pytest.warns(NotCertifiedWarning, match=r"the gap is \S+, 1e-06 was asked for"):
        LinearSVC(solver="sdca", tol=0.0, gap=1e-6, max_iter=1, random_state=0).fit(NOTES.X, NOTES.y)
    with pytest.warns(NotCertifiedWarning, match=r"the relative gap is \S+, 0.0001 was asked for; the gap is"):
        LinearSVC(solver="sdca", gap=1e-6, max_iter=1, random_state=0).fit(NOTES.X, NOTES.y)
    with pytest.raises(ValueError, match="tol=0 never ends a fit: give gap"):
        LinearSVC(tol=0.0).fit(NOTES.X, NOTES.y)
    for odd in (-1.0, np.nan, np.inf, "1"):
        with pytest.raises(ValueError, match="gap must be a finite number of at least 0"):
            LinearSVR(gap=odd).fit(NOTES.X, NOTES.X[:, 0])


def test_a_checkpoint_continues_to_it(tmp_path: Path) -> None:
    problem, place = small_problem(Hinge(), C=1.0), Checkpoint(tmp_path / "run")
    limits: dict[str, Any] = {"tol": 0.0, "gap": 1e-3, "certify_every": 1}
    whole = fit(problem, SOLVERS["sdca"](), Limits(**limits), seed=2)
    fit(problem, SOLVERS["sdca"](), Limits(**limits, max_epochs=3), seed=2, checkpoint=place)
    resumed = fit(problem, SOLVERS["sdca"](), Limits(**limits), seed=2, checkpoint=place)
    assert resumed.outcome is Outcome.CERTIFIED
    assert agree(whole, resumed)


def test_the_command_line(tmp_path: Path) -> None:
    place = str(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotCertifiedWarning)
        assert main(["train", "banknote", "--tol", "0", "--set", "gap=0.5", "--model", place]) == 0
    assert load(place).certificate_.gap <= 0.5
