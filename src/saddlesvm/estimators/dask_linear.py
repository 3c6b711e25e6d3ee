"""What LinearSVC and LinearSVR on a Dask cluster share beyond the fit: paths, names of columns, models in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from saddlesvm.cluster.model import DistributedModel, Prepared
from saddlesvm.cluster.rounds import Solution
from saddlesvm.cluster.sources import feature_names
from saddlesvm.estimators.path import check_Cs
from saddlesvm.fit.trace import Record, Trace

NO_WEIGHTS = np.empty(0)  # the record of a round has none
OF_THE_FIT = ("callbacks", "max_iter", "max_time", "memory", "verbose")  # options that say nothing of the model


class DistributedLinear(DistributedModel):
    """An estimator of linear models on a cluster."""

    feature_names_in_: np.ndarray

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """The partitions on the workers."""
        raise NotImplementedError

    def _note_columns(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Keep the names of a data frame's columns, and which columns of files are not features."""
        self.__dict__.pop("feature_names_in_", None)
        if (names := feature_names(X)) is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self._columns = (None, None)
        if isinstance(X, (list, tuple)):
            self._columns = (y, sample_weight if isinstance(sample_weight, str) else None)

    @classmethod
    def path(
        cls,
        X: Any,
        y: Any = None,
        *,
        Cs: int | Sequence[float] = 13,
        C: Any = None,
        lam: Any = None,
        gap: Any = None,
        sample_weight: Any = None,
        **options: Any,
    ) -> list[Self]:
        """Certified models along C, ascending; the partitions are made once, and each fit begins where the last ended.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        Cs : int or sequence of float, default=13
            Values of C, or how many between 1e-3 and 1e3.
        C, lam, gap
            Of a path that proves a model for every C between two ends: on one machine only.
        **options
            Of the estimator.

        Raises
        ------
        ValueError
            Bad data or options.
        """
        if C is not None or lam is not None or gap is not None:
            raise ValueError(
                "a path that is proven for every C between two ends (C=, lam=, gap=) is for one machine: "
                f"saddlesvm.{cls.__name__}.path; on a cluster give values of C, Cs="
            )
        model = cls(**options)
        grid = check_Cs(Cs).tolist()
        prepared = model._rows(X, y, sample_weight)
        return [model._at(one, solution) for one, solution in model._along(prepared, grid)]

    def _at(self, C: float, solution: Solution) -> Self:
        """A copy of this model with the solution for a C."""
        model: Self = copy(self).set_params(C=C)
        model._keep(solution, time.perf_counter() - solution.seconds)
        model._warn(solution)
        return model

    def _alike(self) -> Any:
        """An estimator in memory with the options that the model has."""
        template = self._template()
        defaults = type(template)()
        return template.set_params(**{name: getattr(defaults, name) for name in OF_THE_FIT})


def filled(model: Any, fitted: DistributedModel, coef: Any, intercept: Any) -> Any:
    """The model in memory with the fitted attributes of the one on a cluster."""
    model.coef_, model.intercept_ = coef, intercept
    for name in ("certificate_", "certificates_", "outcome_", "n_iter_", "n_features_in_", "feature_names_in_"):
        if hasattr(fitted, name):
            setattr(model, name, getattr(fitted, name))
    model.trace_ = trace_of(fitted.trace_, fitted._n)
    return model


def trace_of(rounds: list[dict[str, Any]], n: int) -> Trace:
    """The record of the rounds that had a model, for n rows, in the form that fits in memory have."""
    trace = Trace()
    for row in rounds:
        if np.isfinite(row["gap"]):
            told = {name: row[name] for name in ("primal", "dual", "gap", "relative_gap")}
            told |= {"epoch": row["round"], "rows_touched": n * row["round"], "seconds_solving": row["seconds"]}
            trace(Record(seconds_certifying=0.0, active=n, change=np.nan, remark="", coef=NO_WEIGHTS, **told))
    return trace
