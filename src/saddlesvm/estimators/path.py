"""Paths over C: every fit starts from its neighbour, and every one is certified."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from saddlesvm.estimators.linear_model import LinearModel
from saddlesvm.fit.outcome import Outcome
from saddlesvm.problem.certificate import Certificate
from saddlesvm.runtime.compiling import clock
from saddlesvm.runtime.interrupt import interruptible


@dataclass(frozen=True)
class RegularizationPath:
    """Models for a grid of C, in ascending order.

    Attributes
    ----------
    Cs : ndarray of shape (k,)
    models : list of LinearModel
        One fitted model for each C.
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
    def certificates(self) -> list[Certificate]:
        """One a C."""
        return [model.certificate_ for model in self.models]

    @property
    def outcomes(self) -> list[Outcome]:
        """One a C."""
        return [model.outcome_ for model in self.models]


def check_Cs(Cs: int | Sequence[float]) -> np.ndarray:
    """A grid of C, ascending: the given values, or `Cs` values between 1e-3 and 1e3.

    Raises
    ------
    ValueError
        No value, or one that is not positive and finite.
    """
    grid = np.logspace(-3, 3, Cs) if isinstance(Cs, (int, np.integer)) else np.asarray(Cs, dtype=np.float64).ravel()
    if grid.size == 0 or not (np.isfinite(grid) & (grid > 0.0)).all():
        raise ValueError(f"Cs must be a number of values, or positive finite values; got {Cs!r}")
    return np.unique(grid)


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
    """Fit copies of `model` for each C, each begun where the last one ended; Ctrl-C returns the path so far."""
    check_model(model)
    running = clone(model).set_params(warm_start=True)
    models, seconds = [], []
    with interruptible() as interrupted:
        for C in Cs:
            began = clock()
            running.set_params(C=float(C)).fit(X, y, sample_weight=sample_weight)
            seconds.append(clock() - began)
            models.append(_copy(running))
            if running.outcome_ is Outcome.INTERRUPTED or interrupted.is_set():
                break
    return RegularizationPath(Cs[: len(models)], models, np.array(seconds))


def _copy(fitted: LinearModel) -> LinearModel:
    """A fitted model of its own, with all that the running one has learned by now."""
    copied = clone(fitted).set_params(warm_start=False)
    vars(copied).update({name: value for name, value in vars(fitted).items() if name not in vars(copied)})
    return copied
