"""``--solver`` of the command line: a name, alone or with options, or a class of the user's own."""

from __future__ import annotations

import argparse

from saddlesvm.cli.own_module import imported
from saddlesvm.solvers import SOLVERS

OWN_SOLVER = "Or MODULE:CLASS, a solver registered in a Python file of yours."


def solver_text(text: str) -> str:
    """The name and options of the solver that `text` means; ``module:Class`` imports the module, which registers it."""
    module, _, rest = text.partition(":")
    cls, _, options = rest.partition(":")
    if not cls or "=" in cls:
        return text
    try:
        kind = imported(module, cls)
    except ImportError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None
    name = next((name for name, known in SOLVERS.items() if known is kind), None)
    if name is None:
        raise argparse.ArgumentTypeError(
            f"{module} has no solver {cls}: declare the class with @saddlesvm.register_solver"
        )
    return f"{name}:{options}" if options else name
