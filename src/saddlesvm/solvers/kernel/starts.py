"""A first point for kernel problems whose dual variables have given sums: not zero, so which rows should begin?

The rows that a rough model finds hardest. The model is the mean of the kernel functions at some rows of each group
(Parzen's estimate of a density, or of the difference of two); each group is filled in the order of its values.
"""

from __future__ import annotations

import numpy as np

from saddlesvm.problem.kernel import KernelProblem
from saddlesvm.problem.kernel_certificate import nearest_feasible

SAMPLE = 128  # rows of each group that the rough model is made of


def first_sums(problem: KernelProblem) -> np.ndarray:
    """Zero where that has the sums asked for; else a feasible point from the rough model, shape (n,)."""
    beta = np.zeros(problem.n)
    asked = [(rows, getattr(intercept, "total", 0.0)) for rows, intercept in problem.sides]
    if not any(total for _, total in asked):
        return beta
    for rows, total in asked:
        sample = rows[:: max(1, rows.size // SAMPLE)]
        beta[sample] = problem.C * total / sample.size
    hard = problem.margins(beta) - problem.y
    beta[:] = 0.0
    high = problem.bounds[1]
    for rows, total in asked:
        order = rows[np.argsort(hard[rows], kind="stable")]
        room = np.cumsum(high[order])
        beta[order] = problem.C * np.clip(total - (room - high[order]), 0.0, high[order])
    return nearest_feasible(problem, beta)
