"""Grids of C: the C at which the first feature gets a weight, and fits side by side.

The fits of a grid of C run in several threads: each starts from its neighbour's point, and the neighbour continues. A
fit that begins at a neighbour's point gains little from the last digits of that point. So a fit hands its point to
the next C as soon as the solver's own estimate of the relative gap has done half of the powers of ten to the one asked
for, and goes on while the next one begins. Multipliers of a piecewise linear loss, of which the point must tell those
at their bounds, are handed over after four fifths. The data fix the moment of the handing over, so the models do
not depend on how many threads there are, beyond one; they differ from those of a single thread within their gaps.
"""

from __future__ import annotations

import math
import threading
from itertools import takewhile
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs
from sklearn import svm
from sklearn.base import clone, is_classifier

from saddlesvm.data.door import check_design, check_labels, checked_data, encoded
from saddlesvm.estimators.base import seed_of
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.fit.outcome import Outcome
from saddlesvm.fit.run import Fit
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.linear_fit import rows_of
from saddlesvm.multiclass.splits import FormerFit
from saddlesvm.problem.first_weight import largest_empty_C
from saddlesvm.problem.loss import is_smooth
from saddlesvm.runtime.allowed import SCALING, check, one_of
from saddlesvm.runtime.clock import clock, end_of_fit
from saddlesvm.runtime.threads import Schedule, blas_for, results_of, worth_threads


def C_max(model: LinearModel, X: Any, y: Any = None, sample_weight: Any = None) -> float:
    """The largest C at which all weights of a model are zero: where a path of sparse models begins.

    Parameters
    ----------
    model : LinearSVC or LinearSVR
        With ``penalty="l1"`` or ``"elasticnet"``; fitted or not. All its options count except C.
    X : array-like, sparse matrix or Store of shape (n, d)
    y : array-like of shape (n,), or of shape (n, k) for several labels or targets
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        For several classes, labels or targets, the smallest of their values. Exact up to rounding; infinite where no C
        gives a weight to any feature. A penalised intercept is not the weight of a feature, and may be nonzero at a
        smaller C.

    Raises
    ------
    ValueError
        The penalty has no l1 norm, or the data or options are invalid.

    Notes
    -----
    The cost is one or two passes over the rows with ``intercept="none"`` or ``"free"``, and some dozens with a
    penalised intercept. For losses with kinks (such as the hinge with a free intercept), a linear program over the rows
    at a kink gives the value.

    Examples
    --------
    >>> from saddlesvm import C_max, LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(penalty="l1", loss="logistic")
    >>> first = C_max(model, notes.X, notes.y)
    >>> [
    ...     model.set_params(C=first * k).fit(notes.X, notes.y).n_features_selected_
    ...     for k in (0.99, 1.01)
    ... ]
    [0, 1]
    """
    template = clone(model)
    if template.lam is not None or isinstance(template.C, str):
        template.set_params(lam=None, C=1.0)
    template.check_options()
    check_sparse(template)
    design, y, sample_weight = checked_data(X, y, sample_weight, template, reset=True)
    posed = template._learnt(y, sample_weight, design.shape[0])
    ready = rows_of(design, template._intercept_kind(), float(template.intercept_scaling), 1, None)
    return min(largest_empty_C(template.part_problem(sub, posed, ready)) for sub in posed.problems)


def check_sparse(model: LinearModel) -> None:
    """Raise ValueError unless the penalty of an estimator sets weights to zero."""
    if not takes_features(model):
        with_ratio = "" if model.penalty == "l2" else f" with l1_ratio={model.l1_ratio!r}"
        raise ValueError(
            "C_max needs penalty='l1', or 'elasticnet' with l1_ratio above 0, which set weights to zero; got "
            f"{model.penalty!r}{with_ratio}"
        )
    if model.multi_class in splits.JOINT:
        raise ValueError(f"C_max needs multi_class='ovr' or 'ovo'; got {model.multi_class!r}")


def takes_features(model: LinearModel) -> bool:
    """Whether the penalty of an estimator holds an l1 norm, so that features are taken one by one as C grows."""
    return not model._penalty().penalty.identity()


def l1_min_c(
    X: Any,
    y: Any,
    *,
    loss: Literal["squared_hinge", "log", "logistic"] = "squared_hinge",
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
) -> float:
    """The largest C at which all weights of a classifier with ``penalty="l1"``, and its penalised intercept, are zero.

    As ``sklearn.svm.l1_min_c``. :func:`C_max` does the same for every estimator with its own options: row and class
    weights, other losses, and intercepts that are free.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
        Labels, at least two different ones; each of more than two classes is set against the rest.
    loss : {"squared_hinge", "log", "logistic"}, default="squared_hinge"
        "log" is scikit-learn's name of the logistic loss.
    fit_intercept : bool, default=True
        Whether there is an intercept, penalised like the weights.
    intercept_scaling : float, default=1.0
        Value of the constant feature whose weight the intercept is.

    Returns
    -------
    float
        With a larger C some weight, or the intercept, is not zero.

    Raises
    ------
    ValueError
        Bad data or options, or features that are zero: no C gives them a weight.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> from saddlesvm.svm import l1_min_c
    >>> notes = load_bundled("banknote")
    >>> model = LinearSVC(penalty="l1", C=1.1 * l1_min_c(notes.X, notes.y)).fit(
    ...     notes.X, notes.y
    ... )
    >>> model.n_features_selected_
    1
    """
    one_of("loss", loss, ("squared_hinge", "log", "logistic"))
    check("intercept_scaling", intercept_scaling, SCALING)
    design = check_design(X, finite=True)
    classes, codes = encoded(check_labels(y, design.shape[0]))
    if classes.size < 2:
        raise ValueError(f"l1_min_c needs two classes at least; y has {classes.size}")
    options = {"fit_intercept": fit_intercept, "intercept_scaling": intercept_scaling}
    called = "log" if loss == "logistic" else loss
    return float(svm.l1_min_c(design.plain, codes, loss=called, **options))


AT_ONCE = 3  # fits that are under way at the same time, at most: a fit rarely hands its point over before a third
PASSES = 1.0  # passes over the rows that a fit takes for each power of ten of the gap asked for, at least

HANDED_AT, KINKED_AT = 0.5, 0.8  # power of the gap asked for at which a fit hands its point over: smooth losses, others

Timed = tuple[LinearModel, float]  # a fitted model, and the seconds of its fit


class HandOver:
    """The point of a fit for the fit of the next C, once it is good enough; at the end of the fit at the latest.

    Parameters
    ----------
    gap : float
        The estimate of the relative gap at which a point is good enough.
    """

    def __init__(self, gap: float) -> None:
        self.gap, self.ready = gap, threading.Event()
        self.reached: FormerFit | None = None

    def take_if_close(self, fit: Fit) -> None:
        """Take the point of a fit under way if it is good enough."""
        if self.ready.is_set() or not fit.state.estimate <= self.gap or fit.state.epochs == 0.0:
            return
        point, problem = fit.solver.solution(fit.problem, fit.state), fit.problem
        if point.w is None or point.alpha is None:
            return
        w, duals = np.array(point.w, dtype=np.float64), problem.C * np.atleast_2d(np.asarray(point.alpha).T)
        if w.ndim != 1 or len(duals) != 1:
            return
        intercept = (problem.scale or 0.0) * w[-1:]
        self.give(FormerFit(duals, w[None, :-1], intercept, problem.C, False, [dict(fit.phases)]))

    def end(self, model: LinearModel | None) -> None:
        """Take the model of a fit that has ended, or None of one that was not made, if there is no point yet."""
        if not self.ready.is_set():
            self.give(None if model is None or not hasattr(model, "dual_coef_") else model.former_fit())

    def give(self, reached: FormerFit | None) -> None:
        """Let the next fit begin."""
        self.reached = reached
        self.ready.set()


class GridInThreads:
    """The fits of a grid of C, several at a time.

    Parameters
    ----------
    model : LinearModel
        The estimator with its options.
    data : tuple
        X, y and the row weights.
    Cs : ndarray of shape (k,)
        Ascending.
    jobs : int
        Threads.
    stop : threading.Event
        Set where the fits are to end.
    """

    def __init__(
        self, model: LinearModel, data: tuple[Any, Any, Any], Cs: np.ndarray, jobs: int, stop: threading.Event
    ) -> None:
        self.model, self.data, self.Cs, self.jobs, self.stop = model, data, Cs, jobs, stop
        power = HANDED_AT if is_smooth(model.check_options()) else KINKED_AT
        self.points = [HandOver(model.tol**power) for _ in Cs]
        given = model.random_state
        known = given is None or isinstance(given, (int, np.integer))
        self.seeds = [given if known else seed_of(given) for _ in Cs]

    def run(self) -> list[Timed]:
        """The fitted models in the order of the grid, up to the first that was not made."""
        with blas_for(0.0), Schedule(min(self.jobs, AT_ONCE, self.Cs.size), self.stop) as schedule:
            made = results_of([schedule.add(self._fit, place) for place in range(self.Cs.size)])
        return list(takewhile(lambda one: one is not None, made))  # type: ignore[arg-type]

    def _fit(self, place: int) -> Timed | None:
        """Fit at the C of this place when the one before has handed its point over; it was begun earlier."""
        fitted: LinearModel | None = None
        try:
            before = self.points[place - 1] if place else None
            if before is not None:
                before.ready.wait()
            if place and (self.stop.is_set() or clock() >= end_of_fit()):
                return None
            began = clock()
            fitted = self._fitted(place, None if before is None else before.reached)
            if fitted.outcome_ is Outcome.INTERRUPTED:
                self.stop.set()
            return fitted, clock() - began
        finally:
            self.points[place].end(fitted)

    def _fitted(self, place: int, start: FormerFit | None) -> LinearModel:
        options = self.model.get_params(deep=False)
        own = {"random_state": self.seeds[place], "n_jobs": max(1, self.jobs // AT_ONCE)}
        fitted = clone(self.model).set_params(C=float(self.Cs[place]), warm_start=True, **own)
        fitted.begin_at(start)
        fitted.watch = self.points[place].take_if_close
        X, y, weights = self.data
        try:
            fitted.fit(X, y, sample_weight=weights)
        finally:
            del fitted.watch
        return fitted.set_params(warm_start=False, random_state=options["random_state"], n_jobs=options["n_jobs"])


def threads_over(model: LinearModel, X: Any, y: Any, Cs: np.ndarray) -> int:
    """Threads that the fits of a grid are worth, side by side; 1 where each fit can use them better, or none can.

    Fits of several sub-problems have threads for those, and rows that are read block by block have one reader. A fit
    that somebody watches, by callbacks or a bar, follows the one before.
    """
    jobs = effective_n_jobs(model.n_jobs)
    if jobs < 2 or Cs.size < 2 or model.callbacks or model.verbose or not 0.0 < model.tol < 1.0:
        return 1
    design, y, _ = checked_data(X, y)
    if np.ndim(y) != 1:
        return 1
    if is_classifier(model) and (np.unique(y).size > 2 or model.multi_class in splits.JOINT):
        return 1
    if model.goes_by_blocks(design):
        return 1
    rows, passes = design.rows, -PASSES * math.log10(model.tol)
    return int(jobs) if worth_threads(passes * rows.reading_time(rows.n_values)) else 1
