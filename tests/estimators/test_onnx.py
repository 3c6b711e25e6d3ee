"""Exported ONNX models give the labels, scores and probabilities of the estimators."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from saddlesvm import SVC, SVR, KernelSVC, LinearSVC, LinearSVCCV, LinearSVR, NuSVC, NuSVR, OneClassSVM

skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of skl2onnx and NumPy's newest

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
NAMED = (IRIS[0], np.array(["setosa", "versicolor", "virginica"])[IRIS[1]])
SEVERAL = (IRIS[0], np.column_stack([IRIS[1] == 0, IRIS[0][:, 0] > 5.8, IRIS[1] == 2]).astype(int))


def outputs(model: Any, X: np.ndarray, **options: Any) -> dict[str, np.ndarray]:
    from saddlesvm.onnx import to_onnx

    made = to_onnx(model, X[:1], **options).SerializeToString()
    session = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {session.get_inputs()[0].name: X}), strict=True))


CLASSIFIERS = [
    (LinearSVC(), CANCER),
    (LinearSVC(), IRIS),
    (LinearSVC(loss="logistic"), NAMED),
    (LinearSVC(loss="logistic"), SEVERAL),
    (LinearSVC(), SEVERAL),
    (LinearSVC(multi_class="ovo"), NAMED),
    (LinearSVC(multi_class="ovo", decision_function_shape="ovo"), IRIS),
    (LinearSVC(multi_class="crammer_singer"), IRIS),
    (LinearSVC(multi_class="multinomial"), IRIS),
    (LinearSVC(multi_class="multinomial"), CANCER),
    (LinearSVC(probability=True), IRIS),
    (LinearSVC(probability=True), SEVERAL),
    (LinearSVC(multi_class="ovo", probability=True), IRIS),
    (LinearSVC(multi_class="crammer_singer", probability=True), IRIS),
    (LinearSVCCV(LinearSVC(loss="logistic"), Cs=3, cv=3), CANCER),
    (make_pipeline(StandardScaler(), LinearSVC(loss="logistic")), CANCER),
    (KernelSVC(kernel="poly"), IRIS),
    (KernelSVC(multi_class="ovo"), NAMED),
    (SVC(), CANCER),
    (SVC(kernel="linear"), IRIS),
    (SVC(kernel="sigmoid", break_ties=True), IRIS),
    (SVC(decision_function_shape="ovo"), IRIS),
    (SVC(probability=True), NAMED),
    (NuSVC(nu=0.2, probability=True), CANCER),
]


@pytest.mark.filterwarnings("ignore::saddlesvm.NotCertifiedWarning")
@pytest.mark.parametrize(("model", "data"), CLASSIFIERS, ids=lambda one: repr(one) if hasattr(one, "fit") else "")
def test_classifiers(model: Any, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model.fit(X, y)
    for kind, tolerance in ((np.float32, 1e-5), (np.float64, 1e-9)):
        rows = X.astype(kind)
        found = outputs(model, rows)
        if hasattr(model, "predict_proba"):
            expected, got = model.predict_proba(rows), found["probabilities"]
        else:
            expected, got = model.decision_function(rows), found["probabilities"]
        assert np.array_equal(found["label"], model.predict(rows))
        assert got.dtype == kind
        np.testing.assert_allclose(got, expected.reshape(got.shape), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("model", [LinearSVR(), SVR(), NuSVR(kernel="poly")], ids=repr)
def test_regressions(model: Any) -> None:
    X, y = load_diabetes(return_X_y=True)
    model.fit(X, y)
    np.testing.assert_allclose(outputs(model, X)["variable"][:, 0], model.predict(X), rtol=1e-9)


def test_several_targets() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = LinearSVR().fit(X, np.column_stack([y, -y]))
    np.testing.assert_allclose(outputs(model, X)["variable"], model.predict(X), rtol=1e-9)


def test_novelty() -> None:
    X = CANCER[0]
    model = OneClassSVM(nu=0.1).fit(X)
    found = outputs(model, X)
    assert np.array_equal(found["label"], model.predict(X))
    np.testing.assert_allclose(found["scores"][:, 0], model.decision_function(X), rtol=1e-9, atol=1e-9)


def test_scores_where_there_are_probabilities() -> None:
    X, y = CANCER
    model = make_pipeline(StandardScaler(), LinearSVC(loss="logistic")).fit(X, y)
    found = outputs(model, X, options={"raw_scores": True})
    np.testing.assert_allclose(found["probabilities"][:, 0], model.decision_function(X), rtol=1e-9, atol=1e-9)


def test_skl2onnx_knows_the_estimators_itself() -> None:
    model = LinearSVC().fit(*CANCER)
    made = skl2onnx.to_onnx(model, CANCER[0][:1], options={"zipmap": False})
    assert [output.name for output in made.graph.output] == ["label", "probabilities"]


@pytest.mark.parametrize("data", [CANCER, NAMED], ids=["numbers", "names"])
@pytest.mark.parametrize("zipmap", [None, True, False])
def test_the_outputs_are_named_as_those_of_scikit_learns_machines(
    data: tuple[np.ndarray, np.ndarray], zipmap: bool | None
) -> None:
    import saddlesvm.onnx  # noqa: F401 (skl2onnx knows the machines once it is imported)

    X, y = data
    rows = X[:5].astype(np.float32)
    results = []
    for model in (LinearSVC(loss="logistic").fit(X, y), LogisticRegression(max_iter=10_000).fit(X, y)):
        options = None if zipmap is None else {id(model): {"zipmap": zipmap}}
        made = skl2onnx.to_onnx(model, rows[:1], options=options)
        session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        results.append((names, session.run(None, {session.get_inputs()[0].name: rows})))
    (own, values), (other, theirs) = results
    assert own == other
    assert type(values[1]) is type(theirs[1])
    if zipmap is not False:
        assert values[1][0].keys() == theirs[1][0].keys()
        expected = LinearSVC(loss="logistic").fit(X, y).predict_proba(rows)
        np.testing.assert_allclose([list(one.values()) for one in values[1]], expected, rtol=1e-4, atol=1e-5)


def test_kernels_that_onnx_cannot_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="no counterpart for the kernel 'laplacian'"):
        outputs(SVC(kernel="laplacian").fit(*IRIS), IRIS[0])


def test_without_its_packages_the_import_says_what_to_install() -> None:
    script = "import sys; sys.modules['skl2onnx'] = None; import saddlesvm.onnx"
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "export to ONNX needs the package 'skl2onnx': pip install 'saddlesvm[onnx]'" in ended.stderr
