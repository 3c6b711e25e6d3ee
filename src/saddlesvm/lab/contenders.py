"""The solvers to compare, given by name, as objects or as text with options, and their labels in tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from saddlesvm.multiclass.kernel_fit import KERNEL_SOLVERS, make_kernel_solver
from saddlesvm.solvers import SOLVERS, make_solver
from saddlesvm.solvers.base import SolverBase

WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class Contender:
    """A solver with its options.

    Attributes
    ----------
    solver : object
        Solver object.
    options : str
        The options that are not the defaults, as ``name=value`` joined by commas.
    """

    solver: Any
    options: str

    @property
    def name(self) -> str:
        """Name of the solver."""
        return str(self.solver.name)

    @property
    def label(self) -> str:
        """Name and options for legends and tables."""
        return label_of(self.name, self.options)


def parse_contenders(solvers: str | Any | Iterable[Any], *, kernels: bool = False) -> list[Contender]:
    """Contenders from names, text with options, and solver objects.

    Parameters
    ----------
    solvers : str, solver object, or sequence of them
        A string may name several: ``"dcd,pegasos:batch_size=64,output=average"``. A part with a ``=`` goes on with
        the options of the solver before it.
    kernels : bool, default=False
        Whether they are solvers of kernel machines.

    Raises
    ------
    ValueError
        An unknown solver or option, a value out of range, or the same contender twice.
    """
    given = [solvers] if isinstance(solvers, str) or not isinstance(solvers, Iterable) else list(solvers)
    found: list[Contender] = []
    for one in given:
        among = KERNEL_SOLVERS if kernels else SOLVERS
        checked = make_kernel_solver if kernels else make_solver
        made = [parse(text, among) for text in split(one)] if isinstance(one, str) else [checked(one)]
        found += [Contender(solver, options_of(solver)) for solver in made]
    if not found:
        raise ValueError("no solver is named; give at least one")
    labels = [contender.label for contender in found]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ValueError(f"the solver {twice} is named twice")
    return found


def split(text: str) -> list[str]:
    """The solvers of a comma-separated list, each with its own options."""
    parts: list[str] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        if "=" in part and ":" not in part and parts:
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return parts


def parse(text: str, among: Mapping[str, type[Any]] = SOLVERS) -> SolverBase:
    """A solver from ``name`` or ``name:option=value,option=value``.

    Raises
    ------
    ValueError
        The name or an option is unknown, or a value is out of range.
    """
    name, _, tail = text.partition(":")
    if name not in among:
        raise ValueError(f"unknown solver {name!r}: use one of {', '.join(among)}")
    kind = among[name]
    allowed = {option.name for option in dataclasses.fields(kind)}
    options: dict[str, Any] = {}
    for pair in filter(None, tail.split(",")):
        option, equals, given = pair.partition("=")
        if not equals or option not in allowed:
            raise ValueError(f"the solver {name!r} has no option {option!r}; it has {', '.join(sorted(allowed))}")
        options[option] = plain_value(given)
    return kind(**options)


def plain_value(text: str) -> Any:
    """A number, true, false, none, or the text itself."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def options_of(solver: Any) -> str:
    """The options of a solver object that differ from the defaults."""
    given = {one.name: getattr(solver, one.name) for one in dataclasses.fields(solver)}
    other = {one.name: given[one.name] for one in dataclasses.fields(solver) if given[one.name] != one.default}
    return ",".join(f"{name}={str(one).lower() if isinstance(one, bool) else one}" for name, one in other.items())


def label_of(name: str, options: str) -> str:
    """Name and options as a contender's label writes them."""
    return f"{name} ({options})" if options else name


def as_list(given: Any) -> list[Any]:
    """A list of one, or the sequence as a list."""
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]
