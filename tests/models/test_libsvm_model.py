"""LIBSVM's text models: a file that LIBSVM 3.x's rules make, predictions of scikit-learn's LIBSVM, and round trips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import svm as theirs
from sklearn.datasets import load_diabetes, load_wine
from sklearn.preprocessing import scale

import saddlesvm as ours
from saddlesvm.data import DataError
from saddlesvm.models.libsvm_models import MACHINES, load_libsvm
from saddlesvm.models.persistence import load
from support.libsvm_text import write_libsvm

KERNELS = [{"kernel": "linear"}, {"kernel": "rbf", "gamma": 0.1}, {"kernel": "poly", "degree": 2, "coef0": 1.0}]


def fitted(name: str, **options: Any) -> tuple[Any, np.ndarray]:
    """A model of three classes or targets, and rows to score."""
    if name.endswith("SVC"):
        X, y = load_wine(return_X_y=True)
        return getattr(ours, name)(**options).fit(scale(X), 10 - 3 * y), scale(X)
    X, y = load_diabetes(return_X_y=True)
    X = scale(X[:120]) + 1.0  # away from the origin, around which a linear one-class machine finds nothing
    return getattr(ours, name)(**options).fit(X, scale(y[:120])), X


def scores(model: Any, X: np.ndarray) -> np.ndarray:
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.mark.parametrize("options", KERNELS, ids=lambda one: one["kernel"])
@pytest.mark.parametrize("kind", MACHINES.values(), ids=lambda one: one.__name__)
def test_reading_back_changes_no_bit(kind, options, tmp_path):
    model, X = fitted(kind.__name__, **options)
    write_libsvm(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again) is kind
    np.testing.assert_array_equal(scores(again, X), scores(model, X))
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)


def test_two_classes(tmp_path):
    X, y = load_wine(return_X_y=True)
    X, y = scale(X[y < 2]), np.where(y[y < 2] == 0, 4, -7)
    model = ours.SVC().fit(X, y)
    write_libsvm(model, tmp_path / "m")
    again = load_libsvm(tmp_path / "m", n_features=X.shape[1])
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.classes_.tolist() == [-7, 4]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]])
def test_labels_in_any_order_mean_the_same(order, tmp_path):
    X, y = load_wine(return_X_y=True)
    labels = np.array([5, 9, 7])
    plain = theirs.SVC(gamma=0.1, decision_function_shape="ovo").fit(scale(X), labels[y])
    turned = theirs.SVC(gamma=0.1).fit(scale(X), np.argsort(order)[y])  # class order[k] is number k
    turned.classes_ = labels[order]  # LIBSVM takes classes as they come
    write_libsvm(turned, tmp_path / "m", gamma=0.1)
    model = load(tmp_path / "m").set_params(decision_function_shape="ovo")
    assert model.classes_.tolist() == [5, 7, 9]
    found = model.decision_function(scale(X))
    np.testing.assert_allclose(found, plain.decision_function(scale(X)), atol=5e-3)  # LIBSVM's tolerance is 1e-3
    np.testing.assert_array_equal(model.predict(scale(X)), plain.predict(scale(X)))


SMALL = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 3
rho 0.25
label 1 -1
nr_sv 1 2
SV
0.75 1:1 3:-0.5
-0.5 2:2
-0.25
"""


def test_a_file_says_what_it_says(tmp_path):
    path = tmp_path / "m"
    path.write_text(SMALL)
    model = load(path)
    x = np.array([[1.0, 1.0, 0.0]])
    vectors = np.array([[1.0, 0.0, -0.5], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    values = np.exp(-0.5 * ((x - vectors) ** 2).sum(axis=1))
    expected = values @ [0.75, -0.5, -0.25] - 0.25  # positive for the first label, 1, the later class here
    assert model.decision_function(x) == pytest.approx(expected, abs=1e-15)
    assert model.classes_.tolist() == [-1, 1]
    assert model.n_support_.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("c_svc", "d_svc", "svm_type 'd_svc'"),
        ("rbf", "spline", "kernel_type 'spline'"),
        ("rbf", "precomputed", "kernel_type 'precomputed'"),
        ("gamma 0.5", "gamma -1", "must not be negative"),
        ("gamma 0.5", "gamma nan", "finite numbers"),
        ("gamma 0.5\n", "", "'gamma' has 0 numbers"),
        ("total_sv 3", "total_sv 4", "add up"),
        ("total_sv 3", "total_sv 300000000", "add up"),
        ("rho 0.25", "rho 0.25 1", "'rho' has 2 numbers"),
        ("label 1 -1", "label 1 1", "must differ"),
        ("nr_class 2", "nr_class 70000", "70000 classes"),
        ("nr_sv 1 2", "nr_sv 4 -1", "add up"),
        ("SV\n", "SV\n1 1:1\n", "has 4 support vectors; its header says 3"),
        ("0.75 1:1", "inf 1:1", "NaN or infinity"),
        ("1:1 3:-0.5", "3:1 1:-0.5", "ascend"),
        ("1:1 3", "0:1 3", "ascend"),
        ("3:-0.5", "3:x", "INDEX:VALUE"),
        ("-0.25\n", "", "has 2 support vectors"),
        ("\nSV", "\nS", "not a line of a LIBSVM model"),
        ("nr_sv 1 2\nSV", "nr_sv 1 2", "not a line of a LIBSVM model"),
    ],
)
def test_damage_is_named(old, new, said, tmp_path):
    assert old in SMALL
    path = tmp_path / "m"
    path.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(DataError, match=said):
        load(path)


def test_a_width_below_that_of_the_vectors_is_refused(tmp_path):
    X, y = load_wine(return_X_y=True)
    write_libsvm(ours.SVC().fit(scale(X), y), tmp_path / "m")
    with pytest.raises(DataError, match="n_features=3 is too small"):
        load_libsvm(tmp_path / "m", n_features=3)
    assert load(tmp_path / "m").classes_.tolist() == [0, 1, 2]
