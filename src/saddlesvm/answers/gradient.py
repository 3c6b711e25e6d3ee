"""The gradient of a problem at its weights, and how far rounding can have taken it from the exact one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddlesvm.problem.penalties import parts_of
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.proven_sums import norm_of
from saddlesvm.problem.rounding import MARGIN_UNITS, SLACK, UNDERFLOW, UNIT, gamma, loss_units, radii
from saddlesvm.problem.short_sums import pulled_by_short_sums
from saddlesvm.problem.slopes import soft_threshold
from saddlesvm.problem.sums import margins
from saddlesvm.solvers.second_order.kernels import Answers, SmoothedTerms, respond

TARGET_UNITS = 4.0  # of the last place of a target, that a residual may be off by


class Gradient(NamedTuple):
    """The gradient at some weights, where the loss has one; the shortest sub-gradient of an elastic net.

    Attributes
    ----------
    value : ndarray of shape (d + 1,)
    error : float
        How far, at most, the exact one is from it.
    z : ndarray of shape (n,)
        Margins of the members.
    slips : ndarray of shape (n,)
        How far, at most, each exact margin is from it.
    bends : ndarray of shape (n,)
        ``C s_i phi_i''`` there, as computed.
    alpha : ndarray of shape (n,)
        Multipliers of the members, ``-s_i phi_i'``.
    """

    value: np.ndarray
    error: float
    z: np.ndarray
    slips: np.ndarray
    bends: np.ndarray
    alpha: np.ndarray


def margin_slips(problem: Problem, w: np.ndarray) -> np.ndarray:
    """How far, at most, computed margins of w are from exact ones, seen from the labels, shape (n,)."""
    slips = gamma(problem.row_sizes.terms + MARGIN_UNITS) * norm_of(w) * radii(problem.gathered(problem.norms))
    if not is_classification(problem.loss):
        slips += TARGET_UNITS * UNIT * np.abs(problem.gathered(problem.y))
    return SLACK * slips + UNDERFLOW


def gradient_at(problem: Problem, w: np.ndarray) -> Gradient:
    """The gradient at w, shape (d + 1,), whose last place is a free intercept divided by the virtual feature.

    Rounding: margins are off by their slips, and so multipliers by the largest curvature times that; each sum over the
    rows by short sums. A loss without a largest curvature has an infinite error.
    """
    z = margins(problem, w)
    terms = problem.of_members
    small, none = problem.is_small, np.empty(0)
    smoothed = SmoothedTerms(terms.loss, terms.y, terms.weights, problem.C, none, 0.0, False, small)
    answers = Answers(np.zeros(z.size), np.zeros(z.size), np.zeros(4))
    respond(smoothed, z, answers)
    slips = margin_slips(problem, w)
    near = pulled_by_short_sums(problem, problem.spread(answers.alpha))
    weights = terms.weights if terms.weights.size else np.ones(z.size)
    with np.errstate(invalid="ignore"):
        off = weights * problem.loss.largest_curvature() * slips
    off += 2.0 * loss_units(problem.loss) * UNIT * np.abs(answers.alpha) + UNDERFLOW
    norms = radii(problem.gathered(problem.norms))
    own = _of_penalty(problem, w, near.pull)
    assembling = 4.0 * UNIT * (norm_of(w) + norm_of(near.pull))
    error = norm_of(near.errors) + SLACK * problem.C * float(np.einsum("i,i", off, norms)) + assembling
    return Gradient(own, error, z, slips, answers.bend, answers.alpha)


def _of_penalty(problem: Problem, w: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """``R'(w) - pull``; of the sub-gradients of an absolute value the one that makes it shortest."""
    square, l1 = parts_of(problem.penalty) or (1.0, 0.0)
    found = square * w - pull
    if l1 > 0.0:
        shortest = np.array([soft_threshold(one, l1) for one in found[:-1].tolist()])
        found[:-1] = np.where(w[:-1] != 0.0, found[:-1] + l1 * np.sign(w[:-1]), shortest)
    if problem.intercept.constrained:
        found[-1] = -pull[-1]
    elif not problem.intercept.present:
        found[-1] = 0.0
    return found
