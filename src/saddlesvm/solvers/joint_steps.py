"""One row's block of variables in the ascent of Crammer and Singer's machine: its loss, its bounds and its threshold.

Each variable has an upper bound, and their sum is zero: sorting finds the threshold exactly.

Source: Crammer and Singer (2001), "On the algorithmic implementation of multiclass kernel-based vector machines",
section 6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saddlesvm.problem.terms import Terms
from saddlesvm.rows.class_rows import add_row
from saddlesvm.runtime.compiled import inlined

if TYPE_CHECKING:
    pass


@inlined
def threshold(B: np.ndarray, count: int, own: int, A: float, s: float, rivals: np.ndarray) -> float:
    """The beta with ``sum_q min(s [q = own], (beta - B_q) / A) = 0`` over the first `count` places.

    While the own variable is below s, beta is the mean of the own B and the r largest of the rivals', r the first
    number of rivals at which the next one no longer exceeds the mean. Otherwise the rivals' variables sum to -s, and
    beta is the mean of the r largest less ``A s / r``. (A s is added only where the variables are of its size: where C
    is large, they may be far smaller, and rounding would hide them.)
    """
    others = 0
    for q in range(count):
        if q == own:
            continue
        p = others
        while p > 0 and rivals[p - 1] < B[q]:
            rivals[p] = rivals[p - 1]
            p -= 1
        rivals[p] = B[q]
        others += 1
    beta, r = B[own], 0
    while r < others and beta < (r + 1) * rivals[r]:
        beta += rivals[r]
        r += 1
    beta /= r + 1
    if beta - B[own] <= A * s:
        return beta
    beta, r = rivals[0] - A * s, 1
    while r < others and beta < r * rivals[r]:
        beta += rivals[r]
        r += 1
    return beta / r


@inlined
def loss_of_slopes(G: np.ndarray, classes: np.ndarray, count: int, own: int) -> float:
    """A row's loss from ``G_k = e_ik + z_k`` of the first `count` of its classes."""
    best = -np.inf
    for q in range(count):
        best = max(best, G[classes[q]])
    return best - G[own]


class Room(NamedTuple):
    """Scratch arrays with one number per class."""

    z: np.ndarray  # scores
    G: np.ndarray  # slopes
    B: np.ndarray
    rivals: np.ndarray
    a: np.ndarray  # the variables of a list; zeros between two visits
    classes: np.ndarray  # its classes

    @classmethod
    def of(cls, n_classes: int, dtype: Any) -> Room:
        """Room for so many classes; scores have the precision of the weights."""
        G, B, rivals = np.empty((3, n_classes))
        return cls(np.empty(n_classes, dtype), G, B, rivals, np.zeros(n_classes), np.empty(n_classes, dtype=np.int64))


class Row(NamedTuple):
    """One row: its number, its class, its weight, its variables, and the classes it works on."""

    i: int
    own: int
    s: float
    a: np.ndarray
    classes: np.ndarray


@inlined
def set_aside(classes: np.ndarray, count: int, a: np.ndarray, G: np.ndarray, own: int, low: float) -> int:
    """Move the rivals that are at zero with a slope below `low` behind the other classes; return how many stay."""
    q = 0
    while q < count:
        k = classes[q]
        if k != own and a[k] >= 0.0 and G[k] < low:
            count -= 1
            classes[q], classes[count] = classes[count], k
        else:
            q += 1
    return count


@inlined
def take_rival(row: Row, count: int) -> None:
    """The best variables of a row of zeros: its whole weight against the first rival."""
    _, own, s, a, classes = row
    a[own] = 0.0
    for q in range(count):
        k = classes[q]
        if k != own:
            taken = s - a[own]
            a[k] = -taken
            a[own] += taken


@inlined
def renew_block(terms: Terms, row: Row, count: int, W: np.ndarray, room: Room) -> float:
    """Give the first `count` classes of a row their best variables, and the weights what that changes.

    Returns the threshold: the slope that all classes between their bounds have now. It is infinite for a row of zeros.
    """
    i, own, s, a, classes = row
    G, B = room.G, room.B
    A = terms.C * terms.norms[i]
    if A == 0.0:
        take_rival(row, count)
        return np.inf
    place = -1
    for q in range(count):
        B[q] = G[classes[q]] - A * a[classes[q]]
        if classes[q] == own:
            place = q
    beta = threshold(B, count, place, A, s, room.rivals)
    for q in range(count):
        k = classes[q]
        renewed = (beta - B[q]) / A
        # The sum of the rivals' variables keeps the own one above zero.
        renewed = min(s if k == own else 0.0, renewed)
        if renewed != a[k]:
            add_row(terms.X, i, terms.C * (renewed - a[k]), W, k)
            a[k] = renewed
    return beta


@inlined
def row_slopes(terms: Terms, row: Row, count: int, room: Room) -> Any:
    """The slopes ``G_k = e_ik + z_k`` of the first `count` classes of a row, and what they say of it.

    Returns the least slope of a class that may rise and the largest of one that may fall, ``a . z``, the row's share of
    the gap, and its loss.
    """
    _, own, s, a, classes = row
    z, G = room.z, room.G
    low, high, coupled, residual = np.inf, -np.inf, 0.0, 0.0
    for q in range(count):
        k = classes[q]
        G[k] = z[k] + (0.0 if k == own else 1.0)
        high = max(high, G[k])
        coupled += a[k] * z[k]
        residual += a[k] * G[k]
        if a[k] < (s if k == own else 0.0):
            low = min(low, G[k])
    paid = s * loss_of_slopes(G, classes, count, own)
    return low, high, coupled, residual + paid, paid
