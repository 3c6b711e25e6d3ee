"""The solvers: one algorithm a file, each readable beside its paper; a name stands for one with its defaults."""

from __future__ import annotations

from ast import literal_eval
from dataclasses import fields
from typing import Any

from saddlesvm.solvers.base import SolverBase
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.pegasos import Pegasos
from saddlesvm.solvers.sdca import SDCA

SOLVERS: dict[str, type[SolverBase]] = {kind.name: kind for kind in (DCD, SDCA, Pegasos)}

__all__ = ["DCD", "SDCA", "SOLVERS", "Pegasos", "make_solver"]


def make_solver(solver: str | SolverBase) -> Any:
    """A solver object from its name (``"pegasos"``), from name and options (``"pegasos:batch_size=64"``), or itself.

    Raises
    ------
    ValueError
        The name or an option is unknown, or an option out of range.
    """
    if isinstance(solver, SolverBase):
        return solver
    if not isinstance(solver, str):
        raise ValueError(f"solver must be a name or a solver object; got {solver!r}")
    name, _, listed = solver.partition(":")
    if name == "auto":
        return DCD()
    if name not in SOLVERS:
        raise ValueError(f"unknown solver {name!r}: use one of auto, {', '.join(SOLVERS)}, or a solver object")
    options = [option.partition("=") for option in listed.split(",") if option]
    known = [field.name for field in fields(SOLVERS[name])]
    for option, equals, _ in options:
        if option not in known or not equals:
            raise ValueError(f"the solver {name!r} has no option {option!r}; it has: {', '.join(known) or 'none'}")
    return SOLVERS[name](**{option: _literal(text) for option, _, text in options})


def _literal(text: str) -> Any:
    """A number, True, False or None; anything else is the text itself."""
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text
