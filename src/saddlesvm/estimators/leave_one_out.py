"""Leave-one-out of linear models: estimates and proven bounds, without training again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from saddlesvm.answers.changed_rows import REFINED_VALUES, LeftOut, leave_out_groups, leave_out_rows
from saddlesvm.answers.free_intercept import bounds_of_free_intercept
from saddlesvm.answers.labels import Verdicts, label_verdicts, mean_of, squared_errors
from saddlesvm.answers.row_estimates import FACTORED, RowEstimates, row_estimates
from saddlesvm.answers.vicinity import Vicinity, vicinity_of
from saddlesvm.data.door import checked_data
from saddlesvm.data.label_checks import check_labels, refuse_columns
from saddlesvm.estimators.base import Estimator
from saddlesvm.estimators.fitted import Fitted, decide, dual_row, fitted_value
from saddlesvm.fit.outcome import Outcome
from saddlesvm.multiclass.linear_fit import rows_of
from saddlesvm.problem.loss import loss_name
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
LARGEST_SPREAD = 0.5  # relative spread of sampled leverages; estimates above it are not trusted
LARGEST_GAP = 0.05  # largest relative gap of a model with estimates


class OwnRows:
    """A fit and its own rows, which are checked.

    Parameters
    ----------
    fitted : Fitted
        With ``multi_class="ovr"`` and ``penalty="l2"``.
    X, y, sample_weight
        The data of the fit.

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

    def __init__(
        self, fitted: Fitted, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None
    ) -> None:
        design, y, sample_weight = checked_data(X, y, sample_weight)
        self.several = fitted.several_labels
        if not self.several:
            refuse_columns(y, PURPOSE)
        self.fitted = fitted
        self.design = design.X
        n = design.shape[0]
        template = fitted.template
        if fitted.way != "ovr":
            raise ValueError(f"{PURPOSE} needs multi_class='ovr'; this model has {fitted.way!r}")
        if not template._penalty().penalty.identity():
            raise ValueError(f"{PURPOSE} needs penalty='l2'; this model has {template.penalty!r}")
        duals = fitted.duals
        if duals is None:
            raise ValueError(
                f"{PURPOSE} needs dual_coef_, which the model does not have: it was fitted block "
                "by block, or the dual"
                " variables of all its classes take too much memory: fit it to rows in memory, or "
                "to fewer classes"
            )
        if duals.shape[1] != n:
            raise ValueError(
                f"the model has dual variables for {duals.shape[1]:,} rows; X has {n:,} rows: "
                "give the rows that it was"
                " fitted to"
            )
        # The sub-problems of the fit, posed again on the given rows.
        self.posed = fitted.pose(y, sample_weight, n)
        self.kind = template._intercept_kind()
        self.rows = rows_of(design, self.kind, float(template.intercept_scaling), 1, None)
        self.y = None if self.several else check_labels(y, n)
        self.codes: np.ndarray | None = None
        if fitted.labels is not None and self.y is not None:
            self.codes = np.searchsorted(fitted.labels.classes, self.y)

    @property
    def count(self) -> int:
        """Sub-problems."""
        return len(self.posed.problems)

    def problem(self, k: int) -> tuple[Problem, np.ndarray]:
        """Return sub-problem k with all rows, also rows of weight zero, and its weights."""
        fitted = self.fitted
        options = {"C": fitted.C, "weights": self.posed.weights, "intercept": self.kind}
        problem = self.rows.problem(self.posed.problems[k], self.posed.loss, options)
        problem = replace(problem, threads=1, members=np.arange(self.design.shape[0]))
        own = fitted.intercept[k] / (problem.scale or 1.0)
        return problem, np.append(dense_weights(fitted.coef)[k], own)

    @cached_property
    def vicinities(self) -> list[Vicinity | None]:
        """The vicinity of each sub-problem's optimum; None for too many features."""
        if self.design.shape[1] > FACTORED:
            return [None] * self.count
        return [vicinity_of(*self.problem(k)) for k in range(self.count)]


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
    groups: Any = None,
) -> LeaveOneOut:
    """For every row, the score of a model trained without this row: an estimate, and proven bounds.

    The estimate is a Newton step from the fitted model for each row. The bounds limit the
    distance of this step from the model trained without the row; if they leave a label open,
    further steps are taken. The cost is a few passes and the factor of a d x d matrix. With more
    than 2,500 features, the estimate solves linear systems for a sample of the rows instead. The
    bounds are then wide, as for losses without curvature (the hinge).

    Parameters
    ----------
    model : LinearSVC or LinearSVR
        Fitted to these rows, with ``multi_class="ovr"``.
    X, y, sample_weight
        The data that the model was fitted to.
    groups : array-like of shape (n,), optional
        Leave out all rows of a group together: the score of a row comes from the model without
        its group. Needs a smooth loss, and at most 2,500 features.

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
    return Estimation(OwnRows(fitted_value(model), X, y, sample_weight)).run(groups)


def estimate_rows(
    fitted: Fitted, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None
) -> LeaveOneOut:
    """Return :func:`leave_one_out` without bounds, which are infinite."""
    return Estimation(OwnRows(fitted, X, y, sample_weight)).run(proofs=False)


def bounds_of_error(
    fitted: Fitted, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None
) -> tuple[float, float]:
    """Return proven bounds of the leave-one-out error, in about the time of a fit."""
    found = Estimation(OwnRows(fitted, X, y, sample_weight)).run(values=QUICK_VALUES)
    return found.error_low, found.error_high


def rows_of_groups(groups: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each group; ValueError if there is a single group."""
    names, codes = np.unique(groups, return_inverse=True)
    if names.size < 2:
        raise ValueError("groups holds 1 group only: at least two are needed to leave one out")
    return [np.flatnonzero(codes == k) for k in range(names.size)]


class Estimation:
    """The estimates of a model over its rows."""

    def __init__(self, own: OwnRows) -> None:
        self.own = own
        self.fitted = own.fitted
        self.posed = own.posed

    def run(
        self, groups: ArrayLike | None = None, proofs: bool = True, values: float = REFINED_VALUES
    ) -> LeaveOneOut:
        """Estimate every row's score; with proofs, solve for open labels within `values`."""
        if groups is None:
            found = self._each_row(proofs, values / len(self.posed.problems))
        else:
            found = self._each_group(check_labels(groups, self.own.design.shape[0]))
        margins, low, high = (
            np.column_stack([getattr(one, name) for one in found])
            for name in ("margins", "low", "high")
        )
        inside = min(one.inside for one in found)
        taken = max(one.taken for one in found)
        spread = max(one.spread for one in found)
        error, standard_error, log_loss = self._errors(margins)
        reasons = self._reasons(taken, spread)
        verdicts = self._verdicts(low, high)
        # A single problem has arrays of shape (n,).
        if margins.shape[1] == 1:
            margins = margins[:, 0]
            low = low[:, 0]
            high = high[:, 0]
        error_low, error_high = verdicts.error(self._weights())
        return LeaveOneOut(
            margins,
            low,
            high,
            error,
            error_low,
            error_high,
            log_loss,
            standard_error,
            inside,
            taken,
            verdicts.proven,
            not reasons,
            reasons,
        )

    def _each_row(self, proofs: bool, values: float) -> list[RowEstimates]:
        """Return each sub-problem's estimates; solve for rows whose labels are still open."""
        found = [self._of(k, proofs) for k in range(len(self.posed.problems))]
        low, high = (
            np.column_stack([getattr(one.rows, name) for one in found]) for name in ("low", "high")
        )
        verdicts = self._verdicts(low, high)
        # A regression has no labels to decide.
        open_labels = ~verdicts.decided if verdicts.decided.size else np.zeros(len(low), dtype=bool)
        infinite = ~np.isfinite(high - low).all(axis=1)
        chosen = np.flatnonzero(open_labels | infinite)
        refined = [one.refine(chosen, values).rows for one in found]
        if not proofs or values <= QUICK_VALUES or self.own.kind != "free":
            return refined
        return [self._with_free_intercept(k, rows) for k, rows in enumerate(refined)]

    def _with_free_intercept(self, k: int, rows: RowEstimates) -> RowEstimates:
        """Bound rows whose bounds are infinite by a dual point; return all rows."""
        infinite = np.flatnonzero(~np.isfinite(rows.high - rows.low))
        if not infinite.size:
            return rows
        problem, w = self.own.problem(k)
        dual = dual_row(self.fitted.duals, k) / problem.C
        least, most = bounds_of_free_intercept(problem, w, dual, infinite, self.own.count)
        low = rows.low.copy()
        high = rows.high.copy()
        # Both bounds hold: keep the nearer one.
        low[infinite] = np.maximum(low[infinite], least)
        high[infinite] = np.minimum(high[infinite], most)
        return replace(rows, low=low, high=high, margins=np.clip(rows.margins, low, high))

    def _of(self, k: int, proofs: bool) -> LeftOut:
        """Return the estimates of sub-problem k."""
        problem, w = self.own.problem(k)
        beta = dual_row(self.fitted.duals, k)
        if not proofs:
            return LeftOut(row_estimates(problem, w, beta, bounded=False), None)
        return leave_out_rows(problem, w, beta, self.own.vicinities[k])

    def _each_group(self, groups: np.ndarray) -> list[RowEstimates]:
        """Return the estimates of every sub-problem without each group."""
        members = rows_of_groups(groups)
        found = []
        for k in range(len(self.posed.problems)):
            near = self.own.vicinities[k]
            if near is None:
                raise ValueError(
                    "leaving groups out needs a loss with curvature (logistic, squared_hinge, "
                    f"...) and at most {FACTORED:,} features; this model has "
                    f"loss={loss_name(self.posed.loss)!r} and {self.own.design.shape[1]:,} "
                    "features: use cross-validation with LeaveOneGroupOut"
                )
            found.append(leave_out_groups(near, members))
        return found

    def _verdicts(self, low: np.ndarray, high: np.ndarray) -> Verdicts:
        """Return the labels that bounds on the margins, shape (n, k), prove."""
        if self.own.several:
            signs = np.column_stack([sub.y for sub in self.posed.problems])
            return label_verdicts(low, high, signs)
        if self.own.codes is None:
            assert self.own.y is not None
            return squared_errors(low[:, 0], high[:, 0], self.own.y)
        return label_verdicts(low, high, self.own.codes)

    def _weights(self) -> np.ndarray:
        """Return the weight of each row in the error, shape (n,)."""
        weights = self.posed.weights
        if weights is None:
            weights = np.ones(self.own.design.shape[0])
        # Class against the rest: the factor of a class is in its own sub-problem.
        if self.own.codes is not None and len(self.posed.problems) > 1:
            factors = np.array([sub.factor for sub in self.posed.problems])
            weights = weights * factors[self.own.codes]
        return np.asarray(weights)

    def _errors(self, margins: np.ndarray) -> tuple[float, float, float]:
        """Return the error, its standard error, and the log loss."""
        weights = self._weights()
        share = weights / weights.sum()
        # Several labels a row: the share of wrong ones.
        if self.own.several:
            signs = np.column_stack([sub.y for sub in self.posed.problems])
            wrong = ((margins > 0.0) != (signs > 0.0)).mean(axis=1)
            log_loss = float(share @ np.logaddexp(0.0, -signs * margins).mean(axis=1))
        # A regression.
        elif self.own.codes is None:
            wrong = (margins[:, 0] - self.own.y) ** 2
            log_loss = np.nan
        # Classes: the log loss is of logistic probabilities, scaled to sums of 1.
        else:
            found = decide(margins, self.fitted.labels, self.fitted.way)
            wrong = (found != self.own.y).astype(np.float64)
            positive = np.clip(expit(margins), 1e-15, 1.0 - 1e-15)
            if margins.shape[1] == 1:
                right = np.where(self.own.codes == 1, positive[:, 0], 1.0 - positive[:, 0])
            else:
                right = (positive / positive.sum(axis=1, keepdims=True))[
                    np.arange(len(margins)), self.own.codes
                ]
            log_loss = float(-share @ np.log(right))
        error = mean_of(wrong, weights)
        return error, float(np.sqrt(share @ (wrong - error) ** 2 / len(wrong))), log_loss

    def _reasons(self, taken: float, spread: float) -> list[str]:
        """Return why the estimates are not to be trusted."""
        reasons = []
        if taken > MOST_TAKEN:
            reasons.append(
                f"the model uses {100 * taken:.0f} % of the degrees of freedom of the rows that "
                "bend the objective"
            )
        if spread > LARGEST_SPREAD:
            reasons.append(
                f"the leverages of sampled rows differ by {100 * spread:.0f} % from their size"
            )
        gap = self.fitted.certificate.relative_gap
        if gap > LARGEST_GAP or self.fitted.outcome is Outcome.FAILED:
            reasons.append(f"the model itself is certified to a relative gap of {gap:.2g} only")
        return reasons
