"""Numba itself, behind the decorators of :mod:`~saddlesvm.runtime.compiled`.

It is imported when a kernel is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from numba import njit
from numba.core import event
from numba.extending import overload

from saddlesvm.runtime.clock import WATCH
from saddlesvm.runtime.kernel_files import KernelCache


class CompilationListener(event.Listener):
    """Forwards Numba's reports of its compilations to the clock."""

    def on_start(self, event: event.Event) -> None:
        """Report that a compilation begins."""
        WATCH.on_start()

    def on_end(self, event: event.Event) -> None:
        """Report that a compilation is done."""
        WATCH.on_end()


event.register("numba:compile", CompilationListener())


def dispatcher_of(function: Callable[..., Any], options: dict[str, Any], saved: bool) -> Any:
    """Return Numba's object for a Python function, with :class:`KernelCache` if it is saved."""
    dispatcher: Any = njit(function, **options)
    if saved:
        dispatcher._cache = KernelCache(function)
    return dispatcher


def declare_operations(
    operations: Iterable[tuple[Callable[..., object], Callable[..., object]]], options: Any
) -> None:
    """Let compiled code use each stub with the body that its pick chooses from the types."""
    for stub, pick in operations:
        overload(stub, strict=False, jit_options=options)(pick)
