"""The public face of the package, held against `public_names.txt` beside this file: names, parameters, methods,
commands and flags. Whoever adds or removes one makes the text again, and says so in the changelog.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import saddlesvm
from saddlesvm.cli.program import COMMANDS, program

SNAPSHOT = Path(__file__).with_name("public_names.txt")
MAKE_AGAIN = "python tests/laws/test_public_names.py"
# Modules whose classes and functions show their parameters; the lab needs an extra for that.
WITH_PARAMETERS = ("saddlesvm", "saddlesvm.svm", "saddlesvm.data", "saddlesvm.solvers", "saddlesvm.losses")
NAMES_ALONE = ("saddlesvm.lab",)


def parameters(thing: Any) -> list[str]:
    """Return the names of the parameters of a class or a function."""
    if dataclasses.is_dataclass(thing):
        return [field.name for field in dataclasses.fields(thing) if field.init]
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return []
    return list(inspect.signature(thing).parameters)


def methods(kind: type) -> list[str]:
    """Return the public methods of a class that classes of this package define."""
    own = [base for base in kind.__mro__ if base.__module__.startswith("saddlesvm")]
    members = {name for base in own for name in vars(base) if not name.startswith("_")}
    return [name for name in members if callable(getattr(kind, name, None))]


def names_of(module: str) -> Iterator[str]:
    """Yield the public names of a module, with their parameters and, for estimators, their methods."""
    room = importlib.import_module(module)
    for name in room.__all__:
        yield f"{module}.{name}"
        if module in NAMES_ALONE:
            continue
        thing = getattr(room, name)
        if module != "saddlesvm" and name in saddlesvm.__all__:
            continue  # its parameters stand under the package
        if inspect.isclass(thing) or inspect.isfunction(thing):
            for parameter in parameters(thing):
                yield f"{module}.{name}({parameter}=)"
        if hasattr(thing, "get_params"):
            for method in methods(thing):
                yield f"{module}.{name}.{method}()"


def flags() -> Iterator[str]:
    """Yield the commands of the running program, each with its flags and its places for data."""
    context = click.Context(program)
    for name in COMMANDS:
        command = program.get_command(context, name)
        assert command is not None
        yield f"$ saddlesvm {name}"
        for parameter in command.get_params(context):
            for word in parameter.opts if isinstance(parameter, click.Option) else [parameter.make_metavar(context)]:
                yield f"$ saddlesvm {name} {word}"


def public_face() -> list[str]:
    """Return one line for each public name, parameter, method, command and flag."""
    modules = WITH_PARAMETERS + NAMES_ALONE
    found = [line for module in modules for line in names_of(module)]
    return sorted({*found, *flags()})


def test_public_names_parameters_commands_and_flags_are_those_of_the_snapshot() -> None:
    written = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    changes = difflib.unified_diff(written, public_face(), "public_names.txt", "the package", lineterm="", n=0)
    changes = [line for line in changes if not line.startswith("@@")]
    advice = f"If this is meant: run `{MAKE_AGAIN}`, and say it in CHANGELOG.md."
    assert not changes, "\n".join(["The public names are not those of the snapshot.", *changes, advice])


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(public_face()) + "\n", encoding="utf-8")
