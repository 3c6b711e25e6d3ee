"""The values of a radial kernel's expansion in float32, each with a bound on its error.

A certificate needs float64 values at the support vectors, and at rows near the margin. Of all other
rows it needs to know that they pay no loss. A product in float32 takes half the time.

With the mean s of d features, ``q_i = sqrt(gamma) ||x_i - s||`` and u = 2^-24, the exponent

    -gamma ||x_i - x_j||^2  =  2 gamma (x_i - s).(x_j - s) - q_i^2 - q_j^2

has an inner product of size at most ``2 q_i q_j <= (q_i + q_j)^2 / 2`` with d + 4 roundings (of
both points, of gamma, of its product with a point, and of the sum), a rounding of each ``q^2``, and
one of each difference, which is no larger than ``(q_i + q_j)^2``. So it is off by at most

    E_ij = u (d / 2 + 8) (q_i + q_j)^2,      |k - k^|  <=  k^ (exp(E_ij) (1 + 16 u) - 1)

with 16 units for the exponential. The sums over j are in float64.
"""

from __future__ import annotations

import numpy as np

from saddlesvm.kernel.mercer import BLOCK_VALUES, radial
from saddlesvm.kernel.row_blocks import RadialRows, RowSource, products
from saddlesvm.problem.bounds import SLACK, gamma

UNIT = 2.0**-24  # of a rounding to the nearest float32, relative
EXPONENTIAL_UNITS = 16.0  # of an exponential in float32: NumPy's has 5 at most, two thirds to spare
MANY = 4096  # points and features, below which a product is too small a part of the time (guessed)
MANY_FEATURES = 64
MOST_SUPPORT = 0.4  # share of support vectors, above which float64 takes no longer (derived)
MOST_ERROR = 0.01  # of an exponent: e^E - 1 <= SLACK E up to there, and more would tell nothing
LEAST_SQUARE = 1e-36  # what rounding to float32 can have lost of gamma ||x - s||^2
UNDERFLOW = 1e-36  # the same of a kernel value
UNDERFLOW_OF_EXPONENT = 1e-25  # the same of an exponent, if gamma is within its range (derived)
RANGE = (1e-20, 1e20)  # of gamma


def rough_expansion(
    rows: RowSource, support: np.ndarray, coefficients: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return ``sum_j coefficients[j] k(x_i, x_support[j])`` for all i, and bounds on the errors.

    None if float64 is as fast, or if the bounds would be too wide.
    """
    if not isinstance(rows, RadialRows) or not isinstance(rows.points, np.ndarray):
        return None
    n, d = rows.points.shape
    half = rows.half
    if n < MANY or d < MANY_FEATURES or not 0 < support.size <= MOST_SUPPORT * n:
        return None
    if half.dtype != np.float32 or not RANGE[0] < rows.gamma < RANGE[1]:
        return None
    # q_i of the module's formula, rounded up, and the factor u (d / 2 + 8) of E_ij.
    q = SLACK * np.sqrt(half.astype(np.float64) + LEAST_SQUARE)
    unit_error = SLACK * UNIT * (0.5 * d + 8.0)
    # The largest E_ij, at the two longest points; `not <=` refuses NaN too.
    if not unit_error * (2.0 * q.max()) ** 2 <= MOST_ERROR:
        return None
    # Four sums over j at once: f_i = sum_j beta_j k_ij, and the three parts of
    # sum_j |beta_j| k_ij (q_i + q_j)^2 = q_i^2 A_i + 2 q_i B_i + C_i.
    size = np.abs(coefficients)
    q_support = q[support]
    columns = (coefficients, size, size * q_support, size * q_support * q_support)
    weights = np.stack(columns, axis=1)
    sums = np.empty((n, 4))
    centres = rows.restrict(support)
    scale = np.float32(2.0 * rows.gamma)
    block = max(1, BLOCK_VALUES // support.size)
    for start in range(0, n, block):
        part = slice(start, min(start + block, n))
        values = np.empty((part.stop - start, support.size), np.float32)
        products(rows.points[part] * scale, centres.points, values)
        radial(values, half[part], centres.half)
        sums[part] = values.astype(np.float64) @ weights
    f, A, B, C = sums.T
    # The errors of the exponents, sum_j |beta_j| k_ij E_ij; then those of the exponential and of
    # the sum over j, relative to A_i = sum_j |beta_j| k_ij.
    errors = SLACK * unit_error * (q * q * A + 2.0 * q * B + C)
    relative_error = EXPONENTIAL_UNITS * UNIT + UNDERFLOW_OF_EXPONENT + gamma(support.size + 4.0)
    errors += relative_error * A + UNDERFLOW * size.sum()
    return np.ascontiguousarray(f), SLACK * errors
