"""Random samples of a problem's rows, each contained in the next; with many rows they are close to the whole."""

from __future__ import annotations

import dataclasses

import numpy as np

from saddlesvm.problem.problem import Problem

PER_FEATURE, SHARE = 16, 1 / 32  # rows of the first sample, at least: rows per feature, and share of all rows
GROWTH, ENOUGH = 3.0, 40  # rows of a sample per row of the one before; rows per feature at which no larger one follows
MOST = 1 / 4  # share of the rows above which a sample saves too little
RUN = 4  # neighbouring rows drawn together, so that memory is read in longer pieces
STEEPEST = 30.0  # curvature ``C phi'' ||x_i||^2`` of the median row up to which a sample's C is raised
TINY = np.finfo(float).tiny
LEAST_WORK = 200_000  # stored values below which drawing a sample takes longer than the fit


def sample_shares(problem: Problem) -> tuple[float, ...]:
    """The shares of the rows that a problem's samples have, from the smallest to the largest sample.

    There are none where the problem has too few rows for a sample, or next to no work.
    """
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
    """The same problem over a share of its rows; C is raised in proportion, up to a limit.

    Without the limit the sample would be fitted too closely: a few rows would give rare features large weights, and
    Newton's method returns slowly from far out on the flat side of the logistic loss.
    """
    members = problem.members[rank[problem.members] < share]
    steepest = STEEPEST / (problem.loss.largest_curvature() * max(float(np.median(problem.norms[members])), TINY))
    C = min(problem.C * problem.members.size / members.size, max(problem.C, steepest))
    return dataclasses.replace(problem, members=members, C=C, whole=False)
