"""Packages and functions that import a module only when something in it is used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_attributes(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package; ``__dir__`` lists names in use, too.

    Parameters
    ----------
    package : str
        Its name.
    homes : mapping of str to str
        The module of each name that it offers; empty for a name that is a module of the package.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(homes[name] or f"{package}.{name}")
        value = getattr(module, name) if homes[name] else module
        # The next use finds it without this function.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        in_use = vars(sys.modules[package])
        special = {name for name in in_use if name.startswith("__")}
        modules = {name for name in in_use if f"{package}.{name}" in sys.modules}
        return sorted({*homes} | special | modules)

    return get, names


def origin_of(kind: Any) -> str:
    """Return module and name of a class."""
    return f"{kind.__module__}:{kind.__qualname__}"


class LateFunction:
    """A function that is imported when it is first called.

    Parameters
    ----------
    home : str
        Its module and its name, ``"module:function"``.
    """

    def __init__(self, home: str) -> None:
        self.home = home

    def load(self) -> Callable[..., object]:
        """Import the function, and return it."""
        module, _, name = self.home.partition(":")
        function: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return function

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Import the function, and call it."""
        return self.load()(*arguments, **named)
