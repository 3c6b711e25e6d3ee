"""What visits to the rows take, roughly: what decides between solvers, and between one thread and several."""

from __future__ import annotations

import numpy as np

from saddlesvm.problem.loss import traits_of
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import Dense, dtype_of
from saddlesvm.solvers.dcd import near_rows

# Seconds a value and visit; only ratios to other costs matter.
DENSE_COST, SPARSE_COST = {np.dtype(np.float32): 2e-10, np.dtype(np.float64): 4e-10}, 2.5e-9
ROW_COST = {False: 2e-8, True: 5e-8}  # seconds a visit besides; with exponentials in the loss
FAR_COST = 3e-8  # and for a row out of its order that is no more in the cache


def epoch_cost(problem: Problem) -> float:
    """Seconds of visits to all rows."""
    return values_cost(problem) + rows_cost(problem)


def values_cost(problem: Problem) -> float:
    """Seconds of what visits to all rows in their order do with their values."""
    each = DENSE_COST[dtype_of(problem.X)] if isinstance(problem.X, Dense) else SPARSE_COST
    return problem.members.size * problem.values_per_row * each


def rows_cost(problem: Problem) -> float:
    """Seconds of what visits to all rows take besides."""
    n = problem.members.size
    far = FAR_COST if n > near_rows(problem) else 0.0
    return n * (ROW_COST[traits_of(problem.loss).exponentials] + far)
