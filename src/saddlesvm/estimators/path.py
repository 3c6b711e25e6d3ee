"""Paths over C, or over nu: every fit starts from its neighbour, and every one is certified."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from saddlesvm.estimators.kernel_machine import KernelMachine, KnownFacts
from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.estimators.on_cluster import is_distributed, models_along
from saddlesvm.estimators.path_grid import C_max, GridInThreads, takes_features, threads_over
from saddlesvm.estimators.register import ENDS
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.runtime.allowed import COUNT_FROM_ONE, LIMIT, STRENGTH, check
from saddlesvm.runtime.clock import beginning, clock, end_of_fit
from saddlesvm.runtime.threads import interruptible

SAME = 1e-12  # relative distance between values of C that are taken for one
DECADES = 3.0  # powers of ten from the C where the first weight appears to the largest of a grid


@dataclass(frozen=True)
class RegularizationPath:
    """Models for a grid of C, in ascending order.

    Attributes
    ----------
    Cs : ndarray of shape (k,)
    models : list of LinearModel
        One fitted model for each C; those of rows that are read block by block have no ``dual_coef_``.
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
    models: list[LinearModel] = dataclasses.field(repr=False)
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

    def model(self, C: float) -> LinearModel:
        """The model for a C of the grid.

        Raises
        ------
        ValueError
            It is none of the grid's.
        """
        place = np.flatnonzero(np.isclose(self.Cs, C, rtol=SAME, atol=0.0))
        if not place.size:
            raise ValueError(f"this path has models at its {self.Cs.size} values of C only, path.Cs; got {C!r}")
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
        """The score of the model for each C, or for some, shape (k,): accuracy, or :math:`R^2` for regression."""
        return np.array([self.model(C).score(X, y) for C in (self.Cs if Cs is None else Cs)])

    def best(self, X: Any, y: Any) -> float:
        """The C with the best score on X and y, the smallest of several."""
        return float(self.Cs[int(np.argmax(self.score(X, y)))])

    @property
    def fit_certificates(self) -> list[Certificate]:
        """The certificate of each fit."""
        return self.certificates

    @property
    def certificates(self) -> list[Certificate]:
        """One a C."""
        return [model.certificate_ for model in self.models]

    @property
    def outcomes(self) -> list[Outcome]:
        """One a C."""
        return [model.outcome_ for model in self.models]

    @property
    def outcome(self) -> Outcome:
        """CERTIFIED, or the first other outcome along the path."""
        return next((one for one in self.outcomes if one is not Outcome.CERTIFIED), Outcome.CERTIFIED)


def check_Cs(Cs: int | Sequence[float]) -> np.ndarray:
    """A grid of C, ascending: the given values, or `Cs` values between 1e-3 and 1e3.

    Raises
    ------
    ValueError
        No value, or one that is no C.
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


def grid_for(model: LinearModel, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> np.ndarray:
    """A grid of C, see :func:`check_Cs`.

    Where the penalty sets weights to zero, a number of values begins at ``C_max``, where the first weight appears, and
    ends at a thousand times it.
    """
    grid = check_Cs(Cs)
    if not isinstance(Cs, (int, np.integer)) or not takes_features(model) or is_distributed(X):
        return grid
    first = C_max(model, X, y, sample_weight)
    return first * np.logspace(0.0, DECADES, Cs) if 0.0 < first < np.inf else grid


def ends_for(model: LinearModel, X: Any, y: Any, sample_weight: Any = None) -> tuple[float, float]:
    """The ends of a path over every C that nobody has said: those of :func:`grid_for`."""
    grid = grid_for(model, X, y, 2, sample_weight)
    return float(grid[0]), float(grid[-1])


def check_model(model: LinearModel) -> None:
    """Raise ValueError for an option that cannot be the same for every C."""
    if model.lam is not None:
        raise ValueError(f"a path goes over C, so lam (lambda) must be left out; got lam={model.lam!r}")
    if model.checkpoint is not None:
        raise ValueError(
            "a checkpoint holds one fit, and a path has many: leave it out, or take a certified path (C=, gap=), which "
            f"has one; got {model.checkpoint!r}"
        )


def fit_path(model: LinearModel, X: Any, y: Any, Cs: np.ndarray, sample_weight: Any = None) -> RegularizationPath:
    """Fit copies of `model` for each C, each begun where the last one ended, or has come to with `n_jobs`.

    Ctrl-C returns the path so far, and so does the end of the time that the model's `max_time` allows for all of them.
    """
    check_model(model)
    if is_distributed(X):
        models, seconds = models_along(model, X, y, Cs, sample_weight)
        return RegularizationPath(Cs[: len(models)], models, np.array(seconds))
    jobs = threads_over(model, X, y, Cs)
    with interruptible() as interrupted, beginning(model.max_time if LIMIT.holds(model.max_time) else None):
        if jobs > 1:
            made = GridInThreads(model, (X, y, sample_weight), Cs, jobs, interrupted).run()
        else:
            made = _in_turn(clone(model).set_params(warm_start=True), (X, y, sample_weight), "C", Cs, interrupted)
    models, seconds = [one for one, _ in made], [spent for _, spent in made]
    return RegularizationPath(Cs[: len(models)], models, np.array(seconds))


def _in_turn(
    running: Any, data: tuple[Any, Any, Any], name: str, values: np.ndarray, stop: threading.Event
) -> list[Any]:
    """Fitted copies of an estimator, one after the other for the values of a parameter, with the seconds of each."""
    end = end_of_fit()
    made: list[Any] = []
    for value in values.tolist():
        began = clock()
        if made and began >= end:
            break
        running.set_params(**{name: value}).fit(*data[:2], sample_weight=data[2])
        made.append((_copy(running), clock() - began))
        if running.outcome_ is Outcome.INTERRUPTED or stop.is_set():
            break
    return made


def _copy(fitted: Any) -> Any:
    """A fitted model of its own, with all that the running one has learned by now."""
    copied = clone(fitted).set_params(warm_start=False)
    left_out = {*vars(copied), "_known"}  # what the path alone needs
    vars(copied).update({name: value for name, value in vars(fitted).items() if name not in left_out})
    if vars(fitted).get("reads_blocks"):
        vars(copied).pop("dual_coef_", None)  # a number for each row and C: more than the memory given
    return copied


@dataclasses.dataclass(frozen=True)
class KernelPath:
    """Fitted kernel machines along a grid.

    Attributes
    ----------
    name : {"C", "nu"}
        What differs.
    values : ndarray of shape (k,)
        Ascending.
    models : list of estimators
    seconds : ndarray of shape (k,)
        Of each fit; the first one's include the kernel matrix.

    Examples
    --------
    >>> from saddlesvm import SVC
    >>> from saddlesvm.estimators.path import kernel_path
    >>> from saddlesvm.data import load_bundled
    >>> notes = load_bundled("banknote")
    >>> path = kernel_path(SVC(), notes.X, notes.y, Cs=[0.1, 1.0, 10.0])
    >>> path.best(notes.X, notes.y), bool((path.gaps <= 1e-3).all())
    (10.0, True)
    """

    name: str
    values: np.ndarray
    models: list[Any] = dataclasses.field(repr=False)
    seconds: np.ndarray = dataclasses.field(repr=False)

    @property
    def certificates(self) -> list[Certificate]:
        """One a model."""
        return [model.certificate_ for model in self.models]

    @property
    def gaps(self) -> np.ndarray:
        """The relative gap that each fit proves, shape (k,)."""
        return np.array([one.relative_gap for one in self.certificates])

    def score(self, X: Any, y: Any) -> np.ndarray:
        """The score of each model, shape (k,)."""
        return np.array([model.score(X, y) for model in self.models])

    def best(self, X: Any, y: Any) -> float:
        """The value with the best score on X and y, the smallest of several."""
        return float(self.values[int(np.argmax(self.score(X, y)))])


def kernel_path(
    model: KernelMachine, X: Any, y: Any = None, *, Cs: Any = None, nus: Any = None, sample_weight: Any = None
) -> KernelPath:
    """Fit copies of a kernel machine for several values of C, or of nu; Ctrl-C returns the path so far.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR, OneClassSVM or KernelSVC
        Its other options are those of every fit. It is not fitted itself.
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,), optional
        Not for OneClassSVM.
    Cs, nus : array-like of floats
        The values, one of the two; sorted ascending.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    KernelPath

    Raises
    ------
    ValueError
        Not exactly one grid is given, it is no grid, or the machine has no such parameter.

    Notes
    -----
    The kernel matrix of all rows is computed once where it fits into ``cache_size``, as ``float64``: 5,000 rows in the
    200 MB of the default.
    """
    if (Cs is None) == (nus is None):
        raise ValueError("give either Cs or nus, the values of the path")
    name = "C" if nus is None else "nu"
    if name not in model.get_params(deep=False):
        raise ValueError(f"a {type(model).__name__} has no {name}, so there is no path over it")
    if getattr(model, "lam", None) is not None or model.checkpoint is not None:
        raise ValueError("a path goes over C and has many fits: leave lam and checkpoint out")
    given: Any = Cs if nus is None else nus
    values = check_Cs(list(np.atleast_1d(given)))
    running = clone(model).set_params(warm_start=True)
    running._known = KnownFacts()
    with interruptible() as interrupted:
        made = _in_turn(running, (X, y, sample_weight), name, values, interrupted)
    return KernelPath(name, values[: len(made)], [one for one, _ in made], np.array([spent for _, spent in made]))
