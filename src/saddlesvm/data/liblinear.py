"""LIBLINEAR's model files: a text header, then the weights, a line for each feature.

A line has a number for each class, or a single number for two classes and for regression. The first
label of a two-class model is the class with positive scores. A bias term of value B >= 0 is one
more feature, the last line, so that the intercept is B times its weight; B < 0 means that there is
none. Regression models have no label line. This is the format of LIBLINEAR 1.x and 2.x.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from saddlesvm.data.errors import DataError, atomic_write, refuse_special
from saddlesvm.data.model_text import find_numbers, find_whole_numbers, read_header
from saddlesvm.data.streams import reading

LIBLINEAR_SOLVERS = {
    "L2R_LR": "logistic",
    "L2R_LR_DUAL": "logistic",
    "L1R_LR": "logistic",
    "L2R_L2LOSS_SVC_DUAL": "squared_hinge",
    "L2R_L2LOSS_SVC": "squared_hinge",
    "L1R_L2LOSS_SVC": "squared_hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "MCSVM_CS": "hinge",
    "L2R_L2LOSS_SVR": "squared_epsilon_insensitive",
    "L2R_L2LOSS_SVR_DUAL": "squared_epsilon_insensitive",
    "L2R_L1LOSS_SVR_DUAL": "epsilon_insensitive",
}
_SOLVER_OF_LOSS = {
    "hinge": "L2R_L1LOSS_SVC_DUAL",
    "squared_hinge": "L2R_L2LOSS_SVC_DUAL",
    "logistic": "L2R_LR",
    "epsilon_insensitive": "L2R_L1LOSS_SVR_DUAL",
    "absolute": "L2R_L1LOSS_SVR_DUAL",
    "squared_epsilon_insensitive": "L2R_L2LOSS_SVR_DUAL",
    "squared": "L2R_L2LOSS_SVR_DUAL",
}
_CRAMMER_SINGER = "MCSVM_CS"
_NEEDED_LINES = ("solver_type", "nr_class", "nr_feature", "bias")


@dataclass(frozen=True)
class LiblinearModel:
    """A model read from a LIBLINEAR file.

    Attributes
    ----------
    coef : ndarray of shape (n_classes, n_features)
        float64; shape (1, n_features) for two classes and for regression. With two classes a
        positive score means `classes[1]`.
    intercept : ndarray of shape (n_classes,) or (1,)
    classes : ndarray of int64, ascending, or None for regression
    solver_type : str
        LIBLINEAR's name of the solver.
    loss : str
        The loss of this solver, by the name that it has in this package.
    bias : float
        The value of the constant feature; negative if there is none (the intercept is then zero).
    """

    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray | None
    solver_type: str
    loss: str
    bias: float

    @property
    def multi_class(self) -> str:
        """The way in which the classes were trained together: "ovr" or "crammer_singer"."""
        return "crammer_singer" if self.solver_type == _CRAMMER_SINGER else "ovr"


def write_liblinear(
    path: str | os.PathLike[str],
    coef: Any,
    intercept: Any,
    classes: Any,
    *,
    loss: str,
    intercept_scaling: float | None = 1.0,
    multi_class: str = "ovr",
) -> None:
    """Write a linear model as a LIBLINEAR text model.

    Numbers have 17 digits, so that reading them back changes no bit of `coef`.

    Parameters
    ----------
    path : str or path
    coef : array of shape (n_classes, n_features)
        For two classes and for regression of shape (1, n_features) or (n_features,). With two
        classes a positive score means `classes[1]`.
    intercept : float or array, a value for each row of `coef`
    classes : array of whole numbers, or None for regression
    loss : str
        One of "hinge", "squared_hinge", "logistic"; for regression "epsilon_insensitive",
        "absolute", "squared_epsilon_insensitive", "squared" (the last two pairs differ only in
        LIBLINEAR's -p).
    intercept_scaling : float or None, default=1.0
        LIBLINEAR's bias B. None writes a model without intercept, which then must be zero.
    multi_class : "ovr" or "crammer_singer"
        How the classes were trained together; the predictions are the same.

    Raises
    ------
    DataError
        What LIBLINEAR's format cannot hold: labels that are not whole numbers, a loss that it does
        not have, values that are not finite, shapes that do not go together.
    """
    where = os.fspath(path)
    solver, labels = solver_and_labels(path, classes, loss=loss, multi_class=multi_class)
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    intercept = np.broadcast_to(np.asarray(intercept, dtype=np.float64), coef.shape[:1])
    has_two_classes = labels is not None and len(labels) == 2
    n_rows = 1 if labels is None or has_two_classes else len(labels)
    if len(coef) != n_rows:
        raise DataError(
            f"{where}: coef has {len(coef)} rows; {n_rows} are needed for these classes"
        )
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise DataError(f"{where}: the weights hold NaN or infinity; they must be finite")
    if intercept_scaling is None and np.any(intercept):
        raise DataError(
            f"{where}: the intercept is not zero; a model without bias must have intercept 0"
        )
    if intercept_scaling is not None and not 0.0 < intercept_scaling < math.inf:
        raise DataError(
            f"{where}: intercept_scaling is {intercept_scaling}; "
            "it must be positive and finite, or None"
        )

    # The intercept is the weight of a further feature, whose value is the bias.
    n_features = coef.shape[1]
    bias = -1.0
    if intercept_scaling is not None:
        bias = intercept_scaling
        coef = np.column_stack([coef, intercept / intercept_scaling])
    # LIBLINEAR's first label of two has the positive scores. Crammer and Singer keep a column for
    # each class, whose difference is the score.
    if labels is not None and has_two_classes:
        labels = labels[::-1]
        if solver == _CRAMMER_SINGER:
            coef = np.vstack([coef, -coef]) / 2.0

    lines = [f"solver_type {solver}", f"nr_class {2 if labels is None else len(labels)}"]
    if labels is not None:
        lines.append("label " + " ".join(str(label) for label in labels))
    lines += [f"nr_feature {n_features}", f"bias {bias:.17g}", "w"]
    refuse_special(path)
    with atomic_write(path) as file:
        file.write(("\n".join(lines) + "\n").encode("ascii"))
        for weights in coef.T:
            file.write("".join(f"{weight:.17g} " for weight in weights).encode("ascii") + b"\n")


def solver_and_labels(
    path: str | os.PathLike[str], classes: Any, *, loss: str, multi_class: str
) -> tuple[str, list[int] | None]:
    """Return LIBLINEAR's solver and labels for a model to be written, fitted or not yet.

    The arguments are as for :func:`write_liblinear`.

    Raises
    ------
    DataError
        LIBLINEAR has no such model, or the labels are not whole numbers.
    """
    where = os.fspath(path)
    solver = _solver_type(loss, classes, multi_class, where)
    return solver, None if classes is None else whole_labels(classes, where)


def _solver_type(loss: str, classes: Any, multi_class: str, where: str) -> str:
    """Return LIBLINEAR's name of the solver for a loss."""
    if multi_class not in ("ovr", "crammer_singer"):
        raise DataError(
            f"{where}: multi_class is {multi_class!r}; allowed are 'ovr' and 'crammer_singer'"
        )
    is_regression = classes is None
    if multi_class == "crammer_singer" and not is_regression:
        return _CRAMMER_SINGER
    allowed = [
        name for name, solver in _SOLVER_OF_LOSS.items() if ("SVR" in solver) == is_regression
    ]
    if loss not in allowed:
        task = "regression" if is_regression else "classification"
        raise DataError(
            f"{where}: LIBLINEAR has no {task} with loss={loss!r}; allowed are {', '.join(allowed)}"
        )
    return _SOLVER_OF_LOSS[loss]


def whole_labels(classes: Any, where: str) -> list[int]:
    """Return labels as whole numbers; raises DataError for other labels."""
    classes = np.asarray(classes)
    is_whole = False
    if classes.dtype.kind in "biuf":
        is_whole = bool(np.all((classes == np.floor(classes)) & (np.abs(classes) < 2.0**31)))
    if not is_whole:
        raise DataError(
            f"{where}: the classes are {classes.tolist()}; "
            "labels of a LIBLINEAR model are whole numbers"
        )
    if classes.ndim != 1 or len(classes) < 2 or len(np.unique(classes)) < len(classes):
        raise DataError(
            f"{where}: the classes are {classes.tolist()}; two or more different ones are needed"
        )
    return [int(label) for label in classes]


def read_liblinear(path: str | os.PathLike[str]) -> LiblinearModel:
    """Read a LIBLINEAR text model.

    Raises
    ------
    DataError
        Naming the line that is not as it must be; one-class models are refused.
    """
    where = os.fspath(path)
    refuse_special(path)
    with reading(Path(path)), open(path, encoding="utf-8-sig") as file:
        n_bytes = os.fstat(file.fileno()).st_size
        allowed = (*_NEEDED_LINES, "label", "rho")
        header, _ = read_header(file, where, allowed, "w", "LIBLINEAR")
        missing = [name for name in _NEEDED_LINES if name not in header]
        if missing:
            raise DataError(f"{where}: has no line {missing[0]!r} before its weights")
        if header["solver_type"] not in LIBLINEAR_SOLVERS:
            raise DataError(
                f"{where}: has solver_type {header['solver_type']!r}; "
                f"allowed are {', '.join(LIBLINEAR_SOLVERS)}"
            )
        return _read_model(header, file, n_bytes, where)


def _read_model(header: dict[str, str], file: IO[str], n_bytes: int, where: str) -> LiblinearModel:
    """Return the model of a header and of the lines of weights."""
    solver = header["solver_type"]
    (bias,) = find_numbers(header, "bias", 1, where)
    (n_classes,) = find_whole_numbers(header, "nr_class", 1, where)
    (n_features,) = find_whole_numbers(header, "nr_feature", 1, where)
    is_regression = "SVR" in solver
    is_joint = solver == _CRAMMER_SINGER
    labels = None
    if not is_regression:
        n_labels = len(header.get("label", "").split())
        labels = np.array(find_whole_numbers(header, "label", n_labels, where), dtype=np.int64)
        if n_classes < 2 or labels.size != n_classes or np.unique(labels).size != n_classes:
            raise DataError(
                f"{where}: has nr_class {n_classes} and the labels {labels.tolist()}; "
                "as many different labels as classes are needed, at least 2"
            )
    n_columns = n_classes
    if is_regression or (n_classes == 2 and not is_joint):
        n_columns = 1
    if n_features < 1:
        raise DataError(f"{where}: has nr_feature {n_features}; at least 1 is needed")
    # A weight takes two characters at least: do not allocate memory for a false header.
    if 2 * n_features * n_columns > n_bytes:
        raise DataError(
            f"{where}: says {n_features} features and {n_columns} columns of weights "
            f"in {n_bytes} bytes"
        )
    has_bias = bias >= 0
    weights = _read_weights(file, n_features + has_bias, n_columns, where)
    if is_joint and n_classes == 2:
        weights = weights[:, :1] - weights[:, 1:]
    coef = np.ascontiguousarray(weights[:n_features].T)
    intercept = bias * weights[n_features] if has_bias else np.zeros(len(coef))

    # Bring the classes into ascending order; with two classes, the score then changes its sign.
    classes = None
    if labels is not None:
        order = np.argsort(labels)
        classes = labels[order]
        if len(coef) > 1:
            coef = coef[order]
            intercept = intercept[order]
        elif labels[0] < labels[1]:
            coef = -coef
            intercept = -intercept
    return LiblinearModel(coef, intercept, classes, solver, LIBLINEAR_SOLVERS[solver], bias)


def _read_weights(file: IO[str], n_rows: int, n_columns: int, where: str) -> np.ndarray:
    """Read the lines of weights."""
    lines = [line for line in file if not line.isspace()]
    if len(lines) != n_rows:
        raise DataError(f"{where}: has {len(lines)} lines of weights; its header says {n_rows}")
    try:
        weights = np.loadtxt(lines, dtype=np.float64, comments=None, ndmin=2)
    except ValueError as error:
        raise DataError(f"{where}: its weights cannot be read: {error}") from None
    if weights.shape[1] != n_columns or not np.isfinite(weights).all():
        raise DataError(f"{where}: its weights must be {n_columns} finite numbers a line")
    return weights
