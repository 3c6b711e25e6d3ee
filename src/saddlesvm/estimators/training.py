"""Fits of a linear model outside an estimator's own ``fit``: of paths, folds and choices of C."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from saddlesvm.estimators.base import apply_limits
from saddlesvm.estimators.fitted import Fitted
from saddlesvm.estimators.solve import fit_rows
from saddlesvm.runtime.clock import seconds_compiling
from saddlesvm.runtime.data_types import LabelsLike, RowsLike

if TYPE_CHECKING:
    from saddlesvm.estimators.base import Estimator


def fit_copy(
    template: Estimator,
    X: RowsLike,
    y: LabelsLike | None = None,
    sample_weight: ArrayLike | None = None,
    **given: Any,
) -> Fitted:
    """Fit a model within the `max_time` of its template.

    :func:`~saddlesvm.estimators.solve.fit_rows` has all arguments.
    """
    with apply_limits(template):
        compiled_before = seconds_compiling()
        fitted = fit_rows(template, X, y, sample_weight, **given)
    return replace(fitted, seconds_compiling=seconds_compiling() - compiled_before)
