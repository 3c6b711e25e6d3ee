"""Instructions of the processor that Python has no words for, as compiled code calls them.

:func:`saddlesvm.runtime.compiled.instruction` names them without importing this module. Each
function here is an intrinsic of Numba: from the types of the arguments it returns a signature, and
a function that writes the code of LLVM.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.core.typing.context import BaseContext as TypingContext
    from numba.core.typing.templates import Signature

# What an intrinsic returns: its signature, and the function that writes the code of LLVM.
Written: TypeAlias = "tuple[Signature, Callable[..., ir.Value]]"

# Caches of the processor, as the prefetch instruction numbers them.
FIRST_CACHE = 3
SECOND_CACHE = 2


def _prefetch_into(cache: int) -> Callable[..., object]:
    """Return the instruction that loads the cache line at a byte offset in an array.

    It never faults, wherever the offset leads.
    """

    def prefetch_line(
        typingctx: TypingContext, array: types.Array, offset: types.Integer
    ) -> Written:
        def generate(
            context: BaseContext,
            builder: ir.IRBuilder,
            signature: Signature,
            arguments: Sequence[ir.Value],
        ) -> ir.Value:
            # The address: the first byte of the array, plus the offset.
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            byte = ir.IntType(8).as_pointer()
            start = builder.bitcast(view.data, byte)
            place = builder.gep(start, [arguments[1]])
            i32 = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32])
            # Newer versions of LLVM have pointers without a type.
            is_opaque = getattr(byte, "is_opaque", False)
            name = "llvm.prefetch.p0" if is_opaque else "llvm.prefetch.p0i8"
            function = cgutils.get_or_insert_function(builder.module, kind, name)
            # The arguments of llvm.prefetch: address, read (0), how long to keep it, data (1).
            builder.call(function, [place, i32(0), i32(cache), i32(1)])
            return context.get_dummy_value()

        return types.void(array, types.uint64), generate

    return prefetch_line


def _reinterpret(to: types.Type, source: types.Type) -> Callable[..., object]:
    """Return the instruction that reads the bits of a number as a number of another type."""

    def reinterpret(typingctx: TypingContext, x: types.Type) -> Written:
        def generate(
            context: BaseContext,
            builder: ir.IRBuilder,
            signature: Signature,
            arguments: Sequence[ir.Value],
        ) -> ir.Value:
            return builder.bitcast(arguments[0], context.get_value_type(to))

        return to(source), generate

    return reinterpret


def _address(
    context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Sequence[ir.Value]
) -> ir.Value:
    """Return the address of a number in a gate; both are the first two arguments."""
    gate = arguments[0]
    place = arguments[1]
    data = context.make_array(signature.args[0])(context, builder, gate).data
    return builder.gep(data, [place])


def add_one(typingctx: TypingContext, gate: types.Array, place: types.Integer) -> Written:
    """Add 1 to a number of the gate, for all threads at once, and return the number before."""

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw(
            "add", _address(context, builder, signature, arguments), one, "acq_rel"
        )

    return types.int64(gate, types.intp), generate


def read(typingctx: TypingContext, gate: types.Array, place: types.Integer) -> Written:
    """Return a number of the gate, as all threads see it."""

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        return builder.load_atomic(_address(context, builder, signature, arguments), "acquire", 8)

    return types.int64(gate, types.intp), generate


def write(
    typingctx: TypingContext, gate: types.Array, place: types.Integer, value: types.Integer
) -> Written:
    """Set a number of the gate, for all threads to see."""

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        builder.store_atomic(
            arguments[2], _address(context, builder, signature, arguments), "release", 8
        )
        return context.get_dummy_value()

    return types.void(gate, types.intp, types.int64), generate


def raise_from(
    typingctx: TypingContext, gate: types.Array, place: types.Integer, value: types.Integer
) -> Written:
    """Add 1 to a number of the gate if it is still `value`, and return if it was."""

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        address = _address(context, builder, signature, arguments)
        former = arguments[2]
        raised = builder.add(former, ir.Constant(ir.IntType(64), 1))
        answer = builder.cmpxchg(address, former, raised, "acq_rel", "acquire")
        return builder.extract_value(answer, 1)

    return types.boolean(gate, types.intp, types.int64), generate


def give_way(typingctx: TypingContext) -> Written:
    """Let another thread use the core."""

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


def nap(typingctx: TypingContext, microseconds: types.Integer) -> Written:
    """Sleep for some microseconds."""

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "usleep"), arguments)
        return context.get_dummy_value()

    return types.void(types.uint32), generate


def high_product(typingctx: TypingContext, a: types.Integer, b: types.Integer) -> Written:
    """Return the upper 64 bits of the 128-bit product of two uint64."""

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        wide = ir.IntType(128)
        x, y = (builder.zext(factor, wide) for factor in arguments)
        return builder.trunc(builder.lshr(builder.mul(x, y), ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


def leading_zeros(typingctx: TypingContext, a: types.Integer) -> Written:
    """Return the number of leading zero bits of a uint64 that is not 0."""

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


def half_of(typingctx: TypingContext, bits: types.Integer) -> Written:
    """Return the number with these bits in half precision (binary16), as float32."""

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


def brain_of(typingctx: TypingContext, bits: types.Integer) -> Written:
    """Return the number with these bits as bfloat16, the upper half of a float32, as float32."""

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        i32 = ir.IntType(32)
        upper = builder.shl(builder.zext(arguments[0], i32), ir.Constant(i32, 16))
        return builder.bitcast(upper, ir.FloatType())

    return types.float32(types.uint16), generate


INTRINSICS: dict[str, Callable[..., Any]] = {
    "prefetch_line": _prefetch_into(FIRST_CACHE),
    "prefetch_line_far": _prefetch_into(SECOND_CACHE),
    "bits_of": _reinterpret(types.int64, types.float64),
    "double_of": _reinterpret(types.float64, types.int64),
    "single_bits": _reinterpret(types.int32, types.float32),
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
def type_of_instruction(name: str) -> object:
    """Return Numba's type of an instruction."""
    made = intrinsic(INTRINSICS[name])
    # Numba learns of the new intrinsic by refreshing its registries.
    context = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(made)
