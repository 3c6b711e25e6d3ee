"""Bounds on the duality gap of SDCA with random draws, as functions of (n, lambda, T) and of the loss.

The problem is ``P(w) = (1/n) sum_i phi_i(x_i . w) + (lambda / 2) ||w||^2``, alpha begins at zero, every step draws a
row with replacement, and ``phi_i >= 0``, ``(1/n) sum_i phi_i(0) <= 1``, ``||x_i|| <= R``. All of them are in
expectation over the draws. The paper has R = 1; its proof with ``||x_i||^2 <= R^2`` kept puts ``R^2 / gamma`` for
``1 / gamma``, and ``(R L)^2`` for ``L^2``.

Source: Shalev-Shwartz and Zhang (2013), "Stochastic dual coordinate ascent methods for regularized loss minimization",
theorems 2 (Lipschitz losses) and 5 (smooth losses).
"""

from __future__ import annotations

import math

from saddlesvm.lab.bounds.checks import positive


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


def sdca_lipschitz_dual_bound(n: int, lam: float, L: float, T: float, *, R: float = 1.0) -> float:
    """Lipschitz losses, the dual: ``E D* - D(alpha_T) <= 8 (R L)^2 / (lambda (2 n + T - t0))`` from T = t0 on.

    ``t0 = max(0, ceil(n ln(lambda n / (2 (R L)^2))))`` steps come first, in which the dual falls exponentially.

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
    """
    first = _first_steps(n, lam, L, R)
    return math.inf if _steps(T) < first else 8.0 * (R * L) ** 2 / (lam * (2.0 * n + T - first))


def sdca_lipschitz_bound(n: int, lam: float, L: float, T: float, *, T0: float | None = None, R: float = 1.0) -> float:
    """Theorem 2, the duality gap of the average of the iterates T0 + 1 to T (or of a random one of these):

        E P(w) - D(alpha) <= 8 (R L)^2 / (lambda (2 n + T0 - t0)) + 2 (R L)^2 / (lambda (T - T0)),

    for ``T0 >= t0`` and ``T - T0 >= n``; t0 as for :func:`sdca_lipschitz_dual_bound`.

    Parameters
    ----------
    n : int
    lam, L : float
    T : float
        Steps.
    T0 : float, optional
        Steps before the average begins; the best choice when left out, ``(2 T - 2 n + t0) / 3`` within its limits.
    R : float, default=1.0
        Largest row norm.

    Returns
    -------
    float
        Infinite where T is too small for the theorem to say anything.
    """
    first = _first_steps(n, lam, L, R)
    last = _steps(T) - n
    begin = min(max((2.0 * T - 2.0 * n + first) / 3.0, first), last) if T0 is None else float(T0)
    if not first <= begin <= last:
        return math.inf
    square = (R * L) ** 2
    return 8.0 * square / (lam * (2.0 * n + begin - first)) + 2.0 * square / (lam * (T - begin))


def sdca_lipschitz_iterations(n: int, lam: float, L: float, eps: float, *, R: float = 1.0) -> int:
    """Theorem 2 the other way round: ``t0 + n + 20 (R L)^2 / (lambda eps)`` steps bring the expected gap to eps.

    Parameters as for :func:`sdca_lipschitz_bound`; `eps` is the wanted expected duality gap of the average.
    """
    positive("eps", eps)
    return math.ceil(_first_steps(n, lam, L, R) + n + 20.0 * (R * L) ** 2 / (lam * eps))


def _smooth_steps(n: int, lam: float, gamma: float, R: float) -> float:
    for name, given in (("n", n), ("lam", lam), ("gamma", gamma), ("R", R)):
        positive(name, given)
    return n + R * R / (lam * gamma)


def _first_steps(n: int, lam: float, L: float, R: float) -> int:
    for name, given in (("n", n), ("lam", lam), ("L", L), ("R", R)):
        positive(name, given)
    return max(0, math.ceil(n * math.log(0.5 * lam * n / (R * L) ** 2)))


def _steps(T: float) -> float:
    if not 0.0 <= T < math.inf:
        raise ValueError(f"T must be at least 0 and finite; got {T!r}")
    return T
