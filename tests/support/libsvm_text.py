"""LIBSVM's text of a fitted kernel machine, written as its README describes the format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

TYPES = {"SVC": "c_svc", "NuSVC": "nu_svc", "OneClassSVM": "one_class", "SVR": "epsilon_svr", "NuSVR": "nu_svr"}
KERNELS = {"poly": "polynomial"}


def words(values: Any) -> str:
    """Numbers with 17 digits, so that reading them back changes no bit."""
    return " ".join(f"{one:.17g}" for one in np.ravel(values))


def write_libsvm(model: Any, path: Path, gamma: float = 0.0) -> None:
    """Write a fitted machine of this package, or of scikit-learn with its `gamma`, with classes in ascending order."""
    kernel = getattr(model, "kernel_", None)
    classes = getattr(model, "classes_", None)
    sign = -1.0 if classes is not None and len(classes) == 2 else 1.0  # positive for the first class
    lines = [f"svm_type {TYPES[type(model).__name__]}", f"kernel_type {KERNELS.get(model.kernel, model.kernel)}"]
    if model.kernel == "poly":
        lines.append(f"degree {model.degree}")
    if model.kernel in ("poly", "rbf", "sigmoid"):
        lines.append(f"gamma {words(gamma if kernel is None else kernel.gamma)}")
    if model.kernel in ("poly", "sigmoid"):
        lines.append(f"coef0 {words(model.coef0)}")
    lines += [f"nr_class {2 if classes is None else len(classes)}", f"total_sv {len(model.support_)}"]
    lines.append(f"rho {words(-sign * np.ravel(model.intercept_))}")
    if classes is not None:
        lines.append("label " + " ".join(map(str, classes)))
        lines.append("nr_sv " + " ".join(map(str, model.n_support_)))
    lines.append("SV")
    vectors = model.support_vectors_
    vectors = vectors.toarray() if sparse.issparse(vectors) else vectors
    dual = model.dual_coef_.toarray() if sparse.issparse(model.dual_coef_) else model.dual_coef_
    for k in range(len(model.support_)):
        entries = " ".join(f"{j + 1}:{value:.17g}" for j, value in enumerate(vectors[k]) if value)
        lines.append(f"{words(sign * dual[:, k])} {entries}")
    path.write_text("\n".join(lines) + "\n")
