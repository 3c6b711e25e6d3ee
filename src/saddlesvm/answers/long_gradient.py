"""The gradient of a problem in the machine's long floats, for the last bits of a neighbourhood.

A long float has 64 bits or more in its fraction on most machines. Where it has no more than float64, there is no such
gradient, and less is proven.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from saddlesvm.problem.loss import loss_name
from saddlesvm.problem.problem import Problem, is_classification
from saddlesvm.problem.rounding import SLACK, UNIT, loss_units, radii
from saddlesvm.problem.sums import dual_of_margins
from saddlesvm.rows.layouts import CSR, matrix_of
from saddlesvm.solvers.second_order.linear_algebra import blocks, widened

LONG = np.longdouble
FINE = float(np.finfo(LONG).eps)
ENOUGH = 2.0**-60  # a unit beyond which long floats gain too little
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
    if FINE > ENOUGH or not problem.penalty.identity():
        return None
    plain, offset = problem.intercept.split(w)
    pull, alpha = np.zeros(w.size, dtype=LONG), np.zeros(problem.y.size)
    s = problem.row_weights
    norms, length = radii(problem.norms), float(np.linalg.norm(w))
    slopes, bends = SLOPES.get(loss_name(problem.loss)), BENDS.get(loss_name(problem.loss))
    unit = UNIT if slopes is None else FINE
    steep, units, off = problem.loss.largest_curvature(), unit * max(SUMMED, 2.0 * loss_units(problem.loss)), 0.0

    terms, added = problem.row_sizes.terms, float(problem.members.size)  # that a margin and a sum have, at most

    def respond(rows: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The multipliers at some rows' margins; what their rounding can amount to is added up."""
        nonlocal off
        if slopes is None:
            dual_of_margins(problem.pointwise, rows, z.astype(np.float64), 0.0, alpha)
            a = alpha[rows].astype(LONG)
        else:
            a = s[rows] * slopes(z, problem.y[rows])
        slips = unit * np.abs(z).astype(np.float64) + (terms + SUMMED) * FINE * (length * norms[rows] + abs(offset))
        slips += 0.0 if is_classification(problem.loss) else unit * np.abs(problem.y[rows])
        sizes = np.abs(a).astype(np.float64)
        steepest = (
            np.full(rows.size, steep) if bends is None else np.where(slips < NEAR, bends(z, problem.y[rows]), steep)
        )
        each = s[rows] * steepest * slips + (units + (added + SUMMED) * FINE) * sizes
        off += float(each @ norms[rows])
        return np.asarray(a)

    if isinstance(problem.X, CSR):
        pull = _pull_of_sparse(problem, problem.X, plain, offset, respond)
    else:
        for rows in blocks(problem.members, w.size):
            X = widened(problem.X, rows, np.ones(rows.size)).astype(LONG)
            pull += respond(rows, X @ plain.astype(LONG) + LONG(offset)) @ X
    found = w - LONG(problem.C) * pull
    if problem.intercept.constrained:
        found[-1] = -LONG(problem.C) * pull[-1]
    elif not problem.intercept.present:
        found[-1] = 0.0
    value = found.astype(np.float64)
    narrowed = float(np.abs(found - value).sum()) + SUMMED * FINE * length
    return value, SLACK * (problem.C * off + narrowed)


def _pull_of_sparse(
    problem: Problem, X: CSR, w: np.ndarray, offset: float, respond: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """``sum_i a_i x_i`` of sparse rows in long floats, shape (d + 1,), with what `respond` answers to their margins."""
    members = problem.members
    rows = matrix_of(X)
    rows = rows if members.size == rows.shape[0] else rows[members]
    z = _sums(rows.data.astype(LONG) * w[rows.indices].astype(LONG), rows.indptr)
    a = respond(members, z + LONG(X.bias) * LONG(w[-1]) + LONG(offset))
    columns = rows.tocsc()
    pulled = _sums(columns.data.astype(LONG) * a[columns.indices], columns.indptr)
    return np.append(pulled, LONG(X.bias) * a.sum())


def _sums(values: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The sums of consecutive parts of some values, which may be empty."""
    found, some = np.zeros(ends.size - 1, dtype=LONG), ends[1:] > ends[:-1]
    if some.any():
        found[some] = np.add.reduceat(values, ends[:-1][some])
    return found
