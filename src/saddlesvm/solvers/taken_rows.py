"""Rows that a pass takes along: copies that fit into memory, with what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saddlesvm.problem.terms import Pointwise, weights_at
from saddlesvm.rows.files import stacked_rows
from saddlesvm.rows.layouts import Rows

# Bytes of a row taken along, besides its values; measured: those of a Newton fit over them.
WORK_BYTES = 240


class TakenRows(NamedTuple):
    """Some rows taken along.

    Attributes
    ----------
    X : Rows
    y : ndarray of shape (k,)
    weights : ndarray of shape (k,) or (0,)
        Empty if all weights are 1.
    norms : ndarray of shape (k,)
        Squared norms.
    alpha : ndarray of shape (k,)
        The multipliers at the point of the pass.
    rows : ndarray of shape (k,)
        The rows' numbers.
    """

    X: Rows
    y: np.ndarray
    weights: np.ndarray
    norms: np.ndarray
    alpha: np.ndarray
    rows: np.ndarray


def take_along(
    X: Rows,
    chosen: np.ndarray,
    points: Pointwise,
    norms: np.ndarray,
    alpha: np.ndarray,
    places: np.ndarray,
) -> list[TakenRows]:
    """Copy some of the chosen rows: a single piece, or none if there is no such row.

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
    rows = chosen[places]
    piece = TakenRows(
        X=X.take(rows),
        y=points.y[places],
        weights=weights_at(points.weights, places),
        norms=norms[places],
        alpha=alpha[places],
        rows=rows,
    )
    return [piece]


def join_pieces(pieces: Sequence[TakenRows]) -> TakenRows:
    """Return all rows of some pieces, at least one, with their weights."""
    weights = []
    for piece in pieces:
        weights.append(piece.weights if piece.weights.size else np.ones(piece.y.size))
    return TakenRows(
        X=stacked_rows([piece.X for piece in pieces]),
        y=np.concatenate([piece.y for piece in pieces]),
        weights=np.concatenate(weights),
        norms=np.concatenate([piece.norms for piece in pieces]),
        alpha=np.concatenate([piece.alpha for piece in pieces]),
        rows=np.concatenate([piece.rows for piece in pieces]),
    )
