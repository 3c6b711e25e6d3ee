"""The solutions without some of the rows: one Newton step each, from the solution of all rows.

At the weights w of all rows, with ``h_i = C s_i phi''_i`` and ``beta_i = -C s_i phi'_i``, the problem without the rows
of a part has

    gradient   R'(w) - sum_all beta_i x_i + sum_part beta_i x_i
    Hessian    R'' + sum_all h_i x_i x_i' - sum_part h_i x_i x_i'

so that the sums over the parts, each row in one of them, give the steps of all parts: one pass and one sum of squares
serve every fold of a cross-validation. Further steps mostly take the same Hessian, and a pass each.

Source: Beirami, Razaviyayn, Shahrampour and Tarokh (2017), "On optimal generalization error in cross-validation", for
the leave-one-out form of the step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrs

from saddlesvm.problem.loss import is_smooth
from saddlesvm.problem.problem import Problem
from saddlesvm.problem.proven_sums import primal_of
from saddlesvm.problem.sums import margins
from saddlesvm.rows.passes import InMemory
from saddlesvm.solvers.second_order.class_factors import FACTOR_VALUES
from saddlesvm.solvers.second_order.equations import penalty_of
from saddlesvm.solvers.second_order.kernels import Answers, answers_at, respond_to_weights, smoothed_terms
from saddlesvm.solvers.second_order.leave_one_out import curvature_matrix
from saddlesvm.solvers.second_order.linear_algebra import add_outer, cholesky, factor_cost, squares_cost

MOST_STEPS = 12
PASS_READINGS = 3.0  # a pass takes about so many times as long as reading the rows
SURE = 0.5  # share of the wanted gap at which these steps end
FEW_PASSES = 20.0


def has_steps(problem: Problem, parts: int) -> bool:
    """Whether :func:`without_each` has steps for a problem: smooth losses, half a square, few features, in memory."""
    values = (parts + 1) * (problem.n_features + 1) ** 2
    plain = is_smooth(problem.loss) and problem.penalty.identity() and isinstance(problem.passes, InMemory)
    return plain and values <= FACTOR_VALUES


def steps_are_cheap(problem: Problem) -> bool:
    """Whether a Hessian and its factor take no longer than a few epochs of another solver."""
    return hessian_cost(problem) <= FEW_PASSES * problem.reading_time


def hessian_cost(problem: Problem) -> float:
    """Rough seconds of a Hessian and its factor."""
    squares = squares_cost(problem.X, problem.members.size, problem.values_per_row)
    return squares + factor_cost(problem.n_features + 1)


def near(problem: Problem, w: np.ndarray) -> LeftOut:
    """A problem seen from the weights of its neighbour with another C: one Newton step."""
    found = _evaluated(problem, w)
    factor = cholesky(_hessian(problem, found.bend))
    return LeftOut(w - dpotrs(factor, found.gradient, lower=1)[0], factor)


class LeftOut(NamedTuple):
    """The problem without a part of the rows, as seen from the solution of all.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
        One Newton step from the solution of all rows.
    factor : ndarray of shape (d + 1, d + 1)
        Lower Cholesky factor of the Hessian there.
    """

    w: np.ndarray
    factor: np.ndarray

    def improved(self, problem: Problem, tol: float, expected: np.ndarray | None = None) -> np.ndarray:
        """Weights after more steps, until a gap of `tol` is likely or they do not help.

        The Hessian is that of all rows' solution as long as the gap falls fast, and then one of its own.
        `problem` is the one without the rows. Where there are `expected` weights, a step is taken from there instead:
        what led to them may have seen the rows that were left out.
        """
        factor, before = self.factor, np.inf
        best = found = _evaluated(problem, self.w if expected is None else expected)
        for taken in range(MOST_STEPS):
            wanted = SURE * tol * best.primal
            if best.residual <= wanted and (taken or expected is None):
                break
            if best is not found or _too_slow(problem, best.residual / before, best.residual / wanted):
                if best is not found and before < np.inf and factor is not self.factor:
                    break
                factor = cholesky(_hessian(problem, best.bend))
            before = best.residual
            found = _evaluated(problem, best.w - dpotrs(factor, best.gradient, lower=1)[0])
            best = found if found.residual < before else best
        return best.w


def _too_slow(problem: Problem, fall: float, left: float) -> bool:
    """Whether a Hessian of its own costs less than the steps with the old one that are left.

    `fall` is the ratio of the residual to the one before, `left` that to the wanted one.
    """
    own = hessian_cost(problem) / (PASS_READINGS * problem.reading_time)
    return fall >= 1.0 or math.log(left) > -math.log(max(fall, 1e-30)) * (own + 1.0)


class Evaluated(NamedTuple):
    """Weights, and what a pass over the rows says of them; `bend` has a place for each member.

    The `residual` is half the squared gradient: the gap to the dual point of the margins, where R is half a square.
    """

    w: np.ndarray
    gradient: np.ndarray
    bend: np.ndarray
    primal: float
    residual: float


def _evaluated(problem: Problem, w: np.ndarray) -> Evaluated:
    """One pass over the rows at w."""
    members, pulled = problem.members, np.zeros(w.size)
    answers = Answers.room(members.size)
    respond_to_weights(smoothed_terms(problem), problem.X, members, w, np.empty(members.size), answers, pulled)
    gradient = problem.regularizer.curvature(w) * w - problem.C * pulled
    primal = primal_of(problem.C, float(answers.sums[0]), problem.regularizer.value(w))
    return Evaluated(w, gradient, answers.bend, primal, 0.5 * float(gradient @ gradient))


def _hessian(problem: Problem, bend: np.ndarray) -> np.ndarray:
    """The Hessian, in its lower triangle."""
    return curvature_matrix(problem, problem.spread(bend), problem.members, penalty_of(problem))


def without_each(problem: Problem, w: np.ndarray, parts: Sequence[np.ndarray]) -> list[LeftOut]:
    """The problem without each part of its rows.

    Parameters
    ----------
    problem : Problem
        One for which :func:`has_steps`.
    w : ndarray of shape (d + 1,)
        Its solution, or nearly.
    parts : sequence of ndarray of shape (n_all,), bool
        No row in two of them.

    Raises
    ------
    numpy.linalg.LinAlgError
        A Hessian is not positive definite.
    """
    members, size = problem.members, w.size
    answers = answers_at(smoothed_terms(problem), margins(problem, w))
    alpha = problem.spread(answers.alpha)
    total, pulled, sums = np.zeros((size, size), order="F"), np.zeros(size), []
    taken = [part[members] for part in parts]
    for chosen in [*taken, ~np.any(taken, axis=0)]:
        rows = members[chosen]
        squares = np.zeros((size, size), order="F")
        add_outer(problem.X, rows, answers.bend[chosen], squares)
        pull = problem.C * problem.passes.among(rows).pull(alpha)
        total += squares
        pulled += pull
        sums.append((squares, pull))
    gradient = problem.regularizer.curvature(w) * w - pulled
    total[np.arange(size), np.arange(size)] += penalty_of(problem)
    steps = []
    for squares, pull in sums[:-1]:
        factor = cholesky(np.subtract(total, squares, order="F"))
        steps.append(LeftOut(w - dpotrs(factor, gradient + pull, lower=1)[0], factor))
    return steps
