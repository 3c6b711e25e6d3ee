"""The classes that compiled kernels depend on through their argument types.

Classes from outside the package, such as a user's own loss, must not be in the index that all
processes read: a process that cannot import their module could not read it. So kernels for such a
class have an index of their own. Its name is derived from the text of the file that defines the
class, as it was when the class was made: a changed file gives a new name, and never meets old code.
A class that other processes cannot import (typed in, or made inside a function) has no index; its
kernels are compiled in each process. Changes to other files that the class uses are not noticed.
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
    """Return the NamedTuple class of a Numba type; None for other types."""
    return getattr(numba_type, "instance_class", None)


def number_in(array: Any) -> Any:
    """Return NumPy's type of the numbers in an array, given the array's Numba type."""
    return np.dtype(str(array.dtype)).type


def classes_in(signature: Iterable[types.Type]) -> set[type]:
    """Return the NamedTuple classes that argument types are made of."""
    classes: set[type] = set()
    for numba_type in signature:
        kind = python_class(numba_type)
        if kind is not None:
            classes.add(kind)
        # A tuple has further types inside.
        classes |= classes_in(getattr(numba_type, "types", ()))
    return classes


def is_outside(kind: type) -> bool:
    """Return True if a class is defined outside this package."""
    return kind.__module__.partition(".")[0] != PACKAGE


def mark_source(kind: Any) -> None:
    """Mark a class with the present text of its file; cached kernels are found by this mark."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file is not None and os.path.isfile(file) and is_outside(kind):
        name = f"{kind.__module__}:{kind.__qualname__}:"
        kind.kernel_source = hashlib.sha256(name.encode() + Path(file).read_bytes()).hexdigest()


def source_of(kind: type) -> str | None:
    """Return the mark of a class from outside; None if other processes cannot import the class."""
    # What __main__ defines has no module that another process could import.
    if kind.__module__ == "__main__":
        return None
    found: Any = sys.modules.get(kind.__module__)
    # Go to the class by its name, as an import would, and see whether it is the same one.
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    mark: str | None = getattr(kind, "kernel_source", None)
    return mark if found is kind else None
