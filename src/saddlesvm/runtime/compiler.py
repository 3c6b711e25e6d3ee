"""Numba itself, behind the decorators of :mod:`~saddlesvm.runtime.compiled`: imported when a kernel is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from numba import njit
from numba.core import event
from numba.extending import overload

from saddlesvm.runtime.compiling import WATCH
from saddlesvm.runtime.kernel_cache import KernelCache

__all__ = ["declare_operations", "dispatcher_of"]


class Teller(event.Listener):
    """Forwards Numba's reports of its compilations."""

    def on_start(self, event: event.Event) -> None:
        """One begins."""
        WATCH.on_start()

    def on_end(self, event: event.Event) -> None:
        """It is done."""
        WATCH.on_end()


event.register("numba:compile", Teller())


def dispatcher_of(function: Callable[..., Any], options: dict[str, Any], saved: bool) -> Any:
    """Numba's object for a Python function; with :class:`KernelCache` where it is saved."""
    made: Any = njit(function, **options)
    if saved:
        made._cache = KernelCache(function)
    return made


def declare_operations(operations: Iterable[tuple[Any, Any]], options: Any) -> None:
    """Let compiled code use each stub with the body that its pick chooses from the argument types."""
    for stub, pick in operations:
        overload(stub, strict=False, jit_options=options)(pick)
