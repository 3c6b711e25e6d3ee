"""The theorems as functions: bounds on the distance from the optimum after T iterations.

Pegasos: theorems 1 and 2 of its paper with their corollaries, the sharper bounds by Freedman's
inequality, and bounds in expectation; the general theorem for strongly convex objectives, and the
inequality for martingales behind it. SDCA: its theorems for Lipschitz and for smooth losses.
:func:`iterations_for` inverts any of them.

The formulas stand in the docstrings of ``pegasos_bounds``, ``martingale_bounds`` and
``sdca_bounds``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from saddlesvm.lab.bound_conditions import LEAST_ITERATIONS, check_positive
from saddlesvm.lab.martingale_bounds import martingale_bound, strongly_convex_average_bound
from saddlesvm.lab.pegasos_bounds import (
    average_iterate_bound,
    average_regret_bound,
    deterministic_regret_bound,
    expected_average_bound,
    expected_suffix_bound,
    freedman_average_bound,
    freedman_random_bound,
    gradient_constant,
    kakade_tewari_average_bound,
    kakade_tewari_random_bound,
    pegasos_average_bound,
    random_iterate_bound,
    rate,
)
from saddlesvm.lab.sdca_bounds import (
    sdca_lipschitz_bound,
    sdca_lipschitz_dual_bound,
    sdca_lipschitz_iterations,
    sdca_smooth_bound,
    sdca_smooth_dual_bound,
    sdca_smooth_iterations,
)

__all__ = [
    "average_iterate_bound",
    "average_regret_bound",
    "deterministic_regret_bound",
    "expected_average_bound",
    "expected_suffix_bound",
    "freedman_average_bound",
    "freedman_random_bound",
    "gradient_constant",
    "iterations_for",
    "kakade_tewari_average_bound",
    "kakade_tewari_random_bound",
    "martingale_bound",
    "pegasos_average_bound",
    "random_iterate_bound",
    "rate",
    "sdca_lipschitz_bound",
    "sdca_lipschitz_dual_bound",
    "sdca_lipschitz_iterations",
    "sdca_smooth_bound",
    "sdca_smooth_dual_bound",
    "sdca_smooth_iterations",
    "strongly_convex_average_bound",
]

MOST = 2**200  # iterations up to which T is doubled (guessed)


def iterations_for(
    eps: float, bound: Callable[..., float], *arguments: object, **options: object
) -> int:
    """Return the least T from which on a bound is at most `eps`.

    Every bound here falls with T after its first values, so doubling and bisection find T.

    Parameters
    ----------
    eps : float
        Wanted error, in the units of the objective in the lambda form; positive.
    bound : callable
        A function of this module with a parameter T.
    *arguments, **options
        The other arguments of the bound, in their order, without T.

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
    check_positive(eps=eps)
    names = list(inspect.signature(bound).parameters)
    if "T" not in names:
        raise ValueError(f"{bound.__name__} has no parameter T")
    place = names.index("T")

    def error(T: int) -> float:
        return bound(*arguments[:place], T, *arguments[place:], **options)

    # Double T until the bound is small enough, then halve the interval.
    low = int(LEAST_ITERATIONS)
    high = int(LEAST_ITERATIONS)
    while error(high) > eps:
        low = high
        high = 2 * high
        if high > MOST:
            raise ValueError(
                f"{bound.__name__} stays above eps={eps!r} up to T = 2^200: give a larger eps"
            )
    while high - low > 1:
        middle = (low + high) // 2
        if error(middle) > eps:
            low = middle
        else:
            high = middle
    return high
