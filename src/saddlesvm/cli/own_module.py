"""Modules of the user's own, imported because the command line names them, and for no other reason."""

from __future__ import annotations

import importlib
import os
import sys


def imported(module: str, name: str) -> object:
    """What a module calls `name`, None if nothing; the module may stand in the folder where the command was started.

    Raises
    ------
    ImportError
        There is no such module, or it imports one that is not there.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return getattr(importlib.import_module(module), name, None)
