"""Saving and loading estimators: plain arrays and JSON, no pickle; loading executes no code from the file.

Before an estimator a file may hold a StandardScaler, as arrays, or the transformers of a table, as skops writes them.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data import DataError, load_model, save_model
from saddlesvm.data.archives import DAMAGE, shorten_text
from saddlesvm.data.errors import refuse_special
from saddlesvm.data.liblinear import read_liblinear, solver_and_labels, write_liblinear
from saddlesvm.data.libsvm_model import is_libsvm_model
from saddlesvm.data.model_file import is_model
from saddlesvm.estimators import register
from saddlesvm.estimators.base import Labels
from saddlesvm.estimators.columns import columns_from_bytes, columns_to_bytes, step_before
from saddlesvm.estimators.fitted import FEATURES, Fitted, fitted_value, give_features, make_model
from saddlesvm.estimators.linear import LinearSVC, LinearSVR
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.fit.outcome import Outcome, Trace
from saddlesvm.kernel import svc, svm  # noqa: F401 (they register their estimators)
from saddlesvm.kernel.kernel_fits import KERNEL_SOLVERS
from saddlesvm.kernel.libsvm_models import load_libsvm
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.models.model_checks import CSR_PARTS, check_stored
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.losses import UnregisteredLoss, is_loss, loss_from_plain, loss_name, make_loss, plain_loss
from saddlesvm.rows.scores import dense_weights
from saddlesvm.solvers import SOLVERS
from saddlesvm.solvers.base import SolverBase

SCALER = ("scaler_mean", "scaler_scale", "scaler_var", "scaler_seen")


COLUMNS = "columns"  # the array of a model file with the transformers before the model, as skops writes them


def parted(model: Any) -> tuple[Any, Any]:
    """The estimator at the end of a pipeline, and what stands before it; any other model as it is, and None."""
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        return model[-1], step_before(model)
    return model, None


def behind(before: Any, model: Any) -> Any:
    """The model as it is to be used: a pipeline if rows go through a transformer first."""
    if before is None:
        return model
    made = make_pipeline(before, model)
    if hasattr(model, "notes_"):
        made.notes_ = model.notes_
    return made


def arrays_of(scaler: StandardScaler | None) -> dict[str, np.ndarray]:
    """The arrays of a fitted scaler for a file; its mean is empty where it does not centre, its scale where it does
    not divide."""
    if scaler is None:
        return {}
    empty = np.empty(0)
    found = (
        scaler.mean_ if scaler.with_mean else empty,
        scaler.scale_ if scaler.with_std else empty,
        scaler.var_ if scaler.with_std else empty,
        scaler.n_samples_seen_,
    )
    return {name: np.asarray(one, dtype=np.float64) for name, one in zip(SCALER, found, strict=True)}


def taken(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a scaler among those of a model file, which are taken out."""
    return {name: arrays.pop(name) for name in SCALER if name in arrays}


def scaler_of(arrays: dict[str, np.ndarray], width: int, names: np.ndarray | None) -> StandardScaler | None:
    """The scaler of such arrays; None where there are none.

    Parameters
    ----------
    arrays : dict
        Of :func:`taken`.
    width : int
        Features of the model.
    names : ndarray of str, optional
        Theirs.

    Raises
    ------
    ValueError
        The arrays are no scaler of so many features.
    """
    if not arrays:
        return None
    for name in SCALER:
        one = arrays.get(name, np.empty(0, dtype=bool))
        shapes: list[tuple[int, ...]] = [() if name == SCALER[3] else (0,), (width,)]
        if one.dtype != np.float64 or one.shape not in shapes or not np.isfinite(one).all():
            raise ValueError(f"its {name} does not hold finite numbers for {width} features")
    mean, scale, var, seen = (arrays[name] for name in SCALER)
    if scale.size != var.size or (scale <= 0.0).any() or (var < 0.0).any():
        raise ValueError(f"its {SCALER[1]} does not hold positive numbers")
    scaler = StandardScaler(with_mean=mean.size > 0, with_std=scale.size > 0)
    scaler.mean_ = mean if mean.size else None
    scaler.scale_, scaler.var_ = (scale, var) if scale.size else (None, None)
    scaler.n_samples_seen_, scaler.n_features_in_ = seen[()], width
    if names is not None:
        scaler.feature_names_in_ = names
    return scaler


INSTEAD = {
    "best_estimator_": ": save its best_estimator_",
    "to_local": ": save what its to_local() returns",
    "steps": ": save its last step, or the whole with joblib or skops",
}
# What a file of a linear model holds of its fit, and the model makes its attributes of.
KNOWN_OF_LINEAR = (
    "coef_", "intercept_", "classes_", "indicator_", "dual_coef_", "calibration_", "C_", "n_iter_",
    "seconds_solving_", "seconds_certifying_", "seconds_compiling_", *FEATURES, "fit_C", "fit_phases", "fit_mark",
)  # fmt: skip
UNSAVED = ("callbacks", "checkpoint", "random_state")


def save(model: Any, path: str | os.PathLike[str], notes: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator to `path` (to a temporary name first, then renamed).

    Parameters
    ----------
    model : LinearSVC, LinearSVR, SVC, or one registered with :func:`saddlesvm.register_estimator`
        Or a pipeline of transformers of scikit-learn, or of a :func:`saddlesvm.table.encoder`, and one of these. Other
        transformers than a ``StandardScaler`` need skops.
    path : path-like
    notes : dict, optional
        Plain facts to store with the model, such as the source of the data.

    Raises
    ------
    DataError
        The file cannot be written, the labels are objects other than text, the kernel is your own function, or the
        model is of another kind.
    NotFittedError
        The model is not fitted.

    Notes
    -----
    With ``C="auto"`` the C that was chosen is stored.

    Examples
    --------
    >>> import tempfile
    >>> from saddlesvm import LinearSVC, load, save
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(random_state=0).fit(notes.X, notes.y)
    >>> path = tempfile.mkdtemp() + "/notes.model"
    >>> save(model, path, notes={"made for": "the manual"})
    >>> load(path).certificate_ == model.certificate_, load(path).notes_["made for"]
    (True, 'the manual')
    """
    model, before = parted(model)
    entry = register.entry_of(model)
    if entry is None or entry.kind is not type(model):
        inner = next((advice for name, advice in INSTEAD.items() if hasattr(model, name)), "")
        raise DataError(f"{path}: a {type(model).__name__} cannot be saved, only {names_known()}{inner}")
    check_is_fitted(model)
    fitted = fitted_value(model) if entry.linear else None
    params = (model if fitted is None else fitted.template).get_params(False)
    if hasattr(model, "C_"):
        params["C"] = model.C_  # chosen in the fit, which a reader does not do again
    saved = entry.saved
    if before is None or type(before) is StandardScaler:
        arrays = arrays_of(before)
    else:
        arrays = {COLUMNS: np.frombuffer(columns_to_bytes(before), dtype=np.uint8)}
    arrays |= {name: np.asarray(getattr(model, name)) for name in saved.arrays if hasattr(model, name)}
    for name in saved.matrices:
        if hasattr(model, name):
            arrays |= _parts(name, getattr(model, name))
    if callable(getattr(model, "kernel", None)):
        raise DataError(f"{path}: a model whose kernel is a Python function cannot be saved: only data are")
    if isinstance(params.get("penalty"), tuple):
        raise DataError(f"{path}: a model with a penalty object cannot be saved, only one with a penalty by name")
    certificates = getattr(model, "certificates_", [])
    numbers = {name: getattr(model, name) for name in saved.numbers if hasattr(model, name) and name not in arrays}
    meta = {
        "params": {name: _plain(name, given) for name, given in params.items() if name not in UNSAVED},
        "numbers": numbers | ({} if fitted is None else facts_of(fitted)),
        "certificates": [dataclasses.asdict(one) for one in certificates],
        "kernel": dataclasses.asdict(model.kernel_) if hasattr(model, "kernel_") else None,
        "outcome": str(getattr(model, "outcome_", "")),
        "trace": list(getattr(model, "trace_", [])),
        "notes": notes or {},
    }
    save_model(path, entry.name, arrays, meta)


def facts_of(fitted: Fitted) -> dict[str, Any]:
    """Return the facts of a fit that are not public attributes, as a model file holds them."""
    facts = {"fit_phases": list(fitted.phases), "fit_C": fitted.C, "fit_mark": fitted.mark}
    return {name: value for name, value in facts.items() if value is not None}


def names_known() -> str:
    """The kinds of estimators that are registered."""
    return ", ".join(entry.name for entry in register.list_entries())


def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that :func:`save` wrote, or a text model of LIBLINEAR or LIBSVM; ``notes_`` holds its notes.

    A model behind a ``StandardScaler``, or behind the transformers of a table, is returned as a pipeline.

    Raises
    ------
    DataError
        No such file, a damaged or foreign file, or one of a newer version.

    Examples
    --------
    >>> import tempfile
    >>> from saddlesvm import LinearSVC, load, save
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(random_state=0).fit(notes.X, notes.y)
    >>> path = tempfile.mkdtemp() + "/notes.model"
    >>> save(model, path, notes={"made for": "the manual"})
    >>> load(path).certificate_ == model.certificate_, load(path).notes_["made for"]
    (True, 'the manual')
    """
    if not os.path.exists(path):
        raise DataError(f"{path}: no such file")
    refuse_special(path)
    if not is_model(path):
        return load_libsvm(path) if is_libsvm_model(path) else _from_liblinear(path)
    kind, arrays, meta = load_model(path)
    entry = register.find_entry(kind)
    if entry is None:
        raise DataError(
            f"{path}: holds a model of the kind {shorten_text(repr(kind))}; this version knows {names_known()}; "
            "import the module that registers any other first (--import MODULE on the command line)"
        )
    try:
        arrays = dict(arrays)
        of_scaler = taken(arrays)
        of_columns = arrays.pop(COLUMNS, None)
        model = _made(entry, arrays, meta)
        if of_columns is not None:
            return behind(_columns_before(model, of_columns), model)
        names = getattr(model, "feature_names_in_", None)
        return behind(scaler_of(of_scaler, model.n_features_in_, names), model)
    except UnregisteredLoss as error:
        raise DataError(f"{path}: {error}") from None
    except DAMAGE as error:
        raise DataError(f"{path}: is a damaged model file: {error}") from None


def _columns_before(model: Any, stored: np.ndarray) -> Any:
    """The transformers before a model, which make as many features as it takes.

    Raises
    ------
    ValueError
        They make others, or are damaged.
    """
    if stored.dtype != np.uint8 or stored.ndim != 1:
        raise ValueError("its columns are no bytes")
    before = columns_from_bytes(stored.tobytes())
    width = len(before.get_feature_names_out())
    if width != model.n_features_in_:
        raise ValueError(f"its columns make {width} features; its weights are of {model.n_features_in_}")
    return before


def _made(entry: register.Entry, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> Any:
    """The estimator, after every value in the file has been checked."""
    options, saved = tuple(name for name in entry.parameters if name not in UNSAVED), entry.saved
    names = {"options": options, "numbers": saved.numbers, "arrays": saved.arrays, "matrices": saved.matrices}
    check_stored(arrays, meta, names)
    model: Any = entry.kind(**{name: _restored(given, entry.linear) for name, given in meta["params"].items()})
    if hasattr(model, "loss"):
        make_loss(model.loss)
    model._check_options()
    found: dict[str, Any] = dict(meta["numbers"])
    for name in saved.arrays:
        if name in arrays:
            found[name] = arrays[name] if arrays[name].ndim else arrays[name].item()
    for name in saved.matrices:
        if name in arrays:
            found[name] = arrays[name]
        elif f"{name}data" in arrays:
            data, indices, indptr, shape = (arrays[name + part] for part in CSR_PARTS)
            found[name] = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    certificates = [Certificate(**one) for one in meta["certificates"]]
    outcome = Outcome(meta["outcome"]) if meta["outcome"] else None
    trace = Trace(meta["trace"])
    if entry.linear:
        rest = {name: value for name, value in found.items() if name not in KNOWN_OF_LINEAR}
        fitted = _fitted_of(model, found, certificates, outcome, trace)
        model = make_model(dataclasses.replace(fitted, notes=meta["notes"]))
        found = rest
    else:
        found |= {"certificates_": certificates, "trace_": trace, "notes_": meta["notes"]}
        if certificates:
            found["certificate_"] = Certificate.total(certificates)
        if outcome is not None:
            found["outcome_"] = outcome
        if meta["kernel"]:
            found["kernel_"] = Kernel(**meta["kernel"])
    for name, value in found.items():
        setattr(model, name, value)
    return model


def _fitted_of(
    template: Any,
    found: dict[str, Any],
    certificates: list[Certificate],
    outcome: Outcome | None,
    trace: Trace,
) -> Fitted:
    """Return the fit of a linear model from the attributes that its file holds."""
    give_features(template, found)
    coef = found["coef_"]
    classes = found.get("classes_")
    labels = None if classes is None else Labels(classes, found.get("indicator_", ""))
    return Fitted(
        template=template,
        coef=coef if sparse.issparse(coef) else np.atleast_2d(coef),
        intercept=np.atleast_1d(found["intercept_"]),
        duals=found.get("dual_coef_"),
        C=found.get("fit_C"),
        certificates=certificates,
        outcome=outcome,
        trace=trace,
        phases=found.get("fit_phases", []),
        epochs=found.get("n_iter_"),
        seconds_solving=found.get("seconds_solving_", 0.0),
        seconds_certifying=found.get("seconds_certifying_", 0.0),
        seconds_compiling=found.get("seconds_compiling_"),
        labels=labels,
        single_target=np.ndim(coef) == 1,
        mark=found.get("fit_mark", ""),
        calibration=found.get("calibration_"),
        chosen_C=found.get("C_"),
    )


def _parts(name: str, matrix: Any) -> dict[str, np.ndarray]:
    """A matrix as plain arrays: itself, or the parts of a CSR matrix."""
    if not sparse.issparse(matrix):
        return {name: np.asarray(matrix)}
    csr = sparse.csr_array(matrix)
    return {
        name + part: np.asarray(one)
        for part, one in zip(CSR_PARTS, (csr.data, csr.indices, csr.indptr, csr.shape), strict=True)
    }


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
    """Return loss and way to split classes of an estimator, fitted or not, as LIBLINEAR models have them.

    A model of several labels or targets `has_columns`.

    Raises
    ------
    DataError
        As :func:`save_liblinear`, before there is a model.
    """
    multi_class = getattr(model, "multi_class", "ovr")
    if has_columns:
        raise DataError(f"{path}: LIBLINEAR has no models of several labels or targets")
    if multi_class == "ovo":
        if len(classes) > 2:
            raise DataError(f"{path}: LIBLINEAR has no one-vs-one models; use multi_class='ovr' or 'crammer_singer'")
        multi_class = "ovr"
    loss = loss_name(make_loss(model.loss))
    solver_and_labels(path, classes, loss=loss, multi_class=multi_class)
    return {"loss": loss, "multi_class": multi_class}


def _from_liblinear(path: str | os.PathLike[str]) -> Any:
    stored = read_liblinear(path)
    options: dict[str, Any] = {"loss": stored.loss, "fit_intercept": stored.bias is not None and stored.bias > 0}
    if options["fit_intercept"]:
        options["intercept_scaling"] = float(stored.bias)
    if stored.classes is None:
        template: Any = LinearSVR(**options)
    else:
        template = LinearSVC(**options | {"multi_class": stored.multi_class})
    coef = np.atleast_2d(stored.coef)
    give_features(template, {"n_features_in_": coef.shape[1]})
    labels = None if stored.classes is None else Labels(stored.classes)
    intercept = np.atleast_1d(stored.intercept)
    if labels is None:
        intercept = np.ravel(intercept)[:1]
    fitted = Fitted(
        template=template,
        coef=coef,
        intercept=intercept,
        labels=labels,
        single_target=labels is None,
        notes={"written by": f"LIBLINEAR ({stored.solver_type})"},
    )
    return make_model(fitted)


def _plain(name: str, option: Any) -> Any:
    """An option as JSON can hold it: solver and loss objects as name and fields, dict keys as pairs."""
    if isinstance(option, SolverBase):
        return {
            "solver": option.name,
            "options": option.get_params(),
            "kernel": type(option) in KERNEL_SOLVERS.values(),
        }
    if name == "loss" and (isinstance(option, str) or is_loss(option)):
        return plain_loss(option)
    if isinstance(option, dict):
        keys = [key.item() if isinstance(key, np.generic) else key for key in option]
        return {"pairs": [[key, float(factor)] for key, factor in zip(keys, option.values(), strict=True)]}
    return option.item() if isinstance(option, np.generic) else option


def _restored(given: Any, linear: bool) -> Any:
    """The option that :func:`_plain` stored; creates only solvers and losses of this package or registered before."""
    if not isinstance(given, dict):
        return given
    if {*given} == {"solver", "options", "kernel"}:
        kind = (SOLVERS if linear else KERNEL_SOLVERS).get(given["solver"])
        if kind is None:
            raise ValueError(
                f"its solver is {shorten_text(repr(given['solver']))}; import the module that registers it first"
            )
        return kind(**given["options"])
    if {*given} in ({"loss", "options"}, {"loss", "options", "text", "origin"}):
        return loss_from_plain(given)
    if {*given} == {"pairs"}:
        return {key: factor for key, factor in given["pairs"]}  # noqa: C416
    raise ValueError(f"its options hold {shorten_text(repr(given))}")
