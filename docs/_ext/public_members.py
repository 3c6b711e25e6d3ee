"""Which members of a class are in the reference: all that users call or read, inherited ones included.

Shown are methods and properties; parameters and attributes stand in the docstring of the class. Left
out are the methods that the fit's loop calls of a solver, which
:class:`~saddlesvm.solvers.SolverBase` documents once, and the methods that scikit-learn makes for
metadata routing.
"""

from __future__ import annotations

import importlib
import re
from enum import Enum
from functools import cached_property
from typing import Any

from sphinx.application import Sphinx

from saddlesvm.solvers.base import SolverBase

ROUTING = re.compile(r"(set_\w+_request|get_metadata_routing)$")
OF_SOLVERS = ("get_params",)
REFERENCE = re.compile(r":(?:ref|term):`([^`<]+?)(?: <[^`>]+>)?`")


def skip(
    app: Sphinx, what: str, name: str, item: Any, default: bool, options: Any
) -> bool | None:
    """Whether to leave a member out; None leaves it to autodoc."""
    kind = kind_of(app)
    if kind is None:
        return None
    shown = callable(item) or isinstance(item, (property, cached_property, Enum))
    return None if shown and is_public(kind, name) else True


def is_public(kind: type, name: str) -> bool:
    """Whether a method or property of a class is for users."""
    of_solver = (
        issubclass(kind, SolverBase)
        and kind is not SolverBase
        and name not in OF_SOLVERS
    )
    return not (name.startswith("_") or of_solver or ROUTING.match(name))


def kind_of(app: Sphinx) -> type | None:
    """The class whose members autodoc goes through."""
    module, name = (
        app.env.temp_data.get(f"autodoc:{part}") for part in ("module", "class")
    )
    found: Any = importlib.import_module(module) if module and name else None
    for part in (name or "").split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


def without_references(
    app: Sphinx, what: str, name: str, item: Any, options: Any, lines: list[str]
) -> None:
    """Turn references of scikit-learn's docstrings, which lead into its manual, into text."""
    if str(getattr(item, "__module__", "")).startswith("sklearn."):
        lines[:] = [REFERENCE.sub(r"\1", line) for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", without_references)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
