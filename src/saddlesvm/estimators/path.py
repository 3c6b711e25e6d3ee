"""Fits at a grid of C: each starts from its neighbour's point, and each is certified.

A path of sparse models begins at the C at which the first feature gets a weight.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn import svm
from sklearn.base import clone

from saddlesvm.data.door import check_design, checked_data
from saddlesvm.data.label_checks import check_labels, encode_classes
from saddlesvm.estimators.base import Estimator, option_of
from saddlesvm.estimators.fitted import former_fit, make_model
from saddlesvm.estimators.on_cluster import fit_path_on_cluster, is_distributed
from saddlesvm.estimators.register import ENDS
from saddlesvm.estimators.solve import part_problem
from saddlesvm.estimators.training import fit_copy
from saddlesvm.fit.outcome import Outcome
from saddlesvm.multiclass import splits
from saddlesvm.multiclass.linear_fit import rows_of
from saddlesvm.multiclass.splits import FormerFit
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.first_weight import largest_empty_C
from saddlesvm.runtime.allowed import COUNT_FROM_ONE, LIMIT, SCALING, STRENGTH, check, names
from saddlesvm.runtime.clock import begin_fit, clock, end_of_fit
from saddlesvm.runtime.data_types import LabelsLike, RowsLike
from saddlesvm.runtime.interrupts import catch_interrupts

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
    refuse_checkpoint(model)


def refuse_checkpoint(model: Estimator) -> None:
    """Raise ValueError for a checkpoint, which holds one fit."""
    if model.checkpoint is not None:
        raise ValueError(
            "a checkpoint holds one fit, and a path has many: leave checkpoint out; got "
            f"{model.checkpoint!r}"
        )


def fit_path(
    model: Estimator,
    X: RowsLike,
    y: LabelsLike,
    Cs: np.ndarray,
    sample_weight: ArrayLike | None = None,
) -> RegularizationPath:
    """Fit copies of `model` for each C, each from the end of the last fit.

    Ctrl-C returns the path so far, and so does the end of the time that the model's `max_time`
    allows for all of them.
    """
    check_model(model)
    if is_distributed(X):
        found, spent = fit_path_on_cluster(model, X, y, Cs, sample_weight)
        return RegularizationPath(Cs[: len(found)], found, np.array(spent))
    random = clone(model).random_state
    start: FormerFit | None = None
    models: list[Any] = []
    seconds: list[float] = []
    with (
        catch_interrupts() as stop,
        begin_fit(model.max_time if LIMIT.holds(model.max_time) else None),
    ):
        end = end_of_fit()
        for C in Cs.tolist():
            began = clock()
            # The first fit is made however short the time is.
            if models and began >= end:
                break
            template = clone(model).set_params(C=C, warm_start=True, random_state=random)
            fitted = fit_copy(template, X, y, sample_weight, start=start)
            start = former_fit(fitted)
            if fitted.reads_blocks:  # a number for each row and C: more than the memory given
                fitted = replace(fitted, duals=None)
            own_state = clone(model).random_state
            models.append(make_model(fitted, warm_start=False, random_state=own_state))
            seconds.append(clock() - began)
            if fitted.outcome is Outcome.INTERRUPTED or stop.is_set():
                break
    return RegularizationPath(Cs[: len(models)], models, np.array(seconds))
