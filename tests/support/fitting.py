"""The solvers that the tests of the loop run, and when two results are the same."""

from __future__ import annotations

import numpy as np

from saddlesvm.fit.outcome import FitResult
from saddlesvm.solvers import DCD, SDCA, Pegasos

SOLVERS = [
    SDCA(),
    SDCA("replacement", "sgd", "average"),
    SDCA(output="random"),
    DCD(),
    DCD(stopping="weight_change", threshold=1e-12),
    Pegasos(),
    Pegasos(4, True, "replacement", "random"),
    Pegasos(batch_size=7, output="average"),
]


def equal(one: FitResult, other: FitResult) -> bool:
    """Whether two results are the same to the last bit."""
    return (
        np.array_equal(one.coef, other.coef)
        and np.array_equal(one.alpha, other.alpha)
        and (one.intercept, one.certificate, one.epochs) == (other.intercept, other.certificate, other.epochs)
    )
