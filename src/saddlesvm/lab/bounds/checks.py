"""Checks of the arguments of bounds: each raises ValueError, with the given value and the allowed ones."""

from __future__ import annotations

import math

LEAST_ITERATIONS = 3.0


def positive(name: str, value: float) -> None:
    """`value` is positive and finite."""
    if not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite; got {value!r}")


def between(name: str, value: float) -> None:
    """`value` is strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must be between 0 and 1; got {value!r}")


def iterations(T: float) -> None:
    """T is finite and at least 3."""
    if not LEAST_ITERATIONS <= T < math.inf:
        raise ValueError(f"T must be at least 3 and finite; got {T!r}")
