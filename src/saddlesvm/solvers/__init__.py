"""The solvers: one algorithm a file, each readable beside its paper; a name stands for one with its defaults."""

from __future__ import annotations

from typing import Any

from saddlesvm.solvers.base import SolverBase
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.pegasos import Pegasos
from saddlesvm.solvers.sdca import SDCA

SOLVERS: dict[str, type[SolverBase]] = {kind.name: kind for kind in (DCD, SDCA, Pegasos)}

__all__ = ["DCD", "SDCA", "SOLVERS", "Pegasos", "make_solver"]


def make_solver(solver: str | SolverBase) -> Any:
    """A solver object from its name, or the object itself.

    Raises
    ------
    ValueError
        The name is unknown.
    """
    if isinstance(solver, SolverBase):
        return solver
    if solver == "auto":
        return DCD()
    if solver not in SOLVERS:
        raise ValueError(f"unknown solver {solver!r}: use one of {', '.join(SOLVERS)}, or a solver object")
    return SOLVERS[solver]()
