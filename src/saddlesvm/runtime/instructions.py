"""Instructions of the processor that Python has no words for, as compiled code calls them.

:func:`saddlesvm.runtime.compiled.instruction` names them without importing this module. Each
function here writes the code of LLVM for an instruction: it takes the values of the arguments, of
an array the address of its first byte. :func:`type_of_instruction` makes it known to Numba.
"""

from __future__ import annotations

import functools
import inspect
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

    # What writes an instruction: it returns the value, or None if there is none.
    Writer: TypeAlias = Callable[..., ir.Value | None]

# Caches of the processor, as the prefetch instruction numbers them.
FIRST_CACHE = 3
SECOND_CACHE = 2

I1 = ir.IntType(1)
I8 = ir.IntType(8)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
I128 = ir.IntType(128)


def prefetch_line(builder: ir.IRBuilder, data: ir.Value, offset: ir.Value) -> None:
    """Load the cache line at a byte offset in an array into the first cache."""
    _prefetch(builder, data, offset, FIRST_CACHE)


def prefetch_line_far(builder: ir.IRBuilder, data: ir.Value, offset: ir.Value) -> None:
    """Load the cache line at a byte offset in an array into the second cache."""
    _prefetch(builder, data, offset, SECOND_CACHE)


def _prefetch(builder: ir.IRBuilder, data: ir.Value, offset: ir.Value, cache: int) -> None:
    """Load a cache line; that never faults, wherever the offset leads."""
    address = I8.as_pointer()
    place = builder.gep(builder.bitcast(data, address), [offset])
    kind = ir.FunctionType(ir.VoidType(), [address, I32, I32, I32])
    # Newer versions of LLVM have pointers without a type.
    is_opaque = getattr(address, "is_opaque", False)
    name = "llvm.prefetch.p0" if is_opaque else "llvm.prefetch.p0i8"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    # The arguments of llvm.prefetch: address, read (0), how long to keep it, data (1).
    builder.call(function, [place, I32(0), I32(cache), I32(1)])


def bits_of(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """Return the bits of a float64 as an int64."""
    return builder.bitcast(x, I64)


def double_of(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    """Return the float64 with the bits of an int64."""
    return builder.bitcast(bits, ir.DoubleType())


def single_bits(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """Return the bits of a float32 as an int32."""
    return builder.bitcast(x, I32)


def high_product(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return the upper 64 bits of the 128-bit product of two uint64."""
    product = builder.mul(builder.zext(a, I128), builder.zext(b, I128))
    return builder.trunc(builder.lshr(product, ir.Constant(I128, 64)), I64)


def leading_zeros(builder: ir.IRBuilder, a: ir.Value) -> ir.Value:
    """Return the number of leading zero bits of a uint64 that is not 0."""
    return builder.ctlz(a, ir.Constant(I1, 1))


def half_of(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    """Return the number with these bits in half precision (binary16), as float32."""
    return builder.fpext(builder.bitcast(bits, ir.HalfType()), ir.FloatType())


def brain_of(builder: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    """Return the number with these bits as bfloat16, the upper half of a float32, as float32."""
    upper = builder.shl(builder.zext(bits, I32), ir.Constant(I32, 16))
    return builder.bitcast(upper, ir.FloatType())


# The writer of each instruction, the type of its value, and the types of its arguments; an array
# may be of any type.
WRITERS: dict[str, tuple[Writer, types.Type, tuple[Any, ...]]] = {
    "prefetch_line": (prefetch_line, types.void, (types.Array, types.uint64)),
    "prefetch_line_far": (prefetch_line_far, types.void, (types.Array, types.uint64)),
    "bits_of": (bits_of, types.int64, (types.float64,)),
    "double_of": (double_of, types.float64, (types.int64,)),
    "single_bits": (single_bits, types.int32, (types.float32,)),
    "high_product": (high_product, types.uint64, (types.uint64, types.uint64)),
    "leading_zeros": (leading_zeros, types.uint64, (types.uint64,)),
    "half_of": (half_of, types.float32, (types.uint16,)),
    "brain_of": (brain_of, types.float32, (types.uint16,)),
}


@functools.cache
def type_of_instruction(name: str) -> object:
    """Return Numba's type of an instruction."""
    write_code, returned, wanted = WRITERS[name]

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: Sequence[ir.Value],
    ) -> ir.Value:
        values = list(arguments)
        for k, kind in enumerate(signature.args):
            if isinstance(kind, types.Array):
                values[k] = context.make_array(kind)(context, builder, values[k]).data
        value = write_code(builder, *values)
        return context.get_dummy_value() if value is None else value

    def define(typingctx: TypingContext, *given: types.Type) -> tuple[Signature, Any]:
        kinds = [
            kind if asked is types.Array else asked
            for kind, asked in zip(given, wanted, strict=True)
        ]
        return returned(*kinds), generate

    # Numba counts the arguments of an intrinsic by its signature.
    names = ["typingctx", *(f"argument_{k}" for k in range(len(wanted)))]
    parameters = [inspect.Parameter(each, inspect.Parameter.POSITIONAL_ONLY) for each in names]
    define.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    made = intrinsic(define)
    # Numba learns of the new intrinsic by refreshing its registries.
    context = cpu_target.typing_context
    context.refresh()
    return context.resolve_value_type(made)
