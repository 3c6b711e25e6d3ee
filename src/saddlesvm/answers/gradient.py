"""The gradient of a problem at its weights, and how far rounding can have taken it from the exact one."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.arithmetic import soft_threshold
from saddlesvm.problem.bounds import MARGIN_UNITS, SLACK, UNDERFLOW, UNIT, gamma, loss_units, norm_of, radii
from saddlesvm.problem.penalties import parts_of
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.short_sums import pulled_by_short_sums
from saddlesvm.problem.sums import dual_weights, margins
from saddlesvm.rows.layouts import add_rows
from saddlesvm.rows.passes import InMemory
from saddlesvm.rows.small_types import widen
from saddlesvm.solvers.second_order.kernels import Answers, answers_at, respond_to_weights, smoothed_terms

FEW_COLUMNS = 64  # dense columns up to which a margin is one sum
ROWS_AT_ONCE = 512  # dense rows that are widen at a time
PARTS_SHARE = 2.0  # of the rows' stored values, that the parts of a sum over sparse rows may have places
PULL_UNITS = 8.0  # roundings of a term beside those of its sums
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
    off : ndarray of shape (n,)
        How far, at most, each exact ``C alpha_i`` is from the computed one.
    """

    value: np.ndarray
    error: float
    z: np.ndarray
    slips: np.ndarray
    bends: np.ndarray
    alpha: np.ndarray
    off: np.ndarray


def margin_slips(problem: Problem, w: np.ndarray, terms: float | np.ndarray | None = None) -> np.ndarray:
    """How far, at most, computed margins of w are from exact ones, seen from the labels, shape (n,).

    Parameters
    ----------
    problem : Problem
    w : ndarray of shape (d + 1,)
    terms : float or ndarray of shape (n,), optional
        Additions that a product of a margin went through, at most; those of a sum in any order when left out.
    """
    count = (problem.row_sizes.terms if terms is None else terms) + MARGIN_UNITS
    slips = count * UNIT / (1.0 - count * UNIT) * norm_of(w) * radii(problem.gathered(problem.norms))
    if not is_classification(problem.loss):
        slips += TARGET_UNITS * UNIT * np.abs(problem.gathered(problem.y))
    return SLACK * slips + UNDERFLOW


def close_margins(problem: Problem, w: np.ndarray) -> tuple[np.ndarray, float | np.ndarray]:
    """``x_i . w`` of the members, shape (n,), and the additions that a product went through, at most: those of a row's
    own values, or of a part of the columns and of the parts."""
    X = problem.X
    if X.sparse:
        return margins(problem, w), np.diff(X.indptr)[problem.members] + 1.0
    d = problem.n_features
    if d < FEW_COLUMNS or not problem.holds_rows:
        return margins(problem, w), d + 1.0
    width = math.isqrt(d)
    parts = np.zeros((d, -(-d // width)))  # each column has the weights of its own features alone
    parts[np.arange(d), np.arange(d) // width] = w[:-1]
    z = np.empty(problem.members.size)
    for place in range(0, z.size, ROWS_AT_ONCE):
        chosen = slice(place, place + ROWS_AT_ONCE)
        rows = X.values[chosen] if problem.members.size == problem.y.size else X.values[problem.members[chosen]]
        z[chosen] = (widen(rows, np.float64) @ parts).sum(axis=1) + X.bias * w[-1]
    return z, float(width + parts.shape[1] + 1)


def _near_pull(problem: Problem, alpha: np.ndarray) -> tuple[np.ndarray, float]:
    """``C sum_i a_i x_i`` over the members, shape (d + 1,), and how far the exact one is from it, at most: of sparse
    rows by sums over about as many parts of the rows as each has rows."""
    X, members = problem.X, problem.members
    if not X.sparse:
        near = pulled_by_short_sums(problem, problem.spread(alpha))
        return near.pull, norm_of(near.errors)
    width, spread = problem.n_features + 1, problem.spread(alpha)
    values = members.size * problem.values_per_row
    count = max(1, min(math.isqrt(members.size), int(PARTS_SHARE * values / width)))
    pull = np.zeros(width)
    for part in np.array_split(members, count):
        own = np.zeros(width)
        add_rows(X, part, spread, own)
        pull += own
    sizes = np.zeros(width)
    add_rows(X._replace(data=np.abs(X.data), bias=abs(X.bias)), members, np.abs(spread), sizes)
    longest = -(-members.size // count)
    columns = np.bincount(X.indices, minlength=width).astype(np.float64)
    columns[-1] = members.size
    units = (np.minimum(columns, longest) + count + PULL_UNITS) * UNIT
    return problem.C * pull, SLACK * problem.C * norm_of(units / (1.0 - units) * sizes) + UNDERFLOW


class Slope(NamedTuple):
    """A gradient as it is computed, for steps: nothing is said of its rounding; the pull of the rows in it; of the
    members, shape (n,), the margins and what their losses answer."""

    value: np.ndarray
    pull: np.ndarray
    z: np.ndarray
    answers: Answers


def slope_of(problem: Problem, w: np.ndarray) -> Slope:
    """The gradient at w: by one pass over the rows where a single thread makes it, else by two."""
    if problem.threads > 1 or not isinstance(problem.passes, InMemory):
        z = margins(problem, w)
        answers = answers_at(smoothed_terms(problem), z)
        pull = dual_weights(problem, problem.spread(answers.alpha))
        return Slope(_of_penalty(problem, w, pull), pull, z, answers)
    n = problem.members.size
    z, pull, answers = np.empty(n), np.zeros(w.size), Answers.room(n)
    respond_to_weights(smoothed_terms(problem), problem.X, problem.members, w, z, answers, pull)
    pull = problem.pulled(pull)
    return Slope(_of_penalty(problem, w, pull), pull, z, answers)


def gradient_at(problem: Problem, w: np.ndarray) -> Gradient:
    """The gradient at w, shape (d + 1,), whose last place is a free intercept divided by the virtual feature.

    Rounding: margins are off by their slips, and so multipliers by the largest curvature times that; each sum over the
    rows by short sums. A loss without a largest curvature has an infinite error.
    """
    z, terms = close_margins(problem, w)
    answers = answers_at(smoothed_terms(problem), z)
    pull, missed = _near_pull(problem, answers.alpha)
    now = Slope(_of_penalty(problem, w, pull), pull, z, answers)
    return _bounded(problem, w, now, margin_slips(problem, w, terms), missed)


def gradient_of(problem: Problem, w: np.ndarray, now: Slope) -> Gradient:
    """The gradient at w by a pass that was made there, its rounding counted for sums in any order; see
    :func:`gradient_at`, whose sums are closer."""
    norms = radii(problem.gathered(problem.norms))
    sizes = float(np.einsum("i,i", np.abs(now.answers.alpha), norms))
    missed = SLACK * problem.C * gamma(problem.members.size + PULL_UNITS) * sizes + UNDERFLOW
    return _bounded(problem, w, now, margin_slips(problem, w), missed)


def _bounded(problem: Problem, w: np.ndarray, now: Slope, slips: np.ndarray, missed: float) -> Gradient:
    """A gradient with its rounding: margins are off by `slips`, the pull of the rows by `missed`."""
    alpha, bends = now.answers.alpha, now.answers.bend
    with np.errstate(invalid="ignore"):
        off = _steepest(problem, now.z, slips, bends) * slips
    off += problem.C * 2.0 * loss_units(problem.loss) * UNIT * np.abs(alpha) + UNDERFLOW
    norms = radii(problem.gathered(problem.norms))
    assembling = 4.0 * UNIT * (norm_of(w) + norm_of(now.pull))
    error = missed + SLACK * float(np.einsum("i,i", off, norms)) + assembling
    return Gradient(now.value, error, now.z, slips, bends, alpha, off)


def _steepest(problem: Problem, z: np.ndarray, slips: np.ndarray, bends: np.ndarray) -> np.ndarray:
    """``C s_i phi_i''`` within the slips of the margins, at most, shape (n,)."""
    loss = problem.loss
    largest = problem.C * problem.gathered(problem.row_weights) * loss.largest_curvature()
    if hasattr(loss, "steepening"):
        rounded = gamma(4.0 * loss_units(loss))
        near = bends * (np.exp(np.minimum(loss.steepening() * slips, 1.0)) + rounded) + 4.0 * rounded * largest
        return np.where(loss.steepening() * slips < 1.0, np.minimum(SLACK * near, largest), largest)
    if hasattr(loss, "corners"):
        sure = on_one_piece(problem, z - slips, z + slips, loss.corners())
        return np.where(sure, bends * (1.0 + 8.0 * UNIT), largest)
    return largest


def on_one_piece(problem: Problem, low: np.ndarray, high: np.ndarray, corners: tuple[float, ...]) -> np.ndarray:
    """Whether no corner of a row's loss is between two margins, shape (n,)."""
    y = problem.gathered(problem.y)
    first, last = (y * low, y * high) if is_classification(problem.loss) else (low - y, high - y)
    first, last = np.minimum(first, last), np.maximum(first, last)
    sure = np.ones(y.size, dtype=bool)
    for corner in corners:
        slip = 8.0 * UNIT * (abs(corner) + np.abs(first) + np.abs(last))
        sure &= (first - slip > corner) | (last + slip < corner)
    return sure


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
