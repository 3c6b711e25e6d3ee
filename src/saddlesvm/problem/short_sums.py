"""The pull of dual variables by short sums: rounding then hardly counts, over however many rows.

A sum of n terms in order has a rounding error of up to n units of the sum of their sizes. A
feasible pull of a penalty without a square must stay within bounds, so that this error shortens the
whole dual point: with many rows and a large C it is most of what a certificate leaves open. In sums
of 8 terms, whose results are added 8 at a time, and so on, a term meets no more than 8 additions a
level.

Source: Higham (2002), "Accuracy and stability of numerical algorithms", section 4.2, for blocked
summation; Ogita, Rump and Oishi (2005), "Accurate sum and dot product", for sums of two doubles.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from saddlesvm.problem.bounds import SLACK, UNDERFLOW, UNIT, NearPull, gamma, norm_of
from saddlesvm.problem.problem import Problem
from saddlesvm.rows.small_types import widen

FAN = 8  # terms of a sum; a guess: fewer make more levels, and arrays of sums
CHUNK = FAN**3  # rows of a dense array that are widened at once
SPLITTER = 2.0**27 + 1.0  # times a double: what parts it in halves (Dekker 1971)
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


def weights_by_short_sums(problem: Problem, alpha: np.ndarray) -> tuple[np.ndarray, float]:
    """The weights of a model that is published as ``C alpha`` and its rows, and their error.

    The weights have shape (d + 1,), the intercept's place zero. The exact weights are hardly
    farther away than rounding the result itself. Of dense rows, each product is the sum of two
    doubles, and so is each sum of two (Ogita, Rump and Oishi, algorithms 3.1 to 3.4); sparse rows
    have short sums.
    """
    if problem.X.sparse:
        near = pulled_by_short_sums(problem, alpha)
        return np.append(near.pull[:-1], 0.0), norm_of(near.errors[:-1])
    factors = problem.C * alpha
    support = problem.members[factors[problem.members] != 0.0]
    n = support.size
    d = problem.n_features
    high = np.zeros((-(-n // CHUNK) + 1, d))  # a sum for each chunk
    low = np.zeros(d)  # what rounding left out of all of them
    sizes = np.zeros(d)
    for k in range(len(high) - 1):
        chosen = support[k * CHUNK : (k + 1) * CHUNK]
        rows = widen(problem.X.values[chosen], np.float64)
        a = factors[chosen, None]
        # The rounding error of a product, exactly, by the halves of its factors (TwoProduct).
        terms = a * rows
        a_high, a_low = _halve(a)
        x_high, x_low = _halve(rows)
        errors = ((a_high * x_high - terms) + a_high * x_low + a_low * x_high) + a_low * x_low
        low += errors.sum(axis=0)
        sizes += np.abs(terms).sum(axis=0)
        high[k], below = _sum_in_pairs(terms)
        low += below
    total, below = _sum_in_pairs(high)
    w = total + (low + below)
    # Rounding of the last sum, and of what was left out: gamma times gamma of the sizes.
    units = gamma(n + 8.0) * gamma(2.0 * math.log2(n + 2.0) + 8.0)
    return np.append(w, 0.0), norm_of(UNIT * np.abs(w) + SLACK * units * sizes + UNDERFLOW)


def _halve(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two parts of half the digits each, so that their products are exact (Split)."""
    # Multiplying by 2^27 + 1 and subtracting leaves the upper 26 bits.
    spread = SPLITTER * values
    high = spread - (spread - values)
    return high, values - high


def _sum_in_pairs(terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sums of the columns, and what rounding left out of them (TwoSum, level by level)."""
    low = np.zeros(terms.shape[1])
    while len(terms) > 1:
        if len(terms) % 2:
            terms = np.concatenate([terms, np.zeros((1, terms.shape[1]))])
        a = terms[::2]
        b = terms[1::2]
        terms = a + b
        # TwoSum: the exact error of a + b, in whatever order they round.
        part = terms - a
        low += ((a - (terms - part)) + (b - part)).sum(axis=0)
    return terms[0], low


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
