"""Proofs of linear estimators about the exact optimum: its decisions, labels and weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from saddlesvm.answers.active_set import WORTH
from saddlesvm.answers.proof import Proof, gap_for, proof_near, proof_of
from saddlesvm.answers.steps import enough_for
from saddlesvm.data.door import checked_data as data_of, refuse_place
from saddlesvm.estimators.fitted import (
    begin_at,
    dual_row,
    fit_part,
    former_fit,
    label_rule,
    part_problem,
    rows_for_parts,
    weights_of,
)
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.passes import Passes

CLOSE = 1e-12  # relative gap of the fit behind a proof: near what rounding leaves of a certificate
TOWARDS = (1e-6, 1e-9, CLOSE)  # relative gaps to which a model that is to be settled is trained, one after the other
AFRESH = {
    "warm_start": True, "gap": 0.0, "max_iter": None, "max_time": None, "keep": "best",
    "callbacks": None, "checkpoint": None, "memory": None, "verbose": 0, "solver": "auto", "probability": False,
    "random_state": 0,
}  # fmt: skip
TAKEN = (
    "coef_", "intercept_", "dual_coef_", "certificates_", "certificate_", "_fitted_C"
)  # fmt: skip


KEPT_HERE = ("_data", "_proof", "_proven_with")  # attributes that are neither saved nor pickled


class Data(NamedTuple):
    """The data of a fit: references, no copies. Fits whose rows are read from files keep none."""

    X: Any
    y: Any
    sample_weight: Any


def checked_data(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Data:
    """Data of the features that a fitted model knows; ValueError for others."""
    check_is_fitted(model)
    if isinstance(X, Passes):
        refuse_place(X, "what follows from a fit")
    design, y, sample_weight = data_of(X, y, sample_weight, model)
    return Data(design.X, y, sample_weight)


def training_data(model: Any) -> Data:
    """Return the data of a model's fit; ValueError if it has none."""
    data: Data | None = vars(model).get("_data")
    if data is None:
        raise ValueError(
            "this model has no training data (it was loaded, unpickled, or fitted to files or on a cluster), and a "
            "proof needs them: call prove(X, y) with the data that it was fitted to"
        )
    return data


def prove_labels(model: Any, found: Proof, X: Any) -> np.ndarray:
    """Return whether the labels that a classifier predicts are proven to be the optimum's."""
    if model.probability:
        raise ValueError(
            "probability=True takes labels from calibrated curves, which have no proof: use "
            "decision_bounds(X), or a model without it"
        )
    number, proven = found.labels(X, model.classes_.size, label_rule(model))
    predicted = model.predict(X)
    if model.multilabel_:
        return proven & (number == (predicted.toarray() if hasattr(predicted, "toarray") else predicted))
    return np.asarray(proven & (model.classes_[number] == predicted))


class Closer(NamedTuple):
    """A model that went on from the weights of another, its problems, and its proof."""

    model: Any
    problems: list[Problem]
    proof: Proof


def proof_of_data(model: Any, data: Data) -> Proof:
    """The proof of a fitted model: by a few steps from its weights, or by those of a copy that is trained on."""
    own = _copy(model)
    ready = rows_for_parts(own, data.X, len(model.certificates_))
    enough, tol = enough_for(model.tol), CLOSE
    problems = None if ready is None else problems_of(own, data, ready)
    if problems is not None and len(problems) == len(model.certificates_):
        found = proof_near(problems, weights_of(model, problems[0].scale), enough)
        if found is not None:
            return found
        tol = min(max(tol, gap_for(problems, model.certificates_, enough)), max(model.tol, CLOSE))
    return closer(model, data, tol, max(enough, WORTH), ready).proof


def problems_of(model: Any, data: Data, ready: Any = None) -> list[Problem] | None:
    """The problems that a model, which knows its classes, poses on some data; None for rows that are not in memory.

    `ready` are the rows, prepared, where they are.
    """
    posed = model._pose(data.y, data.sample_weight, data.X.shape[0])
    ready = ready or rows_for_parts(model, data.X, len(posed.problems))
    return None if ready is None else [part_problem(model, sub, posed, ready) for sub in posed.problems]


def _copy(model: Any, tol: float = CLOSE) -> Any:
    """A model with the parameters of another, for a fit to the relative gap `tol`; it knows the classes already."""
    own = clone(model)
    fresh = {name: value for name, value in AFRESH.items() if name in own.get_params(deep=False)}
    C = {"C": model.C_} if hasattr(model, "C_") else {}
    own.set_params(**fresh, **C, tol=tol)
    for name in ("classes_", "indicator_", "n_features_in_", "feature_names_in_"):
        if name in vars(model):
            setattr(own, name, getattr(model, name))
    return own


def closer(model: Any, data: Data, tol: float = CLOSE, enough: float = 0.0, ready: Any = None) -> Closer:
    """A copy of a fitted model that goes on to the relative gap `tol` from its weights; `enough` is that of
    :func:`~saddlesvm.answers.proof.proof_of`, and `ready` are the rows, prepared, where they are."""
    own = _copy(model, tol)
    begin_at(own, former_fit(model))
    posed = own._pose(data.y, data.sample_weight, data.X.shape[0])
    ready = ready or rows_for_parts(own, data.X, len(posed.problems))
    if ready is None:
        raise ValueError("a proof needs the training rows in memory: load them into arrays, and call prove(X, y)")
    fit_part(own, data.X, posed, ready)
    problems = [part_problem(own, sub, posed, ready) for sub in posed.problems]
    W = weights_of(own, problems[0].scale)
    known = hasattr(own, "dual_coef_") and own.dual_coef_.shape[0] == len(problems)
    duals = [dual_row(own, k) if known else None for k in range(len(problems))]
    return Closer(own, problems, proof_of(problems, W, own.certificates_, duals, enough))
