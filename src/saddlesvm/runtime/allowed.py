"""The kinds of values that options allow: each is defined once, and a single function checks it.

Also options and names that are given as text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.runtime.option_names import KEPT

WHOLE = (int, np.integer)
NUMBER = (*WHOLE, float, np.floating)
MOST_BITS = 1023  # bits of a whole number that a float can hold for certain
# Values of options that are given as text.
WORDS: dict[str, Any] = {"true": True, "false": False, "none": None}
SEEDS_OF_NUMPY = 2**32  # numbers that a numpy.random.RandomState takes as its seed
# Bounds of C and of lambda: one is 1 / n times the inverse of the other, and objectives are sums.
LEAST = 1e-200
MOST = 1e200


class Allowed(NamedTuple):
    """The values that an option allows.

    Attributes
    ----------
    words : str
        What refusals call them.
    holds : callable
        Returns True for a value that is allowed.
    names : tuple of str
        The names among them, in the order in which documents list them.
    """

    words: str
    holds: Callable[[Any], bool]
    names: tuple[str, ...] = ()


def check(name: str, given: Any, allowed: Allowed) -> None:
    """Raise ValueError, with the name and what the option may be, for a value not allowed."""
    if not allowed.holds(given):
        # Python refuses to write whole numbers of thousands of digits.
        if _is_float_sized(given):
            shown = repr(given)
        else:
            shown = f"a whole number of {given.bit_length()} bits"
        raise ValueError(f"{name} must be {allowed.words}; got {shown}")


def check_options(owner: object, kinds: Mapping[str, Allowed]) -> None:
    """Raise ValueError for the first attribute of `owner` that is not of its kind."""
    for name, allowed in kinds.items():
        check(name, getattr(owner, name), allowed)


def one_of(option: str, given: object, values: tuple[str, ...]) -> None:
    """Raise ValueError unless an option is one of some names."""
    check(option, given, names(*values))


def parse_options(text: str, known: Collection[str], owner: str) -> dict[str, Any]:
    """Return the options in ``"option=value,option=value"``.

    Values are numbers, true, false or none; anything else is text.

    Raises
    ------
    ValueError
        An option is not among `known`; the message begins with `owner`.
    """
    options: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        option, equals, value = part.partition("=")
        if option not in known or not equals:
            raise ValueError(
                f"{owner} has no option {option!r}; it has: {', '.join(known) or 'none'}"
            )
        options[option] = _parse_value(value)
    return options


def _parse_value(text: str) -> object:
    """Return the value that a text stands for."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    # A whole number stays one: "3" becomes 3, "3.5" a float, and anything else stays text.
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def split_names(text: str) -> list[str]:
    """Return the names in a list with commas, each with its options.

    ``"hinge,own:a=1,b=2"`` are two names.
    """
    names: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        # A further option of the name before.
        if names and "=" in part and ":" not in part:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names


def _is_float_sized(given: object) -> bool:
    """Return False for a whole number that is too large for a float."""
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
    """Return the numbers from `least` to `most`, without `excluded`, and with `none` also None."""

    def holds(given: Any) -> bool:
        # NaN fails the last comparison.
        if given is None:
            return none
        if not isinstance(given, kinds) or not _is_float_sized(given):
            return False
        if finite and not math.isfinite(given):
            return False
        return bool(least <= given <= most) and given not in excluded

    return Allowed(words, holds)


def names(*allowed: str) -> Allowed:
    """Return the names that an option allows."""

    def holds(given: object) -> bool:
        return isinstance(given, str) and given in allowed

    return Allowed(_join_words([repr(name) for name in allowed]), holds, allowed)


def instances(words: str, *kinds: type) -> Allowed:
    """Return the objects of some classes."""

    def holds(given: object) -> bool:
        return isinstance(given, kinds)

    return Allowed(words, holds)


def either(*kinds: Allowed) -> Allowed:
    """Return the values of any of several kinds."""

    def holds(given: object) -> bool:
        return any(kind.holds(given) for kind in kinds)

    listed = tuple(name for kind in kinds for name in kind.names)
    words = [repr(name) for name in listed] + [kind.words for kind in kinds if not kind.names]
    return Allowed(_join_words(words), holds, listed)


def _join_words(words: Sequence[str]) -> str:
    """Return words with commas, and "or" before the last."""
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _is_truth(given: object) -> bool:
    """Return True for a truth value, and for 0 and 1, which stand for them."""
    return isinstance(given, (bool, np.bool_, *WHOLE)) and given in (0, 1)


def _is_seed(given: object) -> bool:
    """Return True for what NumPy's old generators are made of: a number, one of them, or None."""
    if isinstance(given, WHOLE):
        return bool(0 <= given < SEEDS_OF_NUMPY)
    return given is None or isinstance(given, np.random.RandomState) or given is np.random


def _are_callbacks(given: object) -> bool:
    """Return True for None, or a list of callables."""
    return given is None or (isinstance(given, Sequence) and all(map(callable, given)))


FINITE = numbers("a finite number")
POSITIVE = numbers("a positive finite number", 0.0, excluded=(0.0,))
STRENGTH = numbers(f"a positive finite number, from {LEAST:g} to {MOST:g}", LEAST, MOST)
# The square of a scaling is added to squared norms of rows.
SCALING = numbers("a positive finite number, from 1e-100 to 1e100", 1e-100, 1e100)
NOT_NEGATIVE = numbers("a finite number of at least 0", 0.0)
RELATIVE_GAP = numbers(
    "a relative gap, at least 0 and below 1: a gap of 1 proves nothing", 0.0, 1.0, excluded=(1.0,)
)
SHARE = numbers("a number between 0 and 1, both excluded", 0.0, 1.0, excluded=(0.0, 1.0))
NU = numbers("a number above 0, and at most 1", 0.0, 1.0, excluded=(0.0,))
L1_RATIO = numbers("from 0 (half a square) to 1 (the l1 norm)", 0.0, 1.0)
COUNT = numbers("a whole number of at least 0", 0, kinds=WHOLE)
COUNT_FROM_ONE = numbers("a whole number of at least 1", 1, kinds=WHOLE)
LIMIT = numbers("positive, or None for no limit", 0.0, excluded=(0.0,), finite=False, none=True)
THREADS = numbers("a whole number other than 0, or None", excluded=(0,), none=True, kinds=WHOLE)
NOTHING = Allowed("None", lambda given: given is None)
TRUTH = Allowed("True or False", _is_truth)
KEEP = names(*KEPT)
DUAL = Allowed(
    "'auto', True or False (it has no effect)",
    lambda given: _is_truth(given) or (isinstance(given, str) and given == "auto"),
)
VERBOSE = numbers("a whole number of at least 0, True or False", 0, kinds=(*WHOLE, np.bool_))
LAMBDA = either(STRENGTH, NOTHING)
NO_LIMIT = either(numbers("-1", -1, -1), LIMIT)  # as scikit-learn's kernel machines say it
SEED = Allowed("None, a whole number from 0 to 2^32 - 1, or a numpy.random.RandomState", _is_seed)
CLASS_WEIGHT = either(names("balanced"), instances("a dict of factors by label", Mapping), NOTHING)
MEMORY = either(numbers("bytes", 0.0), instances("text such as '512M' or '1.5G'", str), NOTHING)
CALLBACKS = Allowed("a list of callables, or None", _are_callbacks)
