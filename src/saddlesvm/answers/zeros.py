r"""Weights that are exactly zero at the optimum, by the slack of the dual problem.

With the penalty ``square w^2 / 2 + l1 |w|`` a weight is zero where its pull ``v_j = C sum_i a_i x_ij`` at the dual
optimum is below l1. A loss whose curvature is at most B makes the dual strongly concave: the optimal multipliers are in
``C sum_i (a*_i - a_i)^2 / (2 s_i B) <= g``, so that by the inequality of Cauchy and Schwarz

    |v*_j - v_j|  <=  sqrt(2 g C B sum_i s_i x_ij^2).

Source: Ndiaye, Fercoq, Gramfort and Salmon (2017), "Gap safe screening rules for sparsity enforcing penalties".
"""

from __future__ import annotations

import math

import numpy as np

from saddlesvm.problem.penalties import parts_of
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.rounding import SLACK
from saddlesvm.problem.short_sums import pulled_by_short_sums
from saddlesvm.solvers.second_order.kernels import hessian_diagonal


def certain_zeros(problem: Problem, alpha: np.ndarray, gap: float) -> np.ndarray:
    """The features whose weight is zero at the optimum, shape (d,).

    Parameters
    ----------
    problem : Problem
    alpha : ndarray of shape (n_all,)
        A feasible dual point.
    gap : float
        Its gap, in the C form.
    """
    parts, bend = parts_of(problem.penalty), problem.loss.largest_curvature()
    if parts is None or parts[1] == 0.0 or not (math.isfinite(bend) and gap >= 0.0):
        return np.zeros(problem.n_features, dtype=bool)
    near = pulled_by_short_sums(problem, alpha)
    squares = np.zeros(problem.n_features + 1)
    weights = problem.row_weights
    hessian_diagonal(problem.X, problem.members, weights, squares)
    reach = SLACK * np.sqrt(2.0 * gap * problem.C * bend * squares) + near.errors
    return np.asarray((np.abs(near.pull) + reach < parts[1])[:-1])
