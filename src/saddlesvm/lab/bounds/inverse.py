"""The number of iterations after which a bound is small enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from saddlesvm.lab.bounds.checks import LEAST_ITERATIONS, positive

MOST = 2**200


def iterations_for(eps: float, bound: Callable[..., float], *arguments: Any, **options: Any) -> int:
    """The least T from which on a bound says that the error is at most `eps`.

    Every bound here falls with T once it is below its first values, so that doubling and bisection find the place.

    Parameters
    ----------
    eps : float
        Wanted error, in the units of the objective in the lambda form; positive.
    bound : callable
        One of :mod:`saddlesvm.lab.bounds` with a parameter T.
    *arguments, **options
        The bound's other arguments, in their order, T left out.

    Returns
    -------
    int
        T of at least 3.

    Raises
    ------
    ValueError
        `eps` is not positive, a condition of the bound is not met, or no T below 2^200 is enough.

    Examples
    --------
    >>> from saddlesvm.lab.bounds import deterministic_regret_bound, iterations_for
    >>> iterations_for(0.1, deterministic_regret_bound, 1.0, 0.01)
    21998
    """
    positive("eps", eps)
    places = _place_of_T(bound)

    def error(T: int) -> float:
        return bound(*arguments[:places], T, *arguments[places:], **options)

    low, high = int(LEAST_ITERATIONS), int(LEAST_ITERATIONS)
    while error(high) > eps:
        low, high = high, 2 * high
        if high > MOST:
            raise ValueError(f"{bound.__name__} stays above {eps!r}")
    while high - low > 1:
        middle = (low + high) // 2
        if error(middle) > eps:
            low = middle
        else:
            high = middle
    return high


def _place_of_T(bound: Callable[..., float]) -> int:
    """The position of T among the arguments."""
    names = bound.__code__.co_varnames[: bound.__code__.co_argcount]
    if "T" not in names:
        raise ValueError(f"{bound.__name__} has no parameter T")
    return names.index("T")
