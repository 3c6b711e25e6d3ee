"""Kernel machines written as LIBSVM text models, and read from them."""

from __future__ import annotations

import os
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data import DataError
from saddlesvm.data.liblinear import whole_labels
from saddlesvm.data.libsvm_model import LibsvmModel, check_libsvm_kernel, read_libsvm_model, write_libsvm_model
from saddlesvm.estimators.kernel_machine import duals_of
from saddlesvm.estimators.svc import SVC, NuSVC
from saddlesvm.estimators.svm import SVR, NuSVR, OneClassSVM
from saddlesvm.rows.kernels import Kernel, dense_if_quicker

TYPES: dict[type, str] = {
    SVC: "c_svc", NuSVC: "nu_svc", OneClassSVM: "one_class", SVR: "epsilon_svr", NuSVR: "nu_svr",
}  # fmt: skip
PARAMETERS = ("degree", "gamma", "coef0")


def save_libsvm(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted kernel machine as a LIBSVM text model, which LIBSVM's ``svm-predict`` and ours read.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
    path : path-like
        Written under a temporary name, then renamed.

    Raises
    ------
    DataError
        LIBSVM has no such machine or kernel, or the labels are not whole numbers.

    Examples
    --------
    >>> import tempfile
    >>> from saddlesvm import SVC, load
    >>> from saddlesvm.estimators.libsvm import save_libsvm
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = SVC().fit(notes.X, notes.y)
    >>> path = tempfile.mkdtemp() + "/notes.libsvm"
    >>> save_libsvm(model, path)
    >>> bool(
    ...     (
    ...         load(path).decision_function(notes.X) == model.decision_function(notes.X)
    ...     ).all()
    ... )
    True
    """
    kind = TYPES.get(type(model))
    if kind is None or not hasattr(model, "dual_coef_"):
        names = ", ".join(one.__name__ for one in TYPES)
        raise DataError(f"{os.fspath(path)}: LIBSVM's models are fitted {names}; got {type(model).__name__}")
    kernel = model.kernel_
    name = "poly" if kernel.metric == "polynomial" else kernel.name if isinstance(kernel.metric, str) else "a function"
    classes = getattr(model, "classes_", None)
    sign = -1.0 if classes is not None and classes.size == 2 else 1.0
    dual, places = duals_of(model), np.arange(model.support_.size)
    counts = None if classes is None else model.n_support_
    if classes is not None and dual.shape[0] > classes.size - 1:
        dual, places = by_class(dual, classes.size)
        counts = np.full(classes.size, model.support_.size)
    write_libsvm_model(
        path,
        LibsvmModel(
            kind, name, kernel.degree, kernel.gamma, kernel.coef0, sign * dual, -sign * model.intercept_,
            sparse.csr_array((places.size, 0)) if kernel.precomputed else model.support_vectors_[places],
            model.support_[places], classes, counts, sigmoids_of(model, path),
        ),
    )  # fmt: skip


def sigmoids_of(model: Any, path: str | os.PathLike[str]) -> np.ndarray | None:
    """LIBSVM's A and B of each pair, shape (2, pairs); None without probabilities.

    Raises
    ------
    DataError
        The curves are none that LIBSVM has.
    """
    curves = getattr(model, "calibration_", None)
    if curves is None:
        return None
    refuse_isotonic(model, os.fspath(path))
    if curves.ndim == 1:
        return np.repeat([-curves, [0.0]], model.intercept_.size, axis=1)
    return np.stack([model.probA_, model.probB_])


def refuse_isotonic(model: Any, where: str) -> None:
    """Raise DataError where probabilities are asked for that LIBSVM does not have."""
    if getattr(model, "probability", False) == "isotonic":
        raise DataError(f"{where}: LIBSVM has no isotonic probabilities; use probability='sigmoid'")


def check_libsvm(model: Any, path: str | os.PathLike[str], classes: np.ndarray | None) -> None:
    """Check before a fit that its model can be written as one of LIBSVM.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        Not fitted yet.
    path : path-like
    classes : ndarray or None
        The labels.

    Raises
    ------
    DataError
        As :func:`save_libsvm`.
    """
    where = os.fspath(path)
    refuse_isotonic(model, where)
    check_libsvm_kernel("poly" if model.kernel == "polynomial" else model.kernel, float(model.degree), where)
    if classes is not None:
        whole_labels(classes, where, "LIBSVM")


def by_class(dual: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of landmarks as LIBSVM has them: a pair's score is there a sum over the support vectors of its two
    classes, so that each class has all landmarks, and the earlier class of a pair their coefficients.

    Parameters
    ----------
    dual : ndarray of shape (pairs, m)
        A coefficient of each landmark in each pair.
    classes : int

    Returns
    -------
    dual : ndarray of shape (classes - 1, classes m)
    places : int ndarray of shape (classes m,)
        The landmark of each column.
    """
    m = dual.shape[1]
    found = np.zeros((classes - 1, classes * m))
    for row, (i, j) in zip(dual, combinations(range(classes), 2), strict=True):
        found[j - 1, i * m : (i + 1) * m] = row
    return found, np.tile(np.arange(m), classes)


def load_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> Any:
    """Read a LIBSVM text model: SVC, NuSVC, SVR, NuSVR or OneClassSVM, ready to predict.

    Parameters
    ----------
    path : path-like
    n_features : int, optional
        Of the rows to predict; the largest index of a support vector when left out, since the file does not state it.
        For a precomputed kernel the number of training rows.

    Returns
    -------
    estimator
        Its parameters beside the kernel's are defaults, its ``support_`` counts the vectors, and it has no
        certificate: the file holds none of that. ``notes_`` says where it comes from.

    Raises
    ------
    DataError
        The file is damaged or foreign, or has more features than `n_features`.
    """
    stored = read_libsvm_model(path).with_labels_ascending()
    given = stored.kernel == "precomputed"
    least = int(stored.rows.max(initial=-1)) + 1 if given else stored.vectors.shape[1]
    width = least if n_features is None else n_features
    if width < least:
        raise DataError(f"{os.fspath(path)}: the model has {least} features; n_features={n_features} is too small")
    kind = next(one for one, name in TYPES.items() if name == stored.svm_type)
    model: Any = kind(kernel=stored.kernel, **{name: getattr(stored, name) for name in PARAMETERS})
    model.kernel_ = Kernel(stored.kernel, stored.gamma, stored.degree, stored.coef0)
    model.support_, model.n_features_in_ = stored.rows, width
    if given:
        model.support_vectors_ = np.empty((0, width))
    else:
        parts = stored.vectors.data, stored.vectors.indices, stored.vectors.indptr
        model.support_vectors_ = dense_if_quicker(sparse.csr_array(parts, shape=(stored.rows.size, width)))
    sign = 1.0
    if stored.labels is not None:
        model.classes_, sign = stored.labels, -1.0 if stored.labels.size == 2 else 1.0
    total = np.array([stored.rows.size], dtype=np.int32)
    model.n_support_ = total if stored.n_support is None else stored.n_support
    model.dual_coef_, model.intercept_ = sign * stored.dual_coef, -sign * stored.rho
    if stored.sigmoids is not None:
        model.probability, model.calibration_ = True, np.column_stack([-stored.sigmoids[0], stored.sigmoids[1]])
    model.notes_ = {"written by": f"LIBSVM ({stored.svm_type})"}
    return model
