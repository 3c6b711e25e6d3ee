"""What programs written for ``sklearn.svm`` find here: its names, its attributes, sparse where the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm as theirs
from sklearn.datasets import load_iris

import saddlesvm.svm as ours
from saddlesvm.models.persistence import load, save

X, Y = load_iris(return_X_y=True)
KINDS = ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"]


def test_the_module_has_the_same_names_and_c_max() -> None:
    assert sorted(ours.__all__) == sorted([*theirs.__all__, "C_max"])


@pytest.mark.parametrize(("name", "called"), [("squared_hinge", "squared_hinge"), ("logistic", "log")])
def test_models_are_empty_up_to_l1_min_c(name: Any, called: Any) -> None:
    labels = Y == 2
    first = ours.l1_min_c(X, labels, loss=called)
    empty, more = (
        ours.LinearSVC(penalty="l1", loss=name, C=factor * first, tol=1e-9).fit(X, labels) for factor in (0.99, 1.01)
    )
    assert not empty.coef_.any() and not empty.intercept_.any()
    assert more.coef_.any() or more.intercept_.any()


@pytest.mark.parametrize("name", KINDS)
def test_epochs_and_the_shape_of_the_rows_are_kept(name: str) -> None:
    other, own = (getattr(home, name)().fit(X, Y) for home in (theirs, ours))
    assert own.shape_fit_ == other.shape_fit_ == X.shape
    assert type(own.n_iter_) is type(other.n_iter_)
    assert np.shape(own.n_iter_) == np.shape(other.n_iter_)
    assert np.min(own.n_iter_) >= 1


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix, sparse.lil_array])
def test_sparse_rows_have_sparse_coefficients(name: str, kernel: str, container: Any, tmp_path: Any) -> None:
    other, own = (getattr(home, name)(kernel=kernel, tol=1e-8).fit(container(X), Y) for home in (theirs, ours))
    dense = getattr(ours, name)(kernel=kernel, tol=1e-8).fit(X, Y)
    assert own.dual_coef_.format == other.dual_coef_.format == "csr"
    assert isinstance(own.dual_coef_, sparse.sparray) == isinstance(own.support_vectors_, sparse.sparray)
    assert own.dual_coef_.shape == dense.dual_coef_.shape
    near = 10.0 * float(np.sqrt(2.0 * (own.certificate_.gap + dense.certificate_.gap))) + 1e-9
    if kernel == "linear":
        assert own.coef_.format == "csr"
        np.testing.assert_allclose(own.coef_.toarray(), dense.coef_, atol=near)
    score = "predict" if name in ("SVR", "NuSVR") else "decision_function"
    np.testing.assert_allclose(getattr(own, score)(X), getattr(dense, score)(X), atol=near)
    save(own, str(tmp_path / "model"))
    again = load(str(tmp_path / "model"))
    np.testing.assert_array_equal(getattr(again, score)(X), getattr(own, score)(X))
    np.testing.assert_array_equal(again.n_iter_, own.n_iter_)


@pytest.mark.parametrize("name", KINDS)
def test_a_callable_kernel_may_give_a_sparse_matrix(name: str) -> None:
    rows = sparse.csr_array(X)
    model = getattr(ours, name)(kernel=lambda A, B: A @ B.T, tol=1e-8).fit(rows, Y)
    same = getattr(ours, name)(kernel="linear", tol=1e-8).fit(rows, Y)
    score = "predict" if name in ("SVR", "NuSVR") else "decision_function"
    np.testing.assert_allclose(getattr(model, score)(rows), getattr(same, score)(rows), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*KINDS, "LinearSVC", "LinearSVR"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_attributes_have_the_shapes_of_scikit_learn(
    name: str, classes: int, kernel: str, container: Any, tmp_path: Any
) -> None:
    rows, y = container(X[: 50 * classes]), Y[: 50 * classes]
    options: dict[str, Any] = {} if name.startswith("Linear") else {"kernel": kernel}
    if name in ("NuSVC", "OneClassSVM"):
        options["nu"] = 0.3
    if name.endswith("SVR"):
        y = X[: 50 * classes, 0]
    found, other = getattr(ours, name)(**options).fit(rows, y), getattr(theirs, name)(**options).fit(rows, y)
    save(found, tmp_path / "model")
    again = load(tmp_path / "model")
    for attribute in ("coef_", "intercept_", "offset_", "classes_", "class_weight_", "shape_fit_", "n_features_in_"):
        if hasattr(other, attribute) and not (attribute == "coef_" and "Linear" not in name and kernel != "linear"):
            expected = np.shape(getattr(other, attribute))
            assert np.shape(getattr(found, attribute)) == np.shape(getattr(again, attribute)) == expected, attribute
            assert isinstance(getattr(found, attribute), np.ndarray) == isinstance(
                getattr(other, attribute), np.ndarray
            )
