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
    slopes = SLOPES.get(loss_name(problem.loss))
    unit = UNIT if slopes is None else FINE
    steep, units, off = problem.loss.largest_curvature(), unit * max(SUMMED, 2.0 * loss_units(problem.loss)), 0.0
    for rows in blocks(problem.members, w.size):
        X = widened(problem.X, rows, np.ones(rows.size)).astype(LONG)
        z = X @ plain.astype(LONG) + LONG(offset)
        if slopes is None:
            dual_of_margins(problem.pointwise, rows, z.astype(np.float64), 0.0, alpha)
            a = alpha[rows].astype(LONG)
        else:
            a = s[rows] * slopes(z, problem.y[rows])
        pull += a @ X
        slips = unit * np.abs(z).astype(np.float64) + (w.size + SUMMED) * FINE * (length * norms[rows] + abs(offset))
        slips += 0.0 if is_classification(problem.loss) else unit * np.abs(problem.y[rows])
        sizes = np.abs(a).astype(np.float64)
        each = s[rows] * steep * slips + (units + (problem.members.size + SUMMED) * FINE) * sizes
        off += float(each @ norms[rows])
    found = w - LONG(problem.C) * pull
    if problem.intercept.constrained:
        found[-1] = -LONG(problem.C) * pull[-1]
    elif not problem.intercept.present:
        found[-1] = 0.0
    value = found.astype(np.float64)
    narrowed = float(np.abs(found - value).sum()) + SUMMED * FINE * length
    return value, SLACK * (problem.C * off + narrowed)
