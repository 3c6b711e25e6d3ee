"""Rows that a pass takes along: copies that fit into memory, with what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.terms import Pointwise, weights_at
from saddlesvm.rows.files import stacked_rows
from saddlesvm.rows.layouts import Rows

WORK_BYTES = 240  # of a row taken along, besides its values; measured: those of a Newton fit over them


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
        return self.X.nbytes + sum(one.nbytes for one in self[1:])


def rows_taken(
    X: Rows, chosen: np.ndarray, points: Pointwise, norms: np.ndarray, alpha: np.ndarray, places: np.ndarray
) -> list[Taken]:
    """Some of the chosen rows, taken along: a single piece, or none if there is no such row.

    Parameters
    ----------
    X : Rows
    chosen : ndarray of shape (n,)
        Numbers of rows in X.
    points : Pointwise
    norms, alpha : ndarray of shape (n,)
        Of the chosen rows, as `points` is.
    places : ndarray of shape (k,)
        Of the rows to take, among the chosen rows.
    """
    if not places.size:
        return []
    weights, rows = weights_at(points.weights, places), chosen[places]
    return [Taken(X.taken(rows), points.y[places], weights, norms[places], alpha[places], rows)]


def joined(pieces: Sequence[Taken]) -> Taken:
    """Return all rows of some pieces, at least one, with their weights."""
    y, norms, alpha, rows = (np.concatenate([piece[k] for piece in pieces]) for k in (1, 3, 4, 5))
    weights = np.concatenate([piece.weights if piece.weights.size else np.ones(piece.y.size) for piece in pieces])
    return Taken(stacked_rows([piece.X for piece in pieces]), y, weights, norms, alpha, rows)
