"""The durable part of a run's state: the arrays, numbers and texts that a checkpoint holds, each under a name.

A state is a dataclass. A field that is not durable itself is a :class:`Group` of durable values, or a
:class:`Workspace`, which the run makes anew where it is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np


@dataclass
class Workspace:
    """What a run works with and can make anew (factors, threads, copies): no part of a checkpoint."""


@dataclass
class Group:
    """Fields of a state that belong together, held by an object; a checkpoint holds them beside the state's own.

    A field of the state that holds a group may have ``metadata={"prefix": ...}``, with which the stored names begin.
    """


def stored_fields(state: Any) -> dict[str, Any]:
    """What a checkpoint holds of a state: its arrays, numbers and texts, and those of its groups, by name."""
    found: dict[str, Any] = {}
    for column in fields(state):
        given = getattr(state, column.name)
        if isinstance(given, Group):
            prefix = column.metadata.get("prefix", "")
            found |= {prefix + name: one for name, one in stored_fields(given).items()}
        elif isinstance(given, (np.ndarray, bool, int, float, str, np.number)):
            found[column.name] = given
    return found


def restored(fresh: Any, stored: Mapping[str, Any], prefix: str = "") -> Any:
    """A state (or a group) like the `fresh` one, with the stored values.

    Its workspaces are new and empty, numbers and texts that were not stored are those of the fresh one; any other field
    that was not stored is None.
    """
    found: dict[str, Any] = {}
    for column in fields(fresh):
        was = getattr(fresh, column.name)
        if isinstance(was, Group):
            found[column.name] = restored(was, stored, prefix + column.metadata.get("prefix", ""))
        elif isinstance(was, Workspace):
            found[column.name] = type(was)()
        else:
            plain = isinstance(was, (bool, int, float, str))
            found[column.name] = stored.get(prefix + column.name, was if plain else None)
    return replace(fresh, **found)
