"""The value that a fit of a kernel machine leaves behind, and the face that an estimator shows of it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale

import saddlesvm as ours
from saddlesvm import certify_kernel
from saddlesvm.kernel.kernel_fitted import held_machine, make_machine

X, y = load_iris(return_X_y=True)
X = scale(X)
MACHINES = {
    "SVC": {"gamma": 0.3}, "NuSVC": {"nu": 0.2}, "SVR": {"kernel": "linear"}, "NuSVR": {"nu": 0.4},
    "OneClassSVM": {"nu": 0.2},
}  # fmt: skip


def fitted(name: str, **options: Any) -> Any:
    """A machine, fitted to iris."""
    return getattr(ours, name)(**MACHINES[name] | options).fit(X, y)


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_made_of_a_fit_predicts_alike(name):
    model = fitted(name)
    again = make_machine(held_machine(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.get_params() == model.get_params()
    assert again.certificate_ == model.certificate_


@pytest.mark.parametrize("name", MACHINES)
def test_parameters_changed_after_a_fit_count_from_the_next_fit_on(name):
    model = fitted(name)
    before = model.predict(X)
    certificate = certify_kernel(model, X, y)
    model.set_params(kernel="rbf", gamma=7.0, tol=0.5)
    np.testing.assert_array_equal(model.predict(X), before)
    assert certify_kernel(model, X, y) == certificate


@pytest.mark.parametrize("name", MACHINES)
def test_arrays_assigned_by_hand_count(name):
    model = fitted(name)
    before = model.predict(X)
    model.intercept_ = model.intercept_ - 10.0
    assert (model.predict(X) != before).any()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("name", MACHINES)
def test_a_failed_fit_leaves_the_machine_as_it_was(name):
    model = fitted(name)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="tol"):
        model.set_params(tol=-1.0).fit(X, y)
    after = dict(vars(model))
    assert after.pop("tol") == -1.0
    del before["tol"]
    assert all(after[name] is value for name, value in before.items())


def test_how_classes_are_shown_may_change_after_the_fit_as_in_scikit_learn():
    model = fitted("SVC")
    assert model.decision_function(X).shape == (150, 3)
    model.decision_function_shape = "ovo"
    pairs = model.decision_function(X)
    np.testing.assert_array_equal(pairs[:, 0] > 0.0, pairs[:, 0] >= 0.0)


@pytest.mark.parametrize("name", [*MACHINES, "LinearSVC", "LinearSVR"])
def test_an_estimator_is_a_thin_face(name):
    kind = getattr(ours, name)
    assert len(kind.__mro__) <= 9
    shown = {attribute for attribute in dir(kind) if not attribute.startswith("_")}
    parameters = set(kind().get_params())
    assert len(shown - parameters) <= 25
    # An option of another estimator is no attribute of this one.
    for other in (*MACHINES, "LinearSVC", "LinearSVR"):
        assert not (set(getattr(ours, other)().get_params()) - parameters) & shown
