"""The parts of a problem that compiled kernels take, and the NumPy twins of kernels that sum over the rows' losses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.problem.loss import Loss, methods_of
from saddlesvm.problem.penalties import Penalty
from saddlesvm.rows.layouts import Rows
from saddlesvm.runtime.compiled import inlined


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
    """The terms without the rows: kernels over them need only one version for all layouts of rows."""

    loss: Loss
    y: np.ndarray
    weights: np.ndarray
    small: bool = False  # NumPy does the work


def box_of(loss: Loss, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of the dual variables, shape (n,) each; they are proportional to the row weights."""
    (least, most), (low, high) = loss.bounds(-1.0, 1.0), loss.bounds(1.0, 1.0)
    ahead = y > 0.0
    below, above = np.where(ahead, low, least), np.where(ahead, high, most)
    if not weights.size:
        return below, above
    heavy = weights > 0.0  # else zero times infinity
    return np.where(heavy, below, 0.0) * weights, np.where(heavy, above, 0.0) * weights


def weights_at(weights: np.ndarray, rows: np.ndarray | slice) -> np.ndarray:
    """The weights of some rows; an empty array, which means that all are 1, stays one."""
    return weights[rows] if weights.size else weights


@inlined
def weight_of(weights: np.ndarray, i: int) -> float:
    """Weight of row i; an empty array means 1."""
    return weights[i] if weights.size else 1.0


silent = np.errstate(all="ignore")  # both sides of every conditional are computed


def is_small(terms: Any) -> bool:
    """Whether NumPy suffices for the losses of these terms."""
    return getattr(terms, "small", False)


def weights_of(terms: Any) -> Any:
    """Weights of the rows; 1 where all are."""
    return terms.weights if terms.weights.size else 1.0


def chosen(terms: Pointwise, members: np.ndarray) -> tuple[np.ndarray, Any]:
    """Labels and weights of the members; 1 where all weights are."""
    return terms.y[members], terms.weights[members] if terms.weights.size else 1.0


@silent
def loss_sums(terms: Pointwise, members: np.ndarray, z: np.ndarray, offset: float, alpha: np.ndarray) -> Any:
    """:func:`saddlesvm.problem.sums.loss_sums`."""
    (y, s), a, methods = chosen(terms, members), alpha[members], methods_of(terms.loss)
    paid, ones, pairs = s * methods.value(terms.loss, z + offset, y), methods.conjugate(terms.loss, a, y, s), a * z
    return (
        float(paid.sum()), float(ones.sum()), float(pairs.sum()), float(np.abs(ones).sum()), float(np.abs(pairs).sum())
    )  # fmt: skip


@silent
def conjugate_sum(terms: Pointwise, members: np.ndarray, alpha: np.ndarray, factor: float) -> float:
    """:func:`saddlesvm.problem.sums.conjugate_sum`."""
    y, s = chosen(terms, members)
    return float(methods_of(terms.loss).conjugate(terms.loss, factor * alpha[members], y, s).sum())


@silent
def dual_of_margins(terms: Pointwise, members: np.ndarray, z: np.ndarray, offset: float, alpha: np.ndarray) -> None:
    """:func:`saddlesvm.problem.sums.dual_of_margins`."""
    y, s = chosen(terms, members)
    alpha[members] = -s * methods_of(terms.loss).subgradient(terms.loss, z + offset, y)


@silent
def offset_slope(terms: Pointwise, members: np.ndarray, z: np.ndarray, offset: float) -> tuple[float, float]:
    """:func:`saddlesvm.problem.intercepts.offset_slope`."""
    (y, s), methods = chosen(terms, members), methods_of(terms.loss)
    moved = z + offset
    bend = np.broadcast_to(s * methods.curvature(terms.loss, moved, y), z.shape)
    return float((s * methods.subgradient(terms.loss, moved, y)).sum()), float(bend.sum())


@silent
def balance(terms: Pointwise, members: np.ndarray, alpha: np.ndarray, total: float = 0.0) -> None:
    """:func:`saddlesvm.problem.intercepts.balance`."""
    (y, s), a = chosen(terms, members), alpha[members]
    left, right = methods_of(terms.loss).slopes(terms.loss, a, 0.0, y, s)
    inner = (left > -np.inf) & (right < np.inf)
    excess = float(a.sum()) - total
    heavy = a > 0.0 if excess > 0.0 else a < 0.0
    size = np.abs(a)
    inner_size = float(size[heavy & inner].sum())
    if inner_size >= abs(excess):
        heavy &= inner
    divisor = inner_size if inner_size >= abs(excess) else float(size[heavy].sum())
    a[heavy] *= max(1.0 - abs(excess) / divisor, 0.0) if divisor > 0.0 else 1.0
    alpha[members] = a


@silent
def bring_back(terms: Pointwise, members: np.ndarray, alpha: np.ndarray) -> None:
    """Bring every member's variable back to its bounds."""
    (y, s), a, methods = chosen(terms, members), alpha[members], methods_of(terms.loss)
    alpha[members] = within_bounds(methods, terms.loss, a, y, s)


def within_bounds(methods: Any, loss: Any, a: np.ndarray, y: np.ndarray, s: Any) -> np.ndarray:
    """`a`, moved back to its bounds where rounding took it beyond."""
    low, high = methods.bounds(loss, y, s)
    inside: np.ndarray = np.where(methods.conjugate(loss, a, y, s) < np.inf, a, np.minimum(np.maximum(a, low), high))
    return inside
