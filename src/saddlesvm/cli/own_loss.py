"""``--loss`` of the command line: a name, alone or with options, or a class of the user's own. Light to import."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from saddlesvm.cli.own_module import imported
from saddlesvm.runtime.lazy import Later
from saddlesvm.runtime.words import CLASSIFICATION_LOSSES, LOSS_ALIASES, REGRESSION_LOSSES

LOSSES = (*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES)
OWN_LOSS = "MODULE:CLASS, a loss registered in a Python file of yours, from here or from PYTHONPATH."
REGISTRY = "saddlesvm.problem.loss_registry"

make_loss = Later("saddlesvm.problem.losses:make_loss")
is_loss = Later("saddlesvm.problem.losses:is_loss")
loss_name = Later("saddlesvm.problem.losses:loss_name")


def loss_argument(text: str) -> str:
    """:func:`loss_text` for argparse: errors become argparse's own, and names are judged without loading anything."""
    name, colon, _ = text.partition(":")
    if not colon and (name in LOSSES or name in LOSS_ALIASES):
        return text
    if not colon and REGISTRY not in sys.modules:  # nothing of the user's can have registered another
        raise argparse.ArgumentTypeError(f"unknown loss {text!r}: use one of {', '.join(LOSSES)}, or MODULE:CLASS")
    try:
        return loss_text(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def loss_text(text: str) -> str:
    """The name and options of the loss that `text` means, checked.

    ``module:Class`` or ``module:Class:option=value`` imports the module, which registers the class: only here is a
    module imported by its name, because the user gives this name.

    Raises
    ------
    ValueError
        There is no such loss, or an option is unknown, missing or out of range.
    """
    name, _, rest = text.partition(":")
    own = rest.partition(":")[0]
    if own and "=" not in own:
        options = rest.partition(":")[2]
        name = loss_name(own_class(name, own))
        text = f"{name}:{options}" if options else name
    make_loss(text)
    return text


def own_class(module: str, name: str) -> Any:
    """The registered class `name` of a module, which may stand in the folder where the command was started.

    Raises
    ------
    ValueError
        There is no such module, or it has no such loss.
    """
    try:
        found = imported(module, name)
    except ImportError as error:
        raise ValueError(f"{module}:{name}: {error}") from None
    if not (isinstance(found, type) and is_loss(found)):
        raise ValueError(f"{module} has no loss {name}: declare the class with @saddlesvm.register_loss")
    return found
