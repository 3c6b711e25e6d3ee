"""The losses, and the parts of a loss of your own: see ``docs/guides/losses.md``.

Decorate a NamedTuple class with :func:`register_loss`; it has the methods of :class:`Loss`. If a
method calls a function of yours, decorate the function with :func:`arithmetic`. Write
:func:`select` for a conditional, so that a method takes numbers and arrays.
"""

from __future__ import annotations

from saddlesvm.problem.arithmetic import (
    EDGE,
    absolute_slopes,
    box_slopes,
    clip,
    interval_slopes,
    logit,
    logit_step,
    sigmoid,
    soft_threshold,
)
from saddlesvm.problem.loss import Loss, Shape, register as register_loss
from saddlesvm.problem.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Pinball,
    SmoothHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
    make_loss,
)
from saddlesvm.runtime.allowed import FINITE, NOT_NEGATIVE, POSITIVE, SHARE, Allowed
from saddlesvm.runtime.compiled import arithmetic, select
from saddlesvm.runtime.exp_log import exp_of_negative, log_of, log_one_plus

__all__ = [
    "EDGE", "FINITE", "NOT_NEGATIVE", "POSITIVE", "SHARE", "Absolute", "Allowed",
    "EpsilonInsensitive", "Hinge", "Huber", "Logistic", "Loss", "Pinball", "Shape",
    "SmoothHinge", "Squared", "SquaredEpsilonInsensitive", "SquaredHinge", "absolute_slopes",
    "arithmetic", "box_slopes", "clip", "exp_of_negative", "interval_slopes", "log_of",
    "log_one_plus", "logit", "logit_step", "make_loss", "register_loss", "select", "sigmoid",
    "soft_threshold",
]  # fmt: skip
