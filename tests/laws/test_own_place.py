"""Rows in a place of one's own, with every solver: a true certificate, or a refusal in words before any work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import support.own_solver  # noqa: F401 (registers a solver)
from saddlesvm import SVC, LinearSVC, LinearSVR
from saddlesvm.estimators.certify import certify_model
from saddlesvm.estimators.fitted import fitted_value
from saddlesvm.fit.checkpoint import Checkpoint
from saddlesvm.fit.loop import fit
from saddlesvm.fit.outcome import Limits, Outcome
from saddlesvm.problem.certificate import Point, evaluate
from saddlesvm.problem.losses import EpsilonInsensitive, Hinge, Logistic, Loss, SquaredHinge
from saddlesvm.problem.penalties import L1, ElasticNet
from saddlesvm.problem.problem import Problem, make_problem
from saddlesvm.rows.layouts import Dense, as_rows
from saddlesvm.solvers import SOLVERS, Auto, Newton
from support import csr, distance_bound, labels, matrix, named
from support.mapped import mapped
from support.own_descent import TwoPointDescent
from support.own_place import Packed, packed

LIMITS = Limits(tol=1e-6, max_epochs=300.0)
EVERY = {name: kind() for name, kind in SOLVERS.items()}
LOSSES = [Hinge(), SquaredHinge(), Logistic(), EpsilonInsensitive(0.2)]
OVER_PASSES = {"auto", "newton"}
LARGE = 18_000  # rows of 60 features, which take more than half of the least memory


def problems(loss: Loss, **options: Any) -> tuple[Problem, Problem]:
    """The same problem over rows in memory, and over compressed blocks."""
    X = matrix(101, 6)
    bias = 0.0 if options["intercept"] == "none" else 1.0
    rows, y = as_rows(X, bias), labels(X, loss)
    assert isinstance(rows, Dense)
    own = packed(rows, np.arange(len(X)))
    return make_problem(rows, y, loss, C=0.5, **options), make_problem(own, y, loss, C=0.5, **options)


def own_rows(X: np.ndarray) -> Packed:
    """Rows in compressed blocks, as an estimator takes them."""
    return packed(as_rows(X), np.arange(len(X)))  # type: ignore[arg-type]


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("name", EVERY)
def test_own_rows_are_certified_or_refused_in_words(name: str, loss: Loss, intercept: str) -> None:
    plain, own = problems(loss, intercept=intercept)
    if name not in OVER_PASSES:
        with pytest.raises(ValueError, match=r"(place of their own \(Packed\).*use Newton\(\)|solver 'blocks' reads)"):
            fit(own, EVERY[name], LIMITS)
        return
    result = fit(own, EVERY[name], LIMITS)
    assert result.outcome is Outcome.CERTIFIED, result.message
    w = np.append(result.coef, result.intercept)
    true = evaluate(plain, Point(w, result.alpha), given_offset=True).certificate
    assert true.relative_gap <= 1.01 * LIMITS.tol + 1e-12
    known = fit(plain, EVERY[name], LIMITS)
    away = distance_bound(result.certificate.gap, known.certificate.gap)
    assert np.linalg.norm(result.coef - known.coef) <= away


def test_rows_in_a_place_of_their_own_with_bad_values_are_named_at_a_fit_and_at_a_prediction() -> None:
    X = matrix(40, 6)
    y = np.where(X[:, 0] > 0.0, 1, 0)
    model = LinearSVC(random_state=0).fit(own_rows(X), y)
    X[17, 2] = np.nan
    for work in (model.predict, lambda rows: LinearSVC().fit(rows, y)):
        with pytest.raises(ValueError, match=r"NaN in row 17"):
            work(own_rows(X))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("place", ["memory", "sparse", "files", "own"])
def test_one_text_of_a_solver_over_passes_serves_every_place(place: str, classes: int, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(LARGE, 60) if place == "files" else (400, 6))
    y = np.digitize(X[:, 0] + random.normal(size=len(X)), [0.0, 0.7][: classes - 1])
    given: dict[str, Any] = {"tol": 1e-3, "C": 1e-3, "random_state": 0}
    known = LinearSVC(**given).fit(X, y)
    rows: Any = {"sparse": csr, "own": own_rows, "files": lambda X: mapped(X, tmp_path)}.get(place, np.asarray)(X)
    memory = "16M" if place == "files" else None
    made = LinearSVC(solver=TwoPointDescent(), memory=memory, **given).fit(rows, y)
    assert fitted_value(made).reads_blocks is (place == "files")
    assert made.outcome_ is Outcome.CERTIFIED
    for k, (one, other) in enumerate(zip(made.certificates_, known.certificates_, strict=True)):
        assert np.linalg.norm(made.coef_[k] - known.coef_[k]) <= distance_bound(one.gap, other.gap)


@pytest.mark.parametrize("penalty", [L1(), ElasticNet(0.5)], ids=named)
@pytest.mark.parametrize("name", EVERY)
def test_other_penalties_are_refused_in_words(name: str, penalty: Any) -> None:
    _, own = problems(SquaredHinge(), intercept="regularized", penalty=penalty)
    with pytest.raises(ValueError, match=f"the solver {EVERY[name].name!r} |solver 'blocks'"):
        fit(own, EVERY[name], LIMITS)


@pytest.mark.parametrize("solver", [Newton(), Auto()], ids=repr)
def test_a_checkpoint_tells_rows_of_ones_own_apart(solver: Any, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "run")
    _, own = problems(Logistic(), intercept="regularized")
    first = fit(own, solver, LIMITS, checkpoint=checkpoint)
    assert np.array_equal(fit(own, solver, LIMITS, checkpoint=checkpoint).coef, first.coef)
    other = packed(as_rows(2.0 * matrix(101, 6), 1.0), own.members)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="belongs to another fit: rows"):
        fit(replace(own, place=other), solver, LIMITS, checkpoint=checkpoint)


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_classifier_takes_rows_of_ones_own(classes: int, intercept: Any) -> None:
    X = matrix(101, 6)
    y = np.digitize(X[:, 0], [0.0, 0.7][: classes - 1])
    known, own = (LinearSVC(intercept=intercept, tol=1e-6, random_state=0) for _ in range(2))
    known.fit(X, y)
    own.fit(own_rows(X), y)
    assert own.certificate_.relative_gap <= 1e-6
    assert own.n_features_in_ == 6
    away = distance_bound(own.certificate_.gap, known.certificate_.gap)
    assert np.linalg.norm(own.coef_ - known.coef_) <= away
    assert np.allclose(own.decision_function(own_rows(X)), own.decision_function(X), rtol=1e-12)
    assert own.score(own_rows(X), y) == own.score(X, y)
    for there, here in zip(certify_model(own, own_rows(X), y), certify_model(own, X, y), strict=True):
        assert np.isclose(there.primal, here.primal, rtol=1e-12)


def test_a_regression_takes_rows_of_ones_own() -> None:
    X = matrix(101, 6)
    y = X[:, 0] + 0.1 * X[:, 1] ** 2
    model = LinearSVR(tol=1e-6).fit(own_rows(X), y)
    known = LinearSVR(tol=1e-6).fit(X, y)
    away = distance_bound(model.certificate_.gap, known.certificate_.gap)
    assert np.linalg.norm(model.coef_ - known.coef_) <= away


def test_what_needs_rows_in_memory_is_refused_in_words() -> None:
    X = matrix(40, 3)
    y, own = np.where(X[:, 0] > 0, 1, -1), own_rows(X)
    for model in (LinearSVC(C="auto"), SVC()):
        with pytest.raises(ValueError, match=r"needs rows in memory or mapped files; .*\(Packed\)"):
            model.fit(own, y)
    for other in (LinearSVC(solver="dcd"), LinearSVC(penalty="l1"), LinearSVC(solver="blocks")):
        with pytest.raises(ValueError, match=r"place of their own \(Packed\)|solver 'blocks' reads"):
            other.fit(own, y)
    with pytest.raises(ValueError, match=r"a place of their own \(Packed\)"):
        LinearSVC(multi_class="crammer_singer").fit(own, np.arange(40) % 3)
    with pytest.raises(ValueError, match="rows for LinearSVC must have no virtual feature"):
        LinearSVC().fit(own.with_feature(1.0), y)
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match="NaN in row 7"):
        LinearSVC().fit(own_rows(X), y)
    with pytest.raises(TypeError, match="rows are a NumPy array or a CSR matrix; got Packed"):
        as_rows(own)
