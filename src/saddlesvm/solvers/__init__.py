"""The solvers: one algorithm in each file, readable beside its paper."""

from __future__ import annotations

from saddlesvm.solvers.auto import Auto
from saddlesvm.solvers.base import SolverBase
from saddlesvm.solvers.blocks import Blocks
from saddlesvm.solvers.columns.solver import Columns
from saddlesvm.solvers.dcd import DCD
from saddlesvm.solvers.newton import Newton
from saddlesvm.solvers.pegasos import Pegasos
from saddlesvm.solvers.register import SOLVERS, make_solver, parse_solver, register_solver
from saddlesvm.solvers.sdca import SDCA

for kind in (Auto, DCD, SDCA, Pegasos, Newton, Blocks, Columns):
    register_solver(kind)

__all__ = [
    "DCD", "SDCA", "SOLVERS", "Auto", "Blocks", "Columns", "Newton", "Pegasos", "SolverBase",
    "make_solver",
    "parse_solver", "register_solver",
]  # fmt: skip
