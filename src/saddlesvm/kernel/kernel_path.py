"""Paths of kernel machines over C or nu: every fit starts from its neighbour, and every one is
certified.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from saddlesvm.estimators.base import apply_limits
from saddlesvm.estimators.path import check_Cs
from saddlesvm.fit.outcome import Outcome
from saddlesvm.kernel.fit_kernel import KnownFacts, fit_kernel
from saddlesvm.kernel.kernel_fitted import KernelFitted, make_machine
from saddlesvm.kernel.kernel_machine import KernelMachine
from saddlesvm.problem.certificate import Certificate
from saddlesvm.runtime.clock import clock
from saddlesvm.runtime.data_types import RowsLike
from saddlesvm.runtime.interrupts import catch_interrupts


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
        Of each fit; the first fit's include the kernel matrix.

    Examples
    --------
    >>> from saddlesvm import SVC
    >>> from saddlesvm.kernel.kernel_path import kernel_path
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
        """The certificate of each model."""
        return [model.certificate_ for model in self.models]

    @property
    def gaps(self) -> np.ndarray:
        """The relative gap that each fit proves, shape (k,)."""
        return np.array([one.relative_gap for one in self.certificates])

    def score(self, X: RowsLike, y: ArrayLike) -> np.ndarray:
        """The score of each model, shape (k,)."""
        return np.array([model.score(X, y) for model in self.models])

    def best(self, X: RowsLike, y: ArrayLike) -> float:
        """The value with the best score on X and y, the smallest of several."""
        return float(self.values[int(np.argmax(self.score(X, y)))])


def kernel_path(
    model: KernelMachine,
    X: RowsLike,
    y: ArrayLike | None = None,
    *,
    Cs: object = None,
    nus: object = None,
    sample_weight: ArrayLike | None = None,
) -> KernelPath:
    """Fit copies of a kernel machine for several values of C, or of nu; Ctrl-C returns the path so
    far.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR, or OneClassSVM
        Its other options count for every fit. It is not fitted itself.
    X : array-like or sparse matrix of shape (n, d)
    y : array-like of shape (n,), optional
        Not for OneClassSVM.
    Cs, nus : array-like of floats
        The values of the parameter, sorted ascending; give one of the two.
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
    The kernel matrix of all rows is computed once if it fits into ``cache_size``, as ``float64``:
    5,000 rows in the 200 MB of the default.
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
    with catch_interrupts() as interrupted:
        fits, seconds = fit_in_turn(model, (X, y, sample_weight), name, values, interrupted)
    models = [make_machine(fitted) for fitted in fits]
    return KernelPath(name, values[: len(models)], models, np.array(seconds))


def fit_in_turn(
    model: KernelMachine,
    data: tuple[Any, Any, Any],
    name: str,
    values: np.ndarray,
    stop: threading.Event,
) -> tuple[list[KernelFitted], list[float]]:
    """Fit for one value of a parameter after the other; return the fits, and seconds of each."""
    fits: list[KernelFitted] = []
    seconds: list[float] = []
    # Facts of the kernel matrix are computed once for all fits.
    known = KnownFacts()
    former = None
    for value in values.tolist():
        began = clock()
        template = clone(model).set_params(**{name: value, "warm_start": False})
        with apply_limits(template):
            former = fit_kernel(template, *data, former=former, known=known)
        fits.append(former)
        seconds.append(clock() - began)
        if former.outcome is Outcome.INTERRUPTED or stop.is_set():
            break
    return fits, seconds
