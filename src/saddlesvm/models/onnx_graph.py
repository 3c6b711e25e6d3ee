"""Export fitted estimators to ONNX, alone or in a pipeline; this needs the extra ``onnx``.

The weights are put into scikit-learn's class with the same predictions, which skl2onnx converts.
Models that scikit-learn's classes cannot express are refused.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from skl2onnx import to_onnx as skl2onnx_to_onnx
from sklearn import svm
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_is_fitted

from saddlesvm.estimators.cross_validation import LinearSVCCV
from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.kernel.svc import SVC, NuSVC
from saddlesvm.kernel.svm import SVR, NuSVR, OneClassSVM
from saddlesvm.problem.loss import loss_name
from saddlesvm.rows.scores import dense_weights
from saddlesvm.runtime.data_types import RowsLike

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from saddlesvm.estimators.base import Estimator

__all__ = ["to_onnx"]

KERNELS = ("linear", "rbf", "poly", "sigmoid")
MACHINES = (
    (SVC, svm.SVC),
    (NuSVC, svm.NuSVC),
    (SVR, svm.SVR),
    (NuSVR, svm.NuSVR),
    (OneClassSVM, svm.OneClassSVM),
)
BINARY_CLASSES = np.array([0, 1])  # of a machine for one class


def to_onnx(model: Estimator, X: Any, **options: Any) -> Any:
    """Return the ONNX model of a fitted estimator or pipeline.

    Parameters
    ----------
    model : estimator or Pipeline
        LinearSVC, LinearSVCCV, LinearSVR, SVC, NuSVC, SVR, NuSVR or OneClassSVM, or a pipeline of
        scikit-learn's transformers that ends with it. Kernels: linear, rbf, poly and sigmoid.
    X : array-like of shape (n, d)
        At least a row, for the number of features; the graph takes float32 rows. For a pipeline
        with a ``ColumnTransformer``, a data frame: each column becomes an input, of float32 if it
        is of float64; or None, with ``initial_types`` of skl2onnx among the options.
    **options
        Options of ``skl2onnx.to_onnx``.

    Returns
    -------
    onnx.ModelProto
        It has the outputs of scikit-learn's machines, in float32. Classifiers give ``label``, shape
        (n,), and ``probabilities``, shape (n, classes): those of the logistic loss, else the
        scores of ``decision_function``. Scores of two classes are one column for LinearSVC, and
        two for SVC and NuSVC, of which the second is the score.
        Regressions give ``variable``, shape (n, targets); OneClassSVM gives ``label`` and
        ``scores``.

    Raises
    ------
    ValueError
        scikit-learn has no class with these predictions: other kernels, ``break_ties`` with more
        than two classes, several labels, or ``multi_class="ovo"``; or an imputer marks gaps.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> from saddlesvm.onnx import to_onnx
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(random_state=0).fit(notes.X, notes.y)
    >>> [output.name for output in to_onnx(model, notes.X[:1]).graph.output]
    ['label', 'probabilities']
    """
    if isinstance(model, Pipeline):
        _refuse_gap_marks(model)
    if _has_columns(model, X):
        X = X.astype({name: np.float32 for name, kind in X.dtypes.items() if kind == np.float64})
    elif X is not None:
        X = np.asarray(X, dtype=np.float32)
    last = model
    if isinstance(model, Pipeline):
        last = model.steps[-1][1]
    counterpart = make_counterpart(last)

    # Options of the converter by the id of an estimator: scores as arrays; the user's come first.
    converter_options = dict(options.pop("options", None) or {})
    defaults: dict[str, Any] = {}
    if is_classifier(counterpart):
        defaults["zipmap"] = False
    if isinstance(counterpart, svm.SVC | svm.NuSVC):
        defaults["raw_scores"] = True
    elif isinstance(counterpart, svm.LinearSVC):
        # Without options, skl2onnx gives it one that it does not have.
        defaults = {"nocl": False}
    if defaults:
        given = dict(converter_options.pop(id(last), {}))
        converter_options[id(counterpart)] = defaults | given
    converted = counterpart
    if isinstance(model, Pipeline):
        converted = Pipeline([*model.steps[:-1], (model.steps[-1][0], counterpart)])
    with warnings.catch_warnings():
        # skl2onnx reads the attributes of probabilities of every SVC.
        warnings.filterwarnings("ignore", "Attribute `prob", FutureWarning)
        return skl2onnx_to_onnx(converted, X, options=converter_options or None, **options)


def make_counterpart(model: Estimator) -> BaseEstimator:
    """Return the fitted estimator of scikit-learn with the same labels and scores.

    Raises
    ------
    ValueError
        scikit-learn has no such estimator.
    NotFittedError
        The model is not fitted.
    """
    kinds = (LinearSVC, LinearSVR, LinearSVCCV, *(ours for ours, _ in MACHINES))
    if isinstance(model, kinds):
        check_is_fitted(model)
    if isinstance(model, LinearSVCCV):
        model = model.best_estimator_
    if isinstance(model, LinearSVR):
        made = LinearRegression()
        made.coef_, made.intercept_ = _weights(model)
        made.n_features_in_ = model.n_features_in_
        return made
    if isinstance(model, LinearSVC):
        return _linear_classifier(model)
    for ours, theirs in MACHINES:
        if isinstance(model, ours):
            return _kernel_machine(model, theirs)
    raise ValueError(
        f"a {type(model).__name__} cannot be exported to ONNX: give a fitted machine of saddlesvm, "
        "or a pipeline that ends with one"
    )


def _has_columns(model: Estimator, X: RowsLike) -> bool:
    """Return True if each column is an input, because a ``ColumnTransformer`` needs them apart."""
    steps = [model]
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps]
    return hasattr(X, "columns") and any(isinstance(step, ColumnTransformer) for step in steps)


def _refuse_gap_marks(step: BaseEstimator) -> None:
    """Raise ValueError for an imputer that marks gaps: skl2onnx would leave its marks out."""
    if isinstance(step, Pipeline):
        for _, part in step.steps:
            _refuse_gap_marks(part)
    elif isinstance(step, ColumnTransformer):
        for part in step.named_transformers_.values():
            _refuse_gap_marks(part)
    indicator = getattr(step, "indicator_", None)
    if indicator is not None and indicator.features_.size:
        raise ValueError(
            "ONNX has no counterpart for features that mark gaps: fit with "
            "SimpleImputer(add_indicator=False), or fill the gaps before"
        )


def _weights(model: Estimator) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights, shape (k, d), and intercepts, shape (k,), of a linear model."""
    coef = np.atleast_2d(dense_weights(model.coef_)).astype(np.float64)
    return coef, np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(coef))


def _linear_classifier(model: Estimator) -> BaseEstimator:
    """Return scikit-learn's linear classifier, or one for each class."""
    if getattr(model, "multilabel_", False):
        raise ValueError(
            "ONNX has no counterpart for several labels: export a machine for each label"
        )
    if model.multi_class == "ovo" and model.classes_.size > 2:
        raise ValueError("ONNX has no counterpart for pairs of classes: use multi_class='ovr'")
    coef, intercept = _weights(model)
    classes = _labels(model.classes_)
    is_joint = model.multi_class == "multinomial"
    if not is_joint and loss_name(model._check_options()) != "logistic":
        return _with_weights(svm.LinearSVC(), coef, intercept, classes)
    if classes.size == 2 or is_joint:
        return _with_weights(LogisticRegression(), coef, intercept, classes)

    # Probabilities of each class against the rest.
    made = OneVsRestClassifier(LogisticRegression())
    made.estimators_ = [
        _with_weights(LogisticRegression(), w, b, BINARY_CLASSES)
        for w, b in zip(coef, intercept, strict=True)
    ]
    made.label_binarizer_ = LabelBinarizer(sparse_output=True).fit(classes)
    made.classes_ = made.label_binarizer_.classes_
    made.n_features_in_ = model.n_features_in_
    return made


def _with_weights(
    made: BaseEstimator, coef: np.ndarray, intercept: ArrayLike, classes: np.ndarray
) -> BaseEstimator:
    """Set the weights of a linear classifier of scikit-learn, and return it."""
    made.coef_ = np.atleast_2d(coef)
    made.intercept_ = np.atleast_1d(intercept)
    made.classes_ = classes
    made.n_features_in_ = made.coef_.shape[1]
    return made


def _labels(classes: np.ndarray) -> np.ndarray:
    """Return the classes in the types of ONNX: int64 or text."""
    if classes.dtype.kind in "biuf":
        return classes.astype(np.int64)
    return classes.astype(str)


def _kernel_machine(model: Estimator, kind: type[BaseEstimator]) -> BaseEstimator:
    """Return scikit-learn's kernel machine with the support vectors of a model."""
    kernel = model.kernel_
    if kernel.name not in KERNELS:
        raise ValueError(
            f"ONNX has no counterpart for the kernel {model.kernel!r}; use one of "
            f"{', '.join(KERNELS)}"
        )
    classes = getattr(model, "classes_", None)
    has_many_classes = classes is not None and classes.size > 2
    if has_many_classes and model.break_ties:
        raise ValueError(
            "ONNX has no counterpart for break_ties=True with more than two classes: fit without it"
        )
    made = kind(kernel=kernel.name, degree=kernel.degree, gamma=kernel.gamma, coef0=kernel.coef0)
    # Set what a fit of scikit-learn sets, because converters to ONNX read it.
    dual = dense_weights(model.dual_coef_)
    made.support_ = np.asarray(model.support_, dtype=np.int32)
    made.support_vectors_ = np.ascontiguousarray(dense_weights(model.support_vectors_), np.float64)
    made.dual_coef_ = dual
    made.intercept_ = np.asarray(model.intercept_, dtype=np.float64)
    made.n_features_in_ = model.n_features_in_
    made.shape_fit_ = (len(made.support_), model.n_features_in_)
    made.fit_status_ = 0
    made.class_weight_ = np.empty(0)
    # scikit-learn keeps both signs: LIBSVM's scores of two classes are positive for the first.
    sign = 1.0
    if classes is not None and classes.size == 2:
        sign = -1.0
    made._dual_coef_ = sign * dual
    made._intercept_ = sign * made.intercept_
    made._gamma = float(kernel.gamma)
    made._sparse = False
    if kind is svm.OneClassSVM:
        made.offset_ = -model.intercept_
    made._probA = np.empty(0)
    made._probB = np.empty(0)
    counts: Any = [len(made.support_), 0]
    if classes is not None:
        counts = model.n_support_
    made._n_support = np.asarray(counts, dtype=np.int32)
    if classes is not None:
        made.classes_ = _labels(classes)
        made.decision_function_shape = getattr(model, "decision_function_shape", "ovr")
    return made
