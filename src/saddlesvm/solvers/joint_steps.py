"""One row's block of variables in the ascent of a joint machine: its loss, its bounds, and its threshold, by the loss.

The hinge of the best rival bounds the variables on one side, and sorting finds the threshold exactly. The top-k hinge
bounds them on both: Newton's method finds the zero of their sum, which is piecewise linear.

Source: Crammer and Singer (2001), "On the algorithmic implementation of multiclass kernel-based vector machines",
section 6; Lapin, Hein and Schiele (2015), "Top-k multiclass SVM", for the top-k hinge's bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.problem.joint_losses import MaxHinge
from saddlesvm.runtime.class_sources import python_class
from saddlesvm.runtime.compiled import inlined, operation

if TYPE_CHECKING:
    from numba.core import types

SUM_ROUNDING = 4e-16  # what may be left of a block's sum, in units of the row's weight
THRESHOLD_STEPS = 200  # steps of the search for a threshold between two bounds, which ends by itself long before


@inlined
def threshold(B: np.ndarray, count: int, own: int, A: float, s: float, sorted_D: np.ndarray) -> float:
    """The beta with ``sum_q min(s [q = own], (beta - B_q) / A) = 0`` over the first `count` places.

    With ``D_q = B_q + A s [q = own]`` in descending order, beta is the mean of the r largest less ``A s / r``, r the
    first number of terms at which the next D no longer exceeds it.
    """
    for q in range(count):
        sorted_D[q] = B[q] + (A * s if q == own else 0.0)
        p = q
        while p > 0 and sorted_D[p - 1] < sorted_D[p]:
            sorted_D[p - 1], sorted_D[p] = sorted_D[p], sorted_D[p - 1]
            p -= 1
    beta, r = sorted_D[0] - A * s, 1
    while r < count and beta < r * sorted_D[r]:
        beta += sorted_D[r]
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
    for _ in range(THRESHOLD_STEPS):
        total, free = 0.0, 0
        for q in range(count):
            a = (beta - B[q]) / A
            least, most = (0.0, s) if q == own else (low, 0.0)
            if least < a < most:
                free += 1
            total += min(max(a, least), most)
        if abs(total) <= SUM_ROUNDING * s or not left < right:
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
    def unbounded(loss: Any, B: Any, count: Any, own: Any, A: Any, s: Any, sorted_D: Any) -> Any:
        return threshold(B, count, own, A, s, sorted_D)

    def bounded(loss: Any, B: Any, count: Any, own: Any, A: Any, s: Any, sorted_D: Any) -> Any:
        return threshold_between(B, count, own, A, s, -s / loss.k)

    return unbounded if python_class(loss) is MaxHinge else bounded


@operation(_pick_block_threshold)
def block_threshold(loss: Any, B: np.ndarray, count: int, own: int, A: float, s: float, sorted_D: np.ndarray) -> float:
    """The threshold of a row's block, as its loss bounds the variables."""
    if isinstance(loss, MaxHinge):
        return float(threshold(B, count, own, A, s, sorted_D))
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


@inlined
def take_rivals(a: np.ndarray, own: int, s: float, low: float) -> None:
    """The best variables of a row of zeros: as much against rivals as their bounds allow, at most s together."""
    a[own] = 0.0
    for k in range(a.size):
        if k != own:
            taken = min(s - a[own], -low)
            a[k] = -taken
            a[own] += taken
