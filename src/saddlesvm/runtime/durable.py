"""The durable part of a run's state: the arrays, numbers and texts that a checkpoint holds, each under a name.

A state is a dataclass. A field that is not durable itself is a :class:`Group` of durable values, or a
:class:`Workspace`, which the run makes anew where it is missing. Fields of the package say with ``metadata`` what
differs from the rule that an array keeps its shape, and is finite:

    grows   number of leading axes of the array whose lengths depend on the progress of the run
    finite  False: the array may hold infinities
    rows    True: the array holds numbers of rows of the problem
    prefix  with which the names of a group's values begin

Fields of states from outside the package need not say anything: every number, text and array is stored as it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import field, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

PLAIN = (bool, int, float, str, np.integer, np.floating, np.bool_, type(None))


class Wrong(ValueError):
    """The contents of a checkpoint are not those that a run has written."""


def demand(fine: Any, what: str) -> None:
    """Raise :class:`Wrong` unless something is fine."""
    if not fine:
        raise Wrong(what)


def growing(*shape: int, dtype: Any = np.float64, rows: bool = False) -> Any:
    """A field for an array that is empty at first, of shape (0,) or the one given, and grows as the run goes on."""
    axes = max(shape.count(0), 1)
    return field(default_factory=lambda: np.empty(shape or 0, dtype=dtype), metadata={"grows": axes, "rows": rows})


def stored(*names: str, **said: dict[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The attributes of an object that a checkpoint holds; `said` is what a field would say in its ``metadata``."""
    return {name: said.get(name, {}) for name in (*names, *said)}


class Workspace:
    """Working data that a run can make anew (factors, threads, copies): no part of a checkpoint."""


class Group:
    """Values that belong together, held by an object; a checkpoint holds them beside those of the state.

    A class that is no dataclass, or has other fields besides, names in `__stored__` the attributes that a checkpoint
    holds, see :func:`stored`.
    """

    __stored__: ClassVar[Mapping[str, Mapping[str, Any]] | None] = None


class Leaf(NamedTuple):
    """A durable value: its name in the checkpoint, the object and attribute that hold it, and what it says of itself.

    `own` is true for a field that was declared outside this package.
    """

    name: str
    holder: Any
    attribute: str
    said: Mapping[str, Any]
    own: bool

    @property
    def value(self) -> Any:
        """The held value."""
        return getattr(self.holder, self.attribute)

    def restore(self, stored: Any) -> None:
        """Hold what was stored, a NumPy number, or an array of records with named fields, again where there was one."""
        was = self.value
        if isinstance(was, np.generic):
            stored = type(was)(stored)
        elif isinstance(was, np.ndarray) and was.dtype.type is np.record:  # as plain Python reads them
            stored = stored.view(was.dtype)
        setattr(self.holder, self.attribute, stored)


def leaves(holder: Any, prefix: str = "") -> Iterator[Leaf]:
    """The durable values of a state, and of its groups.

    Raises
    ------
    TypeError
        A field is none of those that a checkpoint can hold.
    """
    said = type(holder).__stored__
    for attribute, column in ({one.name: one.metadata for one in fields(holder)} if said is None else said).items():
        value, name = getattr(holder, attribute), prefix + attribute
        if isinstance(value, Group):
            yield from leaves(value, prefix + column.get("prefix", ""))
        elif isinstance(value, PLAIN) or (isinstance(value, np.ndarray) and not value.dtype.hasobject):
            yield Leaf(name, holder, attribute, column, _is_own(type(holder), attribute))
        elif not isinstance(value, Workspace):
            what = "an array of objects" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
            raise TypeError(
                f"the field {attribute!r} of {type(holder).__name__} is {what}, which no checkpoint can hold: make it "
                "numbers, texts or arrays without objects, a Group of these, or a Workspace that the run can make anew"
            )


def stored_fields(state: Any) -> dict[str, Any]:
    """The fields of a state that a checkpoint holds, by name."""
    return {leaf.name: leaf.value for leaf in leaves(state)}


def restored(state: Any, stored: Mapping[str, Any]) -> Any:
    """The state with the stored values in the place of its own; what was not stored stays as it is."""
    for leaf in list(leaves(state)):
        if leaf.name in stored:
            leaf.restore(stored[leaf.name])
    return state


def part_of(stored: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The stored values whose names begin with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): one for name, one in stored.items() if name.startswith(prefix)}


def _is_own(kind: type, attribute: str) -> bool:
    """Whether the class that declares an attribute stands outside this package."""
    home = next((one for one in kind.__mro__ if attribute in inspect.get_annotations(one)), kind)
    return home.__module__.partition(".")[0] != __name__.partition(".")[0]
