"""Losses on arrays: the methods of a loss for all rows at once, made from its text, and the NumPy twins of kernels that
sum over them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.problem.loss import ARGUMENTS
from saddlesvm.problem.terms import Pointwise
from saddlesvm.runtime.small import NotOnArrays, on_arrays

Method = Callable[..., Any]
MAY_LACK = ("dual_step",)  # a method that only a proximal term asks for


class ArrayMethods(NamedTuple):
    """The methods of a class of losses on arrays; each takes the loss first. What does not depend on a row may be a
    number.

    Attributes
    ----------
    value, subgradient, conjugate, dual_step, slopes, curvature, bounds : callable
        `dual_step` is None where its text is more than arithmetic.
    """

    value: Method
    subgradient: Method
    conjugate: Method
    dual_step: Method | None
    slopes: Method
    curvature: Method
    bounds: Method


@functools.cache
def array_methods(kind: Hashable) -> ArrayMethods | None:
    """The methods of a class of losses on arrays; None where they cannot be made of its text."""
    made: dict[str, Method | None] = {}
    for name in (name for name in ARGUMENTS if name in ArrayMethods._fields):
        try:
            made[name] = on_arrays(getattr(kind, name))
        except NotOnArrays:
            if name not in MAY_LACK:
                return None
            made[name] = None
    return ArrayMethods(**made)  # type: ignore[arg-type]


def methods_of(loss: Any) -> ArrayMethods:
    """The methods on arrays of a loss that has them."""
    kind: Any = type(loss)
    methods = array_methods(kind)
    assert methods is not None
    return methods


def has_array_methods(loss: Any) -> bool:
    """Whether a loss has methods on arrays."""
    kind: Any = type(loss)
    return array_methods(kind) is not None


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
