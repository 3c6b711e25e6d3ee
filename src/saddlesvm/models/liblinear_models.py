"""Text models of LIBLINEAR: written from a fitted estimator, and read as an estimator."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from saddlesvm.data import DataError
from saddlesvm.data.liblinear import read_liblinear, solver_and_labels, write_liblinear
from saddlesvm.estimators.base import Labels
from saddlesvm.estimators.fitted import Fitted, fitted_value, give_features, make_model
from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.problem.losses import loss_name, make_loss
from saddlesvm.rows.scores import dense_weights


def save_liblinear(model: LinearModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator as a LIBLINEAR text model.

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
    classes = None if fitted.labels is None else fitted.labels.classes
    has_intercept = template._intercept_kind() != "none"
    write_liblinear(
        path,
        dense_weights(fitted.coef),
        np.atleast_1d(fitted.intercept),
        classes,
        intercept_scaling=template.intercept_scaling if has_intercept else None,
        **liblinear_kind(template, path, classes, _has_columns(fitted)),
    )


def _has_columns(fitted: Fitted) -> bool:
    """Return True for a model of several labels or targets."""
    return fitted.several_labels or (fitted.labels is None and not fitted.single_target)


def liblinear_kind(
    model: LinearModel, path: str | os.PathLike[str], classes: Any, has_columns: bool = False
) -> dict[str, str]:
    """Return the loss and the way to split classes, as LIBLINEAR's models have them.

    The model may be fitted or not. A model of several labels or targets `has_columns`.

    Raises
    ------
    DataError
        LIBLINEAR has no such model; :func:`save_liblinear` says which.
    """
    multi_class = getattr(model, "multi_class", "ovr")
    if has_columns:
        raise DataError(f"{path}: LIBLINEAR has no models of several labels or targets")
    if multi_class == "ovo":
        if len(classes) > 2:
            raise DataError(
                f"{path}: LIBLINEAR has no one-vs-one models; use multi_class='ovr' or "
                "'crammer_singer'"
            )
        # Of two classes there is one pair: both ways to split are the same model.
        multi_class = "ovr"
    loss = loss_name(make_loss(model.loss))
    solver_and_labels(path, classes, loss=loss, multi_class=multi_class)
    return {"loss": loss, "multi_class": multi_class}


def load_liblinear(path: str | os.PathLike[str]) -> Any:
    """Return the estimator of a LIBLINEAR text model."""
    stored = read_liblinear(path)
    # LIBLINEAR writes a negative bias if it fitted no intercept.
    has_intercept = stored.bias is not None and stored.bias > 0
    options: dict[str, Any] = {"loss": stored.loss, "fit_intercept": has_intercept}
    if has_intercept:
        options["intercept_scaling"] = float(stored.bias)
    coef = np.atleast_2d(stored.coef)
    intercept = np.atleast_1d(stored.intercept)
    if stored.classes is None:
        template: Any = LinearSVR(**options)
        labels = None
        intercept = np.ravel(intercept)[:1]
    else:
        template = LinearSVC(**options | {"multi_class": stored.multi_class})
        labels = Labels(stored.classes)
    give_features(template, {"n_features_in_": coef.shape[1]})
    fitted = Fitted(
        template=template,
        coef=coef,
        intercept=intercept,
        labels=labels,
        single_target=labels is None,
        notes={"written by": f"LIBLINEAR ({stored.solver_type})"},
    )
    return make_model(fitted)
