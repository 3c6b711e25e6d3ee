"""A random sample of the rows of a problem: close to the whole, where there are many more rows than features."""

from __future__ import annotations

import dataclasses

import numpy as np

from saddlesvm.losses import largest_curvature
from saddlesvm.problem import Problem

PER_FEATURE, SHARE = 16, 1 / 32  # rows of a sample: at least so many for each feature, and this share of all rows
MOST = 1 / 4  # share above which a sample saves too little
RUN = 4  # neighbouring rows that are drawn together: memory is read in longer pieces
STEEPEST = 30.0  # ``C phi'' ||x_i||^2`` of the median row above which C is not raised any more
TINY = np.finfo(float).tiny
LEAST_WORK = 200_000  # values of the rows below which a fit is done before a sample is drawn


def sample_size(problem: Problem) -> int:
    """How many rows a sample of the problem has; 0 where there are too few rows for one, or next to no work."""
    n = problem.members.size
    size = max(PER_FEATURE * (problem.n_features + 1), int(SHARE * n))
    return size if size <= MOST * n and n * problem.values_per_row >= LEAST_WORK else 0


def sample_of(problem: Problem, seed: int) -> Problem | None:
    """The same problem over a random sample of its rows, C raised by as much as there are fewer of them, or less.

    Without a limit the sample would be fitted too closely: rare features would get large weights from a few rows, and
    far out on the flat side of the logistic loss it takes Newton's method long to come back. None where
    :func:`sample_size` is 0.
    """
    n, size = problem.members.size, sample_size(problem)
    if not size:
        return None
    first = np.random.default_rng(seed).choice(n // RUN, size // RUN, replace=False)
    places = (RUN * np.sort(first)[:, None] + np.arange(RUN)).ravel()
    members = problem.members[places]
    steepest = STEEPEST / (largest_curvature(problem.loss) * max(float(np.median(problem.norms[members])), TINY))
    C = min(problem.C * n / places.size, max(problem.C, steepest))
    return dataclasses.replace(problem, members=members, C=C, whole=False)
