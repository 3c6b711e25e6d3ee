"""The register of estimators: what model files, the command line and `certify` need of each.

An estimator from outside the package registers like the package's own::

    @register_estimator(task="regression")
    class Mine(LinearModel): ...

:func:`register_estimator` says what a class must provide, and what it gets in return.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

from saddlesvm.estimators import HOMES
from saddlesvm.runtime.lazy import origin_of

METHODS = ("fit", "predict", "get_params", "_check_options")  # that an estimator must have


__all__ = [
    "Entry",
    "entry_of",
    "find_entry",
    "list_entries",
    "register_estimator",
]

Task = Literal["classification", "regression", "novelty"]
Kind = TypeVar("Kind", bound=type)
ENTRIES: dict[str, Entry] = {}  # by name, in the order of registration


@dataclass(frozen=True)
class Entry:
    """The facts of a registered kind of estimator; see :func:`register_estimator`."""

    name: str
    kind: Any
    task: Task
    linear: bool

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the constructor's parameters."""
        return list_parameters(self.kind)


def register_estimator(
    name: str | None = None,
    *,
    task: Task,
    linear: bool = True,
) -> Callable[[Kind], Kind]:
    """Register an estimator, so that models can be saved, loaded, and trained from a command line.

    Parameters
    ----------
    name : str, optional
        The name in model files and for ``--estimator``; the name of the class by default.
    task : {"classification", "regression", "novelty"}
        What it learns from: labels, targets, or rows alone.
    linear : bool, default=True
        True if scores are ``X @ coef_.T + intercept_``; ``saddlesvm certify`` then judges it by
        ``_pose``.

    Raises
    ------
    TypeError
        The class lacks a method.
    ValueError
        The task is unknown, or another class has the name.

    Notes
    -----
    The class needs ``fit``, ``predict``, ``get_params`` and ``_check_options``, which raises
    ValueError for invalid options before any data are read. A linear estimator also needs
    ``_pose(y, sample_weight, n)``, which returns the sub-problems that a fitted model solves, as
    :class:`saddlesvm.LinearSVR` has it.

    Examples
    --------
    A regression with another default. If it is in a module ``mine``, ``saddlesvm train DATA
    --import mine --estimator MedianRegression`` trains it, and ``--set NAME=VALUE`` sets its
    parameters:

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
        entry_name = name or kind.__name__
        needed = [*METHODS, "_pose"] if linear else list(METHODS)
        missing = [method for method in needed if not callable(getattr(kind, method, None))]
        if missing:
            raise TypeError(f"the estimator {entry_name} lacks {', '.join(missing)}")
        if task not in get_args(Task):
            allowed = ", ".join(get_args(Task))
            raise ValueError(
                f"the estimator {entry_name}: task must be one of {allowed}; got {task!r}"
            )
        # A module that is loaded again registers the same class again.
        former = ENTRIES.get(entry_name)
        if former is not None and origin_of(former.kind) != origin_of(kind):
            raise ValueError(
                f"an estimator named {entry_name!r} exists already, {origin_of(former.kind)}: "
                "choose another name"
            )
        ENTRIES[entry_name] = Entry(entry_name, kind, task, linear)
        return kind

    return declare


def list_parameters(kind: type) -> tuple[str, ...]:
    """Return the names of a constructor's parameters."""
    return tuple(inspect.signature(kind).parameters)


def list_entries() -> list[Entry]:
    """Return all registered kinds: the package's own first, others in the order of registration."""
    own = [ENTRIES[name] for name in HOMES if name in ENTRIES]
    others = [entry for name, entry in ENTRIES.items() if name not in HOMES]
    return [*own, *others]


def find_entry(name: str) -> Entry | None:
    """Return the registered kind of this name, or None."""
    return ENTRIES.get(name)


def entry_of(model: object) -> Entry | None:
    """Return the registered kind of an estimator: its class, or the nearest base class."""
    kinds = {entry.kind: entry for entry in ENTRIES.values()}
    return next((kinds[kind] for kind in type(model).__mro__ if kind in kinds), None)
