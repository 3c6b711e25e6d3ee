"""C and lambda far from 1: a certified model up to the limits, and a clear error before any work beyond them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification

from saddlesvm import SVC, SVR, AutomaticC, LinearSVC, LinearSVCCV, LinearSVR, NotCertifiedWarning, NuSVR, Outcome
from saddlesvm.cli import main
from saddlesvm.lab.comparison import compare

X, Y = make_classification(60, 4, flip_y=0.2, random_state=0)
BEYOND = [10**400, 10**5000, -(10**400), 1e308, 1.1e200, 0.9e-200, 1e-320, 0.0, float("nan")]
TASKS = {LinearSVR: X[:, 0], SVR: X[:, 0], NuSVR: X[:, 0]}


@pytest.mark.parametrize("given", BEYOND, ids=lambda one: str(one)[:8] if isinstance(one, float) else "whole")
@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR, SVC, SVR, NuSVR])
def test_no_strength_beyond_the_limits(kind: Any, given: Any) -> None:
    targets = TASKS.get(kind, Y)
    with pytest.raises(ValueError, match=r"C must be a positive finite number, from 1e-200 to 1e\+200.*; got"):
        kind(C=given).fit(X, targets)
    if "lam" in kind().get_params():
        with pytest.raises(ValueError, match="lam must be a positive finite number"):
            kind(lam=given).fit(X, targets)


@pytest.mark.parametrize("given", BEYOND, ids=lambda one: str(one)[:8] if isinstance(one, float) else "whole")
def test_no_strength_beyond_the_limits_on_paths(given: Any) -> None:
    allowed = r"a positive finite number, from 1e-200 to 1e\+200; got"
    asked: list[Any] = [
        lambda: LinearSVC().path(X, Y, C=(given, 1.0)),
        lambda: LinearSVC().path(X, Y, lam=(1.0, given)),
        lambda: LinearSVCCV(Cs=[1.0, given]).fit(X, Y),
        lambda: LinearSVC(C=AutomaticC(high=given)).fit(X, Y),
        lambda: compare(X, Y, solvers="dcd", C=given),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match=allowed):
            ask()


@pytest.mark.parametrize("name", ["tol", "gap", "max_time", "max_iter", "intercept_scaling"])
def test_whole_numbers_that_no_float_holds_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*; got a whole number of 1329 bits"):
        LinearSVC(**{name: 10**400}).fit(X, Y)


@pytest.mark.parametrize("given", [1e200, 1e-200, float("inf")])
def test_the_square_of_the_intercept_scaling_is_a_number(given: float) -> None:
    with pytest.raises(ValueError, match="intercept_scaling must be a positive finite number, from 1e-100 to 1e100"):
        LinearSVC(intercept_scaling=given).fit(X, Y)


@pytest.mark.parametrize("scale", [1e98, 1e125, 1e151, 3e151])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("solver", ["pegasos", "dcd", "sdca", "newton", "blocks", "columns", "auto"])
def test_an_end_without_proof_says_why(solver: str, loss: str, scale: float) -> None:
    for C, intercept, keep in [(1e5, "free", "best"), (1.0, "regularized", "last"), (1e-240 * scale, "free", "last")]:
        model = LinearSVC(loss=loss, solver=solver, C=C, intercept=intercept, keep=keep, max_iter=5, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X * scale, Y)
        proof = model.certificate_
        assert (model.outcome_ is Outcome.CERTIFIED) == (proof.relative_gap <= model.tol)
        if model.outcome_ is Outcome.CERTIFIED or model.outcome_ is Outcome.RULE_MET:
            continue
        assert model.outcome_.advice, model.outcome_
        paid = objective(model, X * scale)
        assert not paid > proof.primal * (1 + 1e-12), (C, intercept, keep)  # NaN where the arithmetic broke down


def objective(model: LinearSVC, rows: np.ndarray) -> float:
    """The objective of a model, in long double where the platform has it."""
    w, offset = np.longdouble(np.ravel(model.coef_)), np.longdouble(model.intercept_[0])
    with np.errstate(all="ignore"):
        margin = np.where(model.classes_[1] == Y, 1.0, -1.0) * (rows.astype(np.longdouble) @ w + offset)
        short = np.maximum(0.0, 1.0 - margin)
        paid = {"hinge": short, "squared_hinge": short * short, "logistic": np.logaddexp(0.0, -margin)}[model.loss]
        charged = w @ w + (offset * offset if model.intercept == "regularized" else 0.0)
        return 0.5 * charged + np.longdouble(model.C) * paid.sum()


@pytest.mark.parametrize("option", ["--C", "--lambda"])
@pytest.mark.parametrize("value", ["1e400", "1e308", "1e-320", "-1"])
def test_the_command_line_refuses_them_too(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "heart", f"{option}={value}"]) == 2
    assert "must be a positive finite number" in capsys.readouterr().err


@pytest.mark.parametrize("strength", [{"C": 1e-200}, {"C": 1e-60}, {"lam": 1e200}, {"lam": 1e60}])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_the_weakest_losses_have_a_certified_model(loss: str, strength: dict[str, float]) -> None:
    model = LinearSVC(loss=loss, **strength).fit(X, Y)
    at_zero = {"hinge": 1.0, "squared_hinge": 1.0, "logistic": np.log(2.0)}[loss]
    mean = strength["C"] * len(X) if "C" in strength else 1.0
    assert model.outcome_ is Outcome.CERTIFIED
    np.testing.assert_allclose(model.certificate_.primal, at_zero * mean, rtol=1e-6)


def test_a_fit_of_rows_beyond_single_precision_warns_of_its_end_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", NotCertifiedWarning)
        LinearSVC(loss="hinge", max_iter=5, random_state=0).fit(X * 1e98, Y)
