"""The classes that compiled kernels depend on through their argument types, and the text that defines them.

Classes from outside the package, such as a user's own loss, must not stand in the index that all processes read: a
process that cannot import their module could not read it. So kernels for such a class have an index of their own. Its
name is derived from the text of the file that defines the class, as it was when the class was made: a changed file
gives a new name, and never meets old code. A class that other processes cannot import (typed in, or made inside a
function) has no index; its kernels are compiled in each process. Changes to other files that the class uses are not
noticed.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numba.core import types

PACKAGE = __name__.partition(".")[0]


def python_class(numba_type: types.Type) -> type | None:
    """The NamedTuple class behind a Numba type; None for other types."""
    return getattr(numba_type, "instance_class", None)


def number_in(array: Any) -> Any:
    """NumPy's type of the numbers in an array, given the array's Numba type."""
    return np.dtype(str(array.dtype)).type


def classes_in(signature: Iterable[Any]) -> set[type]:
    """The NamedTuple classes that argument types are made of."""
    found: set[type] = set()
    for one in signature:
        kind = python_class(one)
        found |= classes_in(getattr(one, "types", ())) | ({kind} if kind else set())
    return found


def is_outside(kind: type) -> bool:
    """Whether a class is defined outside this package."""
    return kind.__module__.partition(".")[0] != PACKAGE


def mark_source(kind: Any) -> None:
    """Mark a class with the present text of the file that defines it; cached kernels for it are found by this mark."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file is not None and os.path.isfile(file) and is_outside(kind):
        kind.kernel_source = hashlib.sha256(
            f"{kind.__module__}:{kind.__qualname__}:".encode() + Path(file).read_bytes()
        ).hexdigest()


def source_of(kind: Any) -> str | None:
    """The mark of a class from outside; None where another process would not find the same class by its name."""
    found: Any = sys.modules.get(kind.__module__) if kind.__module__ != "__main__" else None
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    mark: str | None = getattr(kind, "kernel_source", None)
    return mark if found is kind else None
