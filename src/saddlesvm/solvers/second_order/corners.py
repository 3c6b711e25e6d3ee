"""Rows near a corner of their loss' derivative, taken along in a pass, so that a Newton step can go past corners.

The squared hinge and its relatives are parabolas between corners. Where few rows bend along some directions, a step on
the matrix of the rows that bend ends at the next few corners, and there are dozens of such steps. So a pass takes some
rows along: those that are about to come to a corner, told by how far their margins lie from those at another point near
by. The step past these corners is :mod:`saddlesvm.solvers.second_order.over_kinks`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.terms import Pointwise, weights_at
from saddlesvm.rows.files import chosen_rows, stacked_rows
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.memory_plan import matrix_bytes
from saddlesvm.solvers.second_order.kernels import Answers, SmoothedTerms, answers_at

MOVES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0, 16.0)  # times its last move that a margin may move
REST = 0.3  # of the mean move, that a margin may move at least
LINEAR = 1e-9  # relative distance from a straight line that rounding explains
FEWEST, MOST = 4.0, 16.0  # rows per feature: with less room they are not worth a pass, and more are too much work
WORK_BYTES = 120  # bytes of a row taken along, besides its values


class Near(NamedTuple):
    """The rows that a pass collects.

    Attributes
    ----------
    other : ndarray of shape (d + 1,)
        A point near the one looked at.
    share : float
        Of the rows, at most.
    """

    other: np.ndarray
    share: float


class Taken(NamedTuple):
    """Some rows taken along: values, labels, weights (empty when all are 1), squared norms, the multipliers at the
    point of the pass, and the rows' numbers."""

    X: Rows
    y: np.ndarray
    weights: np.ndarray
    norms: np.ndarray
    alpha: np.ndarray
    rows: np.ndarray

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return matrix_bytes(self.X) + sum(one.nbytes for one in self[1:])


def rows_taken(
    X: Rows, chosen: np.ndarray, points: Pointwise, norms: np.ndarray, alpha: np.ndarray, places: np.ndarray
) -> list[Taken]:
    """Some of the chosen rows, taken along: one piece, or none where there is no such row.

    Parameters
    ----------
    X : Rows
    chosen : ndarray of shape (n,)
        Numbers of rows in X.
    points : Pointwise
    norms, alpha : ndarray of shape (n,)
        Of the chosen rows, as `points` is.
    places : ndarray of shape (k,)
        Of the rows to take, among the chosen ones.
    """
    if not places.size:
        return []
    weights, rows = weights_at(points.weights, places), chosen[places]
    return [Taken(chosen_rows(X, rows), points.y[places], weights, norms[places], alpha[places], rows)]


def joined(pieces: list[Taken]) -> Taken:
    """All the rows of some pieces, one at least, with their weights."""
    y, norms, alpha, rows = (np.concatenate([piece[k] for piece in pieces]) for k in (1, 3, 4, 5))
    weights = np.concatenate([piece.weights if piece.weights.size else np.ones(piece.y.size) for piece in pieces])
    return Taken(stacked_rows([piece.X for piece in pieces]), y, weights, norms, alpha, rows)


@dataclass
class Corners:
    """The rows taken along so far.

    Attributes
    ----------
    pieces : list of Taken
    rows, visited : int
        Their number, and how many rows there were to choose from.
    """

    pieces: list[Taken] = field(default_factory=list)
    rows: int = 0
    visited: int = 0

    def add(self, other: Corners) -> None:
        """Add what other rows hold."""
        self.pieces.extend(other.pieces)
        self.rows, self.visited = self.rows + other.rows, self.visited + other.visited

    def choose(
        self, smoothed: SmoothedTerms, z: np.ndarray, moves: np.ndarray, answers: Answers, share: float
    ) -> np.ndarray:
        """The places of the rows of a strip that come to a corner first, as many as there is room for.

        Parameters
        ----------
        smoothed : SmoothedTerms
        z : ndarray of shape (n,)
            Margins.
        moves : ndarray of shape (n,)
            How far each lies from the margin at the other point.
        answers : Answers
            At these margins.
        share : float
        """
        self.visited += z.size
        room, moves = int(share * self.visited) - self.rows, moves + REST * float(moves.mean())
        first = np.full(z.size, len(MOVES))
        for k in reversed(range(len(MOVES))):
            first[crosses(smoothed, z, MOVES[k] * moves, answers)] = k
        order = np.argsort(first, kind="stable")[: max(room, 0)]
        chosen = np.sort(order[first[order] < len(MOVES)])
        self.rows += chosen.size
        return chosen

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return sum(piece.nbytes for piece in self.pieces)


def crosses(smoothed: SmoothedTerms, z: np.ndarray, ways: np.ndarray, answers: Answers) -> np.ndarray:
    """Whether a change of each margin by its way, upwards or downwards, leads past a corner, shape (n,).

    Between corners the multipliers are linear in the margins.
    """
    turned, slope = np.zeros(z.size, dtype=bool), -answers.bend / smoothed.C
    for way in (-ways, ways):
        there = answers_at(smoothed, z + way)
        straight = answers.alpha + slope * way
        turned |= np.abs(there.alpha - straight) > LINEAR * (np.abs(answers.alpha) + np.abs(slope * way))
    return turned


def share_of(rows: int, features: int, room: float) -> float:
    """The share of the rows to be taken along, with room for so many; 0 where it is too little to be of use."""
    if room < FEWEST * features:
        return 0.0
    return min(room, MOST * features, rows) / max(rows, 1)
