"""Pegasos: bounds on the distance from the optimum after T iterations.

The bounds are functions of (R, lambda, T, delta): the theorems 1 and 2 of the paper with their
corollaries, the sharper bounds by Freedman's inequality, and the bounds in expectation.

With ``f(w) = (lambda / 2) ||w||^2 + (1/n) sum_i max(0, 1 - y_i x_i . w)`` its minimum at ``w*``,
iterates ``w_1 ... w_T`` of Pegasos with step sizes ``1 / (lambda t)``, and ``R`` the largest norm
of a row, put

    c = (sqrt(lambda) + R)^2   with the projection onto the ball of radius 1 / sqrt(lambda),
    c = 4 R^2                  without.

Source: Shalev-Shwartz, Singer, Srebro and Cotter (2011), "Pegasos: primal estimated sub-gradient
solver for SVM", section 3. The number of rows does not occur in any of them.

With high probability: ``f(w_t; A_t)`` is the function of iteration t. Its noise separates the
regret on the rows drawn from the sum ``D = sum_t f(w_t) - f(w*)``. Freedman's inequality, peeled
over the size of the variance (:mod:`saddlesvm.lab.martingale_bounds`), gives with probability at
least ``1 - 4 ln(T) p``

    D <= Reg + max(a sqrt(D), 3 b ln(1/p)),    so that
    D <= Reg + a sqrt(Reg) + max(a^2, 3 b ln(1/p)),

with theorem 1's bound ``Reg = c (1 + ln T) / (2 lambda)``. The functions take the whole
probability of failure, ``delta = 4 ln(T) p``.
"""

from __future__ import annotations

import math

from saddlesvm.lab.bound_conditions import check_iterations, check_positive, check_share
from saddlesvm.lab.martingale_bounds import (
    KAKADE_TEWARI,
    SHARP,
    log_of_failure,
    strongly_convex_average_bound,
)

# Theorem 2.
CONSTANT = 21.0
LARGEST_LAMBDA = 0.25


def gradient_constant(R: float, lam: float, *, projection: bool = False) -> float:
    """Return the constant c: it bounds the squared norm of every sub-gradient that Pegasos uses.

    Parameters
    ----------
    R : float
        Largest norm of a row; positive.
    lam : float
        lambda; positive.
    projection : bool, default=False
        ``(sqrt(lambda) + R)^2`` with the projection step, ``4 R^2`` without.
    """
    check_positive(R=R, lam=lam)
    if projection:
        return (math.sqrt(lam) + R) ** 2
    return 4.0 * R * R


def rate(lam: float, T: float) -> float:
    """Return ``ln T / (lambda T)``, the rate of all these bounds without their constants.

    Parameters
    ----------
    lam : float
        lambda; positive.
    T : float
        Iterations, at least 3.
    """
    check_positive(lam=lam)
    check_iterations(T)
    return math.log(T) / (lam * T)


def deterministic_regret_bound(
    R: float, lam: float, T: float, *, projection: bool = False
) -> float:
    """Bound the average regret for any rows drawn (theorem 1): ``c (1 + ln T) / (2 lambda T)``.

    With ``f(w; A_t)`` the objective on the rows of iteration t alone, for every u (with projection:
    in the ball)

        (1/T) sum_t f(w_t; A_t) - (1/T) sum_t f(u; A_t) <= c (1 + ln T) / (2 lambda T).

    Conditions: T >= 3, rows of norm at most R. If every A_t is the whole data, the average iterate
    is within the bound of the optimum (corollary 1).

    Parameters
    ----------
    R, lam : float
        Largest row norm, and lambda.
    T : float
        Iterations.
    projection : bool, default=False
    """
    check_iterations(T)
    return gradient_constant(R, lam, projection=projection) * (1.0 + math.log(T)) / (2.0 * lam * T)


def expected_average_bound(R: float, lam: float, T: float, *, projection: bool = False) -> float:
    """Bound the expected error of the average iterate: ``c (1 + ln T) / (2 lambda T)``.

        E f(w) - f(w*) <= c (1 + ln T) / (2 lambda T),     w = (1/T) sum_t w_t,

    by theorem 1 with u = w*, because ``E f(w_t; A_t) = E f(w_t)`` if the rows are drawn afresh, and
    f is convex. Conditions and parameters as for :func:`deterministic_regret_bound`.
    """
    return deterministic_regret_bound(R, lam, T, projection=projection)


def expected_suffix_bound(
    R: float, lam: float, T: float, share: float = 0.5, *, projection: bool = False
) -> float:
    """Bound the expected error of the average of the last ``share T`` iterates, without ``ln T``.

        E f(w) - f(w*) <= (2 + 2.5 ln(1 / (1 - share))) / share * c / (lambda T).

    Source: Rakhlin, Shamir and Sridharan (2012), "Making gradient descent optimal for strongly
    convex stochastic optimization", theorem 5. Conditions as for
    :func:`deterministic_regret_bound`.

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
    check_share("share", share)
    check_iterations(T)
    constant = (2.0 + 2.5 * math.log(1.0 / (1.0 - share))) / share
    return constant * gradient_constant(R, lam, projection=projection) / (lam * T)


def average_regret_bound(
    R: float, lam: float, T: float, delta: float, *, projection: bool = False
) -> float:
    """Bound the average regret with probability ``1 - delta`` (theorem 2).

        (1/T) sum_t f(w_t) - f(w*) <= 21 c ln(T / delta) / (lambda T).

    Conditions: as for theorem 1; the rows of each A_t are drawn uniformly at random from the data
    (with or without repetition); ``R >= 1`` and ``lambda <= 1/4``.

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
    check_share("delta", delta)
    check_iterations(T)
    return (
        CONSTANT
        * gradient_constant(R, lam, projection=projection)
        * math.log(T / delta)
        / (lam * T)
    )


def average_iterate_bound(
    R: float, lam: float, T: float, delta: float, *, projection: bool = False
) -> float:
    """Bound the error of the average iterate with probability ``1 - delta`` (theorem 2).

    For ``w = (1/T) sum_t w_t``,

        f(w) - f(w*) <= 21 c ln(T / delta) / (lambda T),

    because f is convex (Jensen). Conditions and parameters as for :func:`average_regret_bound`.
    """
    return average_regret_bound(R, lam, T, delta, projection=projection)


def random_iterate_bound(
    R: float, lam: float, T: float, delta: float, *, miss: float = 0.5, projection: bool = False
) -> float:
    """Bound the error of an iterate w_r, r drawn uniformly from 1 ... T (theorem 2).

    If the bound on the average regret holds, then with probability at least ``1 - miss`` over the
    draw

        f(w_r) - f(w*) <= 21 c ln(T / delta) / (miss lambda T),

    because the regrets are not negative (Markov). The paper states it for ``miss = 1/2``, with the
    constant 42. Conditions and other parameters as for :func:`average_regret_bound`.

    Parameters
    ----------
    miss : float, default=0.5
        Probability over the draw of r that the bound fails; between 0 and 1.
    """
    check_share("miss", miss)
    return average_regret_bound(R, lam, T, delta, projection=projection) / miss


def pegasos_average_bound(
    R: float, lam: float, T: float, delta: float, *, projection: bool = False, k: float = SHARP
) -> float:
    """Bound the error of the average iterate by the general theorem.

    With probability ``1 - delta`` (3.6),

        f(w) - f(w*) <= (c / (2 lambda T)) [1 + ln T + 4 sqrt((1 + ln T) ln(1/p)) + 16 ln(1/p)],

    if 6 B is not the larger term; ``p = delta / (4 ln T)``, c as for
    :func:`~saddlesvm.lab.bounds.gradient_constant`. Theorem 1 is the regret, ``L^2 = c``,
    ``nu = lambda``. Conditions: rows of norm at most R, drawn afresh in every iteration,
    ``T >= 3``.

    Parameters
    ----------
    R, lam : float
        Largest row norm, and lambda.
    T, delta : float
        Iterations, and the probability that the bound fails.
    projection : bool, default=False
    k : float, default=2
        Constant of the variance; 4 gives :func:`~saddlesvm.lab.bounds.kakade_tewari_average_bound`.

    Examples
    --------
    >>> from saddlesvm.lab.bounds import pegasos_average_bound
    >>> round(pegasos_average_bound(1.0, 0.01, 1e5, 0.05), 3)
    0.317
    """
    c = gradient_constant(R, lam, projection=projection)
    regret = T * deterministic_regret_bound(R, lam, T, projection=projection)
    # The largest norm of an iterate, and with it the largest value of a function.
    reach = 1.0 / math.sqrt(lam) if projection else R / lam
    largest = 0.5 * lam * reach * reach + 1.0 + R * reach
    return strongly_convex_average_bound(regret, math.sqrt(c), lam, largest, T, delta, k=k)


def kakade_tewari_average_bound(
    R: float, lam: float, T: float, delta: float, *, projection: bool = False
) -> float:
    """Bound the error of the average iterate with the constants of Kakade and Tewari.

    With probability ``1 - delta`` or more, T times the error is at most

        Reg + 4 sqrt(c Reg ln(1/p) / lambda) + max(16 c / lambda, 6 B) ln(1/p).

    This is :func:`pegasos_average_bound` with their constant of the variance, ``k = 4``, and has
    its conditions, parameters and errors. Theorem 2 of the Pegasos paper needs ``R >= 1`` and
    ``lambda <= 1/4``; this bound does not.
    """
    return pegasos_average_bound(R, lam, T, delta, projection=projection, k=KAKADE_TEWARI)


def kakade_tewari_random_bound(
    R: float, lam: float, T: float, delta: float, *, miss: float = 0.5, projection: bool = False
) -> float:
    """Bound the error of a random iterate with the constants of Kakade and Tewari.

    The iterate is drawn uniformly from 1 ... T (Markov's inequality). The bound fails
    with probability at most ``delta + miss``. Parameters as for
    :func:`~saddlesvm.lab.bounds.freedman_random_bound`.
    """
    check_share("miss", miss)
    return kakade_tewari_average_bound(R, lam, T, delta, projection=projection) / miss


def freedman_average_bound(
    R: float, lam: float, T: float, delta: float, *, projection: bool = False
) -> float:
    """Bound the error of the average iterate by Freedman's inequality: the sharpest bound here.

    It is below :func:`~saddlesvm.lab.bounds.pegasos_average_bound` for three reasons. The
    regulariser is not noise, so the variance of xi_t is at most ``R^2 ||w_t - w*||^2``. Strong
    convexity gives ``||w_t - w*||^2 <= (2 / lambda) (f(w_t) - f(w*))``. And the quadratic
    inequality in sqrt(D) is solved exactly. Thus ``a = sqrt(8 R^2 ln(1/p) / lambda)``,
    ``b = 2 R max ||w_t - w*||``, and with ``p = delta / (4 ln T)``, with probability ``1 - delta``
    or more,

        f(w) - f(w*) <= max([a / 2 + sqrt(a^2 / 4 + Reg)]^2, Reg + 3 b ln(1/p)) / T.

    Conditions, parameters and errors as for :func:`~saddlesvm.lab.bounds.pegasos_average_bound`.
    """
    log = log_of_failure(T, delta)
    check_positive(R=R, lam=lam)
    # An iterate and the optimum are no farther apart than the sum of their largest norms.
    norm_of_optimum = min(1.0 / math.sqrt(lam), R / lam)
    norm_of_iterate = 1.0 / math.sqrt(lam) if projection else R / lam
    apart = norm_of_optimum + norm_of_iterate
    a = math.sqrt(8.0 * R * R * log / lam)
    regret = T * deterministic_regret_bound(R, lam, T, projection=projection)
    # D <= Reg + a sqrt(D), solved for D; and D <= Reg + 3 b ln(1/p).
    by_variance = (0.5 * a + math.sqrt(0.25 * a * a + regret)) ** 2
    by_size = regret + 6.0 * R * apart * log
    return max(by_variance, by_size) / T


def freedman_random_bound(
    R: float, lam: float, T: float, delta: float, *, miss: float = 0.5, projection: bool = False
) -> float:
    """Bound the error of a random iterate by Freedman's inequality.

    The iterate is drawn uniformly from 1 ... T (Markov's inequality). Other parameters as for
    :func:`freedman_average_bound`.

    Parameters
    ----------
    miss : float, default=0.5
        Probability over the draw of the iterate; the bound fails with probability at most ``delta +
        miss``.
    """
    check_share("miss", miss)
    return freedman_average_bound(R, lam, T, delta, projection=projection) / miss
