"""Paths over C, or over nu: every fit starts from its neighbour, and every one is certified.

The fits of a grid of C run in several threads: each starts from its neighbour's point, and the
neighbour continues. A fit that begins at a neighbour's point gains little from the last digits of
that point. So a fit hands its point to the next C as soon as the solver's own estimate of the
relative gap has done half of the powers of ten to the requested gap, and goes on while the next fit
begins. Multipliers of a piecewise linear loss, of which the point must tell which are at their
bounds, are handed over after four fifths. The data fix the moment of the handing over, so the
models do not depend on the number of threads from two; they differ from the models of a single
thread within their gaps.

A path of sparse models begins at the C at which the first feature gets a weight.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, ClassVar, Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn import svm
from sklearn.base import clone, is_classifier

from saddlesvm.data.door import check_design, checked_data
from saddlesvm.data.label_checks import check_labels, encode_classes
from saddlesvm.estimators.base import Estimator, draw_seed, option_of
from saddlesvm.estimators.fitted import Fitted, former_fit, make_model
from saddlesvm.estimators.on_cluster import fit_path_on_cluster, is_distributed
from saddlesvm.estimators.register import ENDS
from saddlesvm.estimators.solve import goes_by_blocks, part_problem
from saddlesvm.estimators.training import fit_copy
from saddlesvm.fit.outcome import Outcome
from saddlesvm.fit.run import Fit
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.linear_fit import rows_of
from saddlesvm.multiclass.splits import FormerFit
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.first_weight import largest_empty_C
from saddlesvm.problem.loss import is_smooth
from saddlesvm.runtime.allowed import COUNT_FROM_ONE, LIMIT, SCALING, STRENGTH, check, names
from saddlesvm.runtime.clock import begin_fit, clock, end_of_fit
from saddlesvm.runtime.data_types import LabelsLike, RowsLike
from saddlesvm.runtime.interrupts import catch_interrupts
from saddlesvm.runtime.threads import Schedule, blas_for, results_of, worth_threads

# Fits under way at the same time, at most: a fit rarely hands its point over before a third.
AT_ONCE = 3
# Least passes over the rows that a fit takes for each power of ten of the gap asked for.
PASSES = 1.0
# Powers of the gap asked for at which a fit hands its point over: smooth losses, others; guessed.
HANDED_AT = 0.5
KINKED_AT = 0.8
SAME = 1e-12  # relative distance between values of C that are taken for one
DECADES = 3.0  # powers of ten from the C where the first weight appears to the largest of a grid


def C_max(
    model: Estimator,
    X: RowsLike,
    y: LabelsLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The largest C at which all weights are zero: the beginning of a path of sparse models.

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
        For several classes, labels or targets, the smallest of their values. Exact up to rounding;
        infinite if no C gives a weight to any feature. A penalised intercept is not the weight
        of a feature, and may be nonzero at a smaller C.

    Raises
    ------
    ValueError
        The penalty has no l1 norm, or the data or options are invalid.

    Notes
    -----
    It takes one or two passes over the rows with ``intercept="none"`` or ``"free"``, and some
    dozens with a penalised intercept. For losses with kinks (such as the hinge with a free
    intercept), a linear program over the rows at a kink gives the value.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.svm import C_max
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
    template._check_options()
    check_sparse(template)
    design, y, sample_weight = checked_data(X, y, sample_weight, template, reset=True)
    posed = template._pose(y, sample_weight, design.shape[0])
    ready = rows_of(design, template._intercept_kind(), float(template.intercept_scaling), 1, None)
    return min(largest_empty_C(part_problem(template, sub, posed, ready)) for sub in posed.problems)


def check_sparse(model: Estimator) -> None:
    """Raise ValueError unless the penalty of an estimator sets weights to zero."""
    if not takes_features(model):
        with_ratio = "" if model.penalty == "l2" else f" with l1_ratio={model.l1_ratio!r}"
        raise ValueError(
            "C_max needs penalty='l1', or 'elasticnet' with l1_ratio above 0, which set weights "
            "to zero; got "
            f"{model.penalty!r}{with_ratio}"
        )
    way = option_of(model, "multi_class")
    if way in splits.JOINT:
        raise ValueError(f"C_max needs multi_class='ovr' or 'ovo'; got {way!r}")


def takes_features(model: Estimator) -> bool:
    """Return True if the penalty has an l1 norm: features come in as C grows."""
    return not model._penalty().penalty.identity()


def l1_min_c(
    X: RowsLike,
    y: LabelsLike,
    *,
    loss: Literal["squared_hinge", "log", "logistic"] = "squared_hinge",
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
) -> float:
    """Return the largest C at which the l1 norm makes all weights and the intercept zero.

    As ``sklearn.svm.l1_min_c``. :func:`C_max` does the same for every estimator with its own
    options: row and class weights, other losses, and intercepts that are free.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,)
        Labels, with at least two different values; each of more than two classes is set against the
        rest.
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
    check("loss", loss, names("squared_hinge", "log", "logistic"))
    check("intercept_scaling", intercept_scaling, SCALING)
    design = check_design(X, finite=True)
    classes, codes = encode_classes(check_labels(y, design.shape[0]))
    if classes.size < 2:
        raise ValueError(f"l1_min_c needs two classes at least; y has {classes.size}")
    options = {"fit_intercept": fit_intercept, "intercept_scaling": intercept_scaling}
    called = "log" if loss == "logistic" else loss
    return float(svm.l1_min_c(design.plain, codes, loss=called, **options))


Timed = tuple[Any, float]  # a fitted model, and the seconds of its fit


class HandOver:
    """The point of a fit for the fit at the next C, once it is good enough, or at its end.

    Parameters
    ----------
    gap : float
        The estimate of the relative gap at which a point is good enough.
    """

    def __init__(self, gap: float) -> None:
        self.gap = gap
        self.ready = threading.Event()
        self.reached: FormerFit | None = None

    def take_if_close(self, fit: Fit) -> None:
        """Take the point of a fit under way if it is good enough."""
        # Written so that an estimate of NaN is not close.
        if self.ready.is_set() or not fit.state.estimate <= self.gap or fit.state.epochs == 0.0:
            return
        point = fit.solver.solution(fit.problem, fit.state)
        problem = fit.problem
        if point.w is None or point.alpha is None:
            return
        w = np.array(point.w, dtype=np.float64)
        duals = problem.C * np.atleast_2d(np.asarray(point.alpha).T)
        # Several vectors, as of a joint machine, are not handed over.
        if w.ndim != 1 or len(duals) != 1:
            return
        intercept = (problem.scale or 0.0) * w[-1:]
        self.give(FormerFit(duals, w[None, :-1], intercept, problem.C, False, [dict(fit.phases)]))

    def end(self, fitted: Fitted | None) -> None:
        """Take a fit that has ended, or None if it was not made, if there is no point yet."""
        if not self.ready.is_set():
            self.give(None if fitted is None or fitted.duals is None else former_fit(fitted))

    def give(self, reached: FormerFit | None) -> None:
        """Let the next fit begin."""
        self.reached = reached
        self.ready.set()


class GridInThreads:
    """The fits of a grid of C, several at a time.

    Parameters
    ----------
    model : Estimator
        The estimator with its options.
    data : tuple
        X, y and the row weights.
    Cs : ndarray of shape (k,)
        Ascending.
    jobs : int
        Threads.
    stop : threading.Event
        Set when the fits are to end.
    """

    def __init__(
        self,
        model: Estimator,
        data: tuple[RowsLike, LabelsLike | None, ArrayLike | None],
        Cs: np.ndarray,
        jobs: int,
        stop: threading.Event,
    ) -> None:
        self.model = model
        self.data = data
        self.Cs = Cs
        self.jobs = jobs
        self.stop = stop
        power = HANDED_AT if is_smooth(model._check_options()) else KINKED_AT
        self.points = [HandOver(model.tol**power) for _ in Cs]
        given = model.random_state
        known = given is None or isinstance(given, (int, np.integer))
        # Threads cannot share a generator: draw the seeds before they begin.
        self.seeds = [given if known else draw_seed(given) for _ in Cs]

    def run(self) -> list[Timed]:
        """Return the fitted models in the order of the grid, up to the first that is missing."""
        with blas_for(0.0), Schedule(min(self.jobs, AT_ONCE, self.Cs.size), self.stop) as schedule:
            made = results_of([schedule.add(self._fit, place) for place in range(self.Cs.size)])
        return list(takewhile(lambda one: one is not None, made))  # type: ignore[arg-type]

    def _fit(self, place: int) -> Timed | None:
        """Fit at the C of this place once the fit before has handed its point over."""
        fitted: Fitted | None = None
        try:
            # The fit before hands over its latest point, perhaps before it ends.
            before = self.points[place - 1] if place else None
            if before is not None:
                before.ready.wait()
            if place and (self.stop.is_set() or clock() >= end_of_fit()):
                return None
            began = clock()
            fitted = self._fit_from(place, None if before is None else before.reached)
            if fitted.outcome is Outcome.INTERRUPTED:
                self.stop.set()
            given = self.model.get_params(deep=False)
            shown = {name: given[name] for name in ("random_state", "n_jobs")}
            return make_model(fitted, warm_start=False, **shown), clock() - began
        finally:
            # The next fit must not wait for ever, whatever happened here.
            self.points[place].end(fitted)

    def _fit_from(self, place: int, start: FormerFit | None) -> Fitted:
        """Fit at the C of this place, from a point."""
        own = {"random_state": self.seeds[place], "n_jobs": max(1, self.jobs // AT_ONCE)}
        template = clone(self.model).set_params(C=float(self.Cs[place]), warm_start=True, **own)
        X, y, weights = self.data
        return fit_copy(
            template, X, y, weights, start=start, watch=self.points[place].take_if_close
        )


def threads_over(model: Estimator, X: RowsLike, y: Any, Cs: np.ndarray) -> int:
    """Return the number of threads for fits of a grid side by side; 1 if threads do not pay there.

    Fits of several sub-problems have threads of their own, and rows that are read block by block
    have a single reader. A fit that somebody watches, by callbacks or a bar, follows the one
    before.
    """
    jobs = effective_n_jobs(model.n_jobs)
    if jobs < 2 or Cs.size < 2 or model.callbacks or model.verbose or not 0.0 < model.tol < 1.0:
        return 1
    design, y, _ = checked_data(X, y)
    if np.ndim(y) != 1:
        return 1
    if is_classifier(model) and (
        np.unique(y).size > 2 or option_of(model, "multi_class") in splits.JOINT
    ):
        return 1
    if goes_by_blocks(model, design):
        return 1
    rows = design.rows
    # About as many passes for each digit of tol.
    passes = -PASSES * math.log10(model.tol)
    return int(jobs) if worth_threads(passes * rows.reading_time(rows.n_values)) else 1


@dataclass(frozen=True)
class RegularizationPath:
    """Models for a grid of C, in ascending order.

    Attributes
    ----------
    Cs : ndarray of shape (k,)
    models : list of Estimator
        A fitted model for each C; models of rows that are read block by block have no
        ``dual_coef_``.
    seconds : ndarray of shape (k,)
        Seconds of each fit, started from its neighbour.

    Examples
    --------
    >>> from saddlesvm import LinearSVC
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> path = LinearSVC.path(notes.X, notes.y, Cs=[0.1, 1.0], random_state=0)
    >>> path.coefs.shape, [str(outcome) for outcome in path.outcomes]
    ((2, 1, 4), ['certified', 'certified'])
    """

    every_C: ClassVar[bool] = False  # nothing is said of values of C between those of the grid

    Cs: np.ndarray
    models: list[Any] = dataclasses.field(repr=False)
    seconds: np.ndarray = dataclasses.field(repr=False)

    @property
    def coefs(self) -> np.ndarray:
        """Weights, shape (k, 1 or n_classes, d)."""
        return np.stack([model.coef_ for model in self.models])

    @property
    def intercepts(self) -> np.ndarray:
        """Intercepts, shape (k, 1 or n_classes)."""
        return np.stack([model.intercept_ for model in self.models])

    @property
    def gap(self) -> float:
        """The relative gap that each fit was to prove."""
        return float(self.models[0].tol)

    @property
    def proven_gap(self) -> float:
        """The relative gap that holds at every C of the grid."""
        return float(self.fit_gaps.max())

    @property
    def fit_gaps(self) -> np.ndarray:
        """The relative gap that each fit proves, shape (k,)."""
        return np.array([one.relative_gap for one in self.certificates])

    @property
    def n_features_selected(self) -> np.ndarray:
        """The number of features with a weight at each C, shape (k,)."""
        return np.array([model.n_features_selected_ for model in self.models])

    def model(self, C: float) -> Any:
        """The model for a C of the grid.

        Raises
        ------
        ValueError
            It is none of the grid's.
        """
        place = np.flatnonzero(np.isclose(self.Cs, C, rtol=SAME, atol=0.0))
        if not place.size:
            raise ValueError(
                f"this path has models at its {self.Cs.size} values of C only, path.Cs; got {C!r}"
            )
        return self.models[place[0]]

    def coef(self, C: float) -> np.ndarray:
        """Weights of the model for a C of the grid."""
        return np.asarray(self.model(C).coef_)

    def certificate(self, C: float) -> Certificate:
        """The certificate of the model for a C of the grid."""
        return self.model(C).certificate_

    def grid(self, size: int | None = None) -> np.ndarray:
        """All values of C: a path like this has no models between them."""
        return self.Cs

    def score(self, X: Any, y: Any, Cs: Any = None) -> np.ndarray:
        """Return the score at each C, or at some, shape (k,): accuracy, or :math:`R^2`."""
        return np.array([self.model(C).score(X, y) for C in (self.Cs if Cs is None else Cs)])

    def best(self, X: RowsLike, y: LabelsLike) -> float:
        """The C with the best score on X and y, the smallest of several."""
        return float(self.Cs[int(np.argmax(self.score(X, y)))])

    @property
    def fit_certificates(self) -> list[Certificate]:
        """The certificate of each fit."""
        return self.certificates

    @property
    def certificates(self) -> list[Certificate]:
        """A value for each C."""
        return [model.certificate_ for model in self.models]

    @property
    def outcomes(self) -> list[Outcome]:
        """A value for each C."""
        return [model.outcome_ for model in self.models]

    @property
    def outcome(self) -> Outcome:
        """CERTIFIED, or the first other outcome along the path."""
        return next(
            (one for one in self.outcomes if one is not Outcome.CERTIFIED), Outcome.CERTIFIED
        )


def check_Cs(Cs: int | Sequence[float]) -> np.ndarray:
    """A grid of C, ascending: the given values, or `Cs` values between 1e-3 and 1e3.

    Raises
    ------
    ValueError
        No value, or a value that is no C.
    """
    if isinstance(Cs, (int, np.integer)):
        check("Cs, a number of values or the values,", Cs, COUNT_FROM_ONE)
        return np.logspace(np.log10(ENDS[0]), np.log10(ENDS[1]), Cs)
    values = np.ravel(np.asarray(Cs, dtype=object)).tolist()
    if not values:
        raise ValueError("Cs must be a number of values, or the values; got none")
    for value in values:
        check("each of Cs", value, STRENGTH)
    return np.unique(np.array(values, dtype=np.float64))


def grid_for(
    model: Estimator, X: RowsLike, y: LabelsLike, Cs: Any, sample_weight: ArrayLike | None = None
) -> np.ndarray:
    """A grid of C, see :func:`check_Cs`.

    If the penalty sets weights to zero, a number of values begins at ``C_max``, at which the first
    weight appears, and ends at a thousand times it.
    """
    grid = check_Cs(Cs)
    if not isinstance(Cs, (int, np.integer)) or not takes_features(model) or is_distributed(X):
        return grid
    first = C_max(model, X, y, sample_weight)
    return first * np.logspace(0.0, DECADES, Cs) if 0.0 < first < np.inf else grid


def ends_for(
    model: Estimator, X: RowsLike, y: LabelsLike, sample_weight: ArrayLike | None = None
) -> tuple[float, float]:
    """Return the default ends of a path over every C: the ends of :func:`grid_for`."""
    grid = grid_for(model, X, y, 2, sample_weight)
    return float(grid[0]), float(grid[-1])


def check_model(model: Estimator) -> None:
    """Raise ValueError for an option that cannot be the same for every C."""
    if model.lam is not None:
        raise ValueError(
            f"a path goes over C, so lam (lambda) must be left out; got lam={model.lam!r}"
        )
    if model.checkpoint is not None:
        raise ValueError(
            "a checkpoint holds one fit, and a path has many: leave it out, or take a certified "
            "path (C=, gap=), which "
            f"has one; got {model.checkpoint!r}"
        )


def fit_path(
    model: Estimator,
    X: RowsLike,
    y: LabelsLike,
    Cs: np.ndarray,
    sample_weight: ArrayLike | None = None,
) -> RegularizationPath:
    """Fit copies of `model` for each C, each from the end of the last fit, or its latest point.

    Ctrl-C returns the path so far, and so does the end of the time that the model's `max_time`
    allows for all of them.
    """
    check_model(model)
    if is_distributed(X):
        models, seconds = fit_path_on_cluster(model, X, y, Cs, sample_weight)
        return RegularizationPath(Cs[: len(models)], models, np.array(seconds))
    jobs = threads_over(model, X, y, Cs)
    with (
        catch_interrupts() as interrupted,
        begin_fit(model.max_time if LIMIT.holds(model.max_time) else None),
    ):
        if jobs > 1:
            made = GridInThreads(model, (X, y, sample_weight), Cs, jobs, interrupted).run()
        else:
            made = fit_in_turn(model, (X, y, sample_weight), Cs, interrupted)
    models = [one for one, _ in made]
    seconds = [spent for _, spent in made]
    return RegularizationPath(Cs[: len(models)], models, np.array(seconds))


def fit_in_turn(
    model: Estimator,
    data: tuple[RowsLike, LabelsLike | None, ArrayLike | None],
    Cs: np.ndarray,
    stop: threading.Event,
) -> list[Timed]:
    """Fit for each C in turn; return the models, with the seconds of each."""
    end = end_of_fit()
    random = clone(model).random_state
    start: FormerFit | None = None
    made: list[Timed] = []
    for C in Cs.tolist():
        began = clock()
        # The first fit is made however short the time is.
        if made and began >= end:
            break
        template = clone(model).set_params(C=C, warm_start=True, random_state=random)
        fitted = fit_copy(template, *data, start=start)
        start = former_fit(fitted)
        if fitted.reads_blocks:  # a number for each row and C: more than the memory given
            fitted = replace(fitted, duals=None)
        own_state = clone(model).random_state
        made.append((make_model(fitted, warm_start=False, random_state=own_state), clock() - began))
        if fitted.outcome is Outcome.INTERRUPTED or stop.is_set():
            break
    return made
