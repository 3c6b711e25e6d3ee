"""Checks of the contents of a model file.

A model file may come from anyone. Before any of its arrays and numbers is used, the checks compare
its contents with what this package writes: closed lists of names, types, shapes that fit each
other, finite numbers, indices in range.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from saddlesvm.data.archives import fits, is_finite, shorten_text
from saddlesvm.data.data_mark import is_mark
from saddlesvm.estimators.register import SavedNames
from saddlesvm.fit.outcome import Outcome
from saddlesvm.kernel.mercer import KERNELS, Kernel
from saddlesvm.problem.certificate import Certificate

if TYPE_CHECKING:
    from collections.abc import Sequence

Arrays = Mapping[str, np.ndarray]

CSR_PARTS = ("data", "indices", "indptr", "shape")
CSR_KINDS = ["f", "i", "i", "i"]  # NumPy's kinds of the parts
FORMS = ("C", "lambda")  # of the objective that a certificate is about
KERNEL_FIELDS = {field.name: is_finite for field in dataclasses.fields(Kernel)}
# The metadata that every model file has, as :func:`fits` compares it.
META = {
    "params": dict,
    "numbers": dict,
    "notes": {"zero_based": (None, bool)},
    "certificates": [dict],
    "trace": [{str: (None, bool, int, float, str)}],
    "outcome": ("", *(str(outcome) for outcome in Outcome)),
    "kernel": (None, KERNEL_FIELDS | {"metric": tuple(KERNELS)}),
}
# What is known of numbers; of those that classes from elsewhere declare, no more than their kinds.
NUMBERS: dict[str, Any] = {
    "n_iter_": int,
    "n_features_in_": int,
    "n_samples_fit_": int,
    "seconds_solving_": is_finite,
    "seconds_certifying_": is_finite,
    "seconds_compiling_": is_finite,
    "phases_": {str: is_finite},
    "fit_phases": [{str: is_finite}],
    "fit_C": is_finite,
    "C_": is_finite,
    "indicator_": ("dense", "sparse"),
    "fit_mark": ("", is_mark),
}
DECLARED = (None, bool, str, is_finite)


def check_meta(meta: Mapping[str, Any], options: tuple[str, ...], saved: SavedNames) -> None:
    """Raise ValueError unless the metadata are what a model of this package has.

    Parameters
    ----------
    meta : dict
        As :func:`saddlesvm.data.load_model` returns it.
    options : tuple of str
        The names of the parameters that a file holds.
    saved : SavedNames
    """
    for name, pattern in META.items():
        if not fits(meta.get(name), pattern):
            raise ValueError(f"its {name} is {shorten_text(repr(meta.get(name)))}")
    check_names("option", meta["params"], options)
    check_names("attribute", meta["numbers"], saved.numbers)
    for name, value in meta["numbers"].items():
        if not fits(value, NUMBERS.get(name, DECLARED)):
            raise ValueError(f"its {name} is {shorten_text(repr(value))}")
    check_certificates(meta["certificates"])


def check_names(what: str, found: Mapping[str, object], allowed: tuple[str, ...]) -> None:
    """Raise ValueError for a name that is not in a closed list."""
    unknown = next((name for name in found if name not in allowed), None)
    if unknown is not None:
        raise ValueError(f"it holds the {what} {shorten_text(repr(unknown))}, which no model has")


def check_certificates(given: Sequence[Mapping[str, object]]) -> None:
    """Raise ValueError unless they have the fields of certificates."""
    fields = {field.name: field for field in dataclasses.fields(Certificate)}
    needed = {name for name, field in fields.items() if field.default is dataclasses.MISSING}
    for certificate in given:
        numbers = [number for name, number in certificate.items() if name != "form"]
        has_fields = needed <= set(certificate) <= set(fields)
        if not has_fields or not fits(numbers, [(int, float)]):
            raise ValueError("its certificates are not of this package")
        if certificate.get("form", "C") not in FORMS:
            raise ValueError("its certificates are not of this package")


def restore_arrays(arrays: Arrays, saved: SavedNames) -> dict[str, object]:
    """Return the attributes that arrays hold: numbers, arrays, and matrices, dense or CSR.

    Raises
    ------
    ValueError
        An array is not in the closed lists or not finite, or the parts of a matrix do not fit.
    """
    parts = tuple(name + part for name in saved.matrices for part in ("", *CSR_PARTS))
    check_names("array", arrays, saved.arrays + parts)
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"its {name} holds NaN or infinity")
    found: dict[str, Any] = {}
    # An array without axes was a number.
    for name in saved.arrays:
        if name in arrays:
            found[name] = arrays[name] if arrays[name].ndim else arrays[name].item()
    # A matrix is stored whole, or as the three arrays of CSR.
    for name in saved.matrices:
        if name in arrays:
            found[name] = arrays[name]
        elif f"{name}data" in arrays:
            found[name] = restore_csr(arrays, name)
    return found


def restore_csr(arrays: Arrays, name: str) -> sparse.csr_array:
    """Return a CSR matrix; raise ValueError if its parts do not fit."""
    missing = [part for part in CSR_PARTS if name + part not in arrays]
    if missing:
        raise ValueError(f"its {name}{missing[0]} is missing")
    data, indices, indptr, shape = (arrays[name + part] for part in CSR_PARTS)
    if [part.dtype.kind for part in (data, indices, indptr, shape)] != CSR_KINDS:
        raise ValueError(f"the parts of its {name} are of types that do not fit")
    matrix = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    # A wrong index would read beyond the ends of the arrays.
    matrix.check_format(full_check=True)
    return matrix


def check_shapes(found: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Raise ValueError unless the attributes have the shapes of one model."""
    width = meta["numbers"].get("n_features_in_")
    if width is None or width < 1:
        raise ValueError(f"its n_features_in_ is {width}; it must be at least 1")
    count = count_classes(found)
    names = found.get("feature_names_in_")
    if names is not None:
        require(names.dtype.kind == "U" and names.shape == (width,), "feature_names_in_", names)
    if meta["kernel"] is None:
        rows = count_weight_rows(found, width, count, "indicator_" in meta["numbers"])
        dual = found.get("dual_coef_")
        if dual is not None:
            # A row for each sub-problem or for each class.
            is_fine = dual.dtype.kind == "f" and dual.ndim == 2 and dual.shape[0] in (rows, count)
            require(is_fine, "dual_coef_", dual)
    else:
        is_precomputed = meta["kernel"]["metric"] == "precomputed"
        rows = count_kernel_rows(found, width, count, is_precomputed)
    intercept = found.get("intercept_")
    if intercept is not None:
        intercept = np.asarray(intercept)
        is_fine = intercept.dtype.kind in "fi" and intercept.shape == (rows,)
        require(is_fine, "intercept_", intercept)


def require(is_fine: bool, name: str, array: np.ndarray) -> None:
    """Raise ValueError, with what was found, unless an array is fine."""
    if not is_fine:
        raise ValueError(
            f"its {name} of type {array.dtype} and shape {array.shape} does not fit the rest"
        )


def count_classes(found: Mapping[str, object]) -> int:
    """Return the number of classes, which must differ; 0 for a regression."""
    if "classes_" not in found:
        return 0
    classes = np.asarray(found["classes_"])
    is_fine = classes.ndim == 1 and classes.size >= 2 and classes.dtype.kind in "biufUS"
    require(is_fine, "classes_", classes)
    if np.unique(classes).size != classes.size:
        raise ValueError("its classes_ are not all different")
    return int(classes.size)


def count_weight_rows(found: Mapping[str, Any], width: int, count: int, has_indicator: bool) -> int:
    """Return the number of sub-problems that a linear model has weights for; 0 without weights.

    Several targets have a row each; one target has a vector, or a row of a CSR matrix.
    """
    coef = found.get("coef_")
    if coef is None:
        return 0
    is_matrix = coef.ndim == 2
    rows = coef.shape[0] if is_matrix else 1
    # A classifier has a row for each sub-problem; a regression a vector, or several targets.
    if count:
        allowed = (count,) if has_indicator else problem_counts(count)
        is_fine = is_matrix and rows in allowed
    else:
        is_fine = not is_matrix or rows >= 2 or sparse.issparse(coef)
    is_fine = is_fine and coef.ndim in (1, 2) and coef.shape[-1] == width
    require(is_fine and coef.dtype.kind == "f", "coef_", coef)
    return int(rows)


def problem_counts(count: int) -> tuple[int, ...]:
    """Return the numbers of sub-problems that a number of classes can be split into."""
    if count == 2:
        return (1,)
    return (count, count * (count - 1) // 2)


def count_kernel_rows(
    found: Mapping[str, Any], width: int, count: int, is_precomputed: bool
) -> int:
    """Return the number of sub-problems of a kernel model, whose arrays must fit each other."""
    # The positions of the support vectors: all different, and columns of a precomputed kernel.
    support = np.asarray(found["support_"])
    most = width if is_precomputed else np.iinfo(np.int64).max
    is_fine = support.ndim == 1 and support.dtype.kind == "i"
    if is_fine and support.size:
        is_inside = bool(support.min() >= 0 and support.max() < most)
        is_fine = is_inside and np.unique(support).size == support.size
    require(is_fine, "support_", support)
    # How many support vectors each class has.
    each = np.asarray(found["n_support_"])
    is_fine = each.shape == (max(count, 1),) and each.dtype.kind == "i"
    require(is_fine and int(each.sum()) == support.size, "n_support_", each)
    # The coefficients: of several classes, a row for each other class, as LIBSVM has them.
    dual = found["dual_coef_"]
    rows = dual.shape[0] if dual.ndim == 2 else 0
    is_pairwise = count > 2 and rows == count - 1
    allowed = problem_counts(count) if count else (1,)
    is_fine = (is_pairwise or rows in allowed) and dual.shape[1] == support.size
    require(is_fine and dual.dtype.kind == "f", "dual_coef_", dual)
    vectors = found["support_vectors_"]
    is_fine = vectors.shape == (0 if is_precomputed else support.size, width)
    require(is_fine and vectors.dtype.kind == "f", "support_vectors_", vectors)
    return count * (count - 1) // 2 if is_pairwise else rows
