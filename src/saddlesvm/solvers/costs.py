"""Rough costs of row visits, which decide between solvers and on the number of threads."""

from __future__ import annotations

from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.loss import traits_of
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.layouts import Rows
from saddlesvm.solvers.dcd import near_rows

# Seconds of a row visit, per byte of dense values (of the precision of w) and per sparse value;
# only ratios to other costs matter.
DENSE_COST = 5e-11
SPARSE_COST = 2.5e-9
ROW_COST = {False: 2e-8, True: 5e-8}  # seconds per visit of a row on top; True: with exponentials
CALLS = 1e-4  # seconds that the calls of a Newton step, or of a prediction, take
CLASS_COST = 2.5e-8  # seconds that a visit takes for each class besides the values
FAR_COST = 3e-8  # seconds per visit on top, for a row out of order that is no longer in the cache


def epoch_cost(problem: Problem) -> float:
    """Return the seconds of a visit to every row."""
    return values_cost(problem) + rows_cost(problem)


def values_cost(problem: Problem) -> float:
    """Return the seconds that a visit to every row, in their order, spends on the values."""
    return problem.members.size * problem.values_per_row * value_cost(problem.X)


def value_cost(X: Rows) -> float:
    """Return the seconds of a visit to a stored value."""
    return SPARSE_COST if X.sparse else DENSE_COST * X.dtype.itemsize


def rows_cost(problem: Problem) -> float:
    """Return the seconds that a visit to every row spends besides the values."""
    n = problem.members.size
    far = FAR_COST if n > near_rows(problem) else 0.0
    return n * (ROW_COST[traits_of(problem.loss).exponentials] + far)


def joint_epoch_cost(problem: JointProblem) -> float:
    """Return the rough seconds of a visit to all classes of all rows."""
    return values_cost(problem) + CLASS_COST * problem.members.size * problem.n_classes
