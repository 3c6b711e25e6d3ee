"""The losses that come with the package, and the names for writing new ones.

============================  ==============================  ==========================================
loss                          phi(z)                          -phi*(-a), with b = a y
============================  ==============================  ==========================================
hinge                         max(0, 1 - yz)                  b, b in [0, 1]
squared hinge                 max(0, 1 - yz)^2                b - b^2 / 4, b >= 0
smooth hinge, width g         0, (1-yz)^2/(2g), 1 - yz - g/2  b - g b^2 / 2, b in [0, 1]
logistic                      log(1 + exp(-yz))               -b log b - (1-b) log(1-b), b in [0, 1]
squared                       (z - y)^2                       a y - a^2 / 4
absolute                      abs(z - y)                      a y, abs(a) <= 1
epsilon-insensitive           max(0, abs(z - y) - eps)        a y - eps abs(a), abs(a) <= 1
squared epsilon-insensitive   max(0, abs(z - y) - eps)^2      a y - eps abs(a) - a^2 / 4
Huber, r = abs(z - y)         r^2 / 2, delta (r - delta / 2)  a y - a^2 / 2, abs(a) <= delta
pinball                       max(tau (y-z), (1-tau) (z-y))   a y, a in [tau - 1, tau]
============================  ==============================  ==========================================

The dual variable of a row of weight s enters as ``-s phi*(-a / s)``, so that its bounds are s times those here. The
same text is used from Python and, through the operations of :mod:`saddlesvm.problem.loss`, inside compiled kernels.

Source: Shalev-Shwartz and Zhang (2013), "Stochastic dual coordinate ascent methods for regularized loss minimization",
tables of section 5; Hsieh and others (2008); Ho and Lin (2012) for the regression losses.
"""

from __future__ import annotations

from saddlesvm.problem.loss import (
    Loss,
    Shape,
    Task,
    Traits,
    bounds,
    conjugate,
    curvature,
    dual_step,
    has_bounded_slopes,
    is_cornerless,
    is_loss,
    is_smooth,
    loss_name,
    slopes,
    subgradient,
    traits_of,
    value,
)
from saddlesvm.problem.loss_registry import (
    ALIASES,
    LOSSES,
    UnregisteredLoss,
    loss_from_plain,
    make_loss,
    names_of,
    parse_loss,
    plain_loss,
    read_options,
    register,
    spelled,
    split_losses,
)
from saddlesvm.problem.margin_losses import Hinge, Logistic, SmoothHinge, SquaredHinge
from saddlesvm.problem.residual_losses import (
    Absolute,
    EpsilonInsensitive,
    Huber,
    Pinball,
    Squared,
    SquaredEpsilonInsensitive,
)

__all__ = [
    "ALIASES",
    "LOSSES",
    "Absolute",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Pinball",
    "Shape",
    "SmoothHinge",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "Task",
    "Traits",
    "UnregisteredLoss",
    "bounds",
    "conjugate",
    "curvature",
    "dual_step",
    "has_bounded_slopes",
    "is_cornerless",
    "is_loss",
    "is_smooth",
    "loss_from_plain",
    "loss_name",
    "make_loss",
    "names_of",
    "parse_loss",
    "plain_loss",
    "read_options",
    "register",
    "slopes",
    "spelled",
    "split_losses",
    "subgradient",
    "traits_of",
    "value",
]
