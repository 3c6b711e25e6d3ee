"""What the terms of the rows cost beside their margins: nanoseconds a row of the passes that Newton's method makes.

    OMP_NUM_THREADS=1 python -m benchmarks.parts.terms

100,000 rows with 14 values each (as many as those of a9a), for each smooth loss: the margins of all rows; their losses,
slopes and curvatures by the solver's kernel, whose exponential and logarithm the compiler turns into vector
instructions; and the same by NumPy's expressions. For the logistic loss also by the kernel's text with the C library's
functions, one row at a time. Medians, in turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.common import interleaved
from saddlesvm.problem.losses import Logistic, Loss, SmoothHinge, SquaredHinge
from saddlesvm.rows.layouts import as_rows, dot_rows
from saddlesvm.runtime.compiled import kernel
from saddlesvm.solvers.smoothed import Answers, SmoothedTerms, respond

ROWS = 100_000
PER_ROW = 14
FEATURES = 123
REPEATS = 21


@kernel
def by_the_c_library(y: np.ndarray, C: float, z: np.ndarray, alpha: np.ndarray, bend: np.ndarray) -> float:
    """The logistic loss of all rows, their multipliers and second derivatives."""
    paid = 0.0
    for k in range(z.size):
        m = y[k] * z[k]
        e = math.exp(-abs(m))
        p = (e if m >= 0.0 else 1.0) / (1.0 + e)
        alpha[k] = y[k] * p
        bend[k] = C * p * (1.0 - p)
        paid += math.log1p(e) + max(0.0, -m)
    return paid


def by_numpy(loss: Loss, y: np.ndarray, z: np.ndarray) -> tuple[Any, Any, Any]:
    """Loss, multipliers and second derivatives of all rows."""
    m = y * z
    if isinstance(loss, Logistic):
        e = np.exp(-np.abs(m))
        p = np.where(m >= 0.0, e, 1.0) / (1.0 + e)
        return (np.log1p(e) + np.maximum(0.0, -m)).sum(), y * p, p * (1.0 - p)
    slack = np.maximum(0.0, 1.0 - m)
    if isinstance(loss, SquaredHinge):
        return (slack * slack).sum(), 2.0 * y * slack, 2.0 * (m < 1.0)
    inside = np.minimum(slack, 1.0)
    return (inside * (slack - 0.5 * inside)).sum(), y * inside, 1.0 * ((m > 0.0) & (m < 1.0))


def main() -> None:
    """Print the table."""
    random = np.random.default_rng(0)
    X = sparse.random(ROWS, FEATURES, density=PER_ROW / FEATURES, format="csr", random_state=random)
    rows = as_rows(X)
    members = np.arange(ROWS, dtype=np.int32)
    w = random.normal(size=FEATURES + 1)
    y = random.choice([-1.0, 1.0], ROWS)
    z, alpha, bend = np.empty((3, ROWS))
    dot_rows(rows, members, w, z)
    for loss in (SquaredHinge(), SmoothHinge(), Logistic()):
        terms = SmoothedTerms(loss, y, np.empty(0), np.empty(0), 0.0, False)
        answers = Answers(alpha, bend, np.zeros(3))
        works: dict[str, Callable[[], Any]] = {
            "margins": partial(dot_rows, rows, members, w, np.empty(ROWS)),
            "kernel": partial(respond, terms, z, answers),
            "NumPy": partial(by_numpy, loss, y, z),
        }
        if isinstance(loss, Logistic):
            works["C library"] = partial(by_the_c_library, y, 1.0, z, *np.empty((2, ROWS)))
        respond(terms, z, answers)
        expected = by_numpy(loss, y, z)
        for one, other in zip((answers.sums[0], alpha, bend), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        table = interleaved(works, REPEATS)
        cells = ", ".join(f"{name} {1e9 * taken / ROWS:.2f}" for name, (taken, _) in table.items())
        print(f"{type(loss).__name__}: {cells} ns a row")


if __name__ == "__main__":
    main()
