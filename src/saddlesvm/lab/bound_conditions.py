"""The conditions that the theorems have in common, as checks of numbers."""

from __future__ import annotations

import math

LEAST_ITERATIONS = 3.0  # the bounds of Pegasos hold from here on


def check_positive(**given: float) -> None:
    """Raise ValueError, with the name of the number, if a number is not positive and finite."""
    for name, value in given.items():
        if not 0.0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite; got {value!r}")


def check_share(name: str, value: float) -> None:
    """Raise ValueError if a number is not strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name} must be between 0 and 1; got {value!r}")


def check_iterations(T: float) -> None:
    """Raise ValueError if T is not finite, or less than 3."""
    if not LEAST_ITERATIONS <= T < math.inf:
        raise ValueError(f"T must be at least 3 and finite; got {T!r}")
