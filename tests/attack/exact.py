"""The judge's arithmetic: decimals of 120 digits, in which every float is the number that it is.

Products and sums of a few hundred floats, scaled over 1e12 and more, lose nothing that matters in 120 digits; ``exp``
and ``log`` are those of :mod:`decimal`, correctly rounded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal, localcontext
from operator import mul
from typing import ParamSpec, TypeAlias, TypeVar

import numpy as np

DIGITS = 120
ZERO, ONE = Decimal(0), Decimal(1)
CONTEXT = Context(prec=DIGITS, Emax=999_999, Emin=-999_999)
Numbers: TypeAlias = Sequence[Decimal]
Given, Result = ParamSpec("Given"), TypeVar("Result")


def exact(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Run a function in the judge's arithmetic."""

    @functools.wraps(function)
    def run(*arguments: Given.args, **options: Given.kwargs) -> Result:
        with localcontext(CONTEXT):
            return function(*arguments, **options)

    return run


def numbers(values: Iterable[float]) -> list[Decimal]:
    """Floats as the numbers that they are."""
    return [Decimal(float(one)) for one in values]


def matrix(values: np.ndarray) -> list[list[Decimal]]:
    """The rows of an array of floats."""
    return [numbers(row) for row in values]


def inner(one: Iterable[Decimal], other: Iterable[Decimal]) -> Decimal:
    """The inner product."""
    return sum(map(mul, one, other), ZERO)


def combined(weights: Numbers, rows: Sequence[Numbers]) -> list[Decimal]:
    """The sum of rows, each times its weight."""
    return [inner(weights, column) for column in zip(*rows, strict=True)]
