"""Packages that import what they offer when it is used, and functions that import theirs when they are called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package. The latter lists what it offers, and its modules in use.

    Parameters
    ----------
    package : str
        Its name.
    homes : mapping of str to str
        The module of each name that it offers; empty for a name that is a module of the package itself.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name] or f"{package}.{name}")
        found = getattr(home, name) if homes[name] else home
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        own = vars(sys.modules[package])
        return sorted({*homes, *(name for name in own if name[:2] == "__" or f"{package}.{name}" in sys.modules)})

    return get, names


def origin_of(kind: Any) -> str:
    """Module and name of a class."""
    return f"{kind.__module__}:{kind.__qualname__}"


class Later:
    """A function that is imported when it is first called.

    Parameters
    ----------
    home : str
        Its module and its name, ``"module:function"``.
    """

    def __init__(self, home: str) -> None:
        self.home = home

    def load(self) -> Callable[..., Any]:
        """The function itself."""
        module, _, name = self.home.partition(":")
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return found

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Import the function, and call it."""
        return self.load()(*arguments, **named)
