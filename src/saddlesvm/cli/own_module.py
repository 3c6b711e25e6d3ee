"""The user's own modules, imported only where the command line names them."""

from __future__ import annotations

import importlib
import os
import sys


def imported(module: str, name: str) -> object:
    """The object `name` of a module, or None; the module may stand in the folder where the command was started.

    Raises
    ------
    ImportError
        There is no such module, or it imports one that is not there.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return getattr(importlib.import_module(module), name, None)
