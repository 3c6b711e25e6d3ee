"""Checks of the contents of a model file.

A model file may come from anyone. Before any of its arrays and numbers is used, the checks compare
its contents with what this package writes: closed lists of names, types, shapes that fit each
other, finite numbers, indices in range.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.data.archives import is_finite, matches, shorten_text
from saddlesvm.fit.outcome import Outcome
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.problem.certificate import Certificate
from saddlesvm.runtime.option_names import KERNEL_NAMES

Arrays = Mapping[str, np.ndarray]

CSR_PARTS = ("data", "indices", "indptr", "shape")
CSR_KINDS = ["f", "i", "i", "i"]  # NumPy's kinds of the parts
# The arrays of fits, by the names of :class:`Fitted` and :class:`KernelFitted`, and the kinds of
# their numbers. A file needs those without which there is no model.
ARRAYS = {
    "coef": "f",
    "intercept": "fi",
    "duals": "f",
    "classes": "biufUS",
    "feature_names": "U",
    "epochs": "fi",
    "support": "i",
    "vectors": "f",
    "n_support": "i",
    "class_weight": "f",
}
LINEAR_NEEDS = ("coef", "intercept")
KERNEL_NEEDS = ("support", "vectors", "n_support", "duals", "intercept")
# The facts of fits, as :func:`matches` compares them.
FACTS: dict[str, Any] = {
    "n_features": lambda value: type(value) is int and value >= 1,
    "indicator": ("", "dense", "sparse"),
    "C": is_finite,
    "chosen_C": is_finite,
    "seconds_solving": is_finite,
    "seconds_certifying": is_finite,
    "seconds_compiling": is_finite,
    "phases": [{str: is_finite}],
    "single_target": bool,
    "n_rows": int,
}
FORMS = ("C", "lambda")  # of the objective that a certificate is about
CERTIFICATE = {field.name: field.default for field in dataclasses.fields(Certificate)}
KERNEL_FIELDS = {field.name: is_finite for field in dataclasses.fields(Kernel)}


def is_certificate(given: Any) -> bool:
    """Return True for the fields of a certificate; those with a default may be missing."""
    if not isinstance(given, dict):
        return False
    fields = CERTIFICATE | given
    form = fields.pop("form")
    has_numbers = matches(fields, {str: (int, float)})
    return form in FORMS and has_numbers and len(fields) == len(CERTIFICATE) - 1


# The metadata that every model file has.
META = {
    "params": dict,
    "facts": {str: lambda value: True},
    "notes": {"zero_based": (None, bool)},
    "certificates": [is_certificate],
    "trace": [{str: (None, bool, int, float, str)}],
    "outcome": ("", *(str(outcome) for outcome in Outcome)),
    "kernel": (None, KERNEL_FIELDS | {"metric": KERNEL_NAMES, "degree": int}),
}


def check_meta(meta: Mapping[str, Any], options: tuple[str, ...]) -> None:
    """Raise ValueError unless the metadata are what a model of this package has.

    Parameters
    ----------
    meta : dict
        As :func:`~saddlesvm.data.model_file.load_model` returns it.
    options : tuple of str
        The names of the parameters that a file holds.
    """
    for name, pattern in META.items():
        if not matches(meta.get(name), pattern):
            raise ValueError(f"its {name} is {shorten_text(repr(meta.get(name)))}")
    check_names("option", meta["params"], options)
    check_names("fact", meta["facts"], FACTS)
    if "n_features" not in meta["facts"]:
        raise ValueError("its n_features is missing")
    for name, value in meta["facts"].items():
        if not matches(value, FACTS[name]):
            raise ValueError(f"its {name} is {shorten_text(repr(value))}")


def check_names(what: str, found: Mapping[str, object], allowed: Any) -> None:
    """Raise ValueError for a name that is not in a closed list."""
    unknown = next((name for name in found if name not in allowed), None)
    if unknown is not None:
        raise ValueError(f"it holds the {what} {shorten_text(repr(unknown))}, which no model has")


def restore_arrays(stored: Arrays) -> dict[str, Any]:
    """Return arrays, and CSR matrices of their parts, by the names of :data:`ARRAYS`.

    Raises
    ------
    ValueError
        An array is not in the closed list or not finite, or the parts of a matrix do not fit.
    """
    found: dict[str, Any] = {}
    for name, array in stored.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"its {name} holds NaN or infinity")
        # A matrix is stored whole, or as the parts of CSR, such as "coef_csr_data".
        whole, _, part = name.partition("_csr_")
        if part not in CSR_PARTS:
            found[name] = array
        elif whole not in found:
            found[whole] = restore_csr(stored, whole)
    check_names("array", found, ARRAYS)
    for name, array in found.items():
        require(array.dtype.kind in ARRAYS[name], name, array)
    return found


def restore_csr(stored: Arrays, name: str) -> sparse.csr_array:
    """Return a CSR matrix; raise ValueError if its parts do not fit."""
    names = [f"{name}_csr_{part}" for part in CSR_PARTS]
    missing = [part for part in names if part not in stored]
    if missing:
        raise ValueError(f"its {missing[0]} is missing")
    data, indices, indptr, shape = (stored[part] for part in names)
    if [part.dtype.kind for part in (data, indices, indptr, shape)] != CSR_KINDS:
        raise ValueError(f"the parts of its {name} are of types that do not fit")
    matrix = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    # A wrong index would read beyond the ends of the arrays.
    matrix.check_format(full_check=True)
    return matrix


def check_shapes(found: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Raise ValueError unless the arrays have the shapes of one model."""
    facts = meta["facts"]
    width = facts["n_features"]
    needed = LINEAR_NEEDS if meta["kernel"] is None else KERNEL_NEEDS
    missing = [name for name in needed if name not in found]
    if missing:
        raise ValueError(f"its {missing[0]} is missing")
    names = found.get("feature_names")
    if names is not None:
        require(names.shape == (width,), "feature_names", names)
    # The classes differ; a regression has none.
    count = 0
    if "classes" in found:
        classes = found["classes"]
        count = classes.size
        require(classes.ndim == 1 and count >= 2, "classes", classes)
        if np.unique(classes).size != count:
            raise ValueError("its classes are not all different")
    if meta["kernel"] is None:
        rows = count_weight_rows(found, facts, count)
    else:
        is_precomputed = meta["kernel"]["metric"] == "precomputed"
        rows = count_kernel_rows(found, width, count, is_precomputed)
    require(found["intercept"].shape == (rows,), "intercept", found["intercept"])


def require(is_fine: bool, name: str, array: np.ndarray) -> None:
    """Raise ValueError, with what was found, unless an array is fine."""
    if not is_fine:
        raise ValueError(
            f"its {name} of type {array.dtype} and shape {array.shape} does not fit the rest"
        )


def count_weight_rows(found: Mapping[str, Any], facts: Mapping[str, Any], count: int) -> int:
    """Return the number of vectors of weights of a linear model."""
    coef = found["coef"]
    require(coef.ndim == 2 and coef.shape[1] == facts["n_features"], "coef", coef)
    rows = int(coef.shape[0])
    # A classifier has a vector for each sub-problem, a regression for each target.
    allowed: tuple[int, ...] = (rows,)
    if count:
        allowed = (count,) if facts.get("indicator") else problem_counts(count)
    if facts.get("single_target"):
        allowed = () if count else (1,)
    require(rows in allowed and rows > 0, "coef", coef)
    # A row for each sub-problem or for each class.
    duals = found.get("duals")
    if duals is not None:
        require(duals.ndim == 2 and duals.shape[0] in (rows, count), "duals", duals)
    return rows


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
    support = found["support"]
    most = width if is_precomputed else np.iinfo(np.int64).max
    require(support.ndim == 1 and np.unique(support).size == support.size, "support", support)
    is_inside = support.min(initial=0) >= 0 and support.max(initial=-1) < most
    require(is_inside, "support", support)
    # How many support vectors each class has.
    each = found["n_support"]
    is_fine = each.shape == (max(count, 1),) and int(each.sum()) == support.size
    require(is_fine, "n_support", each)
    # The coefficients: of several classes, a row for each other class, as LIBSVM has them.
    duals = found["duals"]
    rows = int(duals.shape[0])
    is_pairwise = count > 2 and rows == count - 1
    allowed = problem_counts(count) if count else (1,)
    is_fine = duals.ndim == 2 and (is_pairwise or rows in allowed)
    require(is_fine and duals.shape[1] == support.size, "duals", duals)
    vectors = found["vectors"]
    is_fine = vectors.shape == (0 if is_precomputed else support.size, width)
    require(is_fine, "vectors", vectors)
    return count * (count - 1) // 2 if is_pairwise else rows
