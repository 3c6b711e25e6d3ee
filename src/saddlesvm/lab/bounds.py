"""The theorems as functions: bounds on the distance from the optimum after T iterations.

:func:`iterations_for` inverts any of them.

**Pegasos.** Bounds in (R, lambda, T, delta); the number of rows does not occur. With
``f(w) = (lambda / 2) ||w||^2 + (1/n) sum_i max(0, 1 - y_i x_i . w)`` its minimum at ``w*``,
iterates ``w_1 ... w_T`` of Pegasos with step sizes ``1 / (lambda t)``, and ``R`` the largest norm
of a row, put

    c = (sqrt(lambda) + R)^2   with the projection onto the ball of radius 1 / sqrt(lambda),
    c = 4 R^2                  without.

Source: Shalev-Shwartz, Singer, Srebro and Cotter (2011), "Pegasos: primal estimated sub-gradient
solver for SVM", section 3.

With high probability: ``f(w_t; A_t)`` is the function of iteration t. Its noise separates the
regret on the rows drawn from the sum ``D = sum_t f(w_t) - f(w*)``. Freedman's inequality, peeled
over the size of the variance (:func:`martingale_bound`), gives with probability at least
``1 - 4 ln(T) p``

    D <= Reg + max(a sqrt(D), 3 b ln(1/p)),    so that
    D <= Reg + a sqrt(Reg) + max(a^2, 3 b ln(1/p)),

with theorem 1's bound ``Reg = c (1 + ln T) / (2 lambda)``. The functions take the whole
probability of failure, ``delta = 4 ln(T) p``.

**Any strongly convex objective.** An online algorithm meets random functions ``c_t`` with mean F,
and its regret is at most Reg. Put ``xi_t = [F(w_t) - F(w*)] - [c_t(w_t) - c_t(w*)]``: noise of mean
zero, at most b in size. If the c_t are L-Lipschitz and F is nu-strongly convex, the variance of
xi_t is small if ``F(w_t) - F(w*)`` is,

    Var_t xi_t <= L^2 ||w_t - w*||^2 <= (k L^2 / nu) [F(w_t) - F(w*)],

with ``k = 2`` by strong convexity at the minimiser. The published proof compares with the midpoint,
``F((w_t + w*) / 2) <= [F(w_t) + F(w*)] / 2 - (nu / 8) ||w_t - w*||^2``, and has ``k = 4``.

Source: Kakade and Tewari (2008), "On the generalization ability of online strongly convex
programming algorithms", theorem 2 and lemmas 3 and 4; Freedman (1975), "On tail probabilities for
martingales".

**SDCA.** Bounds in (n, lambda, T) and the loss, in expectation over random draws. The problem is
``P(w) = (1/n) sum_i phi_i(x_i . w) + (lambda / 2) ||w||^2``, alpha begins at zero, every step draws
a row with replacement, and ``phi_i >= 0``, ``(1/n) sum_i phi_i(0) <= 1``, ``||x_i|| <= R``. The
paper has R = 1; its proof with ``||x_i||^2 <= R^2`` kept puts ``R^2 / gamma`` for ``1 / gamma``,
and ``(R L)^2`` for ``L^2``.

Source: Shalev-Shwartz and Zhang (2013), "Stochastic dual coordinate ascent methods for regularized
loss minimization", theorems 2 (Lipschitz losses), 3 and 8 (the start by Modified-SGD) and 5 (smooth
losses).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable

__all__ = [
    "average_iterate_bound",
    "deterministic_regret_bound",
    "expected_average_bound",
    "expected_suffix_bound",
    "freedman_average_bound",
    "gradient_constant",
    "iterations_for",
    "kakade_tewari_average_bound",
    "martingale_bound",
    "pegasos_average_bound",
    "random_iterate_bound",
    "rate",
    "sdca_lipschitz_bound",
    "sdca_lipschitz_dual_bound",
    "sdca_lipschitz_iterations",
    "sdca_smooth_bound",
    "sdca_smooth_iterations",
    "strongly_convex_average_bound",
]

MOST = 2**200  # iterations up to which T is doubled (guessed)
LEAST_ITERATIONS = 3.0  # the bounds of Pegasos hold from here on
# The constant k of the variance: by strong convexity, and as published.
SHARP = 2.0
KAKADE_TEWARI = 4.0
# Theorem 2 of Pegasos: its constant, and the largest lambda.
CONSTANT = 21.0
LARGEST_LAMBDA = 0.25


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
        The other arguments of the bound, in their order without T, or by name.

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
    signature = inspect.signature(bound)
    if "T" not in signature.parameters:
        raise ValueError(f"{bound.__name__} has no parameter T")
    # The arguments by name, in the order of the bound without T.
    others = [parameter for name, parameter in signature.parameters.items() if name != "T"]
    given = signature.replace(parameters=others).bind(*arguments, **options).arguments

    def error(T: int) -> float:
        return bound(T=T, **given)

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


def average_iterate_bound(
    R: float, lam: float, T: float, delta: float, *, projection: bool = False
) -> float:
    """Bound the average regret, and the error of the average iterate (theorem 2).

    With probability ``1 - delta``, for ``w = (1/T) sum_t w_t``,

        f(w) - f(w*) <= (1/T) sum_t f(w_t) - f(w*) <= 21 c ln(T / delta) / (lambda T).

    The first inequality holds because f is convex (Jensen). Conditions: as for theorem 1; the rows
    of each A_t are drawn uniformly at random from the data (with or without repetition);
    ``R >= 1`` and ``lambda <= 1/4``.

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
    c = gradient_constant(R, lam, projection=projection)
    return CONSTANT * c * math.log(T / delta) / (lam * T)


def random_iterate_bound(
    R: float, lam: float, T: float, delta: float, *, miss: float = 0.5, projection: bool = False
) -> float:
    """Bound the error of an iterate w_r, r drawn uniformly from 1 ... T (theorem 2).

    If the bound on the average regret holds, then with probability at least ``1 - miss`` over the
    draw (every other bound on an average of regrets may be divided by `miss` alike)

        f(w_r) - f(w*) <= 21 c ln(T / delta) / (miss lambda T),

    because the regrets are not negative (Markov). The paper states it for ``miss = 1/2``, with the
    constant 42. Conditions and other parameters as for :func:`average_iterate_bound`.

    Parameters
    ----------
    miss : float, default=0.5
        Probability over the draw of r that the bound fails; between 0 and 1.
    """
    check_share("miss", miss)
    return average_iterate_bound(R, lam, T, delta, projection=projection) / miss


def pegasos_average_bound(
    R: float, lam: float, T: float, delta: float, *, projection: bool = False, k: float = SHARP
) -> float:
    """Bound the error of the average iterate by the general theorem.

    With probability ``1 - delta`` (3.6),

        f(w) - f(w*) <= (c / (2 lambda T)) [1 + ln T + 4 sqrt((1 + ln T) ln(1/p)) + 16 ln(1/p)],

    if 6 B is not the larger term; ``p = delta / (4 ln T)``, c as for
    :func:`gradient_constant`. Theorem 1 is the regret, ``L^2 = c``,
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
        Constant of the variance; 4 gives :func:`kakade_tewari_average_bound`.

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


def freedman_average_bound(
    R: float, lam: float, T: float, delta: float, *, projection: bool = False
) -> float:
    """Bound the error of the average iterate by Freedman's inequality: the sharpest bound here.

    It is below :func:`pegasos_average_bound` for three reasons. The
    regulariser is not noise, so the variance of xi_t is at most ``R^2 ||w_t - w*||^2``. Strong
    convexity gives ``||w_t - w*||^2 <= (2 / lambda) (f(w_t) - f(w*))``. And the quadratic
    inequality in sqrt(D) is solved exactly. Thus ``a = sqrt(8 R^2 ln(1/p) / lambda)``,
    ``b = 2 R max ||w_t - w*||``, and with ``p = delta / (4 ln T)``, with probability ``1 - delta``
    or more,

        f(w) - f(w*) <= max([a / 2 + sqrt(a^2 / 4 + Reg)]^2, Reg + 3 b ln(1/p)) / T.

    Conditions, parameters and errors as for :func:`pegasos_average_bound`.
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


def sdca_smooth_bound(n: int, lam: float, gamma: float, T: float, *, R: float = 1.0) -> float:
    """Bound the expected duality gap of the last iterate for smooth losses (theorem 5).

    With ``m = n + R^2 / (lambda gamma)``,

        E P(w_T) - D(alpha_T) <= m exp(-T / m).

    The error of the dual, ``E D* - D(alpha_T)``, is at most ``exp(-T / m)``.

    Parameters
    ----------
    n : int
        Rows.
    lam : float
        lambda; positive.
    gamma : float
        The loss is ``1 / gamma``-smooth: gamma is the smooth hinge's width, 4 for the logistic
        loss.
    T : float
        Steps, at least 0.
    R : float, default=1.0
        Largest row norm.
    """
    steps = _smooth_steps(n, lam, gamma, R)
    return steps * math.exp(-check_steps(T) / steps)


def sdca_smooth_iterations(n: int, lam: float, gamma: float, eps: float, *, R: float = 1.0) -> int:
    """Return the steps after which theorem 5 bounds the gap by eps: ``m ln(m / eps)``.

    ``m = n + R^2 / (lambda gamma)``.

    Parameters as for :func:`sdca_smooth_bound`; `eps` is the wanted expected duality gap.
    """
    check_positive(eps=eps)
    steps = _smooth_steps(n, lam, gamma, R)
    return max(0, math.ceil(steps * math.log(steps / eps)))


def sdca_lipschitz_dual_bound(
    n: int,
    lam: float,
    L: float,
    T: float,
    *,
    R: float = 1.0,
    spread: float | None = None,
    start: str = "zero",
) -> float:
    """Bound the error of the dual for Lipschitz losses, from T = t0 on.

        E D* - D(alpha_T) <= 2 G / (lambda (2 n + T - t0)),    G = R^2 spread^2.

    t0 steps come first, in which the dual's error falls exponentially from
    what it is at the start to ``G / (lambda n)``: ``t0 = max(0, ceil(n ln(2 lambda n E_0 / G)))``
    with ``E_0 = 1`` from zero (theorem 2), and ``E_0 = 2 (R L)^2 ln(e n) / (lambda n)`` after an
    epoch of Modified-SGD (theorems 3 and 8), which does not count in T. With ``spread = 2 L`` these
    are ``n ln(lambda n / (2 L^2))`` and ``n ln ln(e n)``.

    Parameters
    ----------
    n : int
        Rows.
    lam : float
        lambda; positive.
    L : float
        Lipschitz constant of the loss: 1 for the hinge, the absolute loss and the logistic loss.
    T : float
        Steps; the bound is infinite before t0.
    R : float, default=1.0
        Largest row norm.
    spread : float, optional
        Largest distance of a dual variable from a slope of its loss; 2 L by default. For the
        hinge it is 1, because both lie between 0 and y: the constants are then a quarter of the
        published ones.
    start : {"zero", "sgd"}, default="zero"
    """
    first, G = _first_steps(n, lam, L, R, spread, start)
    if check_steps(T) < first:
        return math.inf
    return 2.0 * G / (lam * (2.0 * n + T - first))


def sdca_lipschitz_bound(
    n: int,
    lam: float,
    L: float,
    T: float,
    *,
    T0: float | None = None,
    R: float = 1.0,
    spread: float | None = None,
    start: str = "zero",
) -> float:
    """Bound the expected duality gap for Lipschitz losses (theorem 2).

    For the average of the iterates T0 + 1 to T, or a random iterate among them,

        E P(w) - D(alpha) <= 2 G / (lambda (2 n + T0 - t0)) + G / (2 lambda (T - T0)),

    for ``T0 >= t0`` and ``T - T0 >= n``; with ``start="sgd"`` it is theorem 3. t0, G and the other
    parameters are as for :func:`sdca_lipschitz_dual_bound`.

    Parameters
    ----------
    n : int
    lam, L : float
    T : float
        Steps.
    T0 : float, optional
        Steps before the average begins; by default the best choice, ``(2 T - 2 n + t0) / 3``
        within its limits.
    R : float, default=1.0
    spread : float, optional
    start : {"zero", "sgd"}, default="zero"

    Returns
    -------
    float
        Infinite if T is too small for the theorem.
    """
    first, G = _first_steps(n, lam, L, R, spread, start)
    last = check_steps(T) - n
    if T0 is None:
        # The minimum of the bound over T0, within t0 <= T0 <= T - n.
        begin = min(max((2.0 * T - 2.0 * n + first) / 3.0, first), last)
    else:
        begin = float(T0)
    if not first <= begin <= last:
        return math.inf
    return 2.0 * G / (lam * (2.0 * n + begin - first)) + 0.5 * G / (lam * (T - begin))


def sdca_lipschitz_iterations(
    n: int,
    lam: float,
    L: float,
    eps: float,
    *,
    R: float = 1.0,
    spread: float | None = None,
    start: str = "zero",
) -> int:
    """Return the steps for a gap of eps by theorem 2: ``t0 + n + 5 G / (lambda eps)``.

    With ``spread = 2 L`` the last term is ``20 (R L)^2 / (lambda eps)``; for the hinge, with a
    spread of 1, it is ``5 R^2 / (lambda eps)``. Parameters as for
    :func:`sdca_lipschitz_dual_bound`; `eps` is the wanted expected duality gap of the average.
    """
    check_positive(eps=eps)
    first, G = _first_steps(n, lam, L, R, spread, start)
    return math.ceil(first + n + 5.0 * G / (lam * eps))


def _smooth_steps(n: int, lam: float, gamma: float, R: float) -> float:
    """Return ``m = n + R^2 / (lambda gamma)``."""
    check_positive(n=n, lam=lam, gamma=gamma, R=R)
    return n + R * R / (lam * gamma)


def _first_steps(
    n: int, lam: float, L: float, R: float, spread: float | None, start: str
) -> tuple[int, float]:
    """Return t0, the steps before the rate holds, and G."""
    wide = 2.0 * L if spread is None else spread
    check_positive(n=n, lam=lam, L=L, R=R, spread=wide)
    if start not in ("zero", "sgd"):
        raise ValueError(f"start must be 'zero' or 'sgd'; got {start!r}")
    G = (R * wide) ** 2
    # The error of the dual at the start: from zero, or after an epoch of Modified-SGD.
    error = 1.0
    if start == "sgd":
        error = 2.0 * (R * L) ** 2 * math.log(math.e * n) / (lam * n)
    first = max(0, math.ceil(n * math.log(2.0 * lam * n * error / G)))
    return first, G


def check_steps(T: float) -> float:
    """Return T, the number of steps, if it is finite and not negative."""
    if not 0.0 <= T < math.inf:
        raise ValueError(f"T must be at least 0 and finite; got {T!r}")
    return T


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
