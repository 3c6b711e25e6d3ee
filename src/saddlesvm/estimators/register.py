"""The register of estimators, the facts that model files, the command line and `certify` need of each; and the
parameters that estimators share, with their types and defaults, which an estimator names among its bases.

An estimator from outside the package registers as those inside do::

    @register_estimator(task="regression")
    class Mine(LinearModel): ...

:func:`register_estimator` says what a class must provide, and what it gets in return.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from saddlesvm.estimators import HOMES
from saddlesvm.runtime.lazy import origin_of

if TYPE_CHECKING:
    from saddlesvm.runtime.option_names import (
        Keep,
        KernelName,
        KernelSolver,
        ScoreShape,
    )
    from saddlesvm.solvers.base import SolverBase

# What a path over C is by default:
ENDS = (1e-3, 1e3)  # smallest and largest C
GAP = 1e-2  # relative gap
GRID = 13  # values of C


@dataclass(kw_only=True, eq=False, repr=False)
class KernelOptions:
    """The parameters of every kernel machine; :class:`~saddlesvm.SVC` describes them."""

    kernel: KernelName | Callable[..., Any] = "rbf"
    degree: float = 3
    gamma: Literal["scale", "auto"] | float = "scale"
    coef0: float = 0.0
    tol: float = 1e-3
    cache_size: float = 200
    verbose: int = False
    max_time: float | None = None
    keep: Keep = "best"
    gap: float = 0.0
    solver: KernelSolver | SolverBase = "auto"
    n_jobs: int | None = None
    callbacks: Sequence[Any] | None = None
    warm_start: bool = False
    checkpoint: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class SVMOptions(KernelOptions):
    """The parameters of every machine with the name and the attributes of one in ``sklearn.svm``."""

    shrinking: bool = True
    max_iter: float | None = -1


@dataclass(kw_only=True, eq=False, repr=False)
class PairOptions(SVMOptions):
    """The parameters of SVC and NuSVC."""

    probability: bool = False
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    decision_function_shape: ScoreShape = "ovr"
    break_ties: bool = False
    random_state: Any = None


__all__ = ["KERNEL", "LINEAR", "Entry", "Saved", "entry_of", "known", "named", "register_estimator"]

Task = Literal["classification", "regression", "novelty"]
Kind = TypeVar("Kind", bound=type)
METHODS = ("fit", "predict", "get_params", "_check_options")


@dataclass(frozen=True)
class Saved:
    """The attributes of a fitted estimator that its model file holds, as far as it has them.

    Parameters
    ----------
    arrays : tuple of str
        Numbers or arrays of numbers or text, of any shape.
    matrices : tuple of str
        Dense or CSR.
    numbers : tuple of str
        What JSON can hold.
    """

    arrays: tuple[str, ...]
    matrices: tuple[str, ...]
    numbers: tuple[str, ...] = (
        "n_iter_", "n_features_in_", "seconds_solving_", "seconds_certifying_", "seconds_compiling_",
        "_fitted_C", "C_", "indicator_", "n_samples_fit_", "fit_C", "fit_phases", "fit_mark",
    )  # fmt: skip


LINEAR = Saved(("intercept_", "classes_", "feature_names_in_", "calibration_"), ("coef_", "dual_coef_"))
KERNEL = Saved(
    ("intercept_", "classes_", "feature_names_in_", "support_", "n_support_"),
    ("dual_coef_", "support_vectors_"),
)


@dataclass(frozen=True)
class Entry:
    """The facts of a registered kind of estimator; see :func:`register_estimator`."""

    name: str
    kind: Any
    task: Task
    saved: Saved
    linear: bool

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the constructor's parameters."""
        return parameters_of(self.kind)


ENTRIES: dict[str, Entry] = {}  # by name, in the order of registration


def register_estimator(
    name: str | None = None,
    *,
    task: Task,
    saved: Saved = LINEAR,
    linear: bool = True,
) -> Callable[[Kind], Kind]:
    """A class decorator that registers an estimator, so that its models can be saved, loaded, and trained from the
    command line.

    Parameters
    ----------
    name : str, optional
        The name in model files and for ``--estimator``; the name of the class by default.
    task : {"classification", "regression", "novelty"}
        Whether it learns labels, targets, or rows alone.
    saved : Saved
        The fitted attributes that a model file holds, beside all parameters and certificates.
    linear : bool, default=True
        Whether scores are ``X @ coef_.T + intercept_``; ``saddlesvm certify`` then judges it by ``_pose``.

    Raises
    ------
    TypeError
        The class lacks a method.
    ValueError
        The task is unknown, or another class has the name.

    Notes
    -----
    The class needs ``fit``, ``predict``, ``get_params`` and ``_check_options``, which raises ValueError for invalid
    options before any data are read. A linear estimator also needs ``_pose(y, sample_weight,
    n)``, which gives the sub-problems that a fitted model solves, as :class:`saddlesvm.LinearSVR` has it.

    Examples
    --------
    A regression that begins with another default. If a module ``mine`` has it, ``saddlesvm train DATA --import mine
    --estimator MedianRegression`` trains it, and ``--set NAME=VALUE`` gives its parameters:

    >>> from saddlesvm import LinearSVR, register_estimator
    >>> @register_estimator(task="regression")
    ... class MedianRegression(LinearSVR):
    ...     def __init__(
    ...         self,
    ...         *,
    ...         loss="absolute",
    ...         intercept="free",
    ...         C=1.0,
    ...         epsilon=0.0,
    ...         tol=1e-4,
    ...         random_state=None,
    ...     ):
    ...         super().__init__(
    ...             loss=loss,
    ...             intercept=intercept,
    ...             C=C,
    ...             epsilon=epsilon,
    ...             tol=tol,
    ...             random_state=random_state,
    ...         )
    >>> MedianRegression().get_params()["loss"]
    'absolute'
    """

    def declare(kind: Kind) -> Kind:
        called = name or kind.__name__
        needed = (*METHODS, *(("_pose",) if linear else ()))
        missing = [method for method in needed if not callable(getattr(kind, method, None))]
        if missing:
            raise TypeError(f"the estimator {called} lacks {', '.join(missing)}")
        if task not in get_args(Task):
            raise ValueError(f"the estimator {called}: task must be one of {', '.join(get_args(Task))}; got {task!r}")
        former = ENTRIES.get(called)
        if former is not None and origin_of(former.kind) != origin_of(kind):
            raise ValueError(f"an estimator named {called!r} exists already, {origin_of(former.kind)}: choose another")
        ENTRIES[called] = Entry(called, kind, task, saved, linear)
        return kind

    return declare


def parameters_of(kind: Any) -> tuple[str, ...]:
    """The names of a constructor's parameters."""
    return tuple(inspect.signature(kind).parameters)


def known() -> list[Entry]:
    """All registered kinds: those of the package first, the others in the order of registration."""
    own = [ENTRIES[name] for name in HOMES if name in ENTRIES]
    return [*own, *(entry for name, entry in ENTRIES.items() if name not in HOMES)]


def named(name: str) -> Entry | None:
    """The kind of that name, if one is registered."""
    return ENTRIES.get(name)


def entry_of(model: Any) -> Entry | None:
    """The kind that an estimator is of: its own class, or the nearest registered one that it is derived from."""
    kinds = {entry.kind: entry for entry in ENTRIES.values()}
    return next((kinds[kind] for kind in type(model).__mro__ if kind in kinds), None)
