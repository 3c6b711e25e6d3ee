"""The theorems as functions: upper bounds on the distance of an algorithm from the optimum after T iterations.

Pegasos: theorem 1 and 2 of its paper with their corollaries, the sharper ones by Freedman's inequality, and those in
expectation; the general theorem for strongly convex objectives, and the inequality for martingales behind it. SDCA: its
theorems for Lipschitz and for smooth losses. :func:`iterations_for` inverts any of them.

The bounds of SDCA are functions of (n, lambda, T) and of the loss, for random draws. The problem is ``P(w) = (1/n)
sum_i phi_i(x_i . w) + (lambda / 2) ||w||^2``, alpha begins at zero, every step draws a row with replacement, and
``phi_i >= 0``, ``(1/n) sum_i phi_i(0) <= 1``, ``||x_i|| <= R``. All of them are in expectation over the draws. The
paper has R = 1; its proof with ``||x_i||^2 <= R^2`` kept puts ``R^2 / gamma`` for ``1 / gamma``, and ``(R L)^2`` for
``L^2``.

Source: Shalev-Shwartz and Zhang (2013), "Stochastic dual coordinate ascent methods for regularized loss minimization",
theorems 2 (Lipschitz losses), 3 and 8 (the start by Modified-SGD) and 5 (smooth losses).
"""

from __future__ import annotations

import math

from saddlesvm.lab.bounds.pegasos import (
    average_iterate_bound,
    average_regret_bound,
    deterministic_regret_bound,
    expected_average_bound,
    expected_suffix_bound,
    freedman_average_bound,
    freedman_random_bound,
    gradient_constant,
    iterations_for,
    kakade_tewari_average_bound,
    kakade_tewari_random_bound,
    martingale_bound,
    pegasos_average_bound,
    positive,
    random_iterate_bound,
    rate,
    strongly_convex_average_bound,
)

__all__ = [
    "average_iterate_bound", "average_regret_bound", "deterministic_regret_bound", "expected_average_bound",
    "expected_suffix_bound", "freedman_average_bound", "freedman_random_bound", "gradient_constant", "iterations_for",
    "kakade_tewari_average_bound", "kakade_tewari_random_bound", "martingale_bound", "pegasos_average_bound",
    "random_iterate_bound", "rate", "sdca_lipschitz_bound", "sdca_lipschitz_dual_bound", "sdca_lipschitz_iterations",
    "sdca_smooth_bound", "sdca_smooth_dual_bound", "sdca_smooth_iterations", "strongly_convex_average_bound",
]  # fmt: skip


def sdca_smooth_dual_bound(n: int, lam: float, gamma: float, T: float, *, R: float = 1.0) -> float:
    """Smooth losses, the dual: ``E D* - D(alpha_T) <= exp(-T / (n + R^2 / (lambda gamma)))``.

    Parameters
    ----------
    n : int
        Rows.
    lam : float
        lambda; positive.
    gamma : float
        The loss is ``1 / gamma``-smooth: gamma is the smooth hinge's width, 4 for the logistic loss.
    T : float
        Steps, at least 0.
    R : float, default=1.0
        Largest row norm.
    """
    return math.exp(-_steps(T) / _smooth_steps(n, lam, gamma, R))


def sdca_smooth_bound(n: int, lam: float, gamma: float, T: float, *, R: float = 1.0) -> float:
    """Theorem 5, the duality gap of the last iterate: with ``m = n + R^2 / (lambda gamma)``

        E P(w_T) - D(alpha_T) <= m exp(-T / m).

    Parameters as for :func:`sdca_smooth_dual_bound`.
    """
    steps = _smooth_steps(n, lam, gamma, R)
    return steps * math.exp(-_steps(T) / steps)


def sdca_smooth_iterations(n: int, lam: float, gamma: float, eps: float, *, R: float = 1.0) -> int:
    """Theorem 5 the other way round: ``m ln(m / eps)`` steps, ``m = n + R^2 / (lambda gamma)``, bring the gap to eps.

    Parameters as for :func:`sdca_smooth_dual_bound`; `eps` is the wanted expected duality gap.
    """
    positive("eps", eps)
    steps = _smooth_steps(n, lam, gamma, R)
    return max(0, math.ceil(steps * math.log(steps / eps)))


def sdca_lipschitz_dual_bound(
    n: int, lam: float, L: float, T: float, *, R: float = 1.0, spread: float | None = None, start: str = "zero"
) -> float:
    """Lipschitz losses, the dual: ``E D* - D(alpha_T) <= 2 G / (lambda (2 n + T - t0))`` from T = t0 on.

    ``G = R^2 spread^2``; t0 steps come first, in which the dual's error falls exponentially from what it is at the
    start to ``G / (lambda n)``: ``t0 = max(0, ceil(n ln(2 lambda n E_0 / G)))`` with ``E_0 = 1`` from zero (theorem 2),
    and ``E_0 = 2 (R L)^2 ln(e n) / (lambda n)`` after an epoch of Modified-SGD (theorems 3 and 8), which does not count
    in T. With ``spread = 2 L`` these are ``n ln(lambda n / (2 L^2))`` and ``n ln ln(e n)``.

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
        Largest distance of a dual variable from a slope of its loss; 2 L when left out. For the hinge it is 1, because
        both lie between 0 and y: its constants are a quarter of the published ones.
    start : {"zero", "sgd"}, default="zero"
    """
    first, G = _first_steps(n, lam, L, R, spread, start)
    return math.inf if _steps(T) < first else 2.0 * G / (lam * (2.0 * n + T - first))


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
    """Theorem 2, the duality gap of the average of the iterates T0 + 1 to T (or of a random one of these):

        E P(w) - D(alpha) <= 2 G / (lambda (2 n + T0 - t0)) + G / (2 lambda (T - T0)),

    for ``T0 >= t0`` and ``T - T0 >= n``; with ``start="sgd"`` it is theorem 3. t0, G and the other parameters are as
    for :func:`sdca_lipschitz_dual_bound`.

    Parameters
    ----------
    n : int
    lam, L : float
    T : float
        Steps.
    T0 : float, optional
        Steps before the average begins; the best choice when left out, ``(2 T - 2 n + t0) / 3`` within its limits.
    R : float, default=1.0
    spread : float, optional
    start : {"zero", "sgd"}, default="zero"

    Returns
    -------
    float
        Infinite where T is too small for the theorem to say anything.
    """
    first, G = _first_steps(n, lam, L, R, spread, start)
    last = _steps(T) - n
    begin = min(max((2.0 * T - 2.0 * n + first) / 3.0, first), last) if T0 is None else float(T0)
    if not first <= begin <= last:
        return math.inf
    return 2.0 * G / (lam * (2.0 * n + begin - first)) + 0.5 * G / (lam * (T - begin))


def sdca_lipschitz_iterations(
    n: int, lam: float, L: float, eps: float, *, R: float = 1.0, spread: float | None = None, start: str = "zero"
) -> int:
    """Theorem 2 the other way round: ``t0 + n + 5 G / (lambda eps)`` steps bring the expected gap to eps.

    With ``spread = 2 L`` the last term is ``20 (R L)^2 / (lambda eps)``, for the hinge with its own spread
    ``5 R^2 / (lambda eps)``. Parameters as for :func:`sdca_lipschitz_dual_bound`; `eps` is the wanted expected duality
    gap of the average.
    """
    positive("eps", eps)
    first, G = _first_steps(n, lam, L, R, spread, start)
    return math.ceil(first + n + 5.0 * G / (lam * eps))


def _smooth_steps(n: int, lam: float, gamma: float, R: float) -> float:
    for name, given in (("n", n), ("lam", lam), ("gamma", gamma), ("R", R)):
        positive(name, given)
    return n + R * R / (lam * gamma)


def _first_steps(n: int, lam: float, L: float, R: float, spread: float | None, start: str) -> tuple[int, float]:
    """t0 and G."""
    wide = 2.0 * L if spread is None else spread
    for name, given in (("n", n), ("lam", lam), ("L", L), ("R", R), ("spread", wide)):
        positive(name, given)
    if start not in ("zero", "sgd"):
        raise ValueError(f"start must be 'zero' or 'sgd'; got {start!r}")
    G = (R * wide) ** 2
    error = 1.0 if start == "zero" else 2.0 * (R * L) ** 2 * math.log(math.e * n) / (lam * n)
    return max(0, math.ceil(n * math.log(2.0 * lam * n * error / G))), G


def _steps(T: float) -> float:
    if not 0.0 <= T < math.inf:
        raise ValueError(f"T must be at least 0 and finite; got {T!r}")
    return T
