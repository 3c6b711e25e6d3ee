"""The whole fit of a linear model: its weights, and the probabilities that it is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from saddlesvm.estimators.base import under_limits
from saddlesvm.estimators.calibration import calibrate
from saddlesvm.estimators.fitted import Fitted
from saddlesvm.estimators.solve import fit_rows
from saddlesvm.runtime.clock import seconds_compiling


def fit_model(template: Any, X: Any, y: Any = None, sample_weight: Any = None, **given: Any) -> Fitted:
    """Fit a model; see :func:`~saddlesvm.estimators.solve.fit_rows` for all arguments."""
    compiled_before = seconds_compiling()
    complete = calibrate if template.probability else None
    fitted = fit_rows(template, X, y, sample_weight, complete=complete, **given)
    return replace(fitted, seconds_compiling=seconds_compiling() - compiled_before)


def fit_copy(template: Any, X: Any, y: Any = None, sample_weight: Any = None, **given: Any) -> Fitted:
    """Fit a model within the `max_time` of its template, outside an estimator's own fit."""
    with under_limits(template):
        return fit_model(template, X, y, sample_weight, **given)
