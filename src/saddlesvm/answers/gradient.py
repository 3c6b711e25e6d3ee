"""The gradient of a problem at its weights, and bounds on its rounding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddlesvm.problem.arithmetic import soft_threshold
from saddlesvm.problem.bounds import (
    MARGIN_UNITS,
    SLACK,
    UNDERFLOW,
    UNIT,
    gamma,
    loss_units,
    norm_of,
    radii,
)
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.short_sums import pulled_by_short_sums
from saddlesvm.problem.sums import margins
from saddlesvm.solvers.machines import ALL, make_machine

TARGET_UNITS = 4.0  # rounding of a residual, in units of the target's last place


class Gradient(NamedTuple):
    """A gradient with bounds on its rounding; for an elastic net, the shortest sub-gradient.

    Attributes
    ----------
    value : ndarray of shape (d + 1,)
    error : float
        Distance of the exact gradient at most.
    z : ndarray of shape (n,)
        Margins of the members.
    slips : ndarray of shape (n,)
        Distance of each exact margin at most.
    bends : ndarray of shape (n,)
        ``C s_i phi_i''`` there, as computed.
    alpha : ndarray of shape (n,)
        Multipliers of the members, ``-s_i phi_i'``.
    off : ndarray of shape (n,)
        Distance of each exact ``C alpha_i`` at most.
    """

    value: np.ndarray
    error: float
    z: np.ndarray
    slips: np.ndarray
    bends: np.ndarray
    alpha: np.ndarray
    off: np.ndarray


def margin_slips(problem: Problem, w: np.ndarray) -> np.ndarray:
    """Return bounds on the rounding of the margins of w, shape (n,)."""
    # gamma(count) ||w|| ||x_i|| bounds the rounding of w . x_i in any order of its sum.
    count = problem.row_sizes.terms + MARGIN_UNITS
    slips = gamma(count) * norm_of(w) * radii(problem.gather(problem.norms))
    if not is_classification(problem.loss):
        slips += TARGET_UNITS * UNIT * np.abs(problem.gather(problem.y))
    return SLACK * slips + UNDERFLOW


def gradient_at(problem: Problem, w: np.ndarray) -> Gradient:
    """Return the gradient at w; its last place is a free intercept over the virtual feature.

    Rounding: margins are off by their slips, and so multipliers by the largest curvature times
    that; each sum over the rows by short sums. A loss without a largest curvature has an infinite
    error.
    """
    z = margins(problem, w)
    slips = margin_slips(problem, w)
    machine = make_machine(problem, problem.in_arrays)
    alpha, bends, _ = machine.answer(ALL, z, np.empty(0), 0.0)
    bends = problem.C * bends
    near = pulled_by_short_sums(problem, problem.scatter(alpha))
    value = _add_penalty(problem, w, near.pull)
    # A multiplier is off by the curvature times the slip of its margin, and by its own rounding.
    with np.errstate(invalid="ignore"):
        off = _steepest(problem, z, slips, bends) * slips
    off += problem.C * 2.0 * loss_units(problem.loss) * UNIT * np.abs(alpha) + UNDERFLOW
    norms = radii(problem.gather(problem.norms))
    assembling = 4.0 * UNIT * (norm_of(w) + norm_of(near.pull))
    error = norm_of(near.errors) + SLACK * float(np.einsum("i,i", off, norms)) + assembling
    return Gradient(value, error, z, slips, bends, alpha, off)


def _steepest(problem: Problem, z: np.ndarray, slips: np.ndarray, bends: np.ndarray) -> np.ndarray:
    """Return at least ``C s_i phi_i''`` anywhere within the slips of the margins, shape (n,)."""
    loss = problem.loss
    largest = problem.C * problem.gather(problem.row_weights) * loss.largest_curvature()
    if hasattr(loss, "steepening"):
        rounded = gamma(4.0 * loss_units(loss))
        # |phi'''| <= M phi'': within a slip e, phi'' grows by e^(M e) at most.
        near = (
            bends * (np.exp(np.minimum(loss.steepening() * slips, 1.0)) + rounded)
            + 4.0 * rounded * largest
        )
        return np.where(loss.steepening() * slips < 1.0, np.minimum(SLACK * near, largest), largest)
    if hasattr(loss, "corners"):
        # A row that is surely on one parabola keeps its curvature; any other may have the largest.
        sure = on_one_piece(problem, z - slips, z + slips, loss.corners())
        return np.where(sure, bends * (1.0 + 8.0 * UNIT), largest)
    return largest


def on_one_piece(
    problem: Problem, low: np.ndarray, high: np.ndarray, corners: tuple[float, ...]
) -> np.ndarray:
    """Return True for each row whose loss has no corner between two margins, shape (n,)."""
    y = problem.gather(problem.y)
    # Corners are places of y z for labels, of z - y for targets.
    if is_classification(problem.loss):
        first = np.minimum(y * low, y * high)
        last = np.maximum(y * low, y * high)
    else:
        first = np.minimum(low - y, high - y)
        last = np.maximum(low - y, high - y)
    sure = np.ones(y.size, dtype=bool)
    for corner in corners:
        slip = 8.0 * UNIT * (abs(corner) + np.abs(first) + np.abs(last))
        sure &= (first - slip > corner) | (last + slip < corner)
    return sure


def _add_penalty(problem: Problem, w: np.ndarray, pull: np.ndarray) -> np.ndarray:
    """Return ``R'(w) - pull``; an absolute value has the sub-gradient that makes it shortest."""
    square, l1 = problem.penalty.factors()
    found = square * w - pull
    if l1 > 0.0:
        # At a weight of zero the sub-gradient of l1 |w_j| is anywhere in [-l1, l1].
        shortest = np.array([soft_threshold(value, l1) for value in found[:-1].tolist()])
        found[:-1] = np.where(w[:-1] != 0.0, found[:-1] + l1 * np.sign(w[:-1]), shortest)
    if problem.intercept.constrained:
        found[-1] = -pull[-1]
    elif not problem.intercept.present:
        found[-1] = 0.0
    return found
