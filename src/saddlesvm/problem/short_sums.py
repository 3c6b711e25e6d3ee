"""The pull of dual variables by short sums: rounding then hardly counts, over however many rows.

A sum of n terms in order has a rounding error of up to n units of the sum of their sizes. A
feasible pull of a penalty without a square must stay within bounds, so that this error shortens the
whole dual point: with many rows and a large C it is most of what a certificate leaves open. In sums
of 8 terms, whose results are added 8 at a time, and so on, a term meets no more than 8 additions a
level.

Source: Higham (2002), "Accuracy and stability of numerical algorithms", section 4.2, for blocked
summation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.problem.bounds import SLACK, UNIT, NearPull, gamma
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.small_types import widen

FAN = 8  # terms of a sum; a guess: fewer make more levels, and arrays of sums
CHUNK = FAN**3  # rows of a dense array that are widened at once
PRODUCT_UNITS = 4  # roundings of a term beside its sums: two products, the virtual feature's


def pulled_by_short_sums(problem: Problem, alpha: np.ndarray) -> NearPull:
    """The pull of the members' dual variables, shape (n_all,), by short sums."""
    a = np.zeros(alpha.size)
    a[problem.members] = alpha[problem.members]
    X = problem.X

    # sum_i a_i x_ij and, rounded in any order, sum_i |a_i x_ij|.
    if X.sparse:
        rows = X.matrix
        features, units = _sum_short(rows, a)
        # abs(rows) would sort the indices.
        absolute = sparse.csr_array((np.abs(X.data), X.indices, X.indptr), shape=rows.shape)
        sizes = absolute.T @ np.abs(a)
    else:
        # The sums of chunks, which are widened one after the other, are added up in the same way.
        sums = []
        sizes = np.zeros(problem.n_features)
        for start in range(0, a.size, CHUNK):
            part = slice(start, start + CHUNK)
            values = widen(X.values[part], np.float64)
            sums.append(_sum_short(values, a[part]))
            sizes += np.abs(a[part]) @ np.abs(values)
        features, units = _sum_short(np.stack([found for found, _ in sums]), np.ones(len(sums)))
        units += max(met for _, met in sums)

    # The virtual feature is constant: math.fsum adds its terms exactly.
    pull = problem.C * np.append(features, X.bias * math.fsum(a.tolist()))
    sizes = SLACK * problem.C * np.append(sizes, X.bias * float(np.abs(a).sum()))
    return NearPull(pull, sizes, gamma(units + PRODUCT_UNITS) * sizes + UNIT * np.abs(pull))


def _sum_short(rows: Any, a: np.ndarray) -> tuple[np.ndarray, int]:
    """``a @ rows`` of a sparse or a dense array, and the additions that a term went through."""
    factors = a
    units = 0
    while units == 0 or rows.shape[0] > 1:
        # A product with a matrix that has FAN neighbouring rows in each of its own adds them up.
        count = rows.shape[0]
        starts = np.append(np.arange(0, count, FAN), count)
        shape = (starts.size - 1, count)
        rows = sparse.csr_array((factors, np.arange(count), starts), shape=shape) @ rows
        factors = np.ones(rows.shape[0])
        units += FAN
    if sparse.issparse(rows):
        rows = rows.toarray()
    return rows[0], units
