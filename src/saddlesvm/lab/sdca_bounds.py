"""SDCA: bounds on the duality gap and on the dual after T steps.

The bounds are functions of (n, lambda, T) and of the loss, for random draws. The problem is
``P(w) = (1/n) sum_i phi_i(x_i . w) + (lambda / 2) ||w||^2``, alpha begins at zero, every step draws
a row with replacement, and ``phi_i >= 0``, ``(1/n) sum_i phi_i(0) <= 1``, ``||x_i|| <= R``. All
bounds are in expectation over the draws. The paper has R = 1; its proof with ``||x_i||^2 <= R^2``
kept puts ``R^2 / gamma`` for ``1 / gamma``, and ``(R L)^2`` for ``L^2``.

Source: Shalev-Shwartz and Zhang (2013), "Stochastic dual coordinate ascent methods for regularized
loss minimization", theorems 2 (Lipschitz losses), 3 and 8 (the start by Modified-SGD) and 5 (smooth
losses).
"""

from __future__ import annotations

import math

from saddlesvm.lab.bound_conditions import check_positive


def sdca_smooth_dual_bound(n: int, lam: float, gamma: float, T: float, *, R: float = 1.0) -> float:
    """Bound the error of the dual for smooth losses.

        E D* - D(alpha_T) <= exp(-T / (n + R^2 / (lambda gamma))).

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
    return math.exp(-check_steps(T) / _smooth_steps(n, lam, gamma, R))


def sdca_smooth_bound(n: int, lam: float, gamma: float, T: float, *, R: float = 1.0) -> float:
    """Bound the expected duality gap of the last iterate for smooth losses (theorem 5).

    With ``m = n + R^2 / (lambda gamma)``,

        E P(w_T) - D(alpha_T) <= m exp(-T / m).

    Parameters as for :func:`sdca_smooth_dual_bound`.
    """
    steps = _smooth_steps(n, lam, gamma, R)
    return steps * math.exp(-check_steps(T) / steps)


def sdca_smooth_iterations(n: int, lam: float, gamma: float, eps: float, *, R: float = 1.0) -> int:
    """Return the steps after which theorem 5 bounds the gap by eps: ``m ln(m / eps)``.

    ``m = n + R^2 / (lambda gamma)``.

    Parameters as for :func:`sdca_smooth_dual_bound`; `eps` is the wanted expected duality gap.
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
