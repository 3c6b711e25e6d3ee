"""Packages that come with an extra, and what to do if a package is missing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def import_extra(module: str, extra: str, what: str) -> ModuleType:
    """Import a module that comes with an extra.

    Raises
    ------
    ImportError
        It is not installed; the message says what needs it, and how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or module).partition(".")[0]
        message = f"{what} needs {package}: {how_to_install(extra)}"
        raise ImportError(message, name=error.name) from None


def how_to_install(extra: str) -> str:
    """Return how to install an extra, in words; nothing is published, so from the source folder."""
    return f"install it, or the extra from the source folder: pip install '.[{extra}]'"
