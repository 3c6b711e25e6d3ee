"""Kernel machines from LIBSVM's text models."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from saddlesvm.data import DataError
from saddlesvm.data.libsvm_model import read_libsvm_model
from saddlesvm.estimators.base import Labels
from saddlesvm.kernel.kernel_fitted import KernelFitted, make_machine
from saddlesvm.kernel.mercer import Kernel, dense_if_quicker
from saddlesvm.kernel.svc import SVC, NuSVC
from saddlesvm.kernel.svm import SVR, NuSVR, OneClassSVM

if TYPE_CHECKING:
    from saddlesvm.kernel.kernel_machine import KernelMachine

TYPES: dict[type, str] = {
    SVC: "c_svc", NuSVC: "nu_svc", OneClassSVM: "one_class", SVR: "epsilon_svr", NuSVR: "nu_svr",
}  # fmt: skip
PARAMETERS = ("degree", "gamma", "coef0")


def load_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> KernelMachine:
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
    # With a precomputed kernel a support vector is the number of a training row: X has a column for
    # each.
    least = int(stored.rows.max(initial=-1)) + 1 if given else stored.vectors.shape[1]
    width = least if n_features is None else n_features
    if width < least:
        raise DataError(
            f"{os.fspath(path)}: the model has {least} features; n_features={n_features} is too "
            "small"
        )
    kind = next(one for one, name in TYPES.items() if name == stored.svm_type)
    parameters = {name: getattr(stored, name) for name in PARAMETERS}
    template: Any = kind(kernel=stored.kernel, **parameters)
    template.n_features_in_ = width
    vectors: Any = np.empty((0, width))
    if not given:
        parts = (stored.vectors.data, stored.vectors.indices, stored.vectors.indptr)
        rows = sparse.csr_array(parts, shape=(stored.rows.size, width))
        vectors = dense_if_quicker(rows)

    # Scores of two classes are positive for the later class here, for the earlier one in LIBSVM.
    labels = stored.labels
    is_binary = labels is not None and labels.size == 2
    sign = -1.0 if is_binary else 1.0
    total = np.array([stored.rows.size], dtype=np.int32)
    fitted = KernelFitted(
        template=template,
        kernel=Kernel(stored.kernel, stored.gamma, stored.degree, stored.coef0),
        support=stored.rows,
        vectors=vectors,
        n_support=total if stored.n_support is None else stored.n_support,
        duals=sign * stored.dual_coef,
        # LIBSVM's score is a sum less rho.
        intercept=-sign * stored.rho,
        labels=None if labels is None else Labels(labels),
        notes={"written by": f"LIBSVM ({stored.svm_type})"},
    )
    return make_machine(fitted)
