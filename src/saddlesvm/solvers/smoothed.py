"""The compiled loop over smoothed losses: dual variables, second derivatives and sums.

The terms that Newton's method sees are the rows' losses, smoothed by a proximal term of the dual
(Rockafellar 1976; for support vector machines Yan and Li 2020, "An efficient augmented Lagrangian
method for support vector machine"):

    e_i(z) = max_a  -s_i phi_i*(-a / s_i) - a z - (q / 2) (a - c_i)^2,      e_i'(z) = -a_i(z),

``c_i`` the centre, ``q >= 0`` the proximity. The maximiser is the one of a coordinate step whose
squared row norm is q; with ``q = 0`` the term is the loss itself.

:class:`saddlesvm.solvers.machines.Binary` computes the same in arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddlesvm.problem.loss import (
    Loss,
    bounds,
    conjugate,
    curvature,
    dual_step,
    slopes,
    subgradient,
    value,
)
from saddlesvm.problem.terms import weight_of
from saddlesvm.rows.layouts import U
from saddlesvm.runtime.compiled import inlined, kernel
from saddlesvm.solvers.base import AT_BOUND


class SmoothedTerms(NamedTuple):
    """The losses of some rows with a proximal term, an array place for each row.

    Attributes
    ----------
    loss : Loss
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,) or (0,)
    centre : ndarray of shape (n,) or (0,)
        Empty if q is 0.
    q : float
        Proximity; 0 for none.
    kinked : bool
        The loss is not smooth.
    """

    loss: Loss
    y: np.ndarray
    weights: np.ndarray
    centre: np.ndarray
    q: float
    kinked: bool


class Answers(NamedTuple):
    """The rows' dual variables and sums at given scores; the kernel writes into these arrays.

    Attributes
    ----------
    alpha, bend : ndarray of shape (n,)
        Dual variables, and second derivatives of the terms.
    sums : ndarray of shape (4,)
        Over the rows: ``s phi(z)``, ``s phi*(-a / s)`` and ``a z``, which a certificate needs, and
        ``(a - c)^2``.
    """

    alpha: np.ndarray
    bend: np.ndarray
    sums: np.ndarray


@inlined
def within_bounds(loss: Loss, a: float, y: float, s: float) -> float:
    """Return `a`, moved back to its bound if rounding took it beyond."""
    if conjugate(loss, a, y, s) < np.inf:
        return a
    low, high = bounds(loss, y, s)
    return min(max(a, low), high)


@inlined
def response(loss: Loss, z: float, y: float, s: float) -> tuple[float, float]:
    """Return ``a(z)`` and ``-a'(z) >= 0`` of a row without a proximal term."""
    return -s * subgradient(loss, z, y), s * curvature(loss, z, y)


@inlined
def smoothed_response(
    terms: SmoothedTerms, k: int, z: float, y: float, s: float
) -> tuple[float, float]:
    """Return both with the proximal term; ``-a'`` is 0 at bounds and corners of the dual term."""
    loss = terms.loss
    q = terms.q
    centre = terms.centre[k]
    a = within_bounds(loss, centre + dual_step(loss, centre, z, y, q, s), y, s)
    proximal = z + q * (a - centre)
    left, right = slopes(loss, a, proximal, y, s)
    if left != right:
        return a, 0.0
    if terms.kinked:
        low, high = bounds(loss, y, s)
        return a, (1.0 / q if min(a - low, high - a) > AT_BOUND * s else 0.0)
    # What an inexact step has left.
    a = within_bounds(loss, a + dual_step(loss, a, proximal, y, q, s), y, s)
    proximal = z + q * (a - centre)
    bend = s * curvature(loss, proximal, y)
    return a, bend / (1.0 + q * bend)


@kernel
def respond(terms: SmoothedTerms, z: np.ndarray, answers: Answers) -> None:
    """Compute the dual variables, second derivatives and sums of all rows at their scores.

    One loop has a proximal term and one has not. With the choice inside a single loop, the logistic
    loss would not become vector instructions (51 instead of 4 ns per row).
    """
    loss = terms.loss
    q = terms.q
    alpha = answers.alpha
    bend = answers.bend
    paid = conjugates = coupled = away = 0.0
    if q == 0.0:
        for k in range(U(z.size)):
            s = weight_of(terms.weights, k)
            y = terms.y[k]
            a, h = response(loss, z[k], y, s)
            alpha[k] = a
            bend[k] = h
            paid += s * value(loss, z[k], y)
            coupled += a * z[k]
        conjugates = -(paid + coupled)  # a is the slope at z, and Fenchel's inequality an equality
    else:
        for k in range(U(z.size)):
            s = weight_of(terms.weights, k)
            y = terms.y[k]
            a, h = smoothed_response(terms, k, z[k], y, s)
            alpha[k] = a
            bend[k] = h
            paid += s * value(loss, z[k], y)
            conjugates += conjugate(loss, a, y, s)
            coupled += a * z[k]
            away += (a - terms.centre[k]) ** 2
    answers.sums[0] = paid
    answers.sums[1] = conjugates
    answers.sums[2] = coupled
    answers.sums[3] = away


def answers_at(terms: SmoothedTerms, z: np.ndarray) -> Answers:
    """Return the dual variables, second derivatives and sums of all rows at their scores."""
    answers = Answers(np.empty(z.size), np.empty(z.size), np.empty(4))
    respond(terms, z, answers)
    return answers
