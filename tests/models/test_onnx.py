"""Exported ONNX models give the labels, scores and probabilities of the estimators."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from saddlesvm import SVC, SVR, LinearSVC, LinearSVCCV, LinearSVR, NuSVC, NuSVR, OneClassSVM

skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of skl2onnx and NumPy's newest


def data_of(loader: Any) -> tuple[np.ndarray, np.ndarray]:
    """Scaled rows, exact in float32, and labels."""
    X, y = loader(return_X_y=True)
    return scale(X).astype(np.float32), y


IRIS = data_of(load_iris)
CANCER = data_of(load_breast_cancer)
NAMED = (IRIS[0], np.array(["setosa", "versicolor", "virginica"])[IRIS[1]])
SEVERAL = (IRIS[0], np.column_stack([IRIS[1] == 0, IRIS[0][:, 0] > 0.0, IRIS[1] == 2]).astype(int))
DIABETES = data_of(load_diabetes)


def outputs(model: Any, X: np.ndarray, **options: Any) -> dict[str, np.ndarray]:
    from saddlesvm.onnx import to_onnx

    made = to_onnx(model, X[:1], **options).SerializeToString()
    session = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: X}), strict=True))


CLASSIFIERS = [
    (LinearSVC(), CANCER),
    (LinearSVC(), IRIS),
    (LinearSVC(intercept="free"), NAMED),
    (LinearSVC(intercept="none", loss="hinge"), IRIS),
    (LinearSVC(penalty="l1"), CANCER),
    (LinearSVC(loss="logistic"), CANCER),
    (LinearSVC(loss="logistic"), NAMED),
    (LinearSVC(multi_class="crammer_singer"), IRIS),
    (LinearSVC(multi_class="multinomial"), IRIS),
    (LinearSVC(multi_class="multinomial"), CANCER),
    (LinearSVCCV(LinearSVC(loss="logistic"), Cs=3, cv=3), CANCER),
    (make_pipeline(StandardScaler(), LinearSVC(loss="logistic")), CANCER),
    (make_pipeline(StandardScaler(), LinearSVC()), NAMED),
    (SVC(), CANCER),
    (SVC(), NAMED),
    (SVC(kernel="linear"), IRIS),
    (SVC(kernel="poly", degree=2, coef0=1.0), CANCER),
    (SVC(kernel="sigmoid"), IRIS),
    (SVC(decision_function_shape="ovo"), IRIS),
    (NuSVC(nu=0.2), CANCER),
    (NuSVC(nu=0.2), IRIS),
]


@pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")  # the sigmoid kernel is indefinite
@pytest.mark.parametrize(("model", "data"), CLASSIFIERS, ids=lambda one: repr(one) if hasattr(one, "fit") else "")
def test_classifiers(model: Any, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model.fit(X, y)
    found = outputs(model, X)
    labels = found["label"].reshape(model.predict(X).shape)
    assert np.array_equal(labels, model.predict(X))
    got = found["probabilities"]
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(got, model.predict_proba(X), atol=1e-5)
        return
    scores = model.decision_function(X)
    if scores.ndim == 1:
        got = got[:, -1]
    np.testing.assert_allclose(got, scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("model", [LinearSVR(), LinearSVR(loss="squared"), SVR(), NuSVR(kernel="poly")], ids=repr)
def test_regressions(model: Any) -> None:
    X, y = DIABETES
    model.fit(X, scale(y))
    np.testing.assert_allclose(outputs(model, X)["variable"][:, 0], model.predict(X), rtol=1e-4, atol=1e-4)


def test_several_targets() -> None:
    X, y = DIABETES
    model = LinearSVR().fit(X, np.column_stack([y, -y]))
    np.testing.assert_allclose(outputs(model, X)["variable"], model.predict(X), rtol=1e-4, atol=1e-4)


def test_novelty() -> None:
    X = CANCER[0]
    model = OneClassSVM(nu=0.1).fit(X)
    found = outputs(model, X)
    scores = model.decision_function(X)
    clear = np.abs(scores) > 1e-5  # support vectors lie on the boundary, to rounding
    assert np.array_equal(found["label"].ravel()[clear], model.predict(X)[clear])
    np.testing.assert_allclose(found["scores"][:, 0], scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [SVC, NuSVC], ids=lambda one: one.__name__)
def test_sparse_support_vectors(kind: Any) -> None:
    X, y = IRIS
    rows = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    model = kind().set_params(**({"nu": 0.1} if kind is NuSVC else {})).fit(rows, y)
    assert np.array_equal(outputs(model, rows.toarray())["label"], model.predict(rows))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVC(break_ties=True), "break_ties=True"),
        (LinearSVC(multi_class="ovo"), "pairs of classes: use multi_class='ovr'"),
    ],
    ids=repr,
)
def test_what_scikit_learn_cannot_express_is_refused(model: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        outputs(model.fit(*IRIS), IRIS[0])


def test_functions_as_kernels_are_refused() -> None:
    with pytest.raises(ValueError, match="no counterpart for the kernel"):
        outputs(SVC(kernel=laplacian_kernel).fit(*IRIS), IRIS[0])


def test_several_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="several labels: export a machine for each label"):
        outputs(LinearSVC(loss="logistic").fit(*SEVERAL), SEVERAL[0])


def test_other_estimators_are_refused() -> None:
    with pytest.raises(ValueError, match="a StandardScaler cannot be exported to ONNX"):
        outputs(StandardScaler().fit(IRIS[0]), IRIS[0])


def test_without_its_packages_the_import_says_what_to_install() -> None:
    script = "import sys; sys.modules['skl2onnx'] = None; import saddlesvm.onnx"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "export to ONNX needs the package 'skl2onnx': install it" in ended.stderr
    assert "pip install '.[onnx]'" in ended.stderr


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR, LinearSVCCV, SVC, OneClassSVM])
def test_a_machine_that_is_not_fitted_is_refused(kind: Any) -> None:
    from saddlesvm.onnx import to_onnx

    with pytest.raises(NotFittedError):
        to_onnx(kind(), np.eye(2))
