"""The losses that come with the package, and losses as model files hold them.

Importing this file registers these:

============================  ==============================  ====================================
loss                          phi(z)                          -phi*(-a), with b = a y
============================  ==============================  ====================================
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
============================  ==============================  ====================================

The dual variable of a row of weight s enters as ``-s phi*(-a / s)``, so that its bounds are s times
those here. The same text is used from Python and, through the operations of
:mod:`saddlesvm.problem.loss`, inside compiled kernels.

Source: Shalev-Shwartz and Zhang (2013), "Stochastic dual coordinate ascent methods for regularized
loss minimization", tables of section 5; Hsieh and others (2008); Ho and Lin (2012) for the
regression losses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saddlesvm.problem.loss import (
    LOSSES as LOSSES,
    Loss as Loss,
    is_loss as is_loss,
    loss_name as loss_name,
    make_loss as make_loss,
    names_of as names_of,
    parse_loss as parse_loss,
    traits_of as traits_of,
)
from saddlesvm.problem.margin_losses import (
    Hinge as Hinge,
    Logistic as Logistic,
    SmoothHinge as SmoothHinge,
    SquaredHinge as SquaredHinge,
)
from saddlesvm.problem.residual_losses import (
    Absolute as Absolute,
    EpsilonInsensitive as EpsilonInsensitive,
    Huber as Huber,
    Pinball as Pinball,
    Squared as Squared,
    SquaredEpsilonInsensitive as SquaredEpsilonInsensitive,
)


class UnregisteredLoss(LookupError):
    """A model file names a loss from outside the package that is not registered here."""

    def __init__(self, name: object, origin: object) -> None:
        super().__init__(name, origin)
        self.name = name
        self.origin = origin

    def __str__(self) -> str:
        if self.origin is None:
            return f"has the loss {self.name!r}, which this version does not know"
        module = str(self.origin).partition(":")[0]
        return (
            f"has the loss {self.name!r} of {self.origin}, which is not registered here: import "
            f"its module first (import {module}, or --import {module} on the command line)"
        )


def loss_text(loss: Loss) -> str:
    """Return the text that :func:`make_loss` reads as this loss, without default options."""
    kind: Any = type(loss)
    options: dict[str, float] = loss._asdict()  # type: ignore[attr-defined]
    parts = [
        f"{option}={value:.12g}"
        for option, value in options.items()
        if value != kind._field_defaults.get(option)
    ]
    return f"{loss_name(loss)}:{','.join(parts)}" if parts else loss_name(loss)


def plain_loss(loss: Any) -> object:
    """Return a loss, its class or its text as JSON can hold it, and the place of its class."""
    text = loss if isinstance(loss, str) else None
    kind = loss if text is None else parse_loss(loss)[0]
    if kind is None or (text is not None and not traits_of(kind).is_outside):
        return text
    options = None if text is not None or isinstance(loss, type) else loss._asdict()
    plain = {"loss": loss_name(kind), "options": options}
    return (
        plain | {"text": text, "origin": traits_of(kind).origin}
        if traits_of(kind).is_outside
        else plain
    )


def loss_from_plain(plain: Mapping[str, Any]) -> object:
    """Return the loss given to :func:`plain_loss`.

    Nothing is imported: a user's own loss must have been registered before.

    Raises
    ------
    UnregisteredLoss
        The loss was not registered.
    """
    name = plain["loss"]
    origin = plain.get("origin")
    text = plain.get("text")
    kind: Any = LOSSES.get(name)
    if kind is None or origin not in (None, traits_of(kind).origin):
        raise UnregisteredLoss(name, origin)
    if text is not None:
        return text
    return kind if plain["options"] is None else kind(**plain["options"])
