"""Kernel machines from LIBSVM's text models."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data import DataError
from saddlesvm.data.libsvm_model import read_libsvm_model
from saddlesvm.kernel.mercer import Kernel, dense_if_quicker
from saddlesvm.kernel.svc import SVC, NuSVC
from saddlesvm.kernel.svm import SVR, NuSVR, OneClassSVM

TYPES: dict[type, str] = {
    SVC: "c_svc", NuSVC: "nu_svc", OneClassSVM: "one_class", SVR: "epsilon_svr", NuSVR: "nu_svr",
}  # fmt: skip
PARAMETERS = ("degree", "gamma", "coef0")


def load_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> Any:
    """Read a LIBSVM text model: SVC, NuSVC, SVR, NuSVR or OneClassSVM, ready to predict.

    Parameters
    ----------
    path : path-like
    n_features : int, optional
        Of the rows to predict; the largest index of a support vector when left out, since the file
        does not state it. For a precomputed kernel the number of training rows.

    Returns
    -------
    estimator
        Its parameters beside the kernel's are defaults, its ``support_`` counts the vectors, and it
        has no certificate: the file holds none of that. ``notes_`` names the source.

    Raises
    ------
    DataError
        The file is damaged or foreign, or has more features than `n_features`.
    """
    stored = read_libsvm_model(path).with_ascending_labels()
    given = stored.kernel == "precomputed"
    least = int(stored.rows.max(initial=-1)) + 1 if given else stored.vectors.shape[1]
    width = least if n_features is None else n_features
    if width < least:
        raise DataError(
            f"{os.fspath(path)}: the model has {least} features; n_features={n_features} is too "
            "small"
        )
    kind = next(one for one, name in TYPES.items() if name == stored.svm_type)
    model: Any = kind(kernel=stored.kernel, **{name: getattr(stored, name) for name in PARAMETERS})
    model.kernel_ = Kernel(stored.kernel, stored.gamma, stored.degree, stored.coef0)
    model.support_ = stored.rows
    model.n_features_in_ = width
    if given:
        model.support_vectors_ = np.empty((0, width))
    else:
        parts = stored.vectors.data, stored.vectors.indices, stored.vectors.indptr
        model.support_vectors_ = dense_if_quicker(
            sparse.csr_array(parts, shape=(stored.rows.size, width))
        )
    sign = 1.0
    if stored.labels is not None:
        model.classes_ = stored.labels
        sign = -1.0 if stored.labels.size == 2 else 1.0
    total = np.array([stored.rows.size], dtype=np.int32)
    model.n_support_ = total if stored.n_support is None else stored.n_support
    model.dual_coef_ = sign * stored.dual_coef
    model.intercept_ = -sign * stored.rho
    if stored.sigmoids is not None:
        model.probability = True
        model.calibration_ = np.column_stack([-stored.sigmoids[0], stored.sigmoids[1]])
    model.notes_ = {"written by": f"LIBSVM ({stored.svm_type})"}
    return model
