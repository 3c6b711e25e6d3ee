"""Threads that share phases of work inside compiled code.

Every phase has a task for each part, and any thread takes the next free task.

The parts, not the threads, say what is done; so the result is the same whichever thread does a
task, and however many there are. A thread takes the task of its own part first, whose data are in
its cache, and then those that nobody has taken. The end of the last task of a phase opens the next
phase. Nobody waits for a thread that holds no task: one thread alone goes through all phases.

If the system takes the core away from a thread in the middle of a task, the others have to wait for
it. They spin for some ten microseconds, then sleep, for longer and longer. To make this rare, a
thread offers its core to other programs every ms or so, while it holds no task: the system then
seldom has a reason to take it.

The tasks of a phase are claimed and counted by atomic operations on an array, the gate.

Each thread writes to cache lines of its own. The system chooses their cores.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.runtime.compiled import inlined, instruction

if TYPE_CHECKING:
    from typing import NoReturn

# Reads of the gate, less than a us in all, before a thread takes the task of another's part.
GRACE = 50
SPINS = 5000  # reads of the gate, some ten us in all, after which a waiting thread sleeps
NAPS = (20, 200)  # us that it sleeps: at first, and at most
# Tasks, about a ms of work, after which a thread offers its core to other programs while it holds
# none.
TURN = 128
APART = 16  # places between two numbers of the gate, so that no cache line holds two of them
DONE = 0  # places: tasks done
END = APART  # the phase at which all ends
CLAIMS = 2 * APART  # claims of the parts
NEVER = np.iinfo(np.int64).max


def alone(*arguments: object) -> NoReturn:
    """Refuse: without compiled code, threads cannot share phases."""
    raise NotImplementedError(
        "threads share work in compiled code only: unset NUMBA_DISABLE_JIT, or give n_jobs=1"
    )


add_one = instruction("add_one", alone)
read = instruction("read", alone)
write = instruction("write", alone)
raise_from = instruction("raise_from", alone)
give_way = instruction("give_way", alone)
nap = instruction("nap", alone)


def new_gate(parts: int) -> np.ndarray:
    """Return the gate of a run of phases; a thread that comes late to it finds nothing to do."""
    gate = np.zeros((2 + parts) * APART, dtype=np.int64)
    gate[END] = NEVER
    return gate


@inlined
def take(gate: np.ndarray, parts: int, phase: int, k: int, others: bool) -> int:
    """Claim the task of part k, or with `others` of any part; return the part, -1 for none."""
    for step in range(parts if others else 1):
        part = (k + step) % parts
        # A part's claim is the last phase that somebody took: whoever raises it has the task.
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
    """Wait for a task and take it, of part k first; return its part, -1 if all is done."""
    spins = 0
    seen = -1
    while True:
        # A phase ends when all its parts are done, whoever has done them.
        phase = read(gate, DONE) // parts
        if phase >= read(gate, END):
            return -1
        # A new phase gives the threads of the other parts a new time of grace.
        if phase != seen:
            spins = 0
            seen = phase
        part = take(gate, parts, phase, k, spins > GRACE)
        if part >= 0:
            return part
        spins += 1
        wait(spins)


@inlined
def end_task(gate: np.ndarray, parts: int, last: bool) -> None:
    """End a task; `last` says that the phase is the last, and all its tasks must say so."""
    if last:
        write(gate, END, read(gate, DONE) // parts + 1)
    # The end is written before the count that lets others see it.
    add_one(gate, DONE)


def apart(rows: np.ndarray) -> np.ndarray:
    """Return a copy of an array with rows at least a cache line apart, one for each thread."""
    copy = np.zeros((rows.shape[0], rows.shape[1] + -(-128 // rows.itemsize)), rows.dtype)
    copy[:, : rows.shape[1]] = rows
    return copy


def side_by_side(pool: ThreadPoolExecutor, work: Callable[[int], None], threads: int) -> None:
    """Begin ``work(k)`` for every k, and return when ``work(0)``, in the caller's thread, is done.

    The work is such that the first one to come does all of it, and that whoever comes later finds
    nothing to do. So nobody waits for the others: not for one that the system gives no core, nor
    for one that fails.
    """
    # The caller's own work needs no thread of the pool.
    others = [pool.submit(work, k) for k in range(1, threads)]
    work(0)
    for other in others:
        other.cancel()
