"""Limits below which NumPy is as fast as compiled code, without the time to compile.

The sizes of the data choose between the two, whatever is compiled already. Two exceptions ask what
is: the first solver (:mod:`saddlesvm.solvers.auto`), and sums over rows in float32
(:mod:`saddlesvm.rows.layouts`).
"""

from __future__ import annotations


class Most:
    """The largest work that counts as small.

    Attributes
    ----------
    values : int
        Stored values of the rows, and `per_row` for each row besides.
    dense : int
        Values of dense rows, of which the BLAS makes scores and sums. Of more values in float32,
        which become float64 for it, fits by kernels take 1 / 1.67 of the time (150,000 x 100, easy
        C, 26 November 2026).
    step : float
        Operations that make and factor the matrix of Newton's equations, roughly.
    """

    values = 2**17
    dense = 10_000_000
    per_row = 10
    step = 2e7
