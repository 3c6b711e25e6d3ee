"""Phases of work inside compiled code: every phase has a task for each part, and any thread takes the next free task.

The parts, not the threads, say what is done; so the result is the same whichever thread does a task, and however many
there are. A thread takes the task of its own part first, whose data are in its cache, and then those that nobody has
taken. The end of the last task of a phase opens the next phase. Nobody waits for a thread that holds no task: one
thread alone goes through all phases.

Where the system takes the core away from a thread in the middle of a task, the others have to wait for it. They ask for
some ten microseconds, then sleep, for longer and longer. That it happens seldom, a thread offers its core
to other programs every ms or so, while it holds no task: the system then seldom has a reason to take it.

The tasks of a phase are claimed and counted by atomic operations on one array, the gate.
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

GRACE = 50  # reads of the gate, less than a us in all, before a thread takes the task of another's part
SPINS = 5000  # reads of the gate, some ten us in all, after which a waiting thread sleeps
NAPS = (20, 200)  # us that it sleeps: at first, and at most
TURN = 128  # tasks, about a ms of work, after which a thread offers its core to other programs while it holds none
APART = 16  # places between two numbers of the gate, so that no cache line holds two of them
DONE, END, CLAIMS = 0, APART, 2 * APART  # places: tasks done; the phase at which all ends; claims of the parts
NEVER = 2**62


def _number(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The address of a number in the gate, the first two arguments."""
    gate, place = arguments[:2]
    data = context.make_array(signature.args[0])(context, builder, gate).data
    return builder.gep(data, [place])


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _add_one(typingctx: Any, gate: types.Array, place: types.Integer) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = ir.Constant(ir.IntType(64), 1)
        return builder.atomic_rmw("add", _number(context, builder, signature, arguments), one, "acq_rel")

    return types.int64(gate, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _read(typingctx: Any, gate: types.Array, place: types.Integer) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_number(context, builder, signature, arguments), "acquire", 8)

    return types.int64(gate, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _write(typingctx: Any, gate: types.Array, place: types.Integer, value: types.Integer) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _number(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(gate, types.intp, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _raise_from(typingctx: Any, gate: types.Array, place: types.Integer, value: types.Integer) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, former = _number(context, builder, signature, arguments), arguments[2]
        raised = builder.add(former, ir.Constant(ir.IntType(64), 1))
        answer = builder.cmpxchg(address, former, raised, "acq_rel", "acquire")
        return builder.extract_value(answer, 1)

    return types.boolean(gate, types.intp, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _give_way(typingctx: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic  # type: ignore[untyped-decorator,unused-ignore]
def _nap(typingctx: Any, microseconds: types.Integer) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if os.name == "posix":
            kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "usleep"), arguments)
        return context.get_dummy_value()

    return types.void(types.uint32), generate


add_one: Callable[..., int] = _add_one  # compiled code calls them without the typing context
read: Callable[..., int] = _read
write: Callable[..., None] = _write
raise_from: Callable[..., bool] = _raise_from
give_way: Callable[..., None] = _give_way
nap: Callable[..., None] = _nap


def new_gate(parts: int) -> np.ndarray:
    """The gate of a run of phases over so many parts. A thread that comes late to an old gate finds nothing to do."""
    gate = np.zeros((2 + parts) * APART, dtype=np.int64)
    gate[END] = NEVER
    return gate


@inlined
def take(gate: np.ndarray, parts: int, phase: int, k: int, others: bool) -> int:
    """A part whose task in this phase is now the caller's: part k, or with `others` any; -1 where all are taken."""
    for step in range(parts if others else 1):
        part = (k + step) % parts
        place = CLAIMS + part * APART
        if read(gate, place) == phase and raise_from(gate, place, phase):
            return part
    return -1


@inlined
def wait(spins: int) -> None:
    """Do nothing for a moment, at the caller's `spins`-th question in a row."""
    if spins > SPINS:
        nap(min(NAPS[0] * (spins - SPINS), NAPS[1]))


@inlined
def next_task(gate: np.ndarray, parts: int, k: int) -> int:
    """Wait for a task, and take it: its part, -1 when all phases are done. Part k is the caller's own."""
    spins, seen = 0, -1
    while True:
        phase = read(gate, DONE) // parts
        if phase >= read(gate, END):
            return -1
        if phase != seen:
            spins, seen = 0, phase
        part = take(gate, parts, phase, k, spins > GRACE)
        if part >= 0:
            return part
        spins += 1
        wait(spins)


@inlined
def end_task(gate: np.ndarray, parts: int, last: bool) -> None:
    """Give back a task that is done; `last` says that the phase is the last one, which all its tasks must say."""
    if last:
        write(gate, END, read(gate, DONE) // parts + 1)
    add_one(gate, DONE)
