"""Leave-one-out estimates of a linear model's error on its own rows, without training again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from saddlesvm.data import inputs
from saddlesvm.data.columns_of_labels import check_indicator, refuse_columns
from saddlesvm.estimators.calibration import (
    columns_of,
    fitted_curves,
    fitted_softmax,
    folds_of,
    held_out_scores,
    method_of,
)
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.fit.outcome import Outcome
from saddlesvm.multiclass.splits import JOINT
from saddlesvm.multiclass.sub_problems import one_vs_rest
from saddlesvm.rows.scores import dense_weights
from saddlesvm.runtime.interrupt import part_of_a_search
from saddlesvm.solvers.second_order.leave_one_out import RowEstimates, row_estimates

MOST_TAKEN = 0.8  # share of the freedom of the rows that bend the objective; estimates above it are not trusted
LARGEST_SPREAD = 0.5  # relative spread of sampled leverages; estimates above it are not trusted
LARGEST_GAP = 0.05  # largest relative gap of a model with estimates


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Estimates of the score that a model trained without a row would give to this row, for every row.

    Attributes
    ----------
    margins : ndarray of shape (n,) or (n, n_classes)
        Estimated ``decision_function``, or predictions of a regression, of each row without it.
    low, high : ndarray of the shape of `margins`
        Proven bounds of these margins; infinite where nothing is proven.
    error : float
        Estimated share of wrong labels (of all labels, if a row has several), or the mean squared error for
        regression.
    log_loss : float
        Estimated mean of ``-log p(label)`` with logistic probabilities of the margins; NaN for regression.
    standard_error : float
        Standard error of `error`, for independent rows.
    inside : int
        Number of rows that bend the objective. The estimate is computed from them.
    taken : float
        Share of these rows' degrees of freedom that the model uses, from 0 to 1. Near 1 it fits any labels.
    proven : int or None
        Number of rows whose sign is proven right or wrong. None where nothing is proven: a free intercept,
        regression, or more than two classes.
    trusted : bool
    reasons : list of str
        Why the estimates are not reliable; empty if they are.

    Examples
    --------
    >>> from saddlesvm import LinearSVC, leave_one_out
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(C=0.01, random_state=0).fit(notes.X, notes.y)
    >>> found = leave_one_out(model, notes.X, notes.y)
    >>> found.margins.shape, found.error < 0.1, found.trusted
    ((1372,), True, True)
    """

    margins: np.ndarray = field(repr=False)
    low: np.ndarray = field(repr=False)
    high: np.ndarray = field(repr=False)
    error: float
    log_loss: float
    standard_error: float
    inside: int
    taken: float
    proven: int | None
    trusted: bool
    reasons: list[str]


def leave_one_out(model: LinearModel, X: Any, y: Any = None, sample_weight: Any = None) -> LeaveOneOut:
    """Estimate the score that a model trained without a row would give to this row, for every row.

    The estimate is one Newton step a row from the fitted model. It costs about one pass and the factor of a d x d
    matrix. With more than 2,500 features, it solves linear systems for a sample of the rows instead.

    Parameters
    ----------
    model : LinearSVC or LinearSVR
        Fitted to these rows, with ``multi_class="ovr"``.
    X, y, sample_weight
        The data that the model was fitted to.

    Returns
    -------
    LeaveOneOut

    Raises
    ------
    ValueError
        The rows are not those of the fit, or the model has no such estimate.

    Examples
    --------
    >>> from saddlesvm import LinearSVC, leave_one_out
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(loss="logistic", random_state=0).fit(notes.X, notes.y)
    >>> leave_one_out(model, notes.X, notes.y).error < 0.02
    True
    """
    check_is_fitted(model)
    X, y, sample_weight = inputs.parts_of(X, y, sample_weight)
    if not getattr(model, "multilabel_", False):
        refuse_columns(y, "a leave-one-out estimate")
    design = inputs.as_design(X)
    if getattr(model, "multi_class", "ovr") != "ovr":
        raise ValueError(f"leave-one-out estimates need multi_class='ovr'; this model has {model.multi_class!r}")
    if not model._penalty().penalty.identity():
        raise ValueError(f"leave-one-out estimates need penalty='l2'; this model has {model.penalty!r}")
    duals = getattr(model, "dual_coef_", None)
    if duals is None or duals.shape[1] != design.shape[0]:
        held = "none" if duals is None else f"{duals.shape[1]:,}"
        raise ValueError(f"the model holds dual variables of {held} rows, X has {design.shape[0]:,}: give its own rows")
    return Estimation(model, design, y, sample_weight).run()


def calibrated(model: Any, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """The curves from scores to probabilities of a fitted classifier, see :func:`fitted_curves`.

    They are fitted to leave-one-out estimates of its rows' scores. Where there are none, or they cannot be trusted, to
    the scores of models that were trained on the other folds of five. Rows count with the weights of their classes.
    """
    posed = model.training_problems(y, sample_weight, inputs.as_design(X).shape[0])
    margins = None
    if model.multi_class == "ovr" and model._penalty().penalty.identity():
        found = leave_one_out(model, X, y, sample_weight)
        margins = found.margins if found.trusted else None
    if margins is None:
        margins = _scores_of_folds(model, X, y, sample_weight)
    margins = margins.reshape(len(margins), -1)
    method, problems = method_of(model.probability), posed.problems
    if model.multilabel_:
        columns = columns_of(problems, margins, posed.weights)
        alone = [[one] for one in columns] if method == "temperature" else [columns]  # labels do not share one
        return np.concatenate([fitted_curves(some, method) for some in alone])
    codes = np.searchsorted(model.classes_, inputs.check_labels(y, len(margins)))
    if model.multi_class in JOINT:
        problems = [make() for make in one_vs_rest(codes, model.classes_)]
    if method == "temperature" and model.multi_class != "ovo" and model.classes_.size > 2:
        weights = np.ones(codes.size) if posed.weights is None else posed.weights
        weights = weights * np.array([sub.factor for sub in problems])[codes]
        counted = weights > 0.0
        return fitted_softmax(margins[counted], codes[counted], weights[counted])
    return fitted_curves(columns_of(problems, margins, posed.weights), method)


def _scores_of_folds(model: Any, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """Scores of each row by a model that was trained on the other folds."""
    design = inputs.as_design(X)
    n = design.shape[0]
    weights = inputs.check_weights(sample_weight, n)
    if model.multilabel_:
        labels, codes = check_indicator(y, n).toarray(), np.zeros(n, dtype=np.intp)
    else:
        labels = inputs.check_labels(y, n)
        codes = np.searchsorted(model.classes_, labels)

    def of_others(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        other = clone(model).set_params(
            C=model._fitted_C, lam=None, probability=False, checkpoint=None, warm_start=False,
            decision_function_shape="ovo",
        )  # fmt: skip
        with part_of_a_search():
            other.fit(design[train], labels[train], sample_weight=None if weights is None else weights[train])
        return np.asarray(other.decision_function(design[test]))

    return held_out_scores(folds_of(codes, weights, 0), lambda rows: model._scores(design[rows]), of_others)


class Estimation:
    """The estimates of one model over its rows."""

    def __init__(self, model: LinearModel, design: Any, y: Any, sample_weight: Any) -> None:
        self.model, self.design = model, design
        self.posed = model.training_problems(y, sample_weight, design.shape[0])
        self.kind = model._intercept_kind()
        self.rows = model._memory_rows(design, self.kind, 1, None)
        self.several = bool(getattr(model, "multilabel_", False))
        self.y = None if self.several else inputs.check_labels(y, design.shape[0])
        self.codes = None
        if hasattr(model, "classes_") and self.y is not None:
            self.codes = np.searchsorted(model.classes_, self.y)

    def run(self) -> LeaveOneOut:
        """Estimate every sub-problem's rows, and what follows from them."""
        found = [self._of(k) for k in range(len(self.posed.problems))]
        margins, low, high = (
            np.column_stack([getattr(one, name) for one in found]) for name in ("margins", "low", "high")
        )
        inside = min(one.inside for one in found)
        taken, spread = max(one.taken for one in found), max(one.spread for one in found)
        error, standard_error, log_loss = self._errors(margins)
        reasons = self._reasons(taken, spread)
        if margins.shape[1] == 1:
            margins, low, high = margins[:, 0], low[:, 0], high[:, 0]
        proven = self._proven(found)
        return LeaveOneOut(
            margins, low, high, error, log_loss, standard_error, inside, taken, proven, not reasons, reasons
        )

    def _of(self, k: int) -> RowEstimates:
        """The estimates of sub-problem k."""
        model, certificate = self.model, self.model.certificates_[k]
        n, C = self.design.shape[0], model._fitted_C
        problem = self.posed.problems[k].problem(
            self.rows.X,
            self.posed.loss,
            C=C,
            weights=self.posed.weights,
            intercept=self.kind,
            norms=self.rows.norms,
        )
        problem = replace(problem, members=np.arange(n), whole=True)  # those of weight zero, too
        w = np.append(dense_weights(model.coef_)[k], np.ravel(model.intercept_)[k] / (problem.scale or 1.0))
        gap = certificate.gap * (n * C if certificate.form == "lambda" else 1.0)
        return row_estimates(problem, self.design, w, model.duals_of(k), max(gap, 0.0))

    def _errors(self, margins: np.ndarray) -> tuple[float, float, float]:
        """The error, its standard error, and the log-loss."""
        weights = np.ones(len(margins)) if self.posed.weights is None else self.posed.weights
        if self.codes is not None and len(self.posed.problems) > 1:
            weights = weights * np.array([sub.factor for sub in self.posed.problems])[self.codes]
        share = weights / weights.sum()
        if self.several:
            signs = np.column_stack([sub.y for sub in self.posed.problems])
            wrong = ((margins > 0.0) != (signs > 0.0)).mean(axis=1)
            log_loss = float(share @ np.logaddexp(0.0, -signs * margins).mean(axis=1))
        elif self.codes is None:
            wrong = (margins[:, 0] - self.y) ** 2
            log_loss = np.nan
        else:
            wrong = (self.model.decide(margins) != self.y).astype(np.float64)
            positive = np.clip(expit(margins), 1e-15, 1.0 - 1e-15)
            if margins.shape[1] == 1:
                right = np.where(self.codes == 1, positive[:, 0], 1.0 - positive[:, 0])
            else:
                right = (positive / positive.sum(axis=1, keepdims=True))[np.arange(len(margins)), self.codes]
            log_loss = float(-share @ np.log(right))
        error = float(share @ wrong)
        return error, float(np.sqrt(share @ (wrong - error) ** 2 / len(wrong))), log_loss

    def _proven(self, found: list[RowEstimates]) -> int | None:
        """Rows whose sign without them is proven."""
        if self.codes is None or len(found) > 1 or np.isinf(found[0].low).any():
            return None
        return int(np.count_nonzero((found[0].low > 0.0) | (found[0].high < 0.0)))

    def _reasons(self, taken: float, spread: float) -> list[str]:
        """Why the estimates are not to be trusted."""
        reasons = []
        if taken > MOST_TAKEN:
            reasons.append(f"the model takes up {100 * taken:.0f} % of the freedom of the rows that bend the objective")
        if spread > LARGEST_SPREAD:
            reasons.append(f"the leverages of sampled rows differ by {100 * spread:.0f} % from their size")
        gap = self.model.certificate_.relative_gap
        if gap > LARGEST_GAP or self.model.outcome_ is Outcome.FAILED:
            reasons.append(f"the model itself is certified to a relative gap of {gap:.2g} only")
        return reasons
