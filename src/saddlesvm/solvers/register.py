"""The register of solvers: a name stands for a class, whose options are its fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

from saddlesvm.runtime.allowed import parse_options
from saddlesvm.runtime.lazy import origin_of
from saddlesvm.runtime.option_names import CLUSTER_SOLVERS
from saddlesvm.solvers.base import SolverBase

__all__ = ["SOLVERS", "make_solver", "parse_solver", "register_solver"]

Kind = TypeVar("Kind", bound=type)
SOLVERS: dict[str, type[SolverBase]] = {}  # by name, in the order of registration
METHODS = ("init", "step", "solution")


def register_solver(kind: Kind) -> Kind:
    """Register a solver (a class decorator), so that ``solver="name"`` finds it.

    The name counts in Python, on the command line and in model files.

    The class is a frozen dataclass derived from :class:`saddlesvm.solvers.base.SolverBase`. Its
    class variable ``name`` names the solver, its fields are the options, its methods ``init``,
    ``step`` and ``solution`` are the algorithm. The fit's loop does the rest: certificates, limits,
    checkpoints, traces, Ctrl-C. A class of the same name and module replaces the former one.

    Raises
    ------
    TypeError
        The class is no dataclass derived from SolverBase, or lacks a method.
    ValueError
        The class has no name, or another solver has that name.

    Examples
    --------
    Coordinate descent under a name of its own, with another default:

    >>> from dataclasses import dataclass
    >>> from typing import ClassVar
    >>> from saddlesvm import DCD, LinearSVC, register_solver
    >>> @register_solver
    ... @dataclass(frozen=True)
    ... class Patient(DCD):
    ...     name: ClassVar[str] = "patient"
    ...     shrinking: bool = False
    >>> LinearSVC(solver="patient").fit([[0.0], [1.0], [2.0]], [0, 0, 1]).outcome_.value
    'certified'
    """
    called = getattr(kind, "__qualname__", repr(kind))
    if not (isinstance(kind, type) and issubclass(kind, SolverBase) and is_dataclass(kind)):
        raise TypeError(
            f"the solver {called} must be a frozen dataclass derived from solvers.base.SolverBase"
        )
    missing = [method for method in METHODS if method in kind.__abstractmethods__]
    if missing:
        raise TypeError(f"the solver {called} lacks {', '.join(missing)}")
    name = kind.name
    if not name.replace("-", "").replace("_", "").isalnum():
        raise ValueError(
            f"the solver {called} needs a name of letters, digits, - and _; got {name!r}"
        )
    former = SOLVERS.get(name)
    if former is not None and origin_of(former) != origin_of(kind):
        raise ValueError(
            f"a solver named {name!r} exists already, {origin_of(former)}: choose another name"
        )
    SOLVERS[name] = kind
    return kind


def make_solver(solver: str | SolverBase) -> Any:
    """Return a solver object from a name, such as ``"pegasos:batch_size=64"``, or itself.

    Raises
    ------
    ValueError
        The name or an option is unknown, or an option out of range.
    """
    if isinstance(solver, SolverBase):
        return solver
    return parse_solver(solver, SOLVERS)


@cache
def usual(kind: type[SolverBase]) -> Any:
    """Return the solver of a class with all defaults; it cannot be changed, so one is enough."""
    return kind()


def parse_solver(solver: object, among: Mapping[str, type[SolverBase]]) -> Any:
    """Return one of the solvers `among` from ``"name"`` or ``"name:option=value,option=value"``.

    Raises
    ------
    ValueError
        `solver` is no text, or the name or an option is unknown.
    """
    if not isinstance(solver, str):
        raise ValueError(
            f"solver must be one of {', '.join(among)}, or a solver object that fits; "
            f"got {solver!r}"
        )
    name, _, listed = solver.partition(":")
    if name in CLUSTER_SOLVERS and name not in among:
        raise ValueError(
            f"solver={name!r} is for rows on a cluster: give a Dask array or DataFrame as X"
        )
    if name not in among:
        raise ValueError(
            f"unknown solver {name!r}: use one of {', '.join(among)}, or a solver object"
        )
    if not listed:
        kind: Any = among[name]
        return usual(kind)
    known = [field.name for field in fields(among[name])]
    return among[name](**parse_options(listed, known, f"the solver {name!r}"))
