"""What a fit leaves behind is a value: models, copies and files follow from it, and nobody changes it."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification

from saddlesvm import LinearSVC, LinearSVR, load, save
from saddlesvm.estimators.fitted import copy_options, fitted_value, make_model
from support.classes import blobs

X, Y = blobs(90, 4, 3)
INDICATOR = make_multilabel_classification(90, 4, n_classes=3, random_state=0)[1]
MODELS: list[tuple[Any, Any]] = [
    (LinearSVC(random_state=0), Y),
    (LinearSVC(random_state=0), Y > 0),
    (LinearSVC(multi_class="ovo", random_state=0), Y),
    (LinearSVC(multi_class="multinomial", loss="logistic", random_state=0), Y),
    (LinearSVC(multi_class="crammer_singer", loss="hinge", random_state=0), Y > 0),
    (LinearSVC(loss="hinge", random_state=0), Y),
    (LinearSVC(random_state=0), INDICATOR),
    (LinearSVR(random_state=0), X[:, 0]),
    (LinearSVR(random_state=0), X[:, :2]),
]
EVERY = pytest.mark.parametrize(("template", "y"), MODELS)


def attributes(model: Any) -> dict[str, Any]:
    """Return the public attributes of a fitted model, the times of its kernels left out."""
    return {name: value for name, value in vars(model).items() if name[-1] == "_" and name != "seconds_compiling_"}


def assert_same(one: Any, other: Any) -> None:
    """Check that two models have the same public attributes and predictions."""
    mine, theirs = attributes(one), attributes(other)
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, theirs[name])
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


@EVERY
def test_a_model_follows_from_its_fit(template: Any, y: Any) -> None:
    model = clone(template).fit(X, y)
    again = make_model(fitted_value(model))
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert_same(model, again)
    np.testing.assert_array_equal(again.decision_bounds(X), model.decision_bounds(X))


@EVERY
def test_pickles_and_files_hold_the_fit_without_its_data(template: Any, y: Any, tmp_path: Path) -> None:
    model = clone(template).fit(X, y)
    model.decision_bounds(X)
    held = fitted_value(model)
    assert held.data is not None and held.proof is not None
    save(model, tmp_path / "model")
    for again in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model")):
        assert fitted_value(again).data is fitted_value(again).proof is None
        vars(again).pop("notes_", None)
        assert_same(model, again)
        np.testing.assert_array_equal(again.prove(X, y).decision_bounds(X), model.decision_bounds(X))


def test_nobody_changes_a_fit() -> None:
    model = LinearSVC(random_state=0).fit(X, Y)
    held = fitted_value(model)
    kept = held.coef.copy()
    with pytest.raises(dataclasses.FrozenInstanceError):
        held.coef = kept  # type: ignore[misc]
    model.settle(X)
    model.set_params(C=0.01, warm_start=True).fit(X, Y)
    np.testing.assert_array_equal(held.coef, kept)
    assert held.template.C == 1.0


def test_a_fit_that_fails_leaves_the_one_before() -> None:
    model = LinearSVC(random_state=0).fit(X, Y)
    held = fitted_value(model)
    with pytest.raises(ValueError, match="1 class only"):
        model.fit(X, np.zeros(len(X)))
    assert fitted_value(model) is held


def test_a_fit_shows_nothing_of_an_earlier_one() -> None:
    model = LinearSVC(C="auto:size=3", random_state=0).fit(X, Y)
    assert hasattr(model, "choice_")
    model.set_params(C=1.0).fit(X, Y)
    assert attributes(model).keys() == attributes(LinearSVC(random_state=0).fit(X, Y)).keys()


def test_each_call_of_partial_fit_makes_a_new_fit() -> None:
    model = LinearSVC(solver="pegasos", random_state=0).partial_fit(X[:40], Y[:40], classes=[0, 1, 2])
    first = fitted_value(model)
    kept = first.coef.copy()
    model.partial_fit(X[40:], Y[40:])
    second = fitted_value(model)
    assert first.stream is not None and second.stream is not None
    assert (first.stream.passes, second.stream.passes) == (1, 2)
    np.testing.assert_array_equal(first.coef, kept)
    assert not np.array_equal(second.coef, kept)


def test_options_are_copied_without_the_fit() -> None:
    model = LinearSVC(random_state=0).fit(X, Y)
    options = copy_options(model, C=3.0)
    assert not hasattr(options, "coef_") and options._fitted is None
    assert (options.C, model.C, options.n_features_in_) == (3.0, 1.0, 4)


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR])
def test_an_estimator_is_a_thin_face(kind: type) -> None:
    parameters = set(kind().get_params())
    members = {name for base in kind.__mro__ for name in vars(base) if not name.startswith("_")} - parameters
    assert len(kind.__mro__) <= 9
    assert len(members) <= 25
    assert len(parameters) <= 26
    model = kind()
    # scikit-learn leaves out of dir what is not there with these options, and nothing else is left out.
    assert not [name for name in members - set(dir(model)) if hasattr(model, name)]


def test_the_help_begins_with_what_a_newcomer_needs() -> None:
    text = LinearSVC.__doc__ or ""
    places = [text.index(part) for part in ("Parameters\n", "Examples\n", "Other Parameters\n", "Attributes\n")]
    assert places == sorted(places)
    newcomers = text[places[0] : places[1]]
    headers = [line for line in newcomers.splitlines() if line.startswith("    ") and " : " in line]
    listed = {line.split(" : ")[0].strip() for line in headers} & set(LinearSVC().get_params())
    assert len(listed) == 9
    assert all(f"{name} : " in text for name in LinearSVC().get_params())


@pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")
def test_a_model_cut_short_goes_on_from_its_fit() -> None:
    model = LinearSVC(max_iter=1, tol=1e-8, solver="dcd", warm_start=True, random_state=0).fit(X, Y)
    first = model.certificate_
    assert model.fit(X, Y).certificate_.gap < first.gap
