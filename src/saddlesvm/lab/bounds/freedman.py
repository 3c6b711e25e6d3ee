"""High-probability bounds for Pegasos that use how small the noise becomes near the optimum.

Put ``xi_t = [f(w_t) - f(w*)] - [f(w_t; A_t) - f(w*; A_t)]``: the noise of iteration t, zero in expectation, with
``|xi_t| <= b``. Their sum is what separates the regret on the rows drawn from the sum ``D = sum_t f(w_t) - f(w*)``.
Because f is lambda-strongly convex, the variance of xi_t is at most a multiple of ``f(w_t) - f(w*)`` itself. Freedman's
inequality, peeled over the size of the variance, then gives with probability at least ``1 - 4 ln(T) p``

    D <= Reg + max(a sqrt(D), 3 b ln(1/p)),    so that    D <= Reg + a sqrt(Reg) + max(a^2, 3 b ln(1/p)),

where ``Reg = c (1 + ln T) / (2 lambda)`` is theorem 1's bound. The whole probability of failure, ``delta = 4 ln(T) p``,
is what the functions take.

Source: Kakade and Tewari (2008), "On the generalization ability of online strongly convex programming algorithms",
lemma 3 and theorem 2; Freedman (1975), "On tail probabilities for martingales".
"""

from __future__ import annotations

import math

from saddlesvm.lab.bounds.checks import between, positive
from saddlesvm.lab.bounds.pegasos import deterministic_regret_bound
from saddlesvm.lab.bounds.strongly_convex import log_of_share


def freedman_average_bound(R: float, lam: float, T: float, delta: float, *, projection: bool = False) -> float:
    """The sharper form for the average iterate: below :func:`~saddlesvm.lab.bounds.pegasos_average_bound`.

    Three things are gained: the regulariser is no noise, so that xi_t's variance is at most ``R^2 ||w_t - w*||^2``;
    strong convexity gives ``||w_t - w*||^2 <= (2 / lambda) (f(w_t) - f(w*))``; and the quadratic inequality in sqrt(D)
    is solved exactly. Thus ``a = sqrt(8 R^2 ln(1/p) / lambda)``, ``b = 2 R max ||w_t - w*||``, and with
    ``p = delta / (4 ln T)``, with probability ``1 - delta`` or more,

        f(w) - f(w*) <= max([a / 2 + sqrt(a^2 / 4 + Reg)]^2, Reg + 3 b ln(1/p)) / T.

    Conditions, parameters and errors as for :func:`~saddlesvm.lab.bounds.pegasos_average_bound`.
    """
    log = log_of_share(T, delta)
    positive("R", R)
    positive("lam", lam)
    optimum = min(1.0 / math.sqrt(lam), R / lam)
    apart = optimum + (1.0 / math.sqrt(lam) if projection else R / lam)
    a = math.sqrt(8.0 * R * R * log / lam)
    regret = T * deterministic_regret_bound(R, lam, T, projection=projection)
    return max((0.5 * a + math.sqrt(0.25 * a * a + regret)) ** 2, regret + 6.0 * R * apart * log) / T


def freedman_random_bound(
    R: float, lam: float, T: float, delta: float, *, miss: float = 0.5, projection: bool = False
) -> float:
    """:func:`freedman_average_bound` for an iterate drawn uniformly from 1 ... T, by Markov's inequality.

    Parameters
    ----------
    R, lam : float
        Largest row norm, and lambda.
    T : float
        Iterations.
    delta : float
        Probability that the bound on the average regret fails.
    miss : float, default=0.5
        Probability over the draw of the iterate; the bound fails with probability at most ``delta + miss``.
    projection : bool, default=False
    """
    between("miss", miss)
    return freedman_average_bound(R, lam, T, delta, projection=projection) / miss
