"""The certificate of a model whose scores are not quite those of the rows that it was fitted to.

Features of landmarks' kernel functions are held in float32; the model computes these functions in float64, and its
problem is posed over their span H. Both objectives are those of that problem, wherever its point comes from:

    P = ||f||^2 / 2 + C sum_i s_i phi_i(f_i + b)
    D = -||g||^2 / 2 - C sum_i s_i phi_i*(-a_i / s_i),       g = C sum_i a_i k(x_i, .) projected on H

with the virtual feature's part of both norms, and the term of a given sum of dual variables, where there are such.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.certificate import Certificate, to_the_sum
from saddlesvm.problem.kernel_certificate import PointErrors, with_rounding
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.proven_sums import STILL, Sums
from saddlesvm.problem.rounding import UNDERFLOW, UNIT, RowSizes, gamma, point_sizes
from saddlesvm.problem.sums import loss_sums
from saddlesvm.problem.terms import box_of


class SpanPoint(NamedTuple):
    """A model and a dual point, as functions of the span.

    Attributes
    ----------
    scores : ndarray of shape (n_all,), float64
        The model's at all rows, without its intercept.
    slips : ndarray of shape (n_all,)
        How far they can be off by rounding.
    intercept : float
    square, slip : float
        The squared norm of the model without its intercept, and how far that can be off.
    beta : ndarray of shape (n_all,)
        C times the dual variables, feasible but for rounding.
    reached : float
        No less than the squared norm of the dual point's function.
    lengths : ndarray of shape (n_all,)
        No less than those of the rows.
    """

    scores: np.ndarray
    slips: np.ndarray
    intercept: float
    square: float
    slip: float
    beta: np.ndarray
    reached: float
    lengths: np.ndarray


def of_exact_scores(problem: Problem, point: SpanPoint) -> Certificate:
    """The certificate of a model over a span.

    Parameters
    ----------
    problem : Problem
        Over features of the rows, of which labels, weights, C and the intercept count.
    point : SpanPoint
    """
    problem = dataclasses.replace(problem, norms=point.lengths * point.lengths)
    kind, members, C, b = problem.intercept, problem.members, problem.C, point.intercept
    lengths = np.sqrt(problem.norms + kind.in_kernel)
    alpha = np.clip(point.beta / C, *box_of(problem.loss, problem.y, problem.weights))
    z, offset = point.scores[members], b if kind.present else 0.0
    paid, conjugates, _, charged, _ = loss_sums(problem.pointwise, members, z, offset, alpha)
    sizes = point_sizes(problem.loss, problem.y, problem.norms, problem.weights, members, alpha, signs=True)
    move = to_the_sum(problem, alpha, sizes, charged) if kind.constrained else STILL
    own, pulled = (offset / kind.scale, C * kind.scale * float(alpha.sum())) if kind.in_kernel else (0.0, 0.0)
    found = Sums(paid, conjugates, 0.5 * (point.square + own * own), 0.5 * (point.reached + pulled * pulled))
    missed = C * kind.scale * gamma(members.size + 8.0) * (sizes.positive + sizes.negative) if kind.in_kernel else 0.0
    lost = UNDERFLOW * (1.0 + C) * members.size if np.any(point.scores) or np.any(point.beta) or offset else 0.0
    errors = PointErrors(
        rows=_row_sizes(problem, point, z, offset),
        point=sizes,
        own=0.5 * point.slip + gamma(8.0) * found.regularizer + lost,
        reached=gamma(8.0) * found.regularizer_conjugate + missed * (abs(pulled) + missed),
        shift=C * move.pulled + float((np.abs(point.beta - C * alpha) + UNIT * np.abs(point.beta)) @ lengths),
        recharged=move.charged,
        asked=gamma(8.0) * abs(kind.paid(offset)),
    )

    def around(step: float) -> float:
        return float(loss_sums(problem.pointwise, members, z, offset + step, np.zeros(alpha.size))[0])

    sums = with_rounding(problem.loss, C, found, charged, errors, around)
    zero = 0.0 if kind.homogeneous else -math.inf
    return Certificate.of(problem.strength, sums._replace(paid=paid + kind.paid(offset), at_zero=zero))


def _row_sizes(problem: Problem, point: SpanPoint, z: np.ndarray, offset: float) -> RowSizes:
    """Sums over the rows of how far the model's values can be off, in the place of the rows' lengths."""
    members = problem.members
    s = problem.row_weights[members]
    label = 0.0 if is_classification(problem.loss) else np.abs(problem.y[members])
    e = point.slips[members] + 4.0 * UNIT * (abs(offset) + np.abs(z) + label)
    return RowSizes(float(members.size), 0.0, 0.0, float(s @ e), float(s @ (e * e)), float(e.max(initial=0.0)))
