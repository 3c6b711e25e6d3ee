"""``--solver`` of the command line: a name, alone or with options, or a class of the user's own. Light to import."""

from __future__ import annotations

import argparse
import sys

from saddlesvm.cli.own_module import imported
from saddlesvm.runtime.words import CLUSTER_SOLVERS, SOLVER_NAMES

REGISTER = "saddlesvm.solvers.register"


def solver_text(text: str) -> str:
    """The name and options of the solver that `text` means; ``module:Class`` imports the module, which registers it."""
    module, _, rest = text.partition(":")
    cls, _, options = rest.partition(":")
    if not cls or "=" in cls:
        own = REGISTER in sys.modules  # something of the user's can be registered
        if module not in (*CLUSTER_SOLVERS, *SOLVER_NAMES) and not own:
            raise argparse.ArgumentTypeError(
                f"unknown solver {module!r}: use one of {', '.join(SOLVER_NAMES)}, or MODULE:CLASS"
            )
        return text
    try:
        kind = imported(module, cls)
    except ImportError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None
    known = getattr(sys.modules.get(REGISTER), "SOLVERS", {})
    name = next((name for name, one in known.items() if one is kind), None)
    if name is None:
        raise argparse.ArgumentTypeError(
            f"{module} has no solver {cls}: declare the class with @saddlesvm.register_solver"
        )
    return f"{name}:{options}" if options else name
