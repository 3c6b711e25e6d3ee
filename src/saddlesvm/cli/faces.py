"""What the command line offers of the registered estimators: their options, with defaults and help texts.

Those of the package are read from the text of their modules, because importing them takes longer than an answer to
``--help`` may; those of the user are imported already.
"""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from saddlesvm.estimators import HOMES, option_names

__all__ = ["Face", "documented", "face_of", "own_faces"]

SOURCE = Path(__file__).parent.parent


class Face(NamedTuple):
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
    for name, told in re.findall(r"^(\w+) : .*\n((?:    .*\n)*)", section, re.M):
        told = re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"\1", told)
        plain = re.sub(r"[`*]|\s+", lambda m: " " if m[0].isspace() else "", told).strip()
        found.setdefault(name, plain.replace("%", "%%"))
    return found


@functools.cache
def own_faces() -> list[Face]:
    """The package's own estimators."""
    return [_read(name, home) for name, home in HOMES.items()]


def face_of(name: str, kind: Any, options: tuple[str, ...]) -> Face:
    """A registered class."""
    return Face(name, options, kind().get_params(), documented(kind.__doc__))


@functools.cache
def _module(home: str) -> ast.Module:
    return ast.parse(SOURCE.joinpath(*home.split(".")[1:]).with_suffix(".py").read_text(encoding="utf-8"))


def _read(name: str, home: str) -> Face:
    """The class `name` in the text of a module: what is registered with it, its constructor, and its docstring."""
    told = next(one for one in _module(home).body if isinstance(one, ast.ClassDef) and one.name == name)
    registered = next(one for one in told.decorator_list if isinstance(one, ast.Call))
    options = next((one.value for one in registered.keywords if one.arg == "options"), ast.Tuple([], ast.Load()))
    assert isinstance(options, ast.Tuple)
    made = next(one for one in told.body if isinstance(one, ast.FunctionDef) and one.name == "__init__").args
    places = made.args[len(made.args) - len(made.defaults) :]
    given = [*zip(places, made.defaults, strict=True), *zip(made.kwonlyargs, made.kw_defaults, strict=True)]
    defaults = {one.arg: _plain(value) for one, value in given}
    return Face(name, tuple(_names(options)), defaults, documented(ast.get_docstring(told, clean=False)))


def _names(told: ast.Tuple) -> Iterator[str]:
    """The names in a written tuple; those behind a star stand in a file of their own."""
    for one in told.elts:
        if isinstance(one, ast.Starred) and isinstance(one.value, ast.Name):
            yield from getattr(option_names, one.value.id)
        else:
            yield ast.literal_eval(one)


def _plain(value: ast.expr | None) -> Any:
    """A default value, or None where it is not written out."""
    try:
        return None if value is None else ast.literal_eval(value)
    except ValueError:
        return None
