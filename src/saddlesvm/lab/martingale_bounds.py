"""From a regret to an error with high probability, for any strongly convex objective.

An online algorithm meets random functions ``c_t`` with mean F, and its regret is at most Reg. Put
``xi_t = [F(w_t) - F(w*)] - [c_t(w_t) - c_t(w*)]``: noise of mean zero, at most b in size. If the
c_t are L-Lipschitz and F is nu-strongly convex, the variance of xi_t is small if ``F(w_t) - F(w*)``
is,

    Var_t xi_t <= L^2 ||w_t - w*||^2 <= (k L^2 / nu) [F(w_t) - F(w*)],

with ``k = 2`` by strong convexity at the minimiser. The published proof compares with the midpoint,
``F((w_t + w*) / 2) <= [F(w_t) + F(w*)] / 2 - (nu / 8) ||w_t - w*||^2``, and has ``k = 4``.

Source: Kakade and Tewari (2008), "On the generalization ability of online strongly convex
programming algorithms", theorem 2 and lemmas 3 and 4; Freedman (1975), "On tail probabilities for
martingales".
"""

from __future__ import annotations

import math

from saddlesvm.lab.bound_conditions import check_iterations, check_positive, check_share

# The constant k of the variance.
SHARP = 2.0
KAKADE_TEWARI = 4.0


def log_of_failure(T: float, delta: float) -> float:
    """Return ``ln(1/p)`` for ``p = delta / (4 ln T)``: peeling costs ``4 ln T``."""
    check_share("delta", delta)
    check_iterations(T)
    log = math.log(4.0 * math.log(T) / delta)
    if log <= 1.0:
        raise ValueError(
            f"the theorem needs delta < 4 ln(T) / e; got delta = {delta!r} with T = {T!r}"
        )
    return log


def martingale_bound(variance: float, b: float, T: float, delta: float) -> float:
    """Bernstein's inequality for martingales, without a bound on the variance known beforehand
    (lemma 3.2).

    For differences of mean zero and size at most b, and the sum sigma^2 of their conditional
    variances,

        sum_t X_t <= max(2 sigma, 3 b sqrt(ln(1/p))) sqrt(ln(1/p)),     p = delta / (4 ln T),

    with probability ``1 - delta`` or more. Conditions: ``T >= 3``, ``p < 1/e``.

    Parameters
    ----------
    variance : float
        sigma^2, at least 0.
    b : float
        Largest size of a difference; positive.
    T : float
        Number of differences.
    delta : float
        Probability that the bound fails; between 0 and 1.

    Raises
    ------
    ValueError
        A condition is not met; the message names it.
    """
    check_positive(b=b)
    if not 0.0 <= variance < math.inf:
        raise ValueError(f"variance must be at least 0 and finite; got {variance!r}")
    # Peeling leaves the larger of two terms: of the variance, and of the largest difference.
    root = math.sqrt(log_of_failure(T, delta))
    return max(2.0 * math.sqrt(variance), 3.0 * b * root) * root


def strongly_convex_average_bound(
    regret: float, L: float, nu: float, B: float, T: float, delta: float, *, k: float = SHARP
) -> float:
    """The general theorem (3.3) for the average of an online algorithm's iterates: with probability
    ``1 - delta``

        F(w) - F(w*) <= [Reg + 4 sqrt(d Reg ln(1/p)) + max(16 d, 6 B) ln(1/p)] / T,

    ``d = k L^2 / (4 nu)``, ``p = delta / (4 ln T)``; 3.2 with the variance above, and the quadratic
    inequality in ``sqrt(D)`` solved: ``s - r <= max(4 sqrt(d s), 6 B q) q`` gives ``s <= r + 4
    sqrt(d r) q + max(16 d, 6 B) q^2``.

    Parameters
    ----------
    regret : float
        Bound on the sum of the regrets, at least 0.
    L : float
        Lipschitz constant of the functions.
    nu : float
        Strong convexity: ``F(w) - F(w*) >= (nu / 2) ||w - w*||^2``.
    B : float
        Largest value of a function at an iterate; the functions are not negative.
    T, delta : float
        Iterations, and the probability that the bound fails.
    k : float, default=2
        Constant of the variance; Kakade and Tewari have 4.

    Raises
    ------
    ValueError
        A condition is not met; the message names it.
    """
    check_positive(L=L, nu=nu, B=B, k=k)
    if not 0.0 <= regret < math.inf:
        raise ValueError(f"regret must be at least 0 and finite; got {regret!r}")
    log = log_of_failure(T, delta)
    d = 0.25 * k * L * L / nu
    # s - r <= max(4 sqrt(d s), 6 B q) q, solved for s; q is the square root of `log`.
    return (regret + 4.0 * math.sqrt(d * regret * log) + max(16.0 * d, 6.0 * B) * log) / T
