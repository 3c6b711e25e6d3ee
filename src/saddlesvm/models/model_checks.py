"""Checks of the contents of a model file.

A model file may come from anyone. Before any of its arrays and numbers is used, the checks compare its contents with
what this package writes: closed lists of names, types, shapes that fit each other, finite numbers, indices in range.
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

CSR_PARTS = ("data", "indices", "indptr", "shape")
PLAIN = (bool, int, float, str, type(None))
Arrays = Mapping[str, np.ndarray]
Shapes = Mapping[str, tuple[int, int]]


def check_stored(arrays: Arrays, meta: Mapping[str, Any], names: Mapping[str, tuple[str, ...]]) -> None:
    """Raise ValueError unless arrays and metadata are what a model of this package has.

    Parameters
    ----------
    arrays, meta
        As :func:`saddlesvm.data.load_model` returns them.
    names : mapping of str to tuple of str
        The closed lists: "arrays" and "matrices" (dense, or CSR in parts), "numbers", "options".
    """
    for key, kind in {"params": dict, "numbers": dict, "notes": dict, "certificates": list, "trace": list}.items():
        if not isinstance(meta.get(key), kind):
            raise ValueError(f"its {key} are missing")
    among("option", meta["params"], names["options"])
    among("attribute", meta["numbers"], names["numbers"])
    parts = tuple(name + part for name in names["matrices"] for part in ("", *CSR_PARTS))
    among("array", arrays, names["arrays"] + parts)
    for name, number in meta["numbers"].items():
        check_number(name, number, NUMBERS.get(name, DECLARED))
    check_certificates(meta["certificates"], meta.get("outcome"))
    for record in meta["trace"]:
        if not isinstance(record, dict) or not all(isinstance(one, PLAIN) for one in record.values()):
            raise ValueError("its trace is not a list of records")
    if not isinstance(meta["notes"].get("zero_based"), (bool, type(None))):
        raise ValueError("its note zero_based is neither true nor false")
    check_kernel(meta.get("kernel"))
    width = meta["numbers"].get("n_features_in_")
    check_number("n_features_in_", width, WIDTH)
    of_labels = "indicator_" in meta["numbers"]
    check_arrays(arrays, int(width), meta.get("kernel"), names["matrices"], of_labels)


def among(what: str, found: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    """Raise ValueError for a name that is not in a closed list."""
    odd = next((name for name in found if name not in allowed), None)
    if odd is not None:
        raise ValueError(f"it holds the {what} {shorten_text(repr(odd))}, which no model has")


def check_number(name: str, given: Any, allowed: Allowed) -> None:
    """Raise ValueError unless a value of the metadata is allowed."""
    if not allowed.holds(given):
        raise ValueError(f"its {name} is {shorten_text(repr(given))}; {allowed.words} is needed")


# JSON has its own types: true is no whole number here.
COUNT = Allowed("a whole number of at least 0", lambda given: type(given) is int and 0 <= given < 2**63)
WIDTH = Allowed("a whole number of at least 1", lambda given: COUNT.holds(given) and given > 0)
AMOUNT = Allowed("a finite number of at least 0", lambda given: type(given) in (int, float) and 0.0 <= given < math.inf)
PHASES = Allowed("a dict of seconds", lambda given: isinstance(given, dict) and all(map(AMOUNT.holds, given.values())))
PHASES_EACH = Allowed(
    "a list of dicts of seconds", lambda given: isinstance(given, list) and all(map(PHASES.holds, given))
)
DECLARED = Allowed(  # all that is known of what others declare
    "a number or text",
    lambda given: isinstance(given, PLAIN) and (not isinstance(given, float) or math.isfinite(given)),
)
NUMBERS = {
    "n_iter_": COUNT, "n_features_in_": COUNT, "n_samples_fit_": COUNT,
    "seconds_solving_": AMOUNT, "seconds_certifying_": AMOUNT, "seconds_compiling_": AMOUNT,
    "phases_": PHASES, "fit_phases": PHASES_EACH, "fit_C": AMOUNT, "_fitted_C": AMOUNT, "C_": AMOUNT,
    "indicator_": Allowed("'dense' or 'sparse'", lambda given: given in ("dense", "sparse")),
    "fit_mark": Allowed("a number of rows and a fingerprint", lambda given: given == "" or is_mark(given)),
}  # fmt: skip


def check_certificates(given: list[Any], outcome: Any) -> None:
    """Raise ValueError unless they have the fields of certificates, and the outcome is one."""
    columns = {column.name: column for column in dataclasses.fields(Certificate)}
    needed = [name for name, column in columns.items() if column.default is dataclasses.MISSING]
    for one in given:
        if not isinstance(one, dict) or not {*needed} <= {*one} <= {*columns}:
            raise ValueError("its certificates are not of this package")
        numbers = [number for name, number in one.items() if name != "form"]
        if one.get("form", "C") not in ("C", "lambda") or any(type(one) not in (int, float) for one in numbers):
            raise ValueError("its certificates do not hold numbers")
    if outcome and outcome not in [str(one) for one in Outcome]:
        raise ValueError(f"its outcome {shorten_text(repr(outcome))} is unknown")


def check_kernel(given: Any) -> None:
    """Raise ValueError unless it is a kernel of this package, or none."""
    if given is None:
        return
    if not isinstance(given, dict) or {*given} != {column.name for column in dataclasses.fields(Kernel)}:
        raise ValueError("its kernel is not one of this package")
    numbers = [number for name, number in given.items() if name != "metric"]
    if given["metric"] not in KERNELS or not all(type(one) in (int, float) and math.isfinite(one) for one in numbers):
        raise ValueError(f"its kernel {shorten_text(repr(given))} is unknown")


def check_arrays(arrays: Arrays, width: int, kernel: Any, matrices: tuple[str, ...], of_labels: bool) -> None:
    """Raise ValueError unless the arrays have the shapes of one model over `width` features.

    With `of_labels` the weights are one row a label, of any number of labels.
    """
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"its {name} holds NaN or infinity")
    found = (name for name in matrices if name in arrays or f"{name}data" in arrays)
    vector = "coef_" if "coef_" in arrays and arrays["coef_"].ndim == 1 else ""  # of a regression with one target
    shapes = {name: matrix_shape(arrays, name) for name in found if name != vector}
    count = check_classes(arrays)
    rows = check_weights(arrays, shapes, width, count, of_labels)
    if "feature_names_in_" in arrays:
        names = arrays["feature_names_in_"]
        needs(names.dtype.kind == "U" and names.shape == (width,), "feature_names_in_", names)
    if kernel is not None:
        rows = check_support(arrays, shapes, width, count, kernel)
    if "intercept_" in arrays:
        intercept = arrays["intercept_"]
        fine = intercept.dtype.kind in "fi" and intercept.shape == (rows,)
        needs(fine, "intercept_", intercept)
    if kernel is None and "dual_coef_" in shapes and shapes["dual_coef_"][0] not in (rows, count):
        raise ValueError(f"its dual_coef_ has shape {shapes['dual_coef_']}, its weights are of {rows} sub-problems")


def needs(fine: bool, name: str, array: np.ndarray) -> None:
    """Raise ValueError, with what was found, unless an array is fine."""
    if not fine:
        raise ValueError(f"its {name} of type {array.dtype} and shape {array.shape} does not fit the rest")


def check_classes(arrays: Arrays) -> int:
    """The number of classes; 0 for a regression."""
    if "classes_" not in arrays:
        return 0
    classes = arrays["classes_"]
    needs(classes.ndim == 1 and classes.size >= 2 and classes.dtype.kind in "biufUS", "classes_", classes)
    if np.unique(classes).size != classes.size:
        raise ValueError("its classes_ are not all different")
    return int(classes.size)


def check_weights(arrays: Arrays, shapes: Shapes, width: int, count: int, of_labels: bool) -> int:
    """The number of sub-problems that a linear model's weights are of; 0 where there are none.

    Several targets have a row each; one has a vector, or a row where the weights are stored as CSR.
    """
    coef = arrays.get("coef_", arrays.get("coef_data"))
    if coef is None:
        return 0
    dense = "coef_" in arrays
    rows, wide = shapes.get("coef_", (1, coef.size))
    if count:
        fits = "coef_" in shapes and rows in ((count,) if of_labels else of_classes(count))
    else:
        fits = "coef_" not in shapes or rows >= (2 if dense else 1)
    needs(fits and wide == width and coef.dtype.kind == "f", "coef_", coef)
    return rows


def of_classes(count: int) -> tuple[int, ...]:
    """The numbers of sub-problems that a number of classes can be split into."""
    return (1,) if count == 2 else (count, count * (count - 1) // 2)


def check_support(arrays: Arrays, shapes: Shapes, width: int, count: int, kernel: dict[str, Any]) -> int:
    """The number of sub-problems that a kernel model's coefficients are of, once its rows fit them."""
    missing = {"support_", "n_support_", "intercept_"} - {*arrays} | {"dual_coef_", "support_vectors_"} - {*shapes}
    if missing:
        raise ValueError(f"its {min(missing)} is missing")
    support, each = arrays["support_"], arrays["n_support_"]
    precomputed = kernel["metric"] == "precomputed"
    most = width if precomputed else np.iinfo(np.int64).max
    fine = support.ndim == 1 and support.dtype.kind == "i"
    if fine and support.size:
        fine = bool(support.min() >= 0 and support.max() < most and np.unique(support).size == support.size)
    needs(fine, "support_", support)
    needs(
        each.shape == (max(count, 1),) and each.dtype.kind == "i" and int(each.sum()) == support.size,
        "n_support_",
        each,
    )
    rows = shapes["dual_coef_"][0]
    pairwise = count > 2 and rows == count - 1  # a row for each other class, as LIBSVM has it
    if not (pairwise or rows in (of_classes(count) if count else (1,))) or shapes["dual_coef_"][1] != support.size:
        raise ValueError(f"its dual_coef_ of shape {shapes['dual_coef_']} does not fit the rest")
    if shapes["support_vectors_"] != (0 if precomputed else support.size, width):
        raise ValueError(f"its support_vectors_ of shape {shapes['support_vectors_']} do not fit the rest")
    return count * (count - 1) // 2 if pairwise else rows


def matrix_shape(arrays: Arrays, name: str) -> tuple[int, int]:
    """The shape of a matrix that is stored dense or as CSR, whose parts fit together then."""
    if name in arrays:
        matrix = arrays[name]
        needs(matrix.ndim == 2 and matrix.dtype.kind == "f" and not any(name + part in arrays for part in CSR_PARTS),
              name, matrix)  # fmt: skip
        return matrix.shape[0], matrix.shape[1]
    missing = [part for part in CSR_PARTS if name + part not in arrays]
    if missing:
        raise ValueError(f"its {name}{missing[0]} is missing")
    data, indices, indptr, shape = (arrays[name + part] for part in CSR_PARTS)
    needs(shape.shape == (2,) and shape.dtype.kind == "i" and int(shape.min()) >= 0, f"{name}shape", shape)
    n, d = (int(size) for size in shape)
    needs(indptr.shape == (n + 1,) and indptr.dtype.kind == "i", f"{name}indptr", indptr)
    needs(data.ndim == 1 and data.dtype.kind == "f", f"{name}data", data)
    needs(indices.shape == data.shape and indices.dtype.kind == "i", f"{name}indices", indices)
    if indptr[0] != 0 or indptr[-1] != data.size or bool((np.diff(indptr) < 0).any()):
        raise ValueError(f"the row pointers of its {name} do not ascend from 0 to {data.size}")
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < d:
        raise ValueError(f"the column indices of its {name} must be from 0 to {d - 1}")
    return n, d
