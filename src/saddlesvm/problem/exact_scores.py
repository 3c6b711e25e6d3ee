"""The certificate of a model whose scores are not quite those of the rows that it was fitted to.

Features of kernel functions are held in float32, the model computes these functions in float64. The losses of its own
scores f', and the squared norm of the dual point in the space of the functions, take the place of those of the rows:

    P' = P + C sum_i s_i (phi_i(f'_i + b) - phi_i(f_i + b)),        D' = D - (||w'(a)||^2 - ||w(a)||^2) / 2
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.rounding import SLACK
from saddlesvm.problem.sums import dual_of_margins, loss_sums


class Scores(NamedTuple):
    """The scores of a model at all rows, without its intercept.

    Attributes
    ----------
    exact, near : ndarray of shape (n_all,), float64
        Its own, and those of the rows that it was fitted to.
    slips : ndarray of shape (n_all,)
        How far its own can be off by rounding.
    intercept : float
    norm : float
        By how much half the squared norm of the dual point is larger than that of the rows.
    """

    exact: np.ndarray
    near: np.ndarray
    slips: np.ndarray
    intercept: float
    norm: float


def of_exact_scores(problem: Problem, found: Certificate, scores: Scores) -> Certificate:
    """The certificate of a model by its own scores.

    Parameters
    ----------
    problem : Problem
        Over the rows that the model was fitted to.
    found : Certificate
        By these rows.
    scores : Scores
    """
    members, terms, nothing = problem.members, problem.pointwise, np.zeros(problem.y.size)
    exact, near = scores.exact[members], scores.near[members]
    own, other = (loss_sums(terms, members, z, scores.intercept, nothing)[0] for z in (exact, near))
    slopes = nothing.copy()
    dual_of_margins(terms, members, exact, scores.intercept, slopes)
    unit = problem.strength.unit
    rounding = SLACK * unit * problem.C * float(np.abs(slopes) @ scores.slips)
    return dataclasses.replace(
        found,
        primal=found.primal + unit * problem.C * (own - other) + rounding,
        dual=found.dual - unit * max(scores.norm, 0.0),
        primal_rounding=found.primal_rounding + rounding,
    )
