"""A barrier for threads inside compiled code: they meet within a microsecond, without the interpreter.

Each thread adds one to a shared counter and waits until all have. A thread that waits long gives its core away, so that
the others get on where there are fewer cores than threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from saddlesvm.runtime.compiled import inlined

SPINS = 2000  # reads of the counter, a few us in all, after which a waiting thread gives its core away
OPEN = 2**62  # value of the counter at which no thread waits


def _counter(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The address of the first item of the array."""
    return context.make_array(signature.args[0])(context, builder, arguments[0]).data


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _add_one(typingctx: Any, gate: types.Array) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", _counter(context, builder, signature, arguments), one, "acq_rel")

    return types.int64(gate), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _read(typingctx: Any, gate: types.Array) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_counter(context, builder, signature, arguments), "acquire", 8)

    return types.int64(gate), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _give_way(typingctx: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


add_one: Callable[..., int] = _add_one  # compiled code calls them without the typing context
read: Callable[..., int] = _read
give_way: Callable[..., None] = _give_way


def new_gate() -> np.ndarray:
    """A fresh barrier."""
    return np.zeros(8, dtype=np.int64)


@inlined
def meet(gate: np.ndarray, threads: int) -> None:
    """Return when all threads have called this as often as the caller."""
    target = (add_one(gate) // threads + 1) * threads
    spins = 0
    while read(gate) < target:
        spins += 1
        if spins > SPINS:
            give_way()


def release(gate: np.ndarray) -> None:
    """Open the barrier for good, because one of the threads will not come."""
    gate[0] = OPEN
