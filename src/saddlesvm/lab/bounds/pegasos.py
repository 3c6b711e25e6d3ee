"""Bounds on how far Pegasos is from the optimum, as functions of (R, lambda, T, delta).

With ``f(w) = (lambda / 2) ||w||^2 + (1/n) sum_i max(0, 1 - y_i x_i . w)`` its minimum at ``w*``, iterates
``w_1 ... w_T`` of Pegasos with step sizes ``1 / (lambda t)``, and ``R`` the largest norm of a row, put

    c = (sqrt(lambda) + R)^2   with the projection onto the ball of radius 1 / sqrt(lambda),   c = 4 R^2   without.

Source: Shalev-Shwartz, Singer, Srebro and Cotter (2011), "Pegasos: primal estimated sub-gradient solver for SVM",
section 3. The number of rows does not occur in any of them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

LEAST_ITERATIONS = 3.0
LARGEST_LAMBDA = 0.25
CONSTANT = 21.0
MOST = 2**200  # iterations: the largest number that is tried


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


def gradient_constant(R: float, lam: float, *, projection: bool = False) -> float:
    """The constant c: a bound on the squared norm of every sub-gradient that Pegasos steps along.

    Parameters
    ----------
    R : float
        Largest norm of a row; positive.
    lam : float
        lambda; positive.
    projection : bool, default=False
        ``(sqrt(lambda) + R)^2`` with the projection step, ``4 R^2`` without.
    """
    positive("R", R)
    positive("lam", lam)
    return (math.sqrt(lam) + R) ** 2 if projection else 4.0 * R * R


def rate(lam: float, T: float) -> float:
    """``ln T / (lambda T)``: the rate of all these bounds, without their constants.

    Parameters
    ----------
    lam : float
        lambda; positive.
    T : float
        Iterations, more than 1.
    """
    positive("lam", lam)
    iterations(T)
    return math.log(T) / (lam * T)


def deterministic_regret_bound(R: float, lam: float, T: float, *, projection: bool = False) -> float:
    """Theorem 1: ``c (1 + ln T) / (2 lambda T)`` bounds the average regret, whatever rows are drawn.

    With ``f(w; A_t)`` the objective on the rows of iteration t alone, for every u (with projection: in the ball)

        (1/T) sum_t f(w_t; A_t) - (1/T) sum_t f(u; A_t) <= c (1 + ln T) / (2 lambda T).

    Conditions: T >= 3, rows of norm at most R. If every A_t is the whole data, the average iterate is within the bound
    of the optimum (corollary 1).

    Parameters
    ----------
    R, lam : float
        Largest row norm, and lambda.
    T : float
        Iterations.
    projection : bool, default=False
    """
    iterations(T)
    return gradient_constant(R, lam, projection=projection) * (1.0 + math.log(T)) / (2.0 * lam * T)


def expected_average_bound(R: float, lam: float, T: float, *, projection: bool = False) -> float:
    """In expectation over the draws, for the average iterate: ``c (1 + ln T) / (2 lambda T)``.

        E f(w) - f(w*) <= c (1 + ln T) / (2 lambda T),     w = (1/T) sum_t w_t,

    by theorem 1 with u = w*, because ``E f(w_t; A_t) = E f(w_t)`` where the rows are drawn afresh, and f is convex.
    Conditions and parameters as for :func:`deterministic_regret_bound`.
    """
    return deterministic_regret_bound(R, lam, T, projection=projection)


def expected_suffix_bound(R: float, lam: float, T: float, share: float = 0.5, *, projection: bool = False) -> float:
    """In expectation, for the average of the last ``share T`` iterates: no logarithm of T is left.

        E f(w) - f(w*) <= (2 + 2.5 ln(1 / (1 - share))) / share * c / (lambda T).

    Source: Rakhlin, Shamir and Sridharan (2012), "Making gradient descent optimal for strongly convex stochastic
    optimization", theorem 5. Conditions as for :func:`deterministic_regret_bound`.

    Parameters
    ----------
    R, lam : float
        Largest row norm, and lambda.
    T : float
        Iterations.
    share : float, default=0.5
        Share of the iterates that are averaged; between 0 and 1.
    projection : bool, default=False
    """
    between("share", share)
    iterations(T)
    constant = (2.0 + 2.5 * math.log(1.0 / (1.0 - share))) / share
    return constant * gradient_constant(R, lam, projection=projection) / (lam * T)


def average_regret_bound(R: float, lam: float, T: float, delta: float, *, projection: bool = False) -> float:
    """Theorem 2: ``21 c ln(T / delta) / (lambda T)`` bounds the average regret with probability ``1 - delta`` or more.

        (1/T) sum_t f(w_t) - f(w*) <= 21 c ln(T / delta) / (lambda T).

    Conditions: those of theorem 1; the rows of each A_t are drawn uniformly at random from the data (with or without
    repetition); ``R >= 1`` and ``lambda <= 1/4``.

    Parameters
    ----------
    R : float
        Largest row norm, at least 1.
    lam : float
        lambda, at most 1/4.
    T : float
        Iterations.
    delta : float
        Probability that the bound fails; between 0 and 1.
    projection : bool, default=False

    Raises
    ------
    ValueError
        A condition of the theorem is not met; the message names it.
    """
    if R < 1.0:
        raise ValueError(f"the theorem needs R >= 1; got {R!r}")
    if lam > LARGEST_LAMBDA:
        raise ValueError(f"the theorem needs lambda <= 1/4; got {lam!r}")
    between("delta", delta)
    iterations(T)
    return CONSTANT * gradient_constant(R, lam, projection=projection) * math.log(T / delta) / (lam * T)


def average_iterate_bound(R: float, lam: float, T: float, delta: float, *, projection: bool = False) -> float:
    """Corollary of theorem 2 for the average ``w = (1/T) sum_t w_t``: with probability at least ``1 - delta``

        f(w) - f(w*) <= 21 c ln(T / delta) / (lambda T),

    because f is convex (Jensen). Conditions and parameters as for :func:`average_regret_bound`.
    """
    return average_regret_bound(R, lam, T, delta, projection=projection)


def random_iterate_bound(
    R: float, lam: float, T: float, delta: float, *, miss: float = 0.5, projection: bool = False
) -> float:
    """Corollary of theorem 2 for an iterate w_r, r drawn uniformly from 1 ... T.

    Where the bound on the average regret holds, it holds with probability at least ``1 - miss`` over the draw that

        f(w_r) - f(w*) <= 21 c ln(T / delta) / (miss lambda T),

    because the regrets are not negative (Markov). The paper states it for ``miss = 1/2``, with the constant 42.
    Conditions and other parameters as for :func:`average_regret_bound`.

    Parameters
    ----------
    miss : float, default=0.5
        Probability over the draw of r that the bound fails; between 0 and 1.
    """
    between("miss", miss)
    return average_regret_bound(R, lam, T, delta, projection=projection) / miss


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
    names = list(inspect.signature(bound).parameters)
    if "T" not in names:
        raise ValueError(f"{bound.__name__} has no parameter T")
    places = names.index("T")

    def error(T: int) -> float:
        return bound(*arguments[:places], T, *arguments[places:], **options)

    low, high = int(LEAST_ITERATIONS), int(LEAST_ITERATIONS)
    while error(high) > eps:
        low, high = high, 2 * high
        if high > MOST:
            raise ValueError(f"{bound.__name__} stays above eps={eps!r} for every T that was tried: give a larger eps")
    while high - low > 1:
        middle = (low + high) // 2
        if error(middle) > eps:
            low = middle
        else:
            high = middle
    return high
