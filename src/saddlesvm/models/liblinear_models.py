"""Text models of LIBLINEAR: written from a fitted estimator, and read as one.

A model is a text header, then the weights, a line for each feature. A line has a number for each
class, or a single number for two classes and for regression. The first label of a two-class model
is the class with positive scores. A bias term of value B >= 0 is one more feature, the last line,
so that the intercept is B times its weight; B < 0 means that there is none. Regression models have
no label line. This is the format of LIBLINEAR 1.x and 2.x.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import IO, Any

import numpy as np

from saddlesvm.data.data_table import is_number
from saddlesvm.data.errors import DataError, atomic_write, refuse_special
from saddlesvm.data.streams import reading
from saddlesvm.estimators.base import Labels
from saddlesvm.estimators.fitted import Fitted, fitted_value, give_features, make_model
from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.problem.losses import loss_name, make_loss
from saddlesvm.rows.scores import dense_weights

# LIBLINEAR's solvers and their losses. A file that is written names the first solver of its loss.
LOSS_OF_SOLVER = {
    "L2R_LR": "logistic",
    "L2R_LR_DUAL": "logistic",
    "L1R_LR": "logistic",
    "L2R_L2LOSS_SVC_DUAL": "squared_hinge",
    "L2R_L2LOSS_SVC": "squared_hinge",
    "L1R_L2LOSS_SVC": "squared_hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "MCSVM_CS": "hinge",
    "L2R_L2LOSS_SVR_DUAL": "squared_epsilon_insensitive",
    "L2R_L2LOSS_SVR": "squared_epsilon_insensitive",
    "L2R_L1LOSS_SVR_DUAL": "epsilon_insensitive",
}
SOLVER_OF_LOSS = {loss: solver for solver, loss in reversed(LOSS_OF_SOLVER.items())}
# Losses without a dead zone are those with a zone of width 0.
SOLVER_OF_LOSS["absolute"] = SOLVER_OF_LOSS["epsilon_insensitive"]
SOLVER_OF_LOSS["squared"] = SOLVER_OF_LOSS["squared_epsilon_insensitive"]
CRAMMER_SINGER = "MCSVM_CS"
NEEDED_LINES = ("solver_type", "nr_class", "nr_feature", "bias")
HEADER_LINES = (*NEEDED_LINES, "label", "rho")
LAST_LINE = "w"  # the weights follow it
START = b"solver_type "
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


def save_liblinear(model: LinearModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator as a LIBLINEAR text model.

    Numbers have 17 digits, so that reading them back changes no bit of the weights.

    Raises
    ------
    DataError
        LIBLINEAR has no such loss, or the labels are not whole numbers.

    Examples
    --------
    >>> import tempfile
    >>> from saddlesvm import LinearSVC, load, save_liblinear
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(random_state=0).fit(notes.X, notes.y)
    >>> path = tempfile.mkdtemp() + "/notes.liblinear"
    >>> save_liblinear(model, path)
    >>> bool((load(path).predict(notes.X) == model.predict(notes.X)).all())
    True
    """
    fitted = fitted_value(model)
    template = fitted.template
    if fitted.several_labels or (fitted.labels is None and not fitted.single_target):
        raise DataError(f"{path}: LIBLINEAR has no models of several labels or targets")
    classes = None
    if fitted.labels is not None:
        classes = fitted.labels.classes
    solver = solver_type(template, path, classes)
    coef = dense_weights(fitted.coef)
    n_features = coef.shape[1]
    # The intercept is the weight of a further feature, whose value is the bias.
    bias = -1.0
    if template._intercept_kind() != "none":
        bias = template.intercept_scaling
        coef = np.column_stack([coef, np.atleast_1d(fitted.intercept) / bias])
    # A regression says that it has two classes, and no labels.
    lines = [f"solver_type {solver}", "nr_class 2"]
    if classes is not None:
        labels = [int(label) for label in classes]
        # LIBLINEAR's first label of two has the positive scores. Crammer and Singer keep a column
        # for each class, whose difference is the score.
        if len(labels) == 2:
            labels = labels[::-1]
            if solver == CRAMMER_SINGER:
                coef = np.vstack([coef, -coef]) / 2.0
        lines = [f"solver_type {solver}", f"nr_class {len(labels)}"]
        lines.append("label " + " ".join(map(str, labels)))
    lines += [f"nr_feature {n_features}", f"bias {bias:.17g}", "w"]
    refuse_special(path)
    with atomic_write(path) as file:
        file.write(("\n".join(lines) + "\n").encode("ascii"))
        for weights in coef.T:
            file.write("".join(f"{weight:.17g} " for weight in weights).encode("ascii") + b"\n")


def solver_type(model: LinearModel, path: str | os.PathLike[str], classes: Any) -> str:
    """Return LIBLINEAR's name of the solver for a model, fitted or not.

    Raises
    ------
    DataError
        LIBLINEAR has no such model, or the labels are not whole numbers.
    """
    loss = loss_name(make_loss(model.loss))
    is_regression = classes is None
    if not is_regression:
        multi_class = getattr(model, "multi_class", "ovr")
        # Of two classes there is one pair: both ways to split are the same model.
        if multi_class not in ("ovr", "crammer_singer") and len(classes) > 2:
            raise DataError(
                f"{path}: LIBLINEAR has no models with multi_class={multi_class!r}; use 'ovr' or "
                "'crammer_singer'"
            )
        is_whole = classes.dtype.kind in "biuf" and bool(
            np.all((classes == np.floor(classes)) & (np.abs(classes) < 2.0**31))
        )
        if not is_whole:
            raise DataError(
                f"{path}: the classes are {classes.tolist()}; "
                "labels of a LIBLINEAR model are whole numbers"
            )
        if multi_class == "crammer_singer":
            return CRAMMER_SINGER
    # LIBLINEAR's name of a solver for regression contains SVR.
    allowed = [
        name for name, solver in SOLVER_OF_LOSS.items() if ("SVR" in solver) == is_regression
    ]
    if loss not in allowed:
        task = "regression" if is_regression else "classification"
        raise DataError(
            f"{path}: LIBLINEAR has no {task} with loss={loss!r}; allowed are {', '.join(allowed)}"
        )
    return SOLVER_OF_LOSS[loss]


def is_liblinear(path: str | os.PathLike[str]) -> bool:
    """Return True if a file begins as a LIBLINEAR model does, perhaps behind a byte order mark."""
    with open(path, "rb") as file:
        head = file.read(len(BYTE_ORDER_MARK) + len(START))
    return head.removeprefix(BYTE_ORDER_MARK).startswith(START)


def load_liblinear(path: str | os.PathLike[str]) -> LinearModel:
    """Return the estimator of a LIBLINEAR text model.

    Raises
    ------
    DataError
        Naming what is not as it must be; one-class models are refused.
    """
    where = os.fspath(path)
    refuse_special(path)
    with reading(Path(path)), open(path, encoding="utf-8-sig") as file:
        header = read_header(file, where)
        missing = [name for name in NEEDED_LINES if name not in header]
        if missing:
            raise DataError(f"{where}: has no line {missing[0]!r} before its weights")
        if header["solver_type"] not in LOSS_OF_SOLVER:
            raise DataError(
                f"{where}: has solver_type {header['solver_type']!r}; "
                f"allowed are {', '.join(LOSS_OF_SOLVER)}"
            )
        return _read_model(header, file, where)


def read_header(file: IO[str], where: str) -> dict[str, str]:
    """Return the lines of a model before its weights, by their first word."""
    header: dict[str, str] = {}
    for number, line in enumerate(file, 1):
        name, _, value = line.strip().partition(" ")
        if name == LAST_LINE:
            return header
        if name not in HEADER_LINES or name in header:
            raise DataError(
                f"{where}: line {number}: found {line[:40]!r}; "
                "this is not a line of a LIBLINEAR model"
            )
        header[name] = value.strip()
    raise DataError(
        f"{where}: is truncated or not a LIBLINEAR model: there is no line {LAST_LINE!r}"
    )


def find_words(header: dict[str, str], name: str, count: int, where: str) -> list[str]:
    """Return the words of a line of a header, as many as are needed."""
    words = header.get(name, "").split()
    if len(words) != count:
        raise DataError(f"{where}: its line {name!r} has {len(words)} numbers; {count} are needed")
    return words


def find_numbers(header: dict[str, str], name: str, count: int, where: str) -> list[float]:
    """Return the finite numbers in a line of a header."""
    words = find_words(header, name, count, where)
    if not all(is_number(word) and math.isfinite(float(word)) for word in words):
        raise DataError(
            f"{where}: its line {name!r} is {header[name][:60]!r}; finite numbers are needed"
        )
    return [float(word) for word in words]


def find_whole_numbers(header: dict[str, str], name: str, count: int, where: str) -> list[int]:
    """Return the whole numbers in a line of a header."""
    words = find_words(header, name, count, where)
    if not all(WHOLE.fullmatch(word) for word in words):
        raise DataError(
            f"{where}: its line {name!r} is {header[name][:60]!r}; whole numbers are needed"
        )
    return [int(word) for word in words]


def _read_model(header: dict[str, str], file: IO[str], where: str) -> LinearModel:
    """Return the estimator of a header and of the lines of weights."""
    solver = header["solver_type"]
    (bias,) = find_numbers(header, "bias", 1, where)
    (n_classes,) = find_whole_numbers(header, "nr_class", 1, where)
    (n_features,) = find_whole_numbers(header, "nr_feature", 1, where)
    is_regression = "SVR" in solver
    is_joint = solver == CRAMMER_SINGER
    classes = None
    if not is_regression:
        n_labels = len(header.get("label", "").split())
        classes = np.array(find_whole_numbers(header, "label", n_labels, where), dtype=np.int64)
        if n_classes < 2 or classes.size != n_classes or np.unique(classes).size != n_classes:
            raise DataError(
                f"{where}: has nr_class {n_classes} and the labels {classes.tolist()}; "
                "as many different labels as classes are needed, at least 2"
            )
    # Regression and two classes have one vector of weights, Crammer and Singer's machine one for
    # each class.
    n_columns = n_classes
    if is_regression or (n_classes == 2 and not is_joint):
        n_columns = 1
    if n_features < 1:
        raise DataError(f"{where}: has nr_feature {n_features}; at least 1 is needed")
    # LIBLINEAR writes a negative bias if it fitted no intercept.
    has_intercept = bias > 0
    weights = _read_weights(file, n_features + (bias >= 0), n_columns, where)
    # The difference of the two scores decides.
    if is_joint and n_classes == 2:
        weights = weights[:, :1] - weights[:, 1:]
    coef = np.ascontiguousarray(weights[:n_features].T)
    intercept = bias * weights[n_features] if has_intercept else np.zeros(len(coef))

    # Bring the classes into ascending order; with two classes, the score then changes its sign.
    if classes is not None:
        order = np.argsort(classes)
        if len(coef) > 1:
            coef = coef[order]
            intercept = intercept[order]
        elif classes[0] < classes[1]:
            coef = -coef
            intercept = -intercept
        classes = classes[order]
    return _make_estimator(solver, coef, intercept, classes, bias if has_intercept else None)


def _make_estimator(
    solver: str,
    coef: np.ndarray,
    intercept: np.ndarray,
    classes: np.ndarray | None,
    bias: float | None,
) -> LinearModel:
    """Return the estimator with these weights."""
    options: dict[str, Any] = {"loss": LOSS_OF_SOLVER[solver], "fit_intercept": bias is not None}
    if bias is not None:
        options["intercept_scaling"] = bias
    if classes is None:
        template: Any = LinearSVR(**options)
    else:
        if solver == CRAMMER_SINGER:
            options["multi_class"] = "crammer_singer"
        template = LinearSVC(**options)
    give_features(template, {"n_features_in_": coef.shape[1]})
    fitted = Fitted(
        template=template,
        coef=coef,
        intercept=intercept,
        labels=None if classes is None else Labels(classes),
        single_target=classes is None,
        notes={"written by": f"LIBLINEAR ({solver})"},
    )
    return make_model(fitted)


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
