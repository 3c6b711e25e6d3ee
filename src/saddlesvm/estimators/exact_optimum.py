"""What a fit proves of the exact optimum: bounds on its decisions and weights, and its labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from saddlesvm.answers.proof import Proof, gap_for, make_proof
from saddlesvm.data.door import checked_data as data_of, refuse_place
from saddlesvm.estimators.fitted import (
    Data,
    Fitted,
    check_rows,
    copy_options,
    dual_row,
    former_fit,
    label_rule,
    stack_weights,
)
from saddlesvm.estimators.solve import fit_part, part_problem, rows_for_parts
from saddlesvm.fit.outcome import Outcome
from saddlesvm.multiclass.linear_fit import FitRows
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.passes import Passes
from saddlesvm.runtime.data_types import RowsLike

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator

CLOSE = 1e-12  # relative gap of the fit behind a proof: near what rounding leaves of a certificate
# How far the scores of the training rows may move in the ball of a proof, where a margin is 1: a
# multiple of the model's relative gap, between two ends; guesses.
MOVEMENT = 1e-4
MOVEMENT_OF_TOL = 10.0
LEAST_MOVEMENT = 1e-6
MOST_MOVEMENT = 1e-3
# Relative gaps to which a model that is to be settled is trained, one after the other.
TOWARDS = (1e-6, 1e-9, CLOSE)
# Parameters of a fit that goes on for a proof: nothing but the gap ends it, and nobody watches.
AFRESH = {
    "warm_start": True,
    "gap": 0.0,
    "max_iter": None,
    "max_time": None,
    "keep": "best",
    "callbacks": None,
    "checkpoint": None,
    "memory": None,
    "verbose": 0,
    "solver": "auto",
    "random_state": 0,
}

Bounds = tuple[np.ndarray, np.ndarray]


def checked_data(
    fitted: Fitted, X: RowsLike, y: Any, sample_weight: ArrayLike | None = None
) -> Data:
    """Return data of the features that a model knows; ValueError for others."""
    if isinstance(X, Passes):
        refuse_place(X, "what follows from a fit")
    design, y, sample_weight = data_of(X, y, sample_weight, fitted.template)
    return Data(design.X, y, sample_weight)


def training_data(fitted: Fitted) -> Data:
    """Return the data of a fit; ValueError if it has none."""
    if fitted.data is None:
        raise ValueError(
            "this model has no training data (it was loaded, unpickled, or fitted to files or on a "
            "cluster), and a proof needs them: call prove(X, y) with the data that it was fitted to"
        )
    return fitted.data


def prove_fit(fitted: Fitted, data: Data | None = None) -> Fitted:
    """Return a fit with its proof, from its own data or from these."""
    if data is not None:
        return replace(fitted, proof=prove_from_data(fitted, data))
    if fitted.proof is not None:
        return fitted
    return replace(fitted, proof=prove_from_data(fitted, training_data(fitted)))


def decision_bounds(fitted: Fitted, X: RowsLike) -> Bounds:
    """Return bounds on the scores of the exact optimum, each of shape (m,) or (m, k)."""
    assert fitted.proof is not None
    low, high = fitted.proof.score_bounds(check_rows(fitted, X))
    return (low[:, 0], high[:, 0]) if low.shape[1] == 1 else (low, high)


def coef_bounds(fitted: Fitted) -> Bounds:
    """Return bounds on the weights of the exact optimum, each of the shape of ``coef_``."""
    assert fitted.proof is not None
    low, high = fitted.proof.weight_bounds()
    if fitted.single_target and not sparse.issparse(fitted.coef):
        return low[0, :-1], high[0, :-1]
    return low[:, :-1], high[:, :-1]


def prove_labels(fitted: Fitted, X: RowsLike, predicted: ArrayLike) -> np.ndarray:
    """Return whether the labels that a classifier predicts are proven to be the optimum's."""
    assert fitted.proof is not None
    assert fitted.labels is not None
    classes = fitted.labels.classes
    number, proven = fitted.proof.labels(X, classes.size, label_rule(fitted))
    # The proof tells the label of the optimum; it has to be the predicted one.
    if fitted.several_labels:
        dense = predicted.toarray() if hasattr(predicted, "toarray") else predicted
        return proven & (number == dense)
    return np.asarray(proven & (classes[number] == predicted))


def prove_from_data(fitted: Fitted, data: Data) -> Proof:
    """Return the proof of a fit, by a fit that goes on from its weights."""
    template = proof_options(fitted)
    count = len(fitted.certificates)
    tol = fitted.template.tol
    ready = rows_for_parts(template, data.X, count)
    enough = movement_for(tol)
    wanted = CLOSE

    # A loss made of lines has the ball of the gap alone: a gap for which it is small is enough.
    problems = None if ready is None else pose_problems(fitted, template, data, ready)
    if problems is not None and len(problems) == count:
        needed = gap_for(problems, list(fitted.certificates), enough)
        wanted = min(max(wanted, needed), max(tol, CLOSE))
    closer = go_closer(fitted, data, wanted, enough, ready)
    assert closer.proof is not None
    return closer.proof


def movement_for(tol: float) -> float:
    """Return how far the scores of training rows may move in the ball of a proof at most.

    It follows the relative gap of the model; a margin is 1.
    """
    if tol <= 0.0:
        return MOVEMENT
    return min(max(MOVEMENT_OF_TOL * tol, LEAST_MOVEMENT), MOST_MOVEMENT)


def pose_problems(fitted: Fitted, template: Estimator, data: Data, ready: FitRows) -> list[Problem]:
    """Return the problems that a fit poses on some data."""
    training = template._pose(data.y, data.sample_weight, data.X.shape[0], fitted.labels)
    return [part_problem(template, sub, training, ready) for sub in training.problems]


def proof_options(fitted: Fitted, tol: float = CLOSE) -> Any:
    """Return the parameters of a fit, to be trained on to the relative gap `tol`."""
    offered = fitted.template.get_params(deep=False)
    fresh = {name: value for name, value in AFRESH.items() if name in offered}
    return copy_options(fitted.template, **fresh, tol=tol)


def go_closer(
    fitted: Fitted,
    data: Data,
    tol: float = CLOSE,
    enough: float = 0.0,
    ready: FitRows | None = None,
) -> Fitted:
    """Return a fit that goes on from the weights of another to the relative gap `tol`, and proof.

    `enough` is that of :func:`~saddlesvm.answers.proof.make_proof`.
    """
    template = proof_options(fitted, tol)
    training = template._pose(data.y, data.sample_weight, data.X.shape[0], fitted.labels)
    ready = ready or rows_for_parts(template, data.X, len(training.problems))
    if ready is None:
        raise ValueError(
            "a proof needs the training rows in memory: load them into arrays, and call prove(X, y)"
        )
    closer = fit_part(template, data.X, training, ready, former_fit(fitted))
    problems = [part_problem(template, sub, training, ready) for sub in training.problems]
    W = stack_weights(closer.coef, closer.intercept, problems[0].scale)
    known = closer.duals is not None and closer.duals.shape[0] == len(problems)
    duals = [dual_row(closer.duals, k) if known else None for k in range(len(problems))]
    proof = make_proof(problems, W, list(closer.certificates), duals, enough)
    return replace(closer, proof=proof)


def settle(fitted: Fitted, tol: float) -> Fitted:
    """Return a fit that went on to the relative gap `tol`, with its proof.

    Parameters, trace and times stay as in the fit.
    """
    data = training_data(fitted)
    closer = go_closer(fitted, data, tol)
    is_certified = closer.certificate.relative_gap <= fitted.template.tol
    return replace(
        fitted,
        coef=closer.coef,
        intercept=closer.intercept,
        duals=closer.duals,
        C=closer.C,
        certificates=closer.certificates,
        outcome=Outcome.CERTIFIED if is_certified else fitted.outcome,
        proof=closer.proof,
    )
