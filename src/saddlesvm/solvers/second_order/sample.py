"""Random samples of the rows of a problem, each within the next: close to the whole where rows are many."""

from __future__ import annotations

import dataclasses

import numpy as np

from saddlesvm.problem.problem import Problem

PER_FEATURE, SHARE = 16, 1 / 32  # rows of the first sample: at least so many for each feature, and this share of all
GROWTH, ENOUGH = 3.0, 40  # of a sample from one to the next, and rows for each feature from which on none is larger
MOST = 1 / 4  # share of the rows above which a sample saves too little
RUN = 4  # neighbouring rows that are drawn together: memory is read in longer pieces
STEEPEST = 30.0  # ``C phi'' ||x_i||^2`` of the median row above which C is not raised any more
TINY = np.finfo(float).tiny
LEAST_WORK = 200_000  # values of the rows below which a fit is done before a sample is drawn


def sample_shares(problem: Problem) -> tuple[float, ...]:
    """The shares of the rows that the samples of a problem have, from the smallest to the largest; none where there are
    too few rows for a sample, or next to no work."""
    n, features = problem.members.size, problem.n_features + 1
    if n * problem.values_per_row < LEAST_WORK:
        return ()
    shares: list[float] = []
    share = max(PER_FEATURE * features / n, SHARE)
    while share <= MOST and not (shares and shares[-1] * n >= ENOUGH * features):
        shares.append(share)
        share *= GROWTH
    return tuple(shares)


def ranks(count: int, seed: int) -> np.ndarray:
    """A random number for each row, the same for a few neighbours: the rows below a share are a sample of that share.

    Returns
    -------
    ndarray of shape (count,), float32
    """
    drawn = np.random.default_rng(seed).random(count // RUN + 1, dtype=np.float32)
    return np.repeat(drawn, RUN)[:count]


def sample_of(problem: Problem, rank: np.ndarray, share: float) -> Problem:
    """The same problem over a share of its rows, C raised by as much as there are fewer of them, or less.

    Without a limit the sample would be fitted too closely: rare features would get large weights from a few rows, and
    far out on the flat side of the logistic loss it takes Newton's method long to come back.
    """
    members = problem.members[rank[problem.members] < share]
    steepest = STEEPEST / (problem.loss.largest_curvature() * max(float(np.median(problem.norms[members])), TINY))
    C = min(problem.C * problem.members.size / members.size, max(problem.C, steepest))
    return dataclasses.replace(problem, members=members, C=C, whole=False)
