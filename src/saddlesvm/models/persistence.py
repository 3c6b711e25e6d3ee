"""Saving and loading estimators as plain arrays and JSON: no pickle, and no code from the file.

Before an estimator, a file may hold scikit-learn's transformers as skops writes them.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data import DataError
from saddlesvm.data.archives import DAMAGE, LONGEST_FAULT, is_finite, shorten_text
from saddlesvm.data.errors import refuse_special
from saddlesvm.data.model_file import is_model, load_model, save_model
from saddlesvm.estimators import register
from saddlesvm.estimators.base import Labels
from saddlesvm.estimators.columns import (
    columns_from_bytes,
    columns_to_bytes,
    prepend_step,
    step_before,
)
from saddlesvm.estimators.fitted import (
    Fitted,
    fitted_value,
    give_features,
    make_model,
)
from saddlesvm.fit.outcome import Outcome, Trace
from saddlesvm.kernel import svc, svm  # noqa: F401 (they register their estimators)
from saddlesvm.kernel.kernel_fits import KERNEL_SOLVERS
from saddlesvm.kernel.kernel_fitted import (
    AT_PREDICTION,
    KernelFitted,
    held_machine,
    make_machine,
)
from saddlesvm.kernel.mercer import Kernel
from saddlesvm.models.liblinear_models import load_liblinear
from saddlesvm.models.model_checks import (
    ARRAYS,
    CSR_PARTS,
    FACTS,
    check_meta,
    check_shapes,
    restore_arrays,
)
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.losses import (
    UnregisteredLoss,
    is_loss,
    loss_from_plain,
    make_loss,
    plain_loss,
)
from saddlesvm.solvers import SOLVERS
from saddlesvm.solvers.base import SolverBase

if TYPE_CHECKING:
    from sklearn.compose import ColumnTransformer

    from saddlesvm.estimators.base import Estimator

# The array of a model file with the transformers before the model, as skops writes them.
COLUMNS = "columns"
# What to save instead of a model that cannot be saved, by an attribute that tells its kind.
INSTEAD = {
    "best_estimator_": ": save its best_estimator_",
    "to_local": ": save what its to_local() returns",
    "steps": ": save its last step, or the whole with joblib or skops",
}
UNSAVED = ("callbacks", "checkpoint", "random_state")  # parameters that a file does not hold


def split_pipeline(model: Estimator) -> tuple[Estimator, object]:
    """Return the estimator at the end of a pipeline, and what stands before it (or None)."""
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        return model[-1], step_before(model)
    return model, None


def save(
    model: Estimator, path: str | os.PathLike[str], notes: Mapping[str, object] | None = None
) -> None:
    """Write a fitted estimator to `path` (to a temporary name first, then renamed).

    Parameters
    ----------
    model : LinearSVC, LinearSVR, SVC, or one registered with :func:`saddlesvm.register_estimator`
        Or a pipeline of transformers of scikit-learn, or of a :func:`saddlesvm.table.encoder`,
        and one of these. Transformers need skops.
    path : path-like
    notes : dict, optional
        Plain facts to store with the model, such as the source of the data.

    Raises
    ------
    DataError
        The file cannot be written, the labels are objects other than text, the kernel is your
        own function, or the model is of another kind.
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
    model, before = split_pipeline(model)
    entry = register.entry_of(model)
    if entry is None or entry.kind is not type(model):
        instead = next((advice for name, advice in INSTEAD.items() if hasattr(model, name)), "")
        raise DataError(
            f"{path}: a {type(model).__name__} cannot be saved, only {list_kinds()}{instead}"
        )
    check_is_fitted(model)
    if callable(getattr(model, "kernel", None)):
        raise DataError(
            f"{path}: a model whose kernel is a Python function cannot be saved: a file holds "
            "no code; use a kernel by name"
        )
    # The parameters of the fit; some count when a model predicts.
    fitted: Any
    if entry.linear:
        # Weights stay sparse if they are shown so.
        fitted = fitted_value(model)
        if sparse.issparse(model.coef_):
            fitted = dataclasses.replace(fitted, coef=model.coef_)
    else:
        fitted = held_machine(model)
    # The time of a whole fit is known to the estimator only.
    seconds = getattr(model, "seconds_compiling_", None)
    fitted = dataclasses.replace(fitted, seconds_compiling=seconds)
    params = fitted.template.get_params(False)
    params |= {name: getattr(model, name) for name in AT_PREDICTION if name in params}
    if fitted.chosen_C is not None:
        params["C"] = fitted.chosen_C  # a reader does not choose again
    options = {
        name: _option_to_plain(name, given) for name, given in params.items() if name not in UNSAVED
    }
    meta = {"params": options, "notes": notes or {}} | _facts_to_plain(fitted)
    arrays = _fit_to_arrays(model, fitted)
    if before is not None:
        arrays[COLUMNS] = np.frombuffer(columns_to_bytes(before), dtype=np.uint8)
    save_model(path, entry.name, arrays, meta)


def _fit_to_arrays(model: Estimator, fitted: Fitted | KernelFitted) -> dict[str, np.ndarray]:
    """Return the arrays of a fit, CSR matrices by their parts."""
    held = dict(vars(fitted))
    if fitted.labels is not None:
        held["classes"] = fitted.labels.classes
    held["feature_names"] = getattr(model, "feature_names_in_", None)
    arrays = {}
    for name in ARRAYS:
        matrix = held.get(name)
        if sparse.issparse(matrix):
            csr = sparse.csr_array(matrix)
            parts = (csr.data, csr.indices, csr.indptr, np.array(csr.shape))
            for part, array in zip(CSR_PARTS, parts, strict=True):
                arrays[f"{name}_csr_{part}"] = array
        elif matrix is not None:
            arrays[name] = np.asarray(matrix)
    return arrays


def _facts_to_plain(fitted: Fitted | KernelFitted) -> dict[str, Any]:
    """Return what a fit holds besides its arrays, as JSON can hold it."""
    held = vars(fitted)
    facts = {name: held[name] for name in FACTS if held.get(name) is not None}
    facts["n_features"] = fitted.template.n_features_in_
    if "phases" in facts:
        facts["phases"] = list(facts["phases"])
    if fitted.labels is not None:
        facts["indicator"] = fitted.labels.indicator
    kernel = held.get("kernel")
    return {
        "facts": facts,
        "certificates": [dataclasses.asdict(certificate) for certificate in fitted.certificates],
        "kernel": None if kernel is None else dataclasses.asdict(kernel),
        "outcome": str(fitted.outcome or ""),
        "trace": list(fitted.trace or []),
    }


def list_kinds() -> str:
    """Return the names of the registered estimators, for a message."""
    return ", ".join(entry.name for entry in register.list_entries())


def load(path: str | os.PathLike[str]) -> Estimator | Pipeline:
    """Read an estimator that :func:`save` wrote, or a text model of LIBLINEAR.

    Its ``notes_`` are the notes that were stored with it. If transformers stand before
    the model, they are returned as a pipeline.

    Raises
    ------
    DataError
        No such file, a damaged or foreign file, or a file of a newer version.

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
        return load_liblinear(path)
    kind, stored, meta = load_model(path)
    entry = register.find_entry(kind)
    if entry is None:
        raise DataError(
            f"{path}: holds a model of the kind {shorten_text(repr(kind))}; this version knows "
            f"{list_kinds()}; import the module that registers any other first (--import MODULE "
            "on the command line)"
        )
    try:
        # What stands before the model is taken out first: the rest is checked against a closed
        # list of a fit's arrays.
        arrays = dict(stored)
        columns = arrays.pop(COLUMNS, None)
        model = _make_estimator(entry, arrays, meta)
        if columns is not None:
            return prepend_step(_restore_columns(model, columns), model)
        return model
    except UnregisteredLoss as error:
        raise DataError(f"{path}: {error}") from None
    except DAMAGE as error:
        fault = shorten_text(str(error), LONGEST_FAULT)
        raise DataError(f"{path}: is a damaged model file: {fault}") from None


def _restore_columns(model: Estimator, stored: np.ndarray) -> ColumnTransformer:
    """Return the stored transformers; raise ValueError unless they make the model's features."""
    if stored.dtype != np.uint8 or stored.ndim != 1:
        raise ValueError("its columns are no bytes")
    before = columns_from_bytes(stored.tobytes())
    width = len(before.get_feature_names_out())
    if width != model.n_features_in_:
        raise ValueError(
            f"its columns make {width} features, but its weights are for {model.n_features_in_}"
        )
    return before


def _make_estimator(
    entry: register.Entry, stored: dict[str, np.ndarray], meta: dict[str, Any]
) -> Estimator:
    """Return the estimator of a file, after every value in the file has been checked."""
    check_meta(meta, tuple(name for name in entry.parameters if name not in UNSAVED))
    if entry.linear != (meta["kernel"] is None):
        raise ValueError(f"its kernel is {shorten_text(repr(meta['kernel']))}")
    arrays = restore_arrays(stored)
    check_shapes(arrays, meta)
    params = {name: _restore_option(given, entry.linear) for name, given in meta["params"].items()}
    template: Any = entry.kind(**params)
    # A wrong option is refused here, not at the first prediction.
    if hasattr(template, "loss"):
        make_loss(template.loss)
    template._check_options()

    # The fields of the fit, and what is none: features and labels.
    fields: dict[str, Any] = meta["facts"] | arrays
    features = {"n_features_in_": fields.pop("n_features")}
    names = fields.pop("feature_names", None)
    if names is not None:
        features["feature_names_in_"] = names
    indicator = fields.pop("indicator", "")
    classes = fields.pop("classes", None)
    if "epochs" in fields and not fields["epochs"].ndim:
        fields["epochs"] = fields["epochs"].item()
    fields |= {
        "template": give_features(template, features),
        "labels": None if classes is None else Labels(classes, indicator),
        "certificates": [Certificate(**certificate) for certificate in meta["certificates"]],
        "outcome": Outcome(meta["outcome"]) if meta["outcome"] else None,
        "trace": Trace(meta["trace"]),
        "notes": meta["notes"],
    }
    if entry.linear:
        return make_model(Fitted(**fields))
    return make_machine(KernelFitted(kernel=Kernel(**meta["kernel"]), **fields))


def _option_to_plain(name: str, option: object) -> object:
    """Return an option as JSON can hold it: objects by name and fields, dicts as pairs."""
    if isinstance(option, SolverBase):
        return {
            "solver": option.name,
            "options": option.get_params(),
            "kernel": type(option) in KERNEL_SOLVERS.values(),
        }
    if name == "loss" and (isinstance(option, str) or is_loss(option)):
        return plain_loss(option)
    if isinstance(option, dict):
        # JSON would make text of keys that are numbers.
        keys = [key.item() if isinstance(key, np.generic) else key for key in option]
        factors = option.values()
        return {"pairs": [[key, float(value)] for key, value in zip(keys, factors, strict=True)]}
    return option.item() if isinstance(option, np.generic) else option


def _restore_option(given: object, linear: bool) -> object:
    """Return the option that a file holds; only registered solvers and losses are made."""
    if not isinstance(given, dict):
        return given
    keys = set(given)
    # A solver by its registered name, with its options.
    if keys == {"solver", "options", "kernel"}:
        known = SOLVERS if linear else KERNEL_SOLVERS
        kind = known.get(given["solver"])
        if kind is None:
            name = shorten_text(repr(given["solver"]))
            raise ValueError(f"its solver is {name}; import the module that registers it first")
        return kind(**given["options"])
    if keys in ({"loss", "options"}, {"loss", "options", "text", "origin"}):
        return loss_from_plain(given)
    # A dict with keys other than text, such as class_weight={1: 2.0}.
    if keys == {"pairs"}:
        if not all(is_finite(factor) for _, factor in given["pairs"]):
            raise ValueError(f"its factors are {shorten_text(repr(given['pairs']))}")
        return {key: factor for key, factor in given["pairs"]}  # noqa: C416
    raise ValueError(f"its options hold {shorten_text(repr(given))}")
