"""Estimators to files and back: plain arrays and JSON, no pickle, nothing executed on loading."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.certificate import Certificate
from saddlesvm.data import DataError, load_model, save_model
from saddlesvm.data.liblinear import read_liblinear, write_liblinear
from saddlesvm.data.models import is_model
from saddlesvm.estimators import LinearModel, LinearSVC, LinearSVR
from saddlesvm.losses import LOSSES, loss_name, make_loss
from saddlesvm.outcome import Outcome
from saddlesvm.solvers import SOLVERS, make_solver
from saddlesvm.solvers.base import SolverBase
from saddlesvm.trace import Trace

KINDS: dict[str, type[LinearModel]] = {"LinearSVC": LinearSVC, "LinearSVR": LinearSVR}
UNSAVED = ("callbacks", "checkpoint", "random_state")
NUMBERS = ("n_iter_", "n_features_in_", "seconds_solving_", "seconds_certifying_", "_fitted_C")
ARRAYS = ("coef_", "intercept_", "classes_", "feature_names_in_")


def save(model: LinearModel, path: str | os.PathLike[str], notes: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator to `path` (to a temporary name first, then renamed).

    Parameters
    ----------
    model : LinearSVC or LinearSVR
    path : path-like
    notes : dict, optional
        Plain facts to keep with it, such as where the data came from.

    Raises
    ------
    DataError
        The file cannot be written, or the labels are objects other than text.
    """
    arrays = {name: np.asarray(getattr(model, name)) for name in ARRAYS if hasattr(model, name)}
    if hasattr(model, "dual_coef_"):
        dual = sparse.csr_array(model.dual_coef_)
        arrays |= {"dual_data": dual.data, "dual_indices": dual.indices, "dual_indptr": dual.indptr}
        arrays["dual_shape"] = np.array(dual.shape)
    certificates = getattr(model, "certificates_", [])
    meta = {
        "params": {name: _plain(given) for name, given in model.get_params(False).items() if name not in UNSAVED},
        "numbers": {name: getattr(model, name) for name in NUMBERS if hasattr(model, name)},
        "certificates": [dataclasses.asdict(one) for one in certificates],
        "outcome": str(getattr(model, "outcome_", "")),
        "trace": list(getattr(model, "trace_", [])),
        "notes": notes or {},
    }
    save_model(path, type(model).__name__, arrays, meta)


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that :func:`save` wrote, or a LIBLINEAR text model; ``notes_`` holds its notes.

    Raises
    ------
    DataError
        No such file, a damaged or foreign file, or one of a newer version.
    """
    if not os.path.exists(path):
        raise DataError(f"{path}: no such file")
    if not is_model(path):
        return _from_liblinear(path)
    kind, arrays, meta = load_model(path)
    if kind not in KINDS:
        raise DataError(f"{path}: holds a model of the kind {kind!r}; this version knows {', '.join(KINDS)}")
    model: Any = KINDS[kind](**{name: _restored(name, given) for name, given in meta["params"].items()})
    for name in ARRAYS:
        if name in arrays:
            setattr(model, name, arrays[name])
    for name, given in meta["numbers"].items():
        setattr(model, name, given)
    if kind == "LinearSVR":
        model.intercept_ = float(model.intercept_)
    if "dual_data" in arrays:
        parts = (arrays["dual_data"], arrays["dual_indices"], arrays["dual_indptr"])
        dual = sparse.csr_array(parts, shape=tuple(arrays["dual_shape"]))
        model.dual_coef_ = dual.toarray() if dual.shape[0] == 1 else dual
    model.certificates_ = [Certificate(**one) for one in meta["certificates"]]
    if model.certificates_:
        primal, dual_sum = (sum(getattr(one, side) for one in model.certificates_) for side in ("primal", "dual"))
        model.certificate_ = Certificate(primal, dual_sum, model.certificates_[0].form)
    if meta["outcome"]:
        model.outcome_ = Outcome(meta["outcome"])
    model.trace_ = Trace(meta["trace"])
    model.notes_ = meta["notes"]
    return model


def save_liblinear(model: LinearModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator as a LIBLINEAR text model.

    Raises
    ------
    DataError
        LIBLINEAR has no such loss, or the labels are not whole numbers.
    """
    write_liblinear(
        path,
        np.atleast_2d(model.coef_),
        np.atleast_1d(model.intercept_),
        getattr(model, "classes_", None),
        loss=loss_name(make_loss(model.loss)) if isinstance(model.loss, str) else loss_name(model.loss),
        intercept_scaling=model.intercept_scaling if model.fit_intercept else None,
        multi_class=getattr(model, "multi_class", "ovr"),
    )


def _from_liblinear(path: str | os.PathLike[str]) -> Any:
    stored = read_liblinear(path)
    options: dict[str, Any] = {"loss": stored.loss, "fit_intercept": stored.bias is not None and stored.bias > 0}
    if options["fit_intercept"]:
        options["intercept_scaling"] = float(stored.bias)
    if stored.classes is None:
        model: Any = LinearSVR(**options)
        model.coef_, model.intercept_ = stored.coef.ravel(), float(np.ravel(stored.intercept)[0])
    else:
        model = LinearSVC(**options)
        model.coef_, model.intercept_, model.classes_ = stored.coef, np.atleast_1d(stored.intercept), stored.classes
    model.n_features_in_ = np.atleast_2d(stored.coef).shape[1]
    model.notes_ = {"written by": f"LIBLINEAR ({stored.solver_type})"}
    return model


def _plain(option: Any) -> Any:
    """An option as JSON can hold it: solver and loss objects as name and fields, dict keys as pairs."""
    if isinstance(option, SolverBase):
        return {"solver": option.name, "options": option.get_params()}
    if type(option) in LOSSES.values():
        return {"loss": loss_name(option), "options": option._asdict()}
    if isinstance(option, dict):
        keys = [key.item() if isinstance(key, np.generic) else key for key in option]
        return {"pairs": [[key, float(factor)] for key, factor in zip(keys, option.values(), strict=True)]}
    return option.item() if isinstance(option, np.generic) else option


def _restored(name: str, given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    if "solver" in given:
        return SOLVERS[given["solver"]](**given["options"]) if given["options"] else make_solver(given["solver"])
    if "loss" in given:
        return LOSSES[given["loss"]](**given["options"])
    return {key: factor for key, factor in given["pairs"]}  # noqa: C416
