"""Checks of the contents of a model file.

A model file may come from anyone. Before any of its arrays and numbers is used, the checks compare
its contents with what this package writes: closed lists of names, types, shapes that fit each
other, finite numbers, indices in range.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from saddlesvm.data.archives import shorten_text
from saddlesvm.data.data_mark import is_mark
from saddlesvm.fit.outcome import Outcome
from saddlesvm.kernel.mercer import KERNELS, Kernel
from saddlesvm.problem.certificate import Certificate
from saddlesvm.runtime.allowed import Allowed

__all__ = ["CSR_PARTS", "check_stored"]

Arrays = Mapping[str, np.ndarray]
Shapes = Mapping[str, tuple[int, int]]

CSR_PARTS = ("data", "indices", "indptr", "shape")
FORMS = ("C", "lambda")  # of the objective that a certificate is about
PLAIN = (bool, int, float, str, type(None))  # types of JSON that are no containers
# The metadata that every model file has.
META = {"params": dict, "numbers": dict, "notes": dict, "certificates": list, "trace": list}
# The kinds of values in the metadata. JSON has its own types: true is no whole number here.
COUNT = Allowed(
    "a whole number of at least 0", lambda given: type(given) is int and 0 <= given < 2**63
)
WIDTH = Allowed("a whole number of at least 1", lambda given: COUNT.holds(given) and given > 0)
AMOUNT = Allowed(
    "a finite number of at least 0",
    lambda given: type(given) in (int, float) and 0.0 <= given < math.inf,
)
PHASES = Allowed(
    "a dict of seconds",
    lambda given: isinstance(given, dict) and all(map(AMOUNT.holds, given.values())),
)
PHASES_EACH = Allowed(
    "a list of dicts of seconds",
    lambda given: isinstance(given, list) and all(map(PHASES.holds, given)),
)
# All that is known of attributes that classes from elsewhere declare.
DECLARED = Allowed(
    "a number or text",
    lambda given: (
        isinstance(given, PLAIN) and (not isinstance(given, float) or math.isfinite(given))
    ),
)
NUMBERS = {
    "n_iter_": COUNT,
    "n_features_in_": COUNT,
    "n_samples_fit_": COUNT,
    "seconds_solving_": AMOUNT,
    "seconds_certifying_": AMOUNT,
    "seconds_compiling_": AMOUNT,
    "phases_": PHASES,
    "fit_phases": PHASES_EACH,
    "fit_C": AMOUNT,
    "_fitted_C": AMOUNT,
    "C_": AMOUNT,
    "indicator_": Allowed("'dense' or 'sparse'", lambda given: given in ("dense", "sparse")),
    "fit_mark": Allowed(
        "a number of rows and a fingerprint", lambda given: given == "" or is_mark(given)
    ),
}


def check_stored(
    arrays: Arrays, meta: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]
) -> None:
    """Raise ValueError unless arrays and metadata are what a model of this package has.

    Parameters
    ----------
    arrays, meta
        As :func:`saddlesvm.data.load_model` returns them.
    names : mapping of str to tuple of str
        The closed lists: "arrays" and "matrices" (dense, or CSR in parts), "numbers", "options".
    """
    for key, kind in META.items():
        if not isinstance(meta.get(key), kind):
            raise ValueError(f"its {key} are missing")
    numbers = meta["numbers"]
    # Names first: the checks after them know what each name holds.
    check_names("option", meta["params"], names["options"])
    check_names("attribute", numbers, names["numbers"])
    parts = tuple(name + part for name in names["matrices"] for part in ("", *CSR_PARTS))
    check_names("array", arrays, names["arrays"] + parts)
    # Then each value of the metadata by itself.
    for name, number in numbers.items():
        check_number(name, number, NUMBERS.get(name, DECLARED))
    check_certificates(meta["certificates"], meta.get("outcome"))
    check_trace(meta["trace"])
    if not isinstance(meta["notes"].get("zero_based"), (bool, type(None))):
        raise ValueError("its note zero_based is neither true nor false")
    check_kernel(meta.get("kernel"))
    check_number("n_features_in_", numbers.get("n_features_in_"), WIDTH)
    # Then the arrays, against each other and against the number of features.
    width = int(numbers["n_features_in_"])
    has_indicator = "indicator_" in numbers
    check_arrays(arrays, width, meta.get("kernel"), names["matrices"], has_indicator)


def check_names(what: str, found: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    """Raise ValueError for a name that is not in a closed list."""
    unknown = next((name for name in found if name not in allowed), None)
    if unknown is not None:
        raise ValueError(f"it holds the {what} {shorten_text(repr(unknown))}, which no model has")


def check_number(name: str, given: Any, allowed: Allowed) -> None:
    """Raise ValueError unless a value of the metadata is allowed."""
    if not allowed.holds(given):
        raise ValueError(f"its {name} is {shorten_text(repr(given))}; it must be {allowed.words}")


def check_certificates(given: list[Any], outcome: Any) -> None:
    """Raise ValueError unless they have the fields of certificates and the outcome is known."""
    fields = {field.name: field for field in dataclasses.fields(Certificate)}
    needed = {name for name, field in fields.items() if field.default is dataclasses.MISSING}
    for certificate in given:
        if not isinstance(certificate, dict) or not needed <= set(certificate) <= set(fields):
            raise ValueError("its certificates are not of this package")
        numbers = [number for name, number in certificate.items() if name != "form"]
        are_numbers = all(type(number) in (int, float) for number in numbers)
        if certificate.get("form", "C") not in FORMS or not are_numbers:
            raise ValueError("its certificates do not hold numbers")
    if outcome and outcome not in [str(known) for known in Outcome]:
        raise ValueError(f"its outcome {shorten_text(repr(outcome))} is unknown")


def check_trace(given: list[Any]) -> None:
    """Raise ValueError unless the trace is a list of records of plain values."""
    for record in given:
        if not isinstance(record, dict) or not all(
            isinstance(value, PLAIN) for value in record.values()
        ):
            raise ValueError("its trace is not a list of records")


def check_kernel(given: Any) -> None:
    """Raise ValueError unless it is a kernel of this package, or None."""
    if given is None:
        return
    fields = {field.name for field in dataclasses.fields(Kernel)}
    if not isinstance(given, dict) or set(given) != fields:
        raise ValueError("its kernel is not one of this package")
    numbers = [number for name, number in given.items() if name != "metric"]
    are_finite = all(type(number) in (int, float) and math.isfinite(number) for number in numbers)
    if given["metric"] not in KERNELS or not are_finite:
        raise ValueError(f"its kernel {shorten_text(repr(given))} is unknown")


def check_arrays(
    arrays: Arrays, width: int, kernel: Any, matrices: tuple[str, ...], has_indicator: bool
) -> None:
    """Raise ValueError unless the arrays have the shapes of a model over `width` features.

    If the model `has_indicator`, its weights are a row for each label, and there may be any number
    of labels.
    """
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"its {name} holds NaN or infinity")
    found = [name for name in matrices if name in arrays or f"{name}data" in arrays]
    # The weights of a regression with one target are a vector.
    if "coef_" in arrays and arrays["coef_"].ndim == 1:
        found = [name for name in found if name != "coef_"]
    shapes = {name: matrix_shape(arrays, name) for name in found}
    count = count_classes(arrays)
    rows = count_weight_rows(arrays, shapes, width, count, has_indicator)
    if "feature_names_in_" in arrays:
        names = arrays["feature_names_in_"]
        is_fine = names.dtype.kind == "U" and names.shape == (width,)
        require(is_fine, "feature_names_in_", names)
    if kernel is not None:
        precomputed = kernel["metric"] == "precomputed"
        rows = count_kernel_rows(arrays, shapes, width, count, precomputed)
    if "intercept_" in arrays:
        intercept = arrays["intercept_"]
        is_fine = intercept.dtype.kind in "fi" and intercept.shape == (rows,)
        require(is_fine, "intercept_", intercept)
    # A linear model's duals have a row for each sub-problem or for each class.
    if kernel is None and "dual_coef_" in shapes and shapes["dual_coef_"][0] not in (rows, count):
        raise ValueError(
            f"its dual_coef_ has shape {shapes['dual_coef_']}, but its weights are for {rows} "
            "sub-problems"
        )


def require(is_fine: bool, name: str, array: np.ndarray) -> None:
    """Raise ValueError, with what was found, unless an array is fine."""
    if not is_fine:
        raise ValueError(
            f"its {name} of type {array.dtype} and shape {array.shape} does not fit the rest"
        )


def count_classes(arrays: Arrays) -> int:
    """Return the number of classes, which must differ; 0 for a regression."""
    if "classes_" not in arrays:
        return 0
    classes = arrays["classes_"]
    is_fine = classes.ndim == 1 and classes.size >= 2 and classes.dtype.kind in "biufUS"
    require(is_fine, "classes_", classes)
    if np.unique(classes).size != classes.size:
        raise ValueError("its classes_ are not all different")
    return int(classes.size)


def count_weight_rows(
    arrays: Arrays, shapes: Shapes, width: int, count: int, has_indicator: bool
) -> int:
    """Return the number of sub-problems that a linear model has weights for; 0 without weights.

    Several targets have a row each; a single target has a vector, or a row of a CSR matrix.
    """
    coef = arrays.get("coef_", arrays.get("coef_data"))
    if coef is None:
        return 0
    is_dense = "coef_" in arrays
    rows, columns = shapes.get("coef_", (1, coef.size))
    if count:
        allowed = (count,) if has_indicator else problem_counts(count)
        fits = "coef_" in shapes and rows in allowed
    else:
        fits = "coef_" not in shapes or rows >= (2 if is_dense else 1)
    require(fits and columns == width and coef.dtype.kind == "f", "coef_", coef)
    return rows


def problem_counts(count: int) -> tuple[int, ...]:
    """Return the numbers of sub-problems that a number of classes can be split into."""
    if count == 2:
        return (1,)
    return (count, count * (count - 1) // 2)


def count_kernel_rows(
    arrays: Arrays, shapes: Shapes, width: int, count: int, precomputed: bool
) -> int:
    """Return the number of sub-problems of a kernel model, whose arrays must fit each other."""
    missing = {"support_", "n_support_", "intercept_"} - set(arrays)
    missing |= {"dual_coef_", "support_vectors_"} - set(shapes)
    if missing:
        raise ValueError(f"its {min(missing)} is missing")
    # The positions of the support vectors: all different, and columns of a precomputed kernel.
    support = arrays["support_"]
    most = width if precomputed else np.iinfo(np.int64).max
    is_fine = support.ndim == 1 and support.dtype.kind == "i"
    if is_fine and support.size:
        is_inside = bool(support.min() >= 0 and support.max() < most)
        is_fine = is_inside and np.unique(support).size == support.size
    require(is_fine, "support_", support)
    # How many support vectors each class has.
    each = arrays["n_support_"]
    is_fine = each.shape == (max(count, 1),) and each.dtype.kind == "i"
    require(is_fine and int(each.sum()) == support.size, "n_support_", each)
    # The coefficients: of several classes, a row for each other class, as LIBSVM has them.
    rows, columns = shapes["dual_coef_"]
    is_pairwise = count > 2 and rows == count - 1
    allowed = problem_counts(count) if count else (1,)
    if not (is_pairwise or rows in allowed) or columns != support.size:
        raise ValueError(f"its dual_coef_ of shape {(rows, columns)} does not fit the rest")
    vectors = shapes["support_vectors_"]
    if vectors != (0 if precomputed else support.size, width):
        raise ValueError(f"its support_vectors_ of shape {vectors} do not fit the rest")
    return count * (count - 1) // 2 if is_pairwise else rows


def matrix_shape(arrays: Arrays, name: str) -> tuple[int, int]:
    """Return the shape of a dense or CSR matrix; raise ValueError if its parts do not fit."""
    if name in arrays:
        matrix = arrays[name]
        is_alone = not any(name + part in arrays for part in CSR_PARTS)
        require(matrix.ndim == 2 and matrix.dtype.kind == "f" and is_alone, name, matrix)
        return matrix.shape[0], matrix.shape[1]
    missing = [part for part in CSR_PARTS if name + part not in arrays]
    if missing:
        raise ValueError(f"its {name}{missing[0]} is missing")
    data, indices, indptr, shape = (arrays[name + part] for part in CSR_PARTS)
    is_fine = shape.shape == (2,) and shape.dtype.kind == "i" and int(shape.min()) >= 0
    require(is_fine, f"{name}shape", shape)
    n, d = (int(size) for size in shape)
    # SciPy checks less than this: a wrong index would read beyond the ends of the arrays.
    require(indptr.shape == (n + 1,) and indptr.dtype.kind == "i", f"{name}indptr", indptr)
    require(data.ndim == 1 and data.dtype.kind == "f", f"{name}data", data)
    is_fine = indices.shape == data.shape and indices.dtype.kind == "i"
    require(is_fine, f"{name}indices", indices)
    if indptr[0] != 0 or indptr[-1] != data.size or bool((np.diff(indptr) < 0).any()):
        raise ValueError(f"the row pointers of its {name} do not ascend from 0 to {data.size}")
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < d:
        raise ValueError(f"the column indices of its {name} must be from 0 to {d - 1}")
    return n, d
