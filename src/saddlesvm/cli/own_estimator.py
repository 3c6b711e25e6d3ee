"""``--estimator`` of the command line: a registered name, or a class of the user's own. Light to import."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from saddlesvm.cli.faces import Face, face_of, own_faces
from saddlesvm.cli.own_module import imported
from saddlesvm.estimators import HOMES

OWN_ESTIMATOR = "MODULE:CLASS, an estimator registered in a Python file of yours, from here or from PYTHONPATH"
REGISTER = "saddlesvm.estimators.register"


def entries() -> list[Any]:
    """The estimators that are registered by now."""
    register = sys.modules.get(REGISTER)
    return [] if register is None else register.known()


def known_faces() -> list[Face]:
    """The package's own estimators, then those of the user."""
    others = [face_of(one.name, one.kind, one.options) for one in entries() if one.name not in HOMES]
    return [*own_faces(), *others]


def estimator_text(text: str) -> str:
    """The name of the registered estimator that `text` means.

    ``module:Class`` imports the module, which registers the class; no module is imported because a file names it.
    """
    if text in HOMES:
        return text
    module, colon, cls = text.partition(":")
    try:
        kind = imported(module, cls) if colon else None
    except ImportError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None
    entry = next((one for one in entries() if (one.kind is kind if colon else one.name == text)), None)
    if entry is None:
        names = ", ".join(dict.fromkeys([*HOMES, *(one.name for one in entries())]))
        how = "declare the class with @saddlesvm.register_estimator" if colon else f"use {names}, or MODULE:CLASS"
        raise argparse.ArgumentTypeError(f"there is no estimator {text}: {how}")
    name: str = entry.name
    return name


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
