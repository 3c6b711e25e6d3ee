"""LIBLINEAR's model files: a text header, then the weights, one line a feature and one column a class.

The first label of a two-class model is the one on the positive side of its single column of weights. A bias term of
value B >= 0 is one more feature, the last line, so the intercept is B times the weight there; B < 0 means there is
none. Regression models have no label line. This is the format of LIBLINEAR 1.x and 2.x.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from saddlesvm.data.errors import DataError, atomic_write, refuse_special
from saddlesvm.data.streams import reading
from saddlesvm.data.table import is_number

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
_NEEDED = ("solver_type", "nr_class", "nr_feature", "bias")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_LONGEST_LINE = 1 << 24  # characters, enough for the weights of half a million classes


@dataclass(frozen=True)
class LiblinearModel:
    """A model read from a LIBLINEAR file.

    Attributes
    ----------
    coef : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes and for regression
        float64. With two classes a positive score means `classes[1]`.
    intercept : ndarray, one value a row of `coef`
    classes : ndarray of int64, ascending, or None for regression
    solver_type : str
        LIBLINEAR's name of the solver.
    loss : str
        The loss it stands for, in this package's names.
    bias : float
        The value of the constant feature; negative when there is none (the intercept is then zero).
    """

    coef: np.ndarray[Any, Any]
    intercept: np.ndarray[Any, Any]
    classes: np.ndarray[Any, Any] | None
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
    """Write a linear model as a LIBLINEAR text model, with 17 digits, so that reading it back changes no bit of `coef`.

    Parameters
    ----------
    path : str or path
    coef : array of shape (n_classes, n_features), or (1, n_features) or (n_features,) for two classes and regression
        With two classes a positive score means `classes[1]`.
    intercept : float or array, one value a row of `coef`
    classes : array of whole numbers, or None for regression
    loss : str
        One of "hinge", "squared_hinge", "logistic"; for regression "epsilon_insensitive", "absolute",
        "squared_epsilon_insensitive", "squared" (the last two pairs differ only in LIBLINEAR's -p).
    intercept_scaling : float or None, default=1.0
        LIBLINEAR's bias B. None writes a model without intercept, which then must be zero.
    multi_class : "ovr" or "crammer_singer"
        How the classes were trained together; the predictions are the same.

    Raises
    ------
    DataError
        What LIBLINEAR's format cannot hold: labels that are not whole numbers, a loss it does not have, values that
        are not finite, shapes that do not go together.
    """
    where = os.fspath(path)
    solver, labels = solver_and_labels(path, classes, loss=loss, multi_class=multi_class)
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    intercept = np.broadcast_to(np.asarray(intercept, dtype=np.float64), coef.shape[:1])
    rows = 1 if labels is None or len(labels) == 2 else len(labels)
    if len(coef) != rows:
        raise DataError(f"{where}: coef has {len(coef)} rows; {rows} are needed for these classes")
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise DataError(f"{where}: the weights hold NaN or infinity; they must be finite")
    if intercept_scaling is None and np.any(intercept):
        raise DataError(f"{where}: the intercept is not zero; a model without bias must have intercept 0")
    if intercept_scaling is not None and not 0.0 < intercept_scaling < math.inf:
        raise DataError(f"{where}: intercept_scaling is {intercept_scaling}; it must be positive and finite, or None")
    n_features = coef.shape[1]
    if intercept_scaling is not None:
        coef = np.column_stack([coef, intercept / intercept_scaling])
    if labels is not None and len(labels) == 2:
        labels = labels[::-1]
        if solver == _CRAMMER_SINGER:
            coef = np.vstack([coef, -coef]) / 2.0
    lines = [f"solver_type {solver}", f"nr_class {2 if labels is None else len(labels)}"]
    if labels is not None:
        lines.append("label " + " ".join(str(label) for label in labels))
    lines += [f"nr_feature {n_features}", f"bias {-1.0 if intercept_scaling is None else intercept_scaling:.17g}", "w"]
    refuse_special(path)
    with atomic_write(path) as file:
        file.write(("\n".join(lines) + "\n").encode("ascii"))
        for weights in coef.T:
            file.write("".join(f"{weight:.17g} " for weight in weights).encode("ascii") + b"\n")


def solver_and_labels(
    path: str | os.PathLike[str], classes: Any, *, loss: str, multi_class: str
) -> tuple[str, list[int] | None]:
    """LIBLINEAR's names for a model that is to be written, fitted or not yet; arguments as :func:`write_liblinear`'s.

    Raises
    ------
    DataError
        LIBLINEAR has no such model, or labels that are not whole numbers.
    """
    where = os.fspath(path)
    solver = _solver_type(loss, classes, multi_class, where)
    return solver, None if classes is None else whole_labels(classes, where)


def _solver_type(loss: str, classes: Any, multi_class: str, where: str) -> str:
    if multi_class not in ("ovr", "crammer_singer"):
        raise DataError(f"{where}: multi_class is {multi_class!r}; allowed are 'ovr' and 'crammer_singer'")
    if multi_class == "crammer_singer" and classes is not None:
        return _CRAMMER_SINGER
    fitting = [name for name, solver in _SOLVER_OF_LOSS.items() if ("SVR" in solver) == (classes is None)]
    if loss not in fitting:
        task = "regression" if classes is None else "classification"
        raise DataError(f"{where}: LIBLINEAR has no {task} with loss={loss!r}; allowed are {', '.join(fitting)}")
    return _SOLVER_OF_LOSS[loss]


def whole_labels(classes: Any, where: str) -> list[int]:
    """Labels as whole numbers; DataError where they are none, or not two different ones."""
    classes = np.asarray(classes)
    whole = classes.dtype.kind in "biuf" and bool(np.all((classes == np.floor(classes)) & (np.abs(classes) < 2.0**31)))
    if not whole:
        raise DataError(f"{where}: the classes are {classes.tolist()}; labels of a LIBLINEAR model are whole numbers")
    if classes.ndim != 1 or len(classes) < 2 or len(np.unique(classes)) < len(classes):
        raise DataError(f"{where}: the classes are {classes.tolist()}; two or more different ones are needed")
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
        header, start = header_of(file, where, (*_NEEDED, "label", "rho"), "w", "LIBLINEAR")
        missing = [name for name in _NEEDED if name not in header]
        if missing:
            raise DataError(f"{where}: has no line {missing[0]!r} before its weights")
        if header["solver_type"] not in LIBLINEAR_SOLVERS:
            allowed = ", ".join(LIBLINEAR_SOLVERS)
            raise DataError(f"{where}: has solver_type {header['solver_type']!r}; allowed are {allowed}")
        return _read_model(header, file, start, n_bytes, where)


def _read_model(header: dict[str, str], file: IO[str], start: int, n_bytes: int, where: str) -> LiblinearModel:
    """The model of a header and the lines behind it, of which the first is number `start`."""
    solver, (bias,) = header["solver_type"], numbers_in(header, "bias", 1, where)
    n_classes, n_features = (wholes_in(header, name, 1, where)[0] for name in ("nr_class", "nr_feature"))
    regression, labels = "SVR" in solver, None
    if not regression:
        given = header.get("label", "").split()
        labels = np.array(wholes_in(header, "label", len(given), where), dtype=np.int64)
        if n_classes < 2 or labels.size != n_classes or np.unique(labels).size != n_classes:
            found = f"nr_class {n_classes} and the labels {labels.tolist()}"
            raise DataError(f"{where}: has {found}; as many different labels as classes are needed, at least 2")
    columns = 1 if regression or (n_classes == 2 and solver != _CRAMMER_SINGER) else n_classes
    if n_features < 1:
        raise DataError(f"{where}: has nr_feature {n_features}; at least 1 is needed")
    if 2 * n_features * columns > n_bytes:
        raise DataError(f"{where}: says {n_features} features and {columns} columns of weights in {n_bytes} bytes")
    weights = _read_weights(file, start, n_features + (bias >= 0), columns, where)
    if solver == _CRAMMER_SINGER and n_classes == 2:
        weights = weights[:, :1] - weights[:, 1:]
    coef = np.ascontiguousarray(weights[:n_features].T)
    intercept = bias * weights[n_features] if bias >= 0 else np.zeros(len(coef))
    classes = None
    if labels is not None:
        order = np.argsort(labels)
        classes = labels[order]
        if len(coef) > 1:
            coef, intercept = coef[order], intercept[order]
        elif labels[0] < labels[1]:
            coef, intercept = -coef, -intercept
    return LiblinearModel(coef, intercept, classes, solver, LIBLINEAR_SOLVERS[solver], bias)


def numbered_lines(file: IO[str], where: str, start: int) -> Iterator[tuple[int, str]]:
    """Numbered lines, none so long that it could not be one of a model."""
    for number in itertools.count(start):
        line = file.readline(_LONGEST_LINE)
        if not line:
            return
        if len(line) == _LONGEST_LINE:
            raise DataError(f"{where}: line {number}: has {_LONGEST_LINE} characters or more")
        yield number, line.rstrip("\n")


def header_of(file: IO[str], where: str, names: Sequence[str], last: str, program: str) -> tuple[dict[str, str], int]:
    """The lines of a model before its line `last`, by their first word, and the number of the line behind that one."""
    header: dict[str, str] = {}
    for number, line in numbered_lines(file, where, 1):
        name, _, value = line.strip().partition(" ")
        if name == last:
            return header, number + 1
        if name not in names or name in header:
            raise DataError(f"{where}: line {number}: found {line[:40]!r}; this is not a line of a {program} model")
        header[name] = value.strip()
    raise DataError(f"{where}: is truncated or not a {program} model: there is no line {last!r}")


def words_in(header: dict[str, str], name: str, count: int, where: str) -> list[str]:
    """The words of a line of a header, as many as are needed."""
    found = header.get(name, "").split()
    if len(found) != count:
        raise DataError(f"{where}: its line {name!r} has {len(found)} numbers; {count} are needed")
    return found


def numbers_in(header: dict[str, str], name: str, count: int, where: str) -> list[float]:
    """The finite numbers in a line of a header."""
    words = words_in(header, name, count, where)
    if not all(is_number(word) and math.isfinite(float(word)) for word in words):
        raise DataError(f"{where}: its line {name!r} is {header[name][:60]!r}; finite numbers are needed")
    return [float(word) for word in words]


def wholes_in(header: dict[str, str], name: str, count: int, where: str) -> list[int]:
    """The whole numbers in a line of a header."""
    words = words_in(header, name, count, where)
    if not all(_WHOLE.fullmatch(word) for word in words):
        raise DataError(f"{where}: its line {name!r} is {header[name][:60]!r}; whole numbers are needed")
    return [int(word) for word in words]


def _read_weights(file: IO[str], start: int, rows: int, columns: int, where: str) -> np.ndarray[Any, Any]:
    weights = np.empty((rows, columns))
    found = blank = 0
    for number, line in numbered_lines(file, where, start):
        if not line.strip():
            blank += 1
            continue
        found += blank + 1
        blank = 0
        if found <= rows:
            words = line.split()
            fine = len(words) == columns and number == start + found - 1 and all(map(is_number, words))
            if fine:
                weights[found - 1] = [float(word) for word in words]
            if not fine or not np.isfinite(weights[found - 1]).all():
                raise DataError(f"{where}: line {number}: found {line[:60]!r}; {columns} finite numbers are needed")
    if found != rows:
        raise DataError(f"{where}: has {found} lines of weights; its header says {rows}")
    return weights
