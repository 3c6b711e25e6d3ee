"""Weights of which only some places travel: those of the features that a partition's sparse rows have.

A partition of a text collection has a third of the words, or a hundredth. It gets w at these places, and the change
that it proposes is zero at all others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddlesvm.rows.layouts import CSR, Rows

WORTH = 0.6  # share of the places below which numbers and places take fewer bytes than all numbers: 12 bytes for 8
NONE = np.empty(0, dtype=np.int32)


class Places(NamedTuple):
    """Vectors of length `width` that are zero outside some places.

    Attributes
    ----------
    values : ndarray of shape (problems, k)
    places : ndarray of shape (k,), int32
        Ascending.
    width : int
    """

    values: np.ndarray
    places: np.ndarray
    width: int

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return self.values.nbytes + self.places.nbytes


Vectors = np.ndarray | Places


def whole(vectors: Vectors) -> np.ndarray:
    """All places, shape (problems, width)."""
    if isinstance(vectors, np.ndarray):
        return vectors
    all_of = np.zeros((len(vectors.values), vectors.width))
    all_of[:, vectors.places] = vectors.values
    return all_of


def at(vectors: np.ndarray, places: np.ndarray) -> Vectors:
    """The vectors at these places, as far as the others are of no use; all of them where `places` is empty."""
    if not places.size:
        return vectors
    return Places(np.ascontiguousarray(vectors[:, places]), places, vectors.shape[1])


def without_zeros(vectors: np.ndarray) -> Vectors:
    """The places where a vector is not zero, if that is shorter."""
    places = np.flatnonzero(vectors.any(axis=0)).astype(np.int32)
    return at(vectors, places) if 0 < places.size < WORTH * vectors.shape[1] else vectors


def added(first: Vectors, second: Vectors) -> Vectors:
    """The sum, without zeros where both are."""
    total = whole(first) + whole(second)
    both = isinstance(first, Places) and isinstance(second, Places)
    return without_zeros(total) if both else total


def touched(X: Rows) -> np.ndarray:
    """The places of w that some rows have, the intercept's included; empty where they have most of them."""
    if not isinstance(X, CSR) or not X.indices.size:
        return NONE
    width = X.n_features + 1
    places = np.append(np.unique(X.indices), width - 1).astype(np.int32)
    return places if places.size < WORTH * width else NONE
