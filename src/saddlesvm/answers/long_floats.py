"""Margins, pulls and gradients in the machine's long floats, for the last bits of a neighbourhood.

A long float has 64 bits or more in its fraction on most machines. Where it has no more than float64, less is proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import sparse

from saddlesvm.problem.loss import loss_name
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.rounding import SLACK, UNIT, loss_units, radii
from saddlesvm.problem.sums import dual_of_margins
from saddlesvm.rows.layouts import CSR, matrix_of
from saddlesvm.solvers.second_order.linear_algebra import blocks, widened

LONG = np.longdouble
FINE = float(np.finfo(LONG).eps)
ENOUGH = 2.0**-60  # a unit beyond which long floats gain too little
LONGER = FINE <= ENOUGH
FAN = 8  # terms of a sum over sparse rows, at a level
SUMMED = 16.0  # roundings of a term beside those of its sum
# -phi'(z) in long floats; other losses take theirs of margins in float64.
SLOPES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "squared_hinge": lambda z, y: 2.0 * y * np.maximum(1.0 - y * z, 0.0),
    "logistic": lambda z, y: y / (1.0 + np.exp(y * z)),
    "squared": lambda z, y: 2.0 * (y - z),
}
NEAR = 1e-6  # how far from a computed margin the curvature of BENDS holds
BENDS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {  # phi'' that near a margin, at most
    "squared_hinge": lambda z, y: np.where(y * z < 1.0 + 2.0 * NEAR, 2.0, 0.0),
    "logistic": lambda z, y: np.minimum(SLACK * np.exp(-np.abs(z.astype(np.float64))), 0.25),
}


def long_margins(problem: Problem, w: np.ndarray) -> np.ndarray:
    """``x_i . w`` of the members, shape (n,), for weights in long floats, shape (d + 1,)."""
    X, members = problem.X, problem.members
    if isinstance(X, CSR):
        rows = _sparse(problem, X)
        return _sums(rows.data.astype(LONG) * w[rows.indices], rows.indptr)[0] + LONG(X.bias) * w[-1]
    parts = [widened(X, rows, np.ones(rows.size)).astype(LONG) @ w for rows in blocks(members, w.size)]
    return np.concatenate([*parts, np.empty(0, dtype=LONG)])


def long_pull(problem: Problem, a: np.ndarray) -> tuple[np.ndarray, float]:
    """``C sum_i a_i x_i`` over the members, shape (d + 1,), for multipliers in long floats, shape (n,), and how far the
    exact one is from it, at most."""
    X, members, sizes = problem.X, problem.members, np.abs(a).astype(np.float64)
    if isinstance(X, CSR):
        columns = _sparse(problem, X).tocsc()
        features, added = _sums(columns.data.astype(LONG) * a[columns.indices], columns.indptr)
        total, summed = _sums(a, np.array([0, a.size]))
        pull, terms = np.append(features, LONG(X.bias) * total[0]), max(added, summed)
        absolute = sparse.csc_array((np.abs(columns.data), columns.indices, columns.indptr), shape=columns.shape)
        charged = np.append(sizes @ absolute, abs(X.bias) * sizes.sum())
    else:
        pull, charged, done = np.zeros(problem.n_features + 1, dtype=LONG), np.zeros(problem.n_features + 1), 0
        terms = a.size
        for rows in blocks(members, pull.size):
            values, part = widened(X, rows, np.ones(rows.size)), slice(done, done + rows.size)
            pull += a[part] @ values.astype(LONG)
            charged += sizes[part] @ np.abs(values)
            done += rows.size
    return LONG(problem.C) * pull, SLACK * problem.C * FINE * (terms + SUMMED) * float(np.linalg.norm(charged))


def long_gradient(problem: Problem, w: np.ndarray) -> tuple[np.ndarray, float] | None:
    """The gradient at w, shape (d + 1,), and how far, at most, the exact one is from it; None without long floats.

    Margins, sums and the slopes of some losses are in long floats. Those of other losses are taken of margins that are
    off by a unit of float64, and no longer by many units of the product of the weights' and the row's lengths.

    Parameters
    ----------
    problem : Problem
        Its penalty is half a square, its loss has a largest curvature.
    w : ndarray of shape (d + 1,)
    """
    if not LONGER or not problem.penalty.identity():
        return None
    plain, offset = problem.intercept.split(w)
    z = long_margins(problem, plain.astype(LONG)) + LONG(offset)
    s, y, norms = (problem.gathered(one) for one in (problem.row_weights, problem.y, radii(problem.norms)))
    slopes, bends = SLOPES.get(loss_name(problem.loss)), BENDS.get(loss_name(problem.loss))
    unit, length = UNIT if slopes is None else FINE, float(np.linalg.norm(w))
    if slopes is None:
        alpha = np.zeros(problem.y.size)
        dual_of_margins(problem.pointwise, problem.members, z.astype(np.float64), 0.0, alpha)
        a = alpha[problem.members].astype(LONG)
    else:
        a = s * slopes(z, y)
    slips = unit * np.abs(z).astype(np.float64) + margin_error(problem, length) * norms + SUMMED * FINE * abs(offset)
    slips += 0.0 if is_classification(problem.loss) else unit * np.abs(y)
    steepest = problem.loss.largest_curvature()
    bent = np.where(slips < NEAR, bends(z, y), steepest) if bends else steepest
    each = s * bent * slips + unit * max(SUMMED, 2.0 * loss_units(problem.loss)) * np.abs(a).astype(np.float64)
    pull, summed = long_pull(problem, a)
    found = w - pull
    if problem.intercept.constrained:
        found[-1] = -pull[-1]
    elif not problem.intercept.present:
        found[-1] = 0.0
    value = found.astype(np.float64)
    narrowed = float(np.abs(found - value).sum()) + SUMMED * FINE * length
    return value, SLACK * (problem.C * float(each @ norms) + summed + narrowed)


def margin_error(problem: Problem, length: float) -> float:
    """How far, at most, a margin is from the exact one, divided by the length of its row, for weights of a length."""
    terms, left = float(problem.row_sizes.terms), math.ceil(problem.row_sizes.terms)
    if isinstance(problem.X, CSR):
        terms = 0.0
        while left > 1:
            terms, left = terms + FAN, -(-left // FAN)
    return (terms + SUMMED) * FINE * length


def _sparse(problem: Problem, X: CSR) -> sparse.csr_array:
    """The members' rows."""
    rows = matrix_of(X)
    return rows if problem.members.size == rows.shape[0] else rows[problem.members]


def _sums(values: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, int]:
    """The sums of consecutive parts of some values, which may be empty, and the additions that a term went through, at
    most: FAN terms are summed at a time, then FAN of these sums."""
    counts, added = np.diff(ends), 0
    while counts.max(initial=0) > 1:
        parts = -(-counts // FAN)
        starts = np.repeat(ends[:-1] - FAN * (np.cumsum(parts) - parts), parts) + FAN * np.arange(parts.sum())
        values = np.add.reduceat(values, starts)
        ends, counts, added = np.append(0, np.cumsum(parts)), parts, added + FAN
    found, some = np.zeros(counts.size, dtype=LONG), counts > 0
    found[some] = values[ends[:-1][some]]
    return found, added
