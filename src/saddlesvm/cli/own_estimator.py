"""``--estimator`` of the command line: a registered name, or a class of the user's own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from saddlesvm.cli.own_module import imported
from saddlesvm.estimators import register

OWN_ESTIMATOR = "MODULE:CLASS, an estimator registered in a Python file of yours, from here or from PYTHONPATH"


def estimator_text(text: str) -> str:
    """The name of the registered estimator that `text` means.

    ``module:Class`` imports the module, which registers the class; no module is imported because a file names it.
    """
    module, colon, cls = text.partition(":")
    try:
        kind = imported(module, cls) if colon else getattr(register.named(text), "kind", None)
    except ImportError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None
    entry = next((one for one in register.known() if one.kind is kind), None)
    if entry is None:
        names = ", ".join(one.name for one in register.known())
        how = "declare the class with @saddlesvm.register_estimator" if colon else f"use {names}, or MODULE:CLASS"
        raise argparse.ArgumentTypeError(f"there is no estimator {text}: {how}")
    return entry.name


def made_known(arguments: Sequence[str]) -> None:
    """Import the user's own estimator that the command names, so that its options can be read.

    Raises
    ------
    argparse.ArgumentTypeError
        There is no such estimator.
    """
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    early.add_argument("--estimator", nargs="?")
    named = early.parse_known_args(list(arguments))[0].estimator
    if named:
        estimator_text(named)
