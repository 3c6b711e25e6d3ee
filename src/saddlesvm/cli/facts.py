"""What the commands print about data, models and fits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.metrics import mean_absolute_error, r2_score

from saddlesvm.cli.show import Facts, make_identifier
from saddlesvm.data import Table
from saddlesvm.data.data_table import ROUNDED, are_rounded
from saddlesvm.estimators.register import entry_of
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.losses import loss_text, make_loss
from saddlesvm.rows.scores import dense_weights
from saddlesvm.rows.small_types import type_name

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator

# Numbers are listed as classes if so many differ at most, or one for each so many rows (guessed).
MANY_CLASSES = 20
ROWS_A_CLASS = 20


def describe_data(table: Table) -> dict[str, object]:
    """Return facts of the data that were read."""
    facts: dict[str, Any] = {
        "source": table.source,
        "format": table.format,
        "rows": table.n_rows,
        "features": None,
        "nonzeros": None,
        "precision": None,
        "bytes": table.n_bytes or None,
        "columns": table.column_facts,
    }
    is_matrix = table.kinds is None
    if is_matrix:
        facts["features"] = table.n_features
        facts["nonzeros"] = table.n_nonzero
        facts["precision"] = type_name(table.X.dtype)
    # Text, and few different numbers, are listed as classes; other numbers are targets.
    if table.y is None:
        return facts
    values, counts = np.unique(table.y, return_counts=True)
    is_text = table.y.dtype.kind in "US"
    are_few = values.size <= max(MANY_CLASSES, table.n_rows // ROWS_A_CLASS)
    # Whole numbers of 2^53 or more may be several labels that were rounded to one.
    is_rounded = are_rounded(table.y)
    if is_rounded:
        facts["labels"] = ROUNDED
    if (is_text or are_few) and not is_rounded:
        sizes = zip(values, counts, strict=True)
        facts["classes"] = {str(value): int(count) for value, count in sizes}
    else:
        facts["targets_from"] = float(values[0])
        facts["targets_to"] = float(values[-1])
    return facts


def describe_certificate(model: Estimator, certificate: Certificate) -> dict[str, object]:
    """Return the objectives, the gap between them, and what it proves about the model."""
    facts: dict[str, Any] = {
        "primal_objective": certificate.primal,
        "dual_bound": certificate.dual,
        "relative_gap": certificate.relative_gap,
        "excess": max(certificate.excess, 0.0),
    }
    # Only a positive semi-definite kernel has a dual bound.
    if certificate.dual == -math.inf:
        facts["excess"] = None
        facts["note"] = (
            f"the kernel {model.kernel_.name} is not positive semi-definite on these rows: the "
            "problem is not convex and has no dual bound"
        )
    elif hasattr(model, "kernel_") and not model.kernel_.definite:
        facts["note"] = (
            f"the bound holds if the kernel {model.kernel_.name} is positive semi-definite; no "
            "check on these rows showed that it is not"
        )
    return facts


def describe_quality(model: Estimator) -> dict[str, object]:
    """Return the proof of a fitted model, why the fit stopped, and what to do about it."""
    facts = describe_certificate(model, model.certificate_)
    facts["outcome"] = str(model.outcome_)
    if model.outcome_ is not Outcome.CERTIFIED:
        facts["advice"] = model.outcome_.advice
    return facts | count_support(model)


def describe_worth(
    model: Estimator, predicted: np.ndarray, y: np.ndarray | None, name: str
) -> dict[str, object]:
    """Return the accuracy of predictions, or R2 and the mean absolute error.

    Parameters
    ----------
    model : estimator
    predicted : ndarray
    y : ndarray or None
        None for a model that learns without labels.
    name : str
        The name of the rows: train, test, validation, data.
    """
    entry = entry_of(model)
    task = "classification" if entry is None else entry.task
    if y is None or task == "novelty":
        return {f"{name}_outside_share": float(np.mean(predicted == -1))}
    if task == "regression":
        return {
            f"{name}_r2": r2_score(y, predicted),
            f"{name}_mean_absolute_error": mean_absolute_error(y, predicted),
        }
    return {f"{name}_accuracy": float(np.mean(predicted == y))}


def describe_fit(model: Estimator, table: Table) -> dict[str, object]:
    """Return how the model was fitted, and how long that took."""
    return {
        "model": name_problem(model),
        "solver": str(model.solver),
        "epochs": int(np.max(model.n_iter_)),
        "certificates": len(model.trace_),
        "seconds_reading": table.seconds,
        "seconds_solving": model.seconds_solving_,
        "seconds_certifying": model.seconds_certifying_,
        "seconds_compiling": getattr(model, "seconds_compiling_", 0.0) or None,
    }


def name_problem(model: Estimator) -> str:
    """Return the kind of model, its loss, and how much it is regularised."""
    options = model.get_params(False)
    parts = [type(model).__name__]
    if "loss" in options:
        parts.append(f"loss {loss_text(make_loss(model.loss))}")
    if "nu" in options:
        parts.append(f"nu = {model.nu:g}")
    if "C" in options:
        parts.append(name_strength(model))
    return ", ".join(parts)


def name_strength(model: Estimator) -> str:
    """Return C or lambda, as it was given or chosen."""
    if getattr(model, "lam", None) is not None:
        return f"lambda = {model.lam:g}"
    # A loaded model has the chosen C as its own, and no path.
    if not hasattr(model, "path_"):
        return f"C = {model.C:g}"
    count = len(model.path_.knots)
    return (
        f"C = {model.C_:.4g} (chosen by leave-one-out estimates along a path of {count} "
        "certified fits)"
    )


def count_support(model: Estimator) -> dict[str, object]:
    """Return the number of rows with a dual variable other than zero in any sub-problem."""
    if hasattr(model, "support_"):
        return {"support_vectors": int(model.support_.size)}
    if not hasattr(model, "dual_coef_"):
        return {}
    # A row counts once, however many sub-problems give it a dual variable.
    dual = sparse.csc_array(model.dual_coef_)
    return {"support_vectors": int(np.count_nonzero(np.diff(dual.indptr)))}


def describe_model(model: Estimator, path: str) -> Facts:
    """Return facts of a saved model."""
    defaults = type(model)().get_params(deep=False)
    # Options that keep their defaults say nothing new.
    changed = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if value != defaults[name]
    }
    facts: dict[str, Any] = {
        "file": path,
        "kind": type(model).__name__,
        "problem": name_problem(model),
        "options": changed or None,
        "features": int(model.n_features_in_),
        "classes": model.classes_.tolist() if hasattr(model, "classes_") else None,
    }
    # Linear models have weights, kernel machines a kernel.
    if hasattr(model, "coef_"):
        weights = dense_weights(model.coef_)
        facts["nonzero_weights"] = int(np.count_nonzero(weights))
        facts["norm_of_weights"] = float(np.linalg.norm(weights))
    if hasattr(model, "kernel_"):
        facts["kernel"] = str(model.kernel_)
    groups: Facts = {"model": facts}
    if hasattr(model, "certificate_"):
        groups["quality"] = describe_quality(model)
    elif count_support(model):
        groups["quality"] = count_support(model)
    if model.notes_:
        groups["notes"] = {make_identifier(name): value for name, value in model.notes_.items()}
    return groups
