"""The names that commands know: losses, solvers and estimators, the package's and the user's own, and their options.

Light to import. The package's losses and estimators are read from the text of their modules, because importing them
takes longer than an answer to ``--help`` may; those of the user are imported already. ``module:Class`` imports the
module, which registers the class: only here is a module imported by its name, because the user gives this name. No
module is imported because a file names it.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import importlib
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from saddlesvm.estimators import HOMES
from saddlesvm.estimators import options as shared_options
from saddlesvm.runtime.lazy import Later
from saddlesvm.runtime.words import CLUSTER_SOLVERS, LOSS_ALIASES, SOLVER_NAMES

SOURCE = Path(__file__).parent.parent


def losses_in(module: str) -> tuple[str, ...]:
    """The names of the losses that the text of a module registers."""
    text = SOURCE.joinpath("problem", f"{module}.py").read_text(encoding="utf-8")
    return tuple(re.findall(r'^@register\(\s*"(\w+)"', text, re.M))


CLASSIFICATION_LOSSES, REGRESSION_LOSSES = losses_in("margin_losses"), losses_in("residual_losses")
LOSSES = (*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES)
OWN_LOSS = "MODULE:CLASS, a loss registered in your Python file, in this folder or on PYTHONPATH"
OWN_ESTIMATOR = "MODULE:CLASS, an estimator registered in your Python file, in this folder or on PYTHONPATH"
LOSS_REGISTRY, SOLVER_REGISTER = "saddlesvm.problem.losses", "saddlesvm.solvers.register"
ESTIMATOR_REGISTER = "saddlesvm.estimators.register"

make_loss = Later("saddlesvm.problem.losses:make_loss")
is_loss = Later("saddlesvm.problem.loss:is_loss")
loss_name = Later("saddlesvm.problem.loss:loss_name")


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


def known_estimators() -> list[KnownEstimator]:
    """The package's own estimators, then those of the user."""
    others = [known_estimator(one.name, one.kind, one.options) for one in entries() if one.name not in HOMES]
    return [*package_estimators(), *others]


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


class KnownEstimator(NamedTuple):
    """An estimator as the command line shows it.

    Parameters
    ----------
    name : str
    options : tuple of str
        Those that it offers beyond the options that all estimators have.
    defaults : dict
        The default values of its parameters, as far as they are plain.
    texts : dict of str to str
        The help text of each parameter.
    """

    name: str
    options: tuple[str, ...]
    defaults: dict[str, Any]
    texts: dict[str, str]


def documented(doc: str | None) -> dict[str, str]:
    """The text of each parameter in the docstring of a class: the help text of the option of the same name."""
    first, _, others = (doc or "").expandtabs().partition("\n")  # Python 3.13 strips the indentation itself
    text = f"{first}\n{textwrap.dedent(others)}\n"
    section = text.partition("Parameters\n")[2].partition("Attributes\n")[0]
    found: dict[str, str] = {}
    for name, description in re.findall(r"^(\w+) : .*\n((?:    .*\n)*)", section, re.M):
        description = re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"\1", description)
        plain = re.sub(r"[`*]|\s+", lambda m: " " if m[0].isspace() else "", description).strip()
        found.setdefault(name, plain.replace("%", "%%"))
    return found


@functools.cache
def package_estimators() -> list[KnownEstimator]:
    """The package's own estimators."""
    return [_read(name, home) for name, home in HOMES.items()]


def known_estimator(name: str, kind: Any, options: tuple[str, ...]) -> KnownEstimator:
    """A registered class."""
    return KnownEstimator(name, options, kind().get_params(), documented(kind.__doc__))


@functools.cache
def _module(home: str) -> ast.Module:
    return ast.parse(SOURCE.joinpath(*home.split(".")[1:]).with_suffix(".py").read_text(encoding="utf-8"))


def _read(name: str, home: str) -> KnownEstimator:
    """The class `name` in the text of a module: what is registered with it, its parameters, and its docstring."""
    class_def = next(one for one in _module(home).body if isinstance(one, ast.ClassDef) and one.name == name)
    registered = next(one for one in class_def.decorator_list if isinstance(one, ast.Call))
    options = next((one.value for one in registered.keywords if one.arg == "options"), ast.Tuple([], ast.Load()))
    assert isinstance(options, ast.Tuple)
    defaults: dict[str, Any] = {}
    for base in class_def.bases:
        table = getattr(shared_options, base.id, None) if isinstance(base, ast.Name) else None
        defaults |= {} if table is None else {one.name: one.default for one in dataclasses.fields(table)}
    for one in class_def.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.value is not None:
            defaults |= {} if one.target.id.startswith("_") else {one.target.id: _plain(one.value)}
    return KnownEstimator(name, tuple(_names(options)), defaults, documented(ast.get_docstring(class_def, clean=False)))


def _names(written: ast.Tuple) -> Iterator[str]:
    """The names in a written tuple; those behind a star stand in a file of their own."""
    for one in written.elts:
        if isinstance(one, ast.Starred) and isinstance(one.value, ast.Name):
            yield from getattr(shared_options, one.value.id)
        else:
            yield ast.literal_eval(one)


def _plain(value: ast.expr | None) -> Any:
    """A default value, or None where it is not written out."""
    try:
        return None if value is None else ast.literal_eval(value)
    except ValueError:
        return None
