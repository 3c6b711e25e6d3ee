"""A store beside a data file, so that the file is parsed once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from saddlesvm.data.blocks import Reading
from saddlesvm.data.conversion import convert
from saddlesvm.data.errors import BeingWritten, DataError
from saddlesvm.data.store import Store, is_store
from saddlesvm.data.store_files import wait_for_writer
from saddlesvm.data.store_format import read_store_header

__all__ = ["CACHE", "cached", "from_cache"]

CACHE = ".store"
Made = TypeVar("Made")


def cached(path: Path, how: Reading, advance: Callable[[float], Any] | None = None) -> Store:
    """The store ``NAME.store`` beside a file: an existing one if it still fits the file, else a new one.

    A store fits when it names the present size and time of change of the file, and the same options of reading. Where
    another process is writing one, this waits for its end, and takes it if it fits.

    Parameters
    ----------
    path : Path
    how : Reading
    advance : callable, optional
        Called with the share of the file that was read.

    Raises
    ------
    DataError
        As :func:`~saddlesvm.data.convert`: the file cannot be read, or the store cannot be written there.
    """
    target = path.with_name(path.name + CACHE)
    while True:
        if is_store(target):
            with suppress(DataError):  # a damaged one is written again
                store = Store(target)
                if _fits(store.header, path, how):
                    return store
        try:
            return convert(path, target, overwrite=True, advance=advance, **how.noted())
        except BeingWritten:
            wait_for_writer(target)


def from_cache(
    path: Path, how: Reading, use: Callable[[Store], Made], advance: Callable[[float], Any] | None = None
) -> Made:
    """What `use` makes of the store beside a file, from :func:`cached`.

    Another process may replace the store before `use` has opened all of its arrays: they are then opened anew.
    """
    while True:
        store = cached(path, how, advance)
        before = _change(store)  # the header alone may be that of a second store like the first
        try:
            made = use(store)
        except DataError:
            if _is_unchanged(store, before):
                raise
        else:
            if _is_unchanged(store, before):
                return made


def _change(store: Store) -> tuple[int, int] | None:
    with suppress(OSError):
        facts = store.path.stat()
        return facts.st_ino, facts.st_ctime_ns
    return None


def _is_unchanged(store: Store, before: tuple[int, int] | None) -> bool:
    try:
        return _change(store) == before and read_store_header(store.path) == store.header
    except DataError:
        return False


def _fits(header: dict[str, Any], path: Path, how: Reading) -> bool:
    facts = path.stat()
    now = {"bytes": facts.st_size, "modified": facts.st_mtime_ns}
    then = [{name: source.get(name) for name in now} for source in header.get("sources", ())]
    return then == [now] and header.get("read with") == how.noted()
