"""Numba itself, behind the decorators of :mod:`~saddlesvm.runtime.compiled`: imported when a kernel is first needed.

Here are also the instructions of the processor that Python has no words for, as compiled code calls them;
:func:`saddlesvm.runtime.compiled.instruction` names them without importing this module.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, event, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic, overload

from saddlesvm.runtime.clock import WATCH
from saddlesvm.runtime.kernel_cache import KernelCache


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


FIRST_CACHE, SECOND_CACHE = 3, 2  # caches of the processor, as the instruction numbers them


def _prefetch_into(cache: int) -> Callable[..., Any]:
    """The instruction that asks the processor for the cache line at a byte offset in an array; it never faults."""

    def prefetch_line(typingctx: Any, array: types.Array, offset: types.Integer) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            byte = ir.IntType(8).as_pointer()
            start = builder.bitcast(view.data, byte)
            place = builder.gep(start, [arguments[1]])
            i32 = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
            name = "llvm.prefetch.p0i8" if getattr(byte, "is_opaque", False) is False else "llvm.prefetch.p0"
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            builder.call(function, [place, i32(0), i32(cache), i32(1)])
            return context.get_dummy_value()

        return types.void(array, types.uint64), generate

    return prefetch_line


def _reread(to: types.Type, of: types.Type) -> Callable[..., Any]:
    """The bits of a number of type `of` read as one of type `to`."""

    def reread(typingctx: Any, x: types.Type) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(to))

        return to(of), generate

    return reread


def _number(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The address of a number in the gate, the first two arguments."""
    gate, place = arguments[:2]
    data = context.make_array(signature.args[0])(context, builder, gate).data
    return builder.gep(data, [place])


def add_one(typingctx: Any, gate: types.Array, place: types.Integer) -> Any:
    """Add one to a number of the gate, for all threads at once; the number before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", _number(context, builder, signature, arguments), one, "acq_rel")

    return types.int64(gate, types.intp), generate


def read(typingctx: Any, gate: types.Array, place: types.Integer) -> Any:
    """A number of the gate, as all threads see it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_number(context, builder, signature, arguments), "acquire", 8)

    return types.int64(gate, types.intp), generate


def write(typingctx: Any, gate: types.Array, place: types.Integer, value: types.Integer) -> Any:
    """Set a number of the gate, for all threads to see."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _number(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(gate, types.intp, types.int64), generate


def raise_from(typingctx: Any, gate: types.Array, place: types.Integer, value: types.Integer) -> Any:
    """Add one to a number of the gate if it is `value` still; whether it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, former = _number(context, builder, signature, arguments), arguments[2]
        raised = builder.add(former, ir.Constant(ir.IntType(64), 1))
        answer = builder.cmpxchg(address, former, raised, "acq_rel", "acquire")
        return builder.extract_value(answer, 1)

    return types.boolean(gate, types.intp, types.int64), generate


def give_way(typingctx: Any) -> Any:
    """Let another thread have the core."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


def nap(typingctx: Any, microseconds: types.Integer) -> Any:
    """Sleep."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "usleep"), arguments)
        return context.get_dummy_value()

    return types.void(types.uint32), generate


def high_product(typingctx: Any, a: types.Integer, b: types.Integer) -> Any:
    """The upper 64 bits of the 128-bit product of two uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        x, y = (builder.zext(one, wide) for one in arguments)
        return builder.trunc(builder.lshr(builder.mul(x, y), ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


def leading_zeros(typingctx: Any, a: types.Integer) -> Any:
    """Number of zero bits before the first one of a uint64 that is not 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


def half_of(typingctx: Any, bits: types.Integer) -> Any:
    """The number whose bits in half precision (binary16) these are, as float32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


def brain_of(typingctx: Any, bits: types.Integer) -> Any:
    """The number whose bits as bfloat16 these are, as float32: the upper half of its bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        i32 = ir.IntType(32)
        upper = builder.shl(builder.zext(arguments[0], i32), ir.Constant(i32, 16))
        return builder.bitcast(upper, ir.FloatType())

    return types.float32(types.uint16), generate


MAKERS: dict[str, Callable[..., Any]] = {
    "prefetch_line": _prefetch_into(FIRST_CACHE),
    "prefetch_line_far": _prefetch_into(SECOND_CACHE),
    "bits_of": _reread(types.int64, types.float64),
    "double_of": _reread(types.float64, types.int64),
    "single_bits": _reread(types.int32, types.float32),
    "add_one": add_one,
    "read": read,
    "write": write,
    "raise_from": raise_from,
    "give_way": give_way,
    "nap": nap,
    "high_product": high_product,
    "leading_zeros": leading_zeros,
    "half_of": half_of,
    "brain_of": brain_of,
}


@functools.cache
def type_of(name: str) -> Any:
    """Numba's type of an instruction."""
    made = intrinsic(MAKERS[name])
    context = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(made)
