"""One row's block of variables in the ascent of a joint machine: its loss, its bounds, and its threshold, by the loss.

The hinge of the best rival bounds the variables on one side, and sorting finds the threshold exactly. The top-k hinge
bounds them on both: Newton's method finds the zero of their sum, which is piecewise linear.

Source: Crammer and Singer (2001), "On the algorithmic implementation of multiclass kernel-based vector machines",
section 6; Lapin, Hein and Schiele (2015), "Top-k multiclass SVM", for the top-k hinge's bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from saddlesvm.problem.intercepts import SEARCH_STEPS
from saddlesvm.problem.joint_losses import MaxHinge
from saddlesvm.problem.terms import Terms
from saddlesvm.rows.class_rows import add_row
from saddlesvm.runtime.compiled import inlined, operation, python_class
from saddlesvm.solvers.base import AT_BOUND

if TYPE_CHECKING:
    from numba.core import types


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
def threshold_between(B: np.ndarray, count: int, own: int, A: float, s: float, low: float) -> float:
    """The beta with ``sum_q min(max((beta - B_q) / A, low_q), high_q) = 0`` over the first `count` places.

    The bounds are `low` and 0, for the row's own class 0 and s. The sum grows with beta, from below zero at the least B
    to above zero at the largest: Newton's method between these ends, halving where it leaves them.
    """
    left, right = B[0], B[0]
    for q in range(1, count):
        left, right = min(left, B[q]), max(right, B[q])
    beta = right
    for _ in range(SEARCH_STEPS):
        total, size, free = 0.0, 0.0, 0
        for q in range(count):
            a = (beta - B[q]) / A
            least, most = (0.0, s) if q == own else (low, 0.0)
            if least < a < most:
                free += 1
            total += min(max(a, least), most)
            size += abs(min(max(a, least), most))
        if abs(total) <= AT_BOUND * size or not left < right:
            break
        if total > 0.0:
            right = beta
        else:
            left = beta
        beta = beta - A * total / free if free else left
        if not left < beta < right:
            beta = 0.5 * (left + right)
            if not left < beta < right:
                break
    return beta


def _pick_lowest(loss: types.Type, s: types.Type) -> Callable[..., Any]:
    return (lambda loss, s: -np.inf) if python_class(loss) is MaxHinge else (lambda loss, s: -s / loss.k)


@operation(_pick_lowest)
def lowest(loss: Any, s: float) -> float:
    """How far below zero a rival's variable may be; minus infinity where the row's own variable bounds it anyway."""
    return -np.inf if isinstance(loss, MaxHinge) else -s / loss.k


def _pick_block_threshold(loss: types.Type, *_: types.Type) -> Callable[..., Any]:
    def unbounded(loss: Any, B: Any, count: Any, own: Any, A: Any, s: Any, rivals: Any) -> Any:
        return threshold(B, count, own, A, s, rivals)

    def bounded(loss: Any, B: Any, count: Any, own: Any, A: Any, s: Any, rivals: Any) -> Any:
        return threshold_between(B, count, own, A, s, -s / loss.k)

    return unbounded if python_class(loss) is MaxHinge else bounded


@operation(_pick_block_threshold)
def block_threshold(loss: Any, B: np.ndarray, count: int, own: int, A: float, s: float, rivals: np.ndarray) -> float:
    """The threshold of a row's block, as its loss bounds the variables."""
    if isinstance(loss, MaxHinge):
        return float(threshold(B, count, own, A, s, rivals))
    return float(threshold_between(B, count, own, A, s, lowest(loss, s)))


def _pick_loss_of_slopes(loss: types.Type, *_: types.Type) -> Callable[..., Any]:
    def of_best(loss: Any, G: Any, classes: Any, count: Any, own: Any, largest: Any) -> Any:
        best = -np.inf
        for q in range(count):
            best = max(best, G[classes[q]])
        return best - G[own]

    def of_several(loss: Any, G: Any, classes: Any, count: Any, own: Any, largest: Any) -> Any:
        held, total = 0, 0.0
        for q in range(count):
            hinge = G[classes[q]] - G[own]
            if hinge > 0.0 and (held < loss.k or hinge > largest[held - 1]):
                held = min(held + 1, loss.k)
                p = held - 1
                while p > 0 and largest[p - 1] < hinge:
                    largest[p] = largest[p - 1]
                    p -= 1
                largest[p] = hinge
        for p in range(held):
            total += largest[p]
        return total / loss.k

    return of_best if python_class(loss) is MaxHinge else of_several


@operation(_pick_loss_of_slopes)
def loss_of_slopes(loss: Any, G: np.ndarray, classes: np.ndarray, count: int, own: int, largest: np.ndarray) -> float:
    """A row's loss from ``G_k = e_ik + z_k`` of the first `count` of its classes; `largest` is scratch room."""
    hinges = np.sort(np.maximum(G[classes[:count]] - G[own], 0.0))[::-1]
    return float(hinges[0]) if isinstance(loss, MaxHinge) else float(hinges[: loss.k].sum() / loss.k)


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
def take_rivals(row: Row, count: int, low: float) -> None:
    """The best variables of a row of zeros: as much against rivals as their bounds allow, at most s together."""
    _, own, s, a, classes = row
    a[own] = 0.0
    for q in range(count):
        k = classes[q]
        if k != own:
            taken = min(s - a[own], -low)
            a[k] = -taken
            a[own] += taken


@inlined
def renew_block(terms: Terms, row: Row, count: int, W: np.ndarray, room: Room) -> float:
    """Give the first `count` classes of a row their best variables, and the weights what that changes.

    Returns the threshold: the slope that all classes between their bounds have now. It is infinite for a row of zeros.
    """
    i, own, s, a, classes = row
    G, B, low = room.G, room.B, lowest(terms.loss, s)
    A = terms.C * terms.norms[i]
    if A == 0.0:
        take_rivals(row, count, low)
        return np.inf
    place = -1
    for q in range(count):
        B[q] = G[classes[q]] - A * a[classes[q]]
        if classes[q] == own:
            place = q
    beta = block_threshold(terms.loss, B, count, place, A, s, room.rivals)
    least = 0.0 if low > -np.inf else low  # without a bound of their own the sum of the rivals' keeps it above zero
    for q in range(count):
        k = classes[q]
        renewed = (beta - B[q]) / A
        renewed = min(s, max(renewed, least)) if k == own else min(0.0, max(renewed, low))
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
    least = lowest(terms.loss, s)
    for q in range(count):
        k = classes[q]
        G[k] = z[k] + (0.0 if k == own else 1.0)
        if a[k] > least:
            high = max(high, G[k])
        coupled += a[k] * z[k]
        residual += a[k] * G[k]
        if a[k] < (s if k == own else 0.0):
            low = min(low, G[k])
    paid = s * loss_of_slopes(terms.loss, G, classes, count, own, room.rivals)
    return low, high, coupled, residual + paid, paid
