"""Faults on purpose: processes killed at every write, disks that are full, names that cannot be given, short reads."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

EVENTS = ("fsync", "replace", "rename", "mkdir", "unlink", "rmdir")  # of `os`: between them nothing becomes visible


@contextlib.contextmanager
def each_event(seen: Callable[[int, str], None], events: tuple[str, ...] = EVENTS) -> Iterator[list[int]]:
    """Hand the number of each event, counted from 0, and its name to a function, right before it; count them."""
    count = [0]
    kept = {name: getattr(os, name) for name in events}

    def watched(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            count[0] += 1
            seen(count[0] - 1, name)
            return kept[name](*arguments, **options)

        return call

    for name in events:
        setattr(os, name, watched(name))
    try:
        yield count
    finally:
        for name, function in kept.items():
            setattr(os, name, function)


@contextlib.contextmanager
def at_event(number: int, strike: Callable[[str], None], events: tuple[str, ...] = EVENTS) -> Iterator[list[int]]:
    """Strike right before the `number`-th event, counted from 0; counts on after it."""
    with each_event(lambda event, name: strike(name) if event == number else None, events) as count:
        yield count


def killed_at(number: int, work: Callable[[], Any]) -> bool:
    """Do some work in a process of its own that is killed right before its `number`-th event; whether it was."""

    def struck() -> None:
        with at_event(number, lambda name: os.kill(os.getpid(), signal.SIGKILL)):
            work()

    return killed_in_child(struck)


def killed_in_child(work: Callable[[], Any]) -> bool:
    """Do some work in a process of its own; whether that was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.WEXITSTATUS(status):
        raise AssertionError("the work failed in its process")
    return False


def refuses(name: str) -> None:
    """What a system says that gives no names any more."""
    raise OSError(5, f"Input/output error, at {name}")


@contextlib.contextmanager
def room_for(n_bytes: int) -> Iterator[None]:
    """Files may grow to so many bytes, and then the disk counts as full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextlib.contextmanager
def short_reads() -> Iterator[None]:
    """Reads at a place of a file give less than was asked for, at least a byte."""
    plain = os.preadv

    def short(handle: int, buffers: Any, place: int) -> int:
        room = memoryview(buffers[0])[: max(1, len(buffers[0]) // 3)]
        return plain(handle, [room], place)

    os.preadv = short  # type: ignore[assignment]
    try:
        yield
    finally:
        os.preadv = plain


def left_over(folder: Path, *expected: str) -> list[str]:
    """The names in a folder that should not be there."""
    return sorted(name for name in os.listdir(folder) if name not in expected)
