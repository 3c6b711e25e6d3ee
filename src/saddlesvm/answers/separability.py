"""Whether a hyperplane separates two classes: a proof either way, or a bound of its margin; contradictions.

*   A hyperplane with every row on its side, rounding counted, separates; the least distance of a row bounds the margin
    from below.
*   Half the distance of any two points of the convex hulls of the classes bounds the margin from above. The multipliers
    of a fit are weights of two such points.
*   Hulls that share a point are not separable: non-negative multipliers, not all zero, with ``sum_i a_i y_i (x_i, 1) =
    0`` (Farkas). Rows that differ by their label alone are such a proof. Else the multipliers of a fit, moved by least
    squares until the sum is as small as rounding lets it, prove that exact ones are near: the smallest must be larger
    than what another such move can take, ``||x_i|| ||sum|| / lambda`` with the smallest eigenvalue lambda of the sum of
    squares.

Source: Rockafellar (1970), "Convex Analysis", theorem 22.2, for the alternative.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from saddlesvm.answers.changed import with_feature
from saddlesvm.problem.rounding import SLACK, gamma
from saddlesvm.rows.small_types import widened

LEAST = 1e-7  # share of the largest multiplier; smaller ones take no part in a proof
ROUNDS = 12  # of moving multipliers and leaving out those that become negative
MOST_VALUES = 2**26  # of the rows that a proof takes in memory, as float64: 512 MB


def same_rows(X: Any) -> np.ndarray:
    """A number for each row of a dense or CSR matrix, shape (n,); rows with the same values share it."""
    if sparse.issparse(X):
        kept = X.copy()
        kept.eliminate_zeros()
        ends, indices, data = kept.indptr, kept.indices, kept.data
        keys: dict[bytes, int] = {}
        return np.array(
            [keys.setdefault(indices[a:b].tobytes() + data[a:b].tobytes(), len(keys)) for a, b in pairwise(ends)],
            dtype=np.int64,
        )
    plain = np.ascontiguousarray(widened(X, np.float64) + 0.0)  # no row differs by the sign of a zero
    rows = plain.view(np.dtype((np.void, plain.shape[1] * plain.itemsize)))[:, 0]
    return np.asarray(np.unique(rows, return_inverse=True)[1]).ravel()


def contradictions(X: Any, labels: np.ndarray) -> list[np.ndarray]:
    """The numbers of rows with the same values whose labels are not all the same, a group each, largest first."""
    keys = same_rows(X)
    order = np.argsort(keys, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
    found = [one for one in groups if one.size > 1 and (labels[one] != labels[one[0]]).any()]
    return sorted(found, key=lambda one: (-one.size, int(one[0])))


class Separability(NamedTuple):
    """The proven separability of two classes.

    Attributes
    ----------
    separable : bool or None
        None where neither is proven.
    low, high : float
        Between what the margin lies, half the width of the widest stripe between the classes; 0 where none separates.
    reason : str
    """

    separable: bool | None
    low: float
    high: float
    reason: str


def separability(X: Any, signs: np.ndarray, w: np.ndarray, b: float, beta: np.ndarray) -> Separability:
    """Try to prove that a hyperplane separates rows with labels -1 and +1, or that none does.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    signs : ndarray of shape (n,)
    w, b
        The hyperplane of a fit, shape (d,), and its intercept.
    beta : ndarray of shape (n,)
        Its multipliers.
    """
    a = np.maximum(beta * signs, 0.0)
    norms = _norms(X)
    slip = SLACK * gamma(len(w) + 8.0) * (norms * float(np.linalg.norm(w)) + abs(b))
    least = float((signs * (np.asarray(X @ w) + b) - slip).min())
    high = _hull_distance(X, signs, a, norms)
    if least > 0.0:
        low = least / (float(np.linalg.norm(w)) * SLACK)
        return Separability(True, low, max(low, high), "a hyperplane has every row on its side")
    if _balanced(X, signs, a):
        return Separability(False, 0.0, 0.0, "the convex hulls of the classes share a point")
    return Separability(None, 0.0, high, "no hyperplane separates with a wider margin; one with a narrower margin may")


def _norms(X: Any) -> np.ndarray:
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return np.asarray(np.sqrt(np.asarray(squares, dtype=np.float64).ravel())) * SLACK


def _hull_distance(X: Any, signs: np.ndarray, a: np.ndarray, norms: np.ndarray) -> float:
    """Half the distance of the points whose weights are the multipliers of each class; infinite without some."""
    sums = [float(a[signs == sign].sum()) for sign in (-1.0, 1.0)]
    if min(sums) <= 0.0:
        return math.inf
    shares = a / np.where(signs > 0.0, sums[1], sums[0])
    apart = np.asarray(X.T @ (shares * signs)).ravel()
    rounding = gamma(len(a) + 16.0) * float(shares @ norms)
    return 0.5 * SLACK * (float(np.linalg.norm(apart)) + rounding)


def _balanced(X: Any, signs: np.ndarray, a: np.ndarray) -> bool:
    """Whether exact multipliers with ``sum_i a_i y_i (x_i, 1) = 0`` are near these."""
    chosen = np.flatnonzero(a > LEAST * a.max(initial=0.0))
    width = X.shape[1] + 1
    if chosen.size <= width or chosen.size * width > MOST_VALUES:
        return False
    rows, found = with_feature(X[chosen], 1.0) * signs[chosen, None], a[chosen] / a.max()
    for _ in range(ROUNDS):
        values, vectors = np.linalg.eigh(rows.T @ rows)
        trace = float(values.sum())
        smallest = float(values[0]) - gamma(len(rows) + 32.0 * width) * width * trace
        if smallest <= 0.0:
            return False
        for _ in range(2):  # the second takes away what rounding has left
            found = found - rows @ (vectors @ ((vectors.T @ (rows.T @ found)) / values))
        keep = found > 0.0
        if keep.all():
            lengths = np.linalg.norm(rows, axis=1)
            left = float(np.linalg.norm(rows.T @ found)) + gamma(len(rows) + 8.0) * float(lengths @ found)
            return bool((found > SLACK * lengths * left / smallest).all())
        rows, found = rows[keep], found[keep]
        if len(rows) <= width:
            return False
    return False
