"""The solvers: one algorithm a file, each readable beside its paper; a name stands for one with its defaults."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from saddlesvm.solvers.automatic.auto import Auto
from saddlesvm.solvers.base import SolverBase
from saddlesvm.solvers.blocks import Blocks
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.pegasos import Pegasos
from saddlesvm.solvers.register import SOLVERS, register_solver
from saddlesvm.solvers.sdca import SDCA
from saddlesvm.solvers.second_order.newton import Newton

for kind in (Auto, DCD, SDCA, Pegasos, Newton, Blocks):
    register_solver(kind)

__all__ = [
    "DCD",
    "SDCA",
    "SOLVERS",
    "Auto",
    "Blocks",
    "Newton",
    "Pegasos",
    "make_solver",
    "parse_solver",
    "register_solver",
]


def make_solver(solver: str | SolverBase) -> Any:
    """A solver object from its name (``"pegasos"``), from name and options (``"pegasos:batch_size=64"``), or itself.

    Raises
    ------
    ValueError
        The name or an option is unknown, or an option out of range.
    """
    if isinstance(solver, SolverBase):
        return solver
    return parse_solver(solver, SOLVERS)


def parse_solver(solver: Any, among: Mapping[str, type[Any]]) -> Any:
    """A solver object from ``"name"`` or ``"name:option=value,option=value"``, of those `among` which it may be.

    Raises
    ------
    ValueError
        It is no text, or the name or an option is unknown.
    """
    if not isinstance(solver, str):
        raise ValueError(f"solver must be one of {', '.join(among)}, or a solver object that fits; got {solver!r}")
    name, _, listed = solver.partition(":")
    if name not in among:
        raise ValueError(f"unknown solver {name!r}: use one of {', '.join(among)}, or a solver object")
    options = [option.partition("=") for option in listed.split(",") if option]
    known = [field.name for field in fields(among[name])]
    for option, equals, _ in options:
        if option not in known or not equals:
            raise ValueError(f"the solver {name!r} has no option {option!r}; it has: {', '.join(known) or 'none'}")
    return among[name](**{option: _literal(text) for option, _, text in options})


def _literal(text: str) -> Any:
    """A number, True, False or None; anything else is the text itself."""
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text
