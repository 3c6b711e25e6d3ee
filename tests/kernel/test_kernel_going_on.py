"""Kernel machines that begin where others ended: warm starts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_wine, make_moons
from sklearn.preprocessing import scale

import saddlesvm as ours
from saddlesvm import NotCertifiedWarning, Outcome
from saddlesvm.kernel.decomposition import Decomposition

MACHINES = {
    "SVC": {"C": 2.0}, "NuSVC": {"nu": 0.2}, "SVR": {"C": 2.0}, "NuSVR": {"nu": 0.4}, "OneClassSVM": {"nu": 0.2},
}  # fmt: skip


def machine(name: str, **options: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """A machine and its data: three classes, or targets."""
    kind = getattr(ours, name)
    model = kind(**{**MACHINES[name], "gamma": 0.05, **options})
    if name.endswith("SVC"):
        X, y = load_wine(return_X_y=True)
        order = np.random.default_rng(0).permutation(y.size)
        return model, scale(X)[order], y[order]
    X, y = load_diabetes(return_X_y=True)
    return model, scale(X[:150]) + 1.0, scale(y[:150])


def same_optimum(one: Any, other: Any) -> None:
    """Both certificates are true of one optimum."""
    for a, b in zip(one.certificates_, other.certificates_, strict=True):
        assert a.dual <= b.primal
        assert b.dual <= a.primal


@pytest.mark.parametrize("name", MACHINES)
def test_a_warm_start_reaches_the_same_optimum(name):
    model, X, y = machine(name, tol=1e-6, warm_start=True)
    again = clone(model).fit(X, y).fit(X, y)
    assert again.outcome_ is Outcome.CERTIFIED
    other = "nu" if "nu" in MACHINES[name] else "C"
    again.set_params(**{other: 1.5 * MACHINES[name][other]}).fit(X, y)
    fresh = clone(again).set_params(warm_start=False).fit(X, y)
    same_optimum(again, fresh)


def test_classes_that_overlap_leave_no_margin_until_nu_is_raised():
    X, y = make_moons(150, noise=0.3, random_state=0)
    with pytest.warns(NotCertifiedWarning, match="nu is too small"):
        ours.NuSVC(nu=0.1, kernel="linear").fit(X, y)
    assert ours.NuSVC(nu=0.8, kernel="linear").fit(X, y).outcome_ is Outcome.CERTIFIED


@pytest.mark.parametrize("name", MACHINES)
def test_a_fit_that_was_stopped_goes_on(name):
    model, X, y = machine(name, tol=1e-5, warm_start=True, solver=Decomposition(working_set=8))
    X, y = np.vstack([X, X + 0.1, X - 0.1, X + 0.2, X - 0.2]), np.tile(y, 5)  # more rows than are solved at once
    model.set_params(cache_size=1, max_iter=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        model.fit(X, y)
    assert model.outcome_ is Outcome.EPOCH_LIMIT
    model.set_params(max_iter=-1).fit(X, y)
    assert model.outcome_ is Outcome.CERTIFIED
    same_optimum(model, clone(model).fit(X, y))
