"""A fitted linear model beside the rows that it was fitted to: its sub-problems, and the vicinities of their optima."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from saddlesvm.answers.vicinity import Vicinity, vicinity_of
from saddlesvm.data import inputs
from saddlesvm.data.columns_of_labels import refuse_columns
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.scores import dense_weights
from saddlesvm.solvers.second_order.leave_one_out import FACTORED


class OwnRows:
    """A fitted model and its own rows, which are checked.

    Parameters
    ----------
    model : LinearModel
        With ``multi_class="ovr"`` and ``penalty="l2"``.
    X, y, sample_weight
        The data that it was fitted to.
    purpose : str
        What asks for them, for messages.

    Attributes
    ----------
    design : ndarray or CSR matrix of shape (n, d)
    posed : Training
    several : bool
        Rows have several labels.
    y : ndarray of shape (n,) or None
        Labels or targets; None for several labels.
    codes : ndarray of shape (n,) or None
        The places of the labels among the classes.

    Raises
    ------
    ValueError
        The model is of another kind, or the rows are not its own.
    """

    def __init__(self, model: LinearModel, X: Any, y: Any, sample_weight: Any, purpose: str) -> None:
        check_is_fitted(model)
        X, y, sample_weight = inputs.parts_of(X, y, sample_weight)
        self.several = bool(getattr(model, "multilabel_", False))
        if not self.several:
            refuse_columns(y, purpose)
        self.model, self.design = model, inputs.as_design(X)
        n = self.design.shape[0]
        if getattr(model, "multi_class", "ovr") != "ovr":
            raise ValueError(f"{purpose} needs multi_class='ovr'; this model has {model.multi_class!r}")
        if not model._penalty().penalty.identity():
            raise ValueError(f"{purpose} needs penalty='l2'; this model has {model.penalty!r}")
        duals = getattr(model, "dual_coef_", None)
        if duals is None or duals.shape[1] != n:
            held = "none" if duals is None else f"{duals.shape[1]:,}"
            raise ValueError(f"the model holds dual variables of {held} rows, X has {n:,}: give its own rows")
        self.posed = model.training_problems(y, sample_weight, n)
        self.kind = model._intercept_kind()
        self.rows = model._memory_rows(self.design, self.kind, 1, None)
        self.y = None if self.several else inputs.check_labels(y, n)
        self.codes: np.ndarray | None = None
        if hasattr(model, "classes_") and self.y is not None:
            self.codes = np.searchsorted(model.classes_, self.y)

    @property
    def count(self) -> int:
        """Sub-problems."""
        return len(self.posed.problems)

    def problem(self, k: int) -> tuple[Problem, np.ndarray]:
        """Sub-problem k with all rows as members, those of weight zero too, and the model's weights of it."""
        model = self.model
        problem = self.posed.problems[k].problem(
            self.rows.X,
            self.posed.loss,
            C=model._fitted_C,
            weights=self.posed.weights,
            intercept=self.kind,
            norms=self.rows.norms,
        )
        problem = replace(problem, members=np.arange(self.design.shape[0]), whole=True)
        return problem, np.append(dense_weights(model.coef_)[k], np.ravel(model.intercept_)[k] / (problem.scale or 1.0))

    def gap(self, k: int) -> float:
        """The gap of sub-problem k in the C form."""
        certificate = self.model.certificates_[k]
        scale = self.design.shape[0] * self.model._fitted_C if certificate.form == "lambda" else 1.0
        return max(certificate.gap * scale, 0.0)

    @cached_property
    def vicinities(self) -> list[Vicinity | None]:
        """The vicinity of each sub-problem's optimum; None where it has none, or there are too many features."""
        if self.design.shape[1] > FACTORED:
            return [None] * self.count
        return [vicinity_of(*self.problem(k)) for k in range(self.count)]

    @property
    def all_vicinities(self) -> list[Vicinity] | None:
        """The vicinities; None where some sub-problem has none."""
        found = [one for one in self.vicinities if one is not None]
        return found if len(found) == self.count else None
