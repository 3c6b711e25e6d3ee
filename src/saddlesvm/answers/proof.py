"""Proven bounds for a linear model: on the exact optimum's scores, weights and labels.

Weights that are exactly zero at the optimum follow from the slack of the dual problem. With the
penalty ``square w^2 / 2 + l1 |w|`` a weight is zero if its pull ``v_j = C sum_i a_i x_ij`` at
the dual optimum is below l1. A loss whose curvature is at most B makes the dual strongly concave:
the optimal multipliers are in ``C sum_i (a*_i - a_i)^2 / (2 s_i B) <= g``, so that by the
inequality of Cauchy and Schwarz

    |v*_j - v_j|  <=  sqrt(2 g C B sum_i s_i x_ij^2).

Source: Ndiaye, Fercoq, Gramfort and Salmon (2017), "Gap safe screening rules for sparsity enforcing
penalties".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.answers.joint_neighbourhood import JointNeighbourhood, joint_neighbourhood
from saddlesvm.answers.labels import Labels, Rule, labels_between
from saddlesvm.answers.neighbourhood import (
    Neighbourhood,
    find_neighbourhood,
    gap_in_C_form,
)
from saddlesvm.multiclass.splits import each_class
from saddlesvm.problem.bounds import SLACK
from saddlesvm.problem.certificate import Certificate
from saddlesvm.problem.crammer_singer import JointProblem
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.short_sums import pulled_by_short_sums
from saddlesvm.rows.places import sum_squares

if TYPE_CHECKING:
    from saddlesvm.runtime.data_types import Matrix

SPARE = 0.9  # share of a ball's radius that the gap may fill: the rest is for rounding; a guess


def certain_zeros(problem: Problem, alpha: np.ndarray, gap: float) -> np.ndarray:
    """Return which features have a weight of zero at the optimum, shape (d,).

    Parameters
    ----------
    problem : Problem
    alpha : ndarray of shape (n_all,)
        A feasible dual point.
    gap : float
        The gap of this point, in the C form.
    """
    _, l1 = problem.penalty.factors()
    bend = problem.loss.largest_curvature()
    if l1 == 0.0 or not (math.isfinite(bend) and gap >= 0.0):
        return np.zeros(problem.n_features, dtype=bool)
    # The pulls at the optimum are within `reach`: below l1, the weight is zero.
    near = pulled_by_short_sums(problem, alpha)
    squares = sum_squares(problem.X, problem.all_weights)
    reach = SLACK * np.sqrt(2.0 * gap * problem.C * bend * squares) + near.errors
    return np.asarray((np.abs(near.pull) + reach < l1)[:-1])


@dataclass(frozen=True, eq=False)
class Proof:
    """Bounds on the optimum of each sub-problem of a model.

    Attributes
    ----------
    parts : list of Neighbourhood
        A proof for each row of ``coef_``.
    zeros : ndarray of shape (len(parts), d)
        Weights that are zero at the optimum, by the dual problem's slack.
    joint : JointNeighbourhood or None
        The ball of a machine in which all classes share one problem.
    """

    parts: list[Neighbourhood]
    zeros: np.ndarray
    joint: JointNeighbourhood | None = None

    def score_bounds(self, X: Matrix) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds of the optimum's scores, each of shape (m, len(parts))."""
        low, high = zip(*(part.score_bounds(X) for part in self.parts), strict=True)
        return np.column_stack(low), np.column_stack(high)

    def labels(self, X: Matrix, n_classes: int, rule: Rule = "largest") -> Labels:
        """Return the labels of some rows by their scores, and whether they are the optimum's.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (m, d)
        n_classes : int
        rule : {"largest", "votes", "each"}
            See :func:`~saddlesvm.answers.labels.labels_between`.
        """
        if self.joint is not None and len(self.parts) > 1:
            return self.joint.labels(X)
        return labels_between(*self.score_bounds(X), n_classes, rule)

    def weight_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds of the optimum's weights, the intercepts last."""
        low, high = map(np.array, zip(*(part.weight_bounds() for part in self.parts), strict=True))
        low[:, :-1][self.zeros] = 0.0
        high[:, :-1][self.zeros] = 0.0
        return low, high


def make_proof(
    problems: Sequence[Problem],
    W: np.ndarray,
    certificates: Sequence[Certificate],
    duals: Sequence[np.ndarray | None],
    enough: float = 0.0,
) -> Proof:
    """Return the proof of a model by its sub-problems.

    Parameters
    ----------
    problems : sequence of Problem
    W : ndarray of shape (k, d + 1)
        The model's weights; intercepts are divided by the virtual feature.
    certificates : sequence of Certificate
        One for each problem.
    duals : sequence of ndarray of shape (n_all,), or None
        The dual points behind the certificates, in the C form, if they are known.
    enough : float, default=0.0
        If no score of a training row moves by more in a ball, no narrower one is searched.
    """
    first = problems[0]
    gaps = [
        gap_in_C_form(problem, certificate.gap)
        for problem, certificate in zip(problems, certificates, strict=True)
    ]
    zeros = np.zeros((len(W), W.shape[1] - 1), dtype=bool)
    # One ball for all classes together.
    if isinstance(first, JointProblem):
        joint = joint_neighbourhood(first, each_class(W), gaps[0])
        return Proof(joint.parts(), zeros, joint)
    # Weights whose pull stays within its bounds are zero in every optimum.
    for k, (problem, gap, own) in enumerate(zip(problems, gaps, duals, strict=True)):
        if own is not None:
            zeros[k] = certain_zeros(problem, own / problem.C, gap)
    parts = [
        find_neighbourhood(problem, w, gap, enough)
        for problem, w, gap in zip(problems, W, gaps, strict=True)
    ]
    return Proof(parts, zeros)


def gap_for(
    problems: Sequence[Problem], certificates: Sequence[Certificate], enough: float
) -> float:
    """Return the relative gap whose ball moves no score of a training row by more than `enough`.

    Zero if more is proven of the problems than the ball of the gap.
    """
    found = math.inf
    for problem, own in zip(problems, certificates, strict=True):
        seen = problem.is_plain and not problem.intercept.constrained and problem.holds_rows
        if problem.is_smooth or not seen or isinstance(problem, JointProblem):
            return 0.0
        # sqrt(2 gap) max_i ||x_i|| <= enough, with some room.
        gap = 0.5 * SPARE * (enough / problem.row_sizes.longest) ** 2
        size = max(abs(own.primal), abs(own.dual))
        if size > 0.0:
            found = min(found, gap * problem.unit / size)
    return found
