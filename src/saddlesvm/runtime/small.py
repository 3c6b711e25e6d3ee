"""Limits below which NumPy is as fast as compiled code, without the time to compile.

A kernel may have a twin in NumPy beside it, see :func:`beside`. The sizes of the data alone choose
between the two, so that the same data always take the same path, whatever is compiled already.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class Most:
    """The largest work that counts as small.

    Attributes
    ----------
    values : int
        Stored values of the rows, and `per_row` for each row besides.
    dense : int
        Values of dense rows, of which the BLAS makes scores and sums. Of more values in float32,
        which become float64 for it, fits by kernels take 1 / 1.67 of the time (150,000 x 100, easy
        C, 26 November 2026).
    step : float
        Operations that make and factor the matrix of Newton's equations, roughly.
    """

    values = 2**17
    dense = 10_000_000
    per_row = 10
    step = 2e7


def beside(
    twin: Callable[..., object], is_small: Callable[[object], bool]
) -> Callable[[Function], Function]:
    """Let Python code that calls a kernel get its `twin` in NumPy for small work.

    Parameters
    ----------
    twin : callable
    is_small : callable
        Called with the kernel's first argument.

    Returns
    -------
    callable
        A decorator. What it returns has the kernel as its attribute ``compiled``, for other
        kernels to call.
    """

    def declare(compiled: Function) -> Function:
        @functools.wraps(getattr(compiled, "py_func", compiled))
        def chosen(first: object, *others: object) -> Any:
            return twin(first, *others) if is_small(first) else compiled(first, *others)

        chosen.compiled = compiled  # type: ignore[attr-defined]
        chosen.twin = twin  # type: ignore[attr-defined]
        return chosen  # type: ignore[return-value]

    return declare
