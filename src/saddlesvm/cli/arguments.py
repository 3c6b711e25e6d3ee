"""The values of options as the command line reads them, and the names that commands know: losses, solvers, estimators.

Light to import, as all that the parser needs. The package's losses and estimators are read from the text of their
modules, because importing them takes longer than an answer to ``--help`` may; those of the user are imported already.
``module:Class`` imports the module, which registers the class: only here is a module imported by its name, because the
user gives this name. No module is imported because a file names it.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import dataclasses
import functools
import glob
import importlib
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from saddlesvm.estimators import HOMES, register
from saddlesvm.runtime.lazy import Later
from saddlesvm.runtime.option_names import CLUSTER_SOLVERS, LOSS_ALIASES, SOLVER_NAMES

FOLDS = 5  # folds where several values of C are given, and no number of folds

Value = TypeVar("Value")


def flag(name: str) -> str:
    """The spelling of an option on the command line."""
    return f"--{name.replace('_', '-')}"


def reader(
    needed: str = "", fine: Callable[[Any], bool] = lambda _: True
) -> Callable[[Callable[[str], Value]], Callable[[str], Value]]:
    """Let a reader of a text raise argparse's error where it cannot read the text, or what it returns is not `fine`:
    the error says what is `needed`, or else what the reader says."""

    def declare(read: Callable[[str], Value]) -> Callable[[str], Value]:
        def value(text: str) -> Value:
            with_reason = f"{text!r}: {needed}"
            try:
                found = read(text)
            except (ValueError, KeyError) as error:
                raise argparse.ArgumentTypeError(with_reason if needed else str(error)) from None
            if not fine(found):
                raise argparse.ArgumentTypeError(with_reason)
            return found

        return value

    return declare


truth = reader("yes or no is allowed")({"yes": True, "no": False}.__getitem__)
header = reader("auto, yes or no is allowed")({"auto": "auto", "yes": True, "no": False}.__getitem__)
index_base = reader("auto, 0 or 1 is allowed")({"auto": "auto", "0": True, "1": False}.__getitem__)
share = reader(
    "a share of the rows is needed, above 0 and below 1 (0.2); a file goes with --test", lambda one: 0 < one < 1
)(float)
fold_count = reader("a whole number of folds is needed, at least 2", lambda count: count >= 2)(int)
count_of_Cs = reader("a number of values is needed, as in 13", lambda count: count >= 1)(int)


class Sources(argparse.Action):
    """One name of data, or the list of several: names side by side, and those that a pattern means, in their order."""

    def __call__(self, parser: argparse.ArgumentParser, options: argparse.Namespace, words: Any, *_: Any) -> None:
        found: list[str] = []
        for word in words:
            is_pattern = any(sign in word for sign in "*?[") and not os.path.exists(word)
            found += (is_pattern and sorted(glob.glob(word))) or [word]
        setattr(options, self.dest, words[0] if found == words[:1] else found)


def number_or_name(text: str) -> float | str:
    """`text` as a number if it is one, else as it is."""
    try:
        return float(text)
    except ValueError:
        return text


def whole_or_number(text: str) -> float:
    """A whole number where the text is one, else a number."""
    return int(text) if text.lstrip("+-").isdigit() else float(text)


@reader("numbers with commas are needed, as in 0.1,1,10")
def numbers(text: str) -> list[float]:
    """Numbers with commas."""
    return [float(one) for one in text.split(",")]


@reader("two numbers with a comma are needed, as in 1e-3,1e3")
def two_ends(text: str) -> tuple[float, float]:
    """Two numbers with a comma."""
    low, high = map(float, text.split(","))
    return low, high


def numbers_or_name(text: str) -> float | str | tuple[float, ...]:
    """A number, several with commas, or a name."""
    try:
        found = tuple(map(float, text.split(",")))
    except ValueError:
        return text
    return found[0] if len(found) == 1 else found


@reader("a number, several with commas, as in 0.1,1,10, or auto is allowed")
def strength(text: str) -> float | str | tuple[float, ...]:
    """C of the command line: a number, several with commas, or words such as "auto"."""
    found = numbers_or_name(text)
    if isinstance(found, str) and text[:1].isdigit():
        raise ValueError
    return found


@reader("names or positions of columns are needed, as in id,name", all)
def columns(text: str) -> tuple[str, ...]:
    """Names or positions of columns, with commas."""
    return tuple(name.strip() for name in text.split(","))


@reader(
    "names of columns and their kinds are needed, as in city=category,note=text,id=drop",
    lambda found: all(name and kind for name, kind in found),
)
def column_kinds(text: str) -> tuple[tuple[str, str], ...]:
    """Names or positions of columns and their kinds, ``city=category,note=text:1-2``."""
    split = (one.rpartition("=") for one in text.split(","))
    return tuple((name.strip(), kind.strip()) for name, _, kind in split)


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

make_loss = Later("saddlesvm.problem.losses:make_loss")
is_loss = Later("saddlesvm.problem.loss:is_loss")
loss_name = Later("saddlesvm.problem.loss:loss_name")


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


@reader()
def loss_argument(text: str) -> str:
    """:func:`loss_text` for argparse; names are judged without loading anything."""
    name, colon, _ = text.partition(":")
    if not colon and (name in LOSSES or name in LOSS_ALIASES):
        return text
    if not colon and LOSS_REGISTRY not in sys.modules:  # nothing of the user's can have registered another
        raise ValueError(f"unknown loss {text!r}: use one of {', '.join(LOSSES)}, or MODULE:CLASS")
    return loss_text(text)


@reader()
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


def known_estimators() -> list[KnownEstimator]:
    """The package's own estimators, then those of the user."""
    others = [known_estimator(one.name, one.kind, one.options) for one in register.known() if one.name not in HOMES]
    return [*package_estimators(), *others]


@reader()
def estimator_text(text: str) -> str:
    """The name of the registered estimator that `text` means."""
    if text in HOMES:
        return text
    module, colon, cls = text.partition(":")
    kind = imported(module, cls) if colon else None
    entry = next((one for one in register.known() if (one.kind is kind if colon else one.name == text)), None)
    if entry is None:
        names = ", ".join(dict.fromkeys([*HOMES, *(one.name for one in register.known())]))
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


def sections(doc: str | None) -> dict[str, str]:
    """The sections of a docstring by their titles; what comes before them has none."""
    first, _, others = (doc or "").expandtabs().partition("\n")  # Python 3.13 strips the indentation itself
    found = re.split(r"^(\w[\w ]*)\n-+\n", f"{first}\n{textwrap.dedent(others)}\n", flags=re.M)
    return {"": found[0]} | dict(zip(found[1::2], found[2::2], strict=True))


def described(section: str) -> Iterator[tuple[str, str, str]]:
    """The name, the kind and the text of each parameter in a section of a docstring."""
    for name, kind, description in re.findall(r"^(\w+) : (.*)\n((?:    .*\n)*)", section, re.M):
        description = re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"\1", description)
        plain = re.sub(r"[`*]|\s+", lambda m: " " if m[0].isspace() else "", description).strip()
        yield name, kind, plain.replace("%", "%%")


def documented(doc: str | None) -> dict[str, str]:
    """The text of each parameter in the docstring of a class: the help text of the option of the same name."""
    found: dict[str, str] = {}
    for name, _, text in described(sections(doc).get("Parameters", "")):
        found.setdefault(name, text)
    return found


class KnownCommand(NamedTuple):
    """What the docstring of a command's function says of it.

    Parameters
    ----------
    text : str
        What the command does, as a part of a sentence.
    options : dict of str to dict
        Its own options, or how those of others differ: what ``ArgumentParser.add_argument`` takes.
    examples : list of str
        Command lines.
    """

    text: str
    options: dict[str, dict[str, Any]]
    examples: list[str]


@functools.cache
def known_command(home: str) -> KnownCommand:
    """The command that the function ``"module:function"`` of this room runs."""
    module, _, name = home.partition(":")
    text = SOURCE.joinpath("cli", f"{module}.py").read_text(encoding="utf-8")
    doc = re.search(rf'^def {name}\([^\n]*\n    """(.*?)    """', text, re.M | re.S)
    assert doc is not None
    parts = sections(doc[1])
    options = {name: option_of(kind, text) for name, kind, text in described(parts.get("Options", ""))}
    return KnownCommand(as_part(parts[""].strip()), options, parts["Examples"].strip().split("\n"))


def option_of(kind: str, text: str) -> dict[str, Any]:
    """What ``add_argument`` takes for an option that a docstring declares.

    Its kind has words between commas: ``text``, ``flag``, ``required``, ``default=...``, the name of a reader of this
    file or of a type of Python, ``{one, other}`` for what may be chosen, and capitals for the value in the help.
    """
    how: dict[str, Any] = {"help": as_part(text)} if text else {}
    chosen = re.search(r"{(.*)}", kind)
    if chosen:
        how["choices"] = tuple(chosen[1].split(", "))
    for word in kind.replace(chosen[0] if chosen else "", "").split(", "):
        key, _, given = word.partition("=")
        if key == "flag":
            how["action"] = "store_true"
        elif key in ("required", "default"):
            how[key] = given if key == "default" else True
        elif word not in ("", "text"):
            how |= {"type": globals().get(word) or getattr(builtins, word)} if word.islower() else {"metavar": word}
    if "type" in how and "default" in how:
        how["default"] = how["type"](how["default"])
    return how


def as_part(sentence: str) -> str:
    """A sentence as a part of another: without its capital letter, unless an abbreviation begins with it, and point."""
    return (sentence[:1] if sentence[1:2].isupper() else sentence[:1].lower()) + sentence[1:].removesuffix(".")


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
        table = getattr(register, base.id, None) if isinstance(base, ast.Name) else None
        defaults |= {} if table is None else {one.name: one.default for one in dataclasses.fields(table)}
    for one in class_def.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.value is not None:
            defaults |= {} if one.target.id.startswith("_") else {one.target.id: _plain(one.value)}
    return KnownEstimator(name, tuple(_names(options)), defaults, documented(ast.get_docstring(class_def, clean=False)))


def _names(written: ast.Tuple) -> Iterator[str]:
    """The names in a written tuple; those behind a star stand in a file of their own."""
    for one in written.elts:
        if isinstance(one, ast.Starred) and isinstance(one.value, ast.Name):
            yield from getattr(register, one.value.id)
        else:
            yield ast.literal_eval(one)


def _plain(value: ast.expr | None) -> Any:
    """A default value, or None where it is not written out."""
    try:
        return None if value is None else ast.literal_eval(value)
    except ValueError:
        return None
