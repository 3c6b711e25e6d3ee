"""Losses on arrays: the methods of a loss for all rows at once, made from its text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from saddlesvm.problem.loss import ARGUMENTS
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
