"""The kinds of values that options allow: each kind is defined once, and one function writes the message; and options
that are given as text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.runtime.option_names import KEPT

WHOLE = (int, np.integer)
NUMBER = (*WHOLE, float, np.floating)
MOST_BITS = 1023  # of a whole number that a float surely holds
WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}  # values of options that are given as text
LEAST, MOST = 1e-200, 1e200  # of C and of lambda: one is 1 / n times the inverse of the other, and objectives are sums


class Allowed(NamedTuple):
    """A kind of option: what it is called in messages, and whether a value is one."""

    words: str
    holds: Callable[[Any], bool]


def check(name: str, given: Any, allowed: Allowed) -> None:
    """Raise ValueError for a value that is not allowed; the message names the option and what it may be."""
    if not allowed.holds(given):
        raise ValueError(f"{name} must be {allowed.words}; got {_written(given)}")


def check_options(owner: Any, kinds: Mapping[str, Allowed]) -> None:
    """Raise ValueError for the first attribute of `owner` that is not of its kind."""
    for name, allowed in kinds.items():
        given = getattr(owner, name)
        if not allowed.holds(given):
            raise ValueError(f"{name} must be {allowed.words}; got {_written(given)}")


def one_of(option: str, given: Any, values: tuple[Any, ...]) -> None:
    """Raise ValueError unless `given` is one of some values."""
    if given not in values:
        raise ValueError(f"{option} must be one of {', '.join(map(repr, values))}; got {given!r}")


def options_in(text: str, known: Collection[str], whose: str) -> dict[str, Any]:
    """The options of ``"option=value,option=value"``: values are numbers, true, false or none; else text.

    Raises
    ------
    ValueError
        An option is none of those `known`; the message begins with `whose` they are.
    """
    found: dict[str, Any] = {}
    for option, equals, value in (one.partition("=") for one in text.split(",") if one):
        if option not in known or not equals:
            raise ValueError(f"{whose} has no option {option!r}; it has: {', '.join(known) or 'none'}")
        found[option] = _value(value)
    return found


def _value(text: str) -> Any:
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def names_in(text: str) -> list[str]:
    """The names of a list with commas, each with its own options: ``"hinge,own:a=1,b=2"`` are two."""
    found: list[str] = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        if found and "=" in part and ":" not in part:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return found


def _written(given: Any) -> str:
    return repr(given) if _fits(given) else f"a whole number of {given.bit_length()} bits"


def _fits(given: Any) -> bool:
    return not isinstance(given, int) or given.bit_length() <= MOST_BITS


def numbers(
    words: str,
    least: float = -math.inf,
    most: float = math.inf,
    *,
    excluded: tuple[float, ...] = (),
    finite: bool = True,
    none: bool = False,
    kinds: tuple[Any, ...] = NUMBER,
) -> Allowed:
    """The numbers from `least` to `most`, but for those `excluded`; finite ones alone, with `none` also None."""

    def holds(given: Any) -> bool:
        if not isinstance(given, kinds) or not _fits(given):
            return none and given is None
        return bool(least <= given <= most) and given not in excluded and (not finite or math.isfinite(given))

    return Allowed(words, holds)


def among(words: str, *values: Any) -> Allowed:
    """Some values alone."""

    def holds(given: Any) -> bool:
        return isinstance(given, (str, bool, np.bool_, *WHOLE)) and given in values

    return Allowed(words, holds)


def _callbacks(given: Any) -> bool:
    return given is None or (isinstance(given, Sequence) and all(map(callable, given)))


FINITE = numbers("a finite number")
POSITIVE = numbers("a positive finite number", 0.0, excluded=(0.0,))
STRENGTH = numbers(f"a positive finite number, from {LEAST:g} to {MOST:g}", LEAST, MOST)
SCALING = numbers("a positive finite number, from 1e-100 to 1e100", 1e-100, 1e100)  # its square is added to the rows'
NOT_NEGATIVE = numbers("a finite number of at least 0", 0.0)
RELATIVE_GAP = numbers("a relative gap, at least 0 and below 1: a gap of 1 proves nothing", 0.0, 1.0, excluded=(1.0,))
SHARE = numbers("a number between 0 and 1, both excluded", 0.0, 1.0, excluded=(0.0, 1.0))
COUNT = numbers("a whole number of at least 0", 0, kinds=WHOLE)
COUNT_FROM_ONE = numbers("a whole number of at least 1", 1, kinds=WHOLE)
LIMIT = numbers("positive, or None for no limit", 0.0, excluded=(0.0,), finite=False, none=True)
THREADS = numbers("a whole number other than 0, or None", excluded=(0,), none=True, kinds=WHOLE)
KEEP = among("'best' or 'last'", *KEPT)
CALLBACKS = Allowed("a list of callables, or None", _callbacks)
