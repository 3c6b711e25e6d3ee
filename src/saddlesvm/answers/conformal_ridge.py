"""Full conformal intervals of ridge regression, in closed form.

With the new row ``(x, z_0 + e)``, ``z_0`` its prediction without it, ``u = H^-1 x`` and ``t = x . u``, residuals become

    of row i:  R_i - g_i e,    R_i = y_i - z_i,  g_i = 2 C (x_i . u) / (1 + 2 C t)
    of the new row:  b e,      b = 1 / (1 + 2 C t)

A target belongs to the conformal set where at least ``alpha (n + 1)`` of the n + 1 residuals are as large as the new
one. Above z_0 row i counts up to ``R_i / (b + g_i)`` where R_i is positive, else up to ``-R_i / (b - g_i)``; likewise
below. The ends of the interval are order statistics of these.

Source: Nouretdinov, Melluish and Vovk (2001), "Ridge regression confidence machine".
"""

from __future__ import annotations

import math

import numpy as np

from saddlesvm.answers.changed import together
from saddlesvm.answers.vicinity import Vicinity
from saddlesvm.problem.rounding import SLACK, UNIT, gamma
from saddlesvm.rows.scores import scores_of_rows


def intervals(near: Vicinity, rows: np.ndarray, alpha: float) -> np.ndarray:
    """The smallest intervals that hold the conformal sets, shape (m, 2), ends rounded outwards.

    Parameters
    ----------
    near : Vicinity
        Of a problem with the squared loss, whose rows weigh 1.
    rows : ndarray of shape (m, d + 1)
    alpha : float
    """
    problem = near.problem
    assert (problem.row_weights == 1.0).all()
    n, size = near.z.size, together(near)
    count = math.floor(alpha * (n + 1))
    found = np.tile([-np.inf, np.inf], (len(rows), 1))
    if count == 0:
        return found
    R = problem.y - near.z
    slip = SLACK * (np.sqrt(near.leverages) * near.missed + near.at.slips + 4.0 * UNIT * np.abs(problem.y))
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        U = near.inverse @ some.T
        t = np.einsum("ij,ji->i", some, U)
        b = 1.0 / (1.0 + 2.0 * problem.C * t)
        g = 2.0 * problem.C * b * scores_of_rows(problem.X, U.T)
        away = 2.0 * problem.C * np.sqrt(near.leverages)[:, None] * np.sqrt(t) * b
        slack = SLACK * ((4.0 * near.error + gamma(8.0 * near.w.size)) * (b + away + np.abs(g)))
        size_of = np.abs(R)[:, None] + slip[:, None]
        positive, unsure = (slip < R)[:, None], (np.abs(R) <= slip)[:, None]
        above = np.where(positive, b + g, b - g)
        below = np.where(positive, b - g, b + g)
        narrow = b - np.abs(g)
        z = some @ near.w
        rounding = np.sqrt(t) * near.missed + gamma(near.w.size + 16.0) * (
            np.linalg.norm(some, axis=1) * np.linalg.norm(near.w) + np.abs(z)
        )
        for side, way, sign in ((1, above, 1.0), (0, below, -1.0)):
            way = np.where(unsure, narrow, way) - slack
            ends = np.where(narrow - slack > 0.0, size_of / np.maximum(way, 1e-300), np.inf)
            reach = np.partition(ends, n - count, axis=0)[n - count]
            found[start : start + size, side] = z + sign * (1.0 + 64.0 * UNIT) * (reach + rounding)
    return found
