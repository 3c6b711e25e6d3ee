"""Leave-one-out of linear models: estimates and proven bounds, without training again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from saddlesvm.answers.changed_rows import REFINED_VALUES, leave_out_rows, refine_rows
from saddlesvm.answers.labels import Verdicts, label_verdicts, squared_errors, weighted_mean
from saddlesvm.answers.row_estimates import FACTORED, RowEstimates, row_estimates
from saddlesvm.answers.vicinity import find_vicinity
from saddlesvm.data.door import checked_data
from saddlesvm.data.label_checks import check_labels, refuse_columns
from saddlesvm.estimators.base import Estimator
from saddlesvm.estimators.fitted import Fitted, decide, dual_row, fitted_value, scale_to_one
from saddlesvm.fit.outcome import Outcome
from saddlesvm.multiclass.linear_fit import rows_of
from saddlesvm.problem.penalties import L2
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.scores import dense_weights

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import LabelsLike, RowsLike

PURPOSE = "a leave-one-out estimate"
# Values of the data of all problems that are solved for the bounds at a chosen C: about the time
# of a fit.
QUICK_VALUES = 3e5
# Share of the freedom of the rows that bend the objective; estimates above it are not trusted.
MOST_TAKEN = 0.8
LARGEST_GAP = 0.05  # largest relative gap of a model with estimates
LEAST_PROBABILITY = 1e-15  # of a label, in the log loss


class Truth:
    """The labels or targets of a fit's rows, by which scores of these rows are judged.

    Parameters
    ----------
    fitted : Fitted
        With ``multi_class="ovr"``.
    y, sample_weight
        The data of the fit, checked, for `n` rows.

    Attributes
    ----------
    training : Training
        The sub-problems of the fit on these rows.
    y : ndarray of shape (n,) or None
        Labels or targets; None for several labels.
    codes : ndarray of shape (n,) or None
        The places of the labels among the classes.
    signs : ndarray of shape (n, n_labels) or None
        Of several labels.
    weights : ndarray of shape (n,)
        The weight of each row in an error.
    """

    def __init__(
        self, fitted: Fitted, y: LabelsLike, sample_weight: ArrayLike | None, n: int
    ) -> None:
        self.fitted = fitted
        self.training = fitted.pose(y, sample_weight, n)
        problems = self.training.problems
        self.y: np.ndarray | None = None
        self.codes: np.ndarray | None = None
        self.signs: np.ndarray | None = None
        if fitted.several_labels:
            self.signs = np.column_stack([sub.y for sub in problems])
        else:
            self.y = check_labels(y, n)
            if fitted.labels is not None:
                self.codes = np.searchsorted(fitted.labels.classes, self.y)
        weights = self.training.weights
        self.weights = np.ones(n) if weights is None else weights
        # Class against the rest: the factor of a class is in its own sub-problem.
        if self.codes is not None and len(problems) > 1:
            factors = np.array([sub.factor for sub in problems])
            self.weights = self.weights * factors[self.codes]

    def verdicts(self, low: np.ndarray, high: np.ndarray) -> Verdicts:
        """Return the labels that bounds on the margins, shape (n, k), prove."""
        if self.signs is not None:
            return label_verdicts(low, high, self.signs)
        if self.codes is not None:
            return label_verdicts(low, high, self.codes)
        assert self.y is not None
        return squared_errors(low[:, 0], high[:, 0], self.y)

    def row_errors(self, margins: np.ndarray) -> np.ndarray:
        """Return each row's error by its margins, shape (n, k).

        It is 0 or 1, the share of wrong labels if a row has several, or a squared residual.
        """
        if self.signs is not None:
            return np.asarray(((margins > 0.0) != (self.signs > 0.0)).mean(axis=1))
        assert self.y is not None
        if self.codes is None:
            return np.asarray((margins[:, 0] - self.y) ** 2)
        found = decide(margins, self.fitted.labels, self.fitted.multi_class)
        return np.asarray(found != self.y, dtype=np.float64)

    def log_loss(self, margins: np.ndarray) -> float:
        """Return the mean log loss of logistic probabilities of the margins; NaN for targets."""
        share = self.weights / self.weights.sum()
        if self.signs is not None:
            return float(share @ np.logaddexp(0.0, -self.signs * margins).mean(axis=1))
        if self.codes is None:
            return np.nan
        # Probabilities of the classes, scaled to sums of 1.
        positive = np.clip(expit(margins), LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        each = scale_to_one(positive)
        right = each[np.arange(len(each)), self.codes]
        return float(-share @ np.log(right))

    def mean(self, errors: np.ndarray) -> tuple[float, float]:
        """Return the mean of the rows' errors, and its standard error for independent rows."""
        mean = weighted_mean(errors, self.weights)
        share = self.weights / self.weights.sum()
        return mean, float(np.sqrt(share @ (errors - mean) ** 2 / errors.size))


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """For every row, estimates of the score that a model trained without the row gives to it.

    Attributes
    ----------
    margins : ndarray of shape (n,) or (n, n_classes)
        Estimated ``decision_function``, or predictions of a regression, of each row without it.
    low, high : ndarray of the shape of `margins`
        Proven bounds of these margins; infinite if nothing is proven.
    error : float
        Estimated share of wrong labels (of all labels, if a row has several), or the mean squared
        error for regression.
    error_low, error_high : float
        Proven bounds of this error.
    log_loss : float
        Estimated mean of ``-log p(label)`` with logistic probabilities of the margins; NaN for
        regression.
    standard_error : float
        Standard error of `error`, for independent rows.
    inside : int
        Number of rows at which the loss is curved. The estimate is computed from them.
    taken : float
        Share of these rows' degrees of freedom that the model uses, from 0 to 1. Near 1 it fits any
        labels.
    proven : int or None
        Number of rows whose label is proven right or wrong (of all labels, if a row has several).
        None for regression, and if no bound is finite.
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
    error_low: float
    error_high: float
    log_loss: float
    standard_error: float
    inside: int
    taken: float
    proven: int | None
    trusted: bool
    reasons: list[str]


def leave_one_out(
    model: Estimator,
    X: Any,
    y: Any = None,
    sample_weight: ArrayLike | None = None,
) -> LeaveOneOut:
    """For every row, the score of a model trained without this row: an estimate, and proven bounds.

    The estimate is a Newton step from the fitted model for each row. The bounds limit the
    distance of this step from the model trained without the row; if they leave a label open,
    further steps are taken. The cost is a few passes and the factor of a d x d matrix, so that
    there may be at most 2,500 features. The bounds of losses without curvature (the hinge) are
    wide.

    Parameters
    ----------
    model : LinearSVC or LinearSVR
        Fitted to these rows, with ``multi_class="ovr"``.
    X, y, sample_weight
        The data that the model was fitted to.

    Returns
    -------
    LeaveOneOut

    Notes
    -----
    C and the weights of the rows, including ``class_weight="balanced"``, stay as in the fit to
    all rows.

    Raises
    ------
    ValueError
        The rows are not the rows of the fit, or the model has no such estimate.

    Examples
    --------
    >>> from saddlesvm import LinearSVC, leave_one_out
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(loss="logistic", random_state=0).fit(notes.X, notes.y)
    >>> found = leave_one_out(model, notes.X, notes.y)
    >>> (
    ...     found.error < 0.02,
    ...     found.error_low == found.error_high,
    ... )  # proven: every label is decided
    (True, True)
    """
    return Estimation(fitted_value(model), X, y, sample_weight).run()


def estimate_rows(
    fitted: Fitted, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None
) -> LeaveOneOut:
    """Return :func:`leave_one_out` without bounds, which are infinite."""
    return Estimation(fitted, X, y, sample_weight).run(proofs=False)


def bounds_of_error(
    fitted: Fitted, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None
) -> tuple[float, float]:
    """Return proven bounds of the leave-one-out error, in about the time of a fit."""
    found = Estimation(fitted, X, y, sample_weight).run(values=QUICK_VALUES)
    return found.error_low, found.error_high


class Estimation:
    """The estimates of a fit for its own rows.

    Parameters
    ----------
    fitted : Fitted
        With ``multi_class="ovr"`` and ``penalty="l2"``.
    X, y, sample_weight
        The data of the fit.

    Raises
    ------
    ValueError
        The model is of another kind, or the rows are not its own.
    """

    def __init__(
        self, fitted: Fitted, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None
    ) -> None:
        design, y, sample_weight = checked_data(X, y, sample_weight)
        if not fitted.several_labels:
            refuse_columns(y, PURPOSE)
        self.fitted = fitted
        template = fitted.template
        n, d = design.shape
        if fitted.multi_class != "ovr":
            raise ValueError(
                f"{PURPOSE} needs multi_class='ovr'; this model has {fitted.multi_class!r}"
            )
        if not isinstance(template._penalty().penalty, L2):
            raise ValueError(f"{PURPOSE} needs penalty='l2'; this model has {template.penalty!r}")
        if d > FACTORED:
            raise ValueError(
                f"{PURPOSE} needs at most {FACTORED:,} features; this model has {d:,}: use "
                "cross-validation, as in LinearSVCCV or sklearn.model_selection.cross_val_predict"
            )
        if fitted.duals is None:
            raise ValueError(
                f"{PURPOSE} needs dual_coef_, which the model does not have: it was fitted block "
                "by block, or the dual variables of all its classes take too much memory: fit it "
                "to rows in memory, or to fewer classes"
            )
        if fitted.duals.shape[1] != n:
            raise ValueError(
                f"the model has dual variables for {fitted.duals.shape[1]:,} rows; X has {n:,} "
                "rows: give the rows that it was fitted to"
            )
        self.truth = Truth(fitted, y, sample_weight, n)
        self.training = self.truth.training
        self.count = len(self.training.problems)
        self.n = n
        self.kind = template._intercept_kind()
        self.rows = rows_of(design, self.kind, float(template.intercept_scaling))

    def run(self, proofs: bool = True, values: float = REFINED_VALUES) -> LeaveOneOut:
        """Estimate every row's score; with proofs, solve for open labels within `values`."""
        found = self._each_row(proofs, values / self.count)
        margins = np.column_stack([one.margins for one in found])
        low = np.column_stack([one.low for one in found])
        high = np.column_stack([one.high for one in found])
        taken = max(one.taken for one in found)
        error, standard_error = self.truth.mean(self.truth.row_errors(margins))
        verdicts = self.truth.verdicts(low, high)
        error_low, error_high = verdicts.error(self.truth.weights)
        reasons = self._reasons(taken)
        is_single = self.count == 1  # a single problem has arrays of shape (n,)
        return LeaveOneOut(
            margins=margins[:, 0] if is_single else margins,
            low=low[:, 0] if is_single else low,
            high=high[:, 0] if is_single else high,
            error=error,
            error_low=error_low,
            error_high=error_high,
            log_loss=self.truth.log_loss(margins),
            standard_error=standard_error,
            inside=min(one.inside for one in found),
            taken=taken,
            proven=verdicts.proven,
            trusted=not reasons,
            reasons=reasons,
        )

    def _problem(self, k: int) -> tuple[Problem, np.ndarray]:
        """Return sub-problem k with all rows, also rows of weight zero, and its weights."""
        fitted = self.fitted
        options = {"C": fitted.C, "weights": self.training.weights, "intercept": self.kind}
        problem = self.rows.problem(self.training.problems[k], self.training.loss, options)
        problem = replace(problem, threads=1, members=np.arange(self.n))
        own = fitted.intercept[k] / (problem.scale or 1.0)
        return problem, np.append(dense_weights(fitted.coef)[k], own)

    def _each_row(self, proofs: bool, values: float) -> list[RowEstimates]:
        """Return each sub-problem's estimates; solve for rows whose labels are still open."""
        found = []
        vicinities = []
        for k in range(self.count):
            problem, w = self._problem(k)
            beta = dual_row(self.fitted.duals, k)
            if not proofs:
                found.append(row_estimates(problem, w, beta, bounded=False))
                continue
            near = find_vicinity(problem, w)
            found.append(leave_out_rows(problem, w, beta, near))
            vicinities.append(near)
        if not proofs:
            return found
        low = np.column_stack([one.low for one in found])
        high = np.column_stack([one.high for one in found])
        open_rows = ~np.isfinite(high - low).all(axis=1)
        decided = self.truth.verdicts(low, high).decided
        # A regression has no labels to decide.
        if decided.size:
            open_rows |= ~decided
        chosen = np.flatnonzero(open_rows)
        return [
            refine_rows(rows, near, chosen, values)
            for rows, near in zip(found, vicinities, strict=True)
        ]

    def _reasons(self, taken: float) -> list[str]:
        """Return why the estimates are not to be trusted."""
        reasons = []
        if taken > MOST_TAKEN:
            reasons.append(
                f"the model uses {100 * taken:.0f} % of the degrees of freedom of the rows that "
                "bend the objective"
            )
        gap = self.fitted.certificate.relative_gap
        if gap > LARGEST_GAP or self.fitted.outcome is Outcome.FAILED:
            reasons.append(f"the model itself is certified to a relative gap of {gap:.2g} only")
        return reasons
