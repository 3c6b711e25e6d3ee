"""The parts of a problem that its functions take, and the rows some at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.problem.loss import Loss
from saddlesvm.problem.penalties import Penalty
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.matrix import pieces
from saddlesvm.runtime.compiled import inlined

# Rows whose terms are computed at once: their arrays of 64 KB stay in a core's cache. Measured:
# half the time of 2^16.
BLOCK = 2**13

# Array code computes both sides of each condition in a loss, and one of them may overflow.
silent = np.errstate(all="ignore")


class Terms(NamedTuple):
    """A problem as a compiled kernel takes it."""

    X: Rows
    loss: Loss
    y: np.ndarray
    weights: np.ndarray  # empty when all are 1
    norms: np.ndarray
    C: float
    penalty: Penalty


class Pointwise(NamedTuple):
    """The terms without the rows."""

    loss: Loss
    y: np.ndarray
    weights: np.ndarray


def box_of(loss: Loss, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds of the dual variables, shape (n,); weights multiply them."""
    least, most = loss.bounds(-1.0, 1.0)
    low, high = loss.bounds(1.0, 1.0)
    ahead = y > 0.0
    below = np.where(ahead, low, least)
    above = np.where(ahead, high, most)
    if not weights.size:
        return below, above
    heavy = weights > 0.0  # else zero times infinity
    return np.where(heavy, below, 0.0) * weights, np.where(heavy, above, 0.0) * weights


def weights_at(weights: np.ndarray, rows: np.ndarray | slice) -> np.ndarray:
    """The weights of some rows; an empty array means that all are 1, and stays empty."""
    return weights[rows] if weights.size else weights


@inlined
def weight_of(weights: np.ndarray, i: int) -> float:
    """Weight of row i; an empty array means 1."""
    return weights[i] if weights.size else 1.0


def in_blocks(members: np.ndarray | slice, count: int) -> list[tuple[slice, np.ndarray | slice]]:
    """Places among the members, some at a time, and what picks these from arrays of `count` rows.

    That is a slice if all rows are members, so that nothing is copied. Members that are given as a
    slice are a block already, whatever library its arrays are of.
    """
    if isinstance(members, slice):
        return [(members, members)]
    places = pieces(members.size, BLOCK)
    return [(some, some if members.size == count else members[some]) for some in places]


def weights_or_one(weights: np.ndarray, rows: np.ndarray | slice | int) -> Any:
    """The weights of some rows; the number 1 if an empty array says that all are 1."""
    return weights[rows] if weights.size else 1.0


def within_bounds(
    methods: Any, loss: object, a: np.ndarray, y: np.ndarray, s: object
) -> np.ndarray:
    """Return `a`, moved back to its bounds if rounding took it beyond."""
    low, high = methods.bounds(loss, y, s)
    inside: np.ndarray = np.where(
        methods.conjugate(loss, a, y, s) < np.inf, a, np.minimum(np.maximum(a, low), high)
    )
    return inside
