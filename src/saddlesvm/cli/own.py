"""``--loss``, ``--solver`` and ``--estimator`` of the command line: a name, or a class of the user's own.

Light to import. ``module:Class`` imports the module, which registers the class: only here is a module imported by its
name, because the user gives this name. No module is imported because a file names it.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from saddlesvm.cli.faces import Face, face_of, own_faces
from saddlesvm.estimators import HOMES
from saddlesvm.runtime.lazy import Later
from saddlesvm.runtime.words import (
    CLASSIFICATION_LOSSES,
    CLUSTER_SOLVERS,
    LOSS_ALIASES,
    REGRESSION_LOSSES,
    SOLVER_NAMES,
)

LOSSES = (*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES)
OWN_LOSS = "MODULE:CLASS, a loss registered in a Python file of yours, from here or from PYTHONPATH."
OWN_ESTIMATOR = "MODULE:CLASS, an estimator registered in a Python file of yours, from here or from PYTHONPATH"
LOSS_REGISTRY, SOLVER_REGISTER = "saddlesvm.problem.loss_registry", "saddlesvm.solvers.register"
ESTIMATOR_REGISTER = "saddlesvm.estimators.register"

make_loss = Later("saddlesvm.problem.losses:make_loss")
is_loss = Later("saddlesvm.problem.losses:is_loss")
loss_name = Later("saddlesvm.problem.losses:loss_name")


def for_argparse(read: Callable[[str], str]) -> Callable[[str], str]:
    """A reader of an argument whose errors are argparse's own."""

    @functools.wraps(read)
    def said(text: str) -> str:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return said


def imported(module: str, name: str) -> Any:
    """The object `name` of a module, or None; the module may stand in the folder where the command was started.

    Raises
    ------
    ValueError
        There is no such module, or it imports one that is not there.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise ValueError(f"{module}:{name}: {error}") from None


def own_class(text: str) -> tuple[str, str, str]:
    """Module, class and options of ``module:Class:option=value``; where `text` is a name with options, no class."""
    module, _, rest = text.partition(":")
    name, _, options = rest.partition(":")
    return (module, name, options) if name and "=" not in name else (module, "", rest)


def loss_text(text: str) -> str:
    """The name and options of the loss that `text` means, checked.

    Raises
    ------
    ValueError
        There is no such loss, or an option is unknown, missing or out of range.
    """
    module, own, options = own_class(text)
    if own:
        kind = imported(module, own)
        if not (isinstance(kind, type) and is_loss(kind)):
            raise ValueError(f"{module} has no loss {own}: declare the class with @saddlesvm.register_loss")
        name = loss_name(kind)
        text = f"{name}:{options}" if options else name
    make_loss(text)
    return text


@for_argparse
def loss_argument(text: str) -> str:
    """:func:`loss_text` for argparse; names are judged without loading anything."""
    name, colon, _ = text.partition(":")
    if not colon and (name in LOSSES or name in LOSS_ALIASES):
        return text
    if not colon and LOSS_REGISTRY not in sys.modules:  # nothing of the user's can have registered another
        raise ValueError(f"unknown loss {text!r}: use one of {', '.join(LOSSES)}, or MODULE:CLASS")
    return loss_text(text)


@for_argparse
def solver_text(text: str) -> str:
    """The name and options of the solver that `text` means."""
    module, own, options = own_class(text)
    if not own:
        if module not in (*CLUSTER_SOLVERS, *SOLVER_NAMES) and SOLVER_REGISTER not in sys.modules:
            raise ValueError(f"unknown solver {module!r}: use one of {', '.join(SOLVER_NAMES)}, or MODULE:CLASS")
        return text
    kind = imported(module, own)
    known = getattr(sys.modules.get(SOLVER_REGISTER), "SOLVERS", {})
    name = next((name for name, one in known.items() if one is kind), None)
    if name is None:
        raise ValueError(f"{module} has no solver {own}: declare the class with @saddlesvm.register_solver")
    return f"{name}:{options}" if options else name


def entries() -> list[Any]:
    """The estimators that are registered by now."""
    register = sys.modules.get(ESTIMATOR_REGISTER)
    return [] if register is None else register.known()


def known_faces() -> list[Face]:
    """The package's own estimators, then those of the user."""
    others = [face_of(one.name, one.kind, one.options) for one in entries() if one.name not in HOMES]
    return [*own_faces(), *others]


@for_argparse
def estimator_text(text: str) -> str:
    """The name of the registered estimator that `text` means."""
    if text in HOMES:
        return text
    module, colon, cls = text.partition(":")
    kind = imported(module, cls) if colon else None
    entry = next((one for one in entries() if (one.kind is kind if colon else one.name == text)), None)
    if entry is None:
        names = ", ".join(dict.fromkeys([*HOMES, *(one.name for one in entries())]))
        how = "declare the class with @saddlesvm.register_estimator" if colon else f"use {names}, or MODULE:CLASS"
        raise ValueError(f"there is no estimator {text}: {how}")
    return str(entry.name)


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
