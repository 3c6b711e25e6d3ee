"""Readers and writers: data files, the bundled sets, stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saddlesvm.runtime.lazy import lazy_attributes

if TYPE_CHECKING:
    from saddlesvm.data.conversion import convert as convert
    from saddlesvm.data.data_table import Table as Table
    from saddlesvm.data.errors import (
        BUNDLED as BUNDLED,
        DataError as DataError,
        atomic_write as atomic_write,
    )
    from saddlesvm.data.readers import load_bundled as load_bundled, read as read
    from saddlesvm.data.store import Store as Store
    from saddlesvm.data.store_writer import StoreWriter as StoreWriter

NAMES = {
    "saddlesvm.data.conversion": "convert",
    "saddlesvm.data.errors": "BUNDLED DataError atomic_write",
    "saddlesvm.data.readers": "load_bundled read",
    "saddlesvm.data.store": "Store",
    "saddlesvm.data.store_writer": "StoreWriter",
    "saddlesvm.data.data_table": "Table",
}
HOMES = {name: home for home, names in NAMES.items() for name in names.split()}
__all__ = sorted(HOMES)

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_attributes(__name__, HOMES)
