"""Readers and writers: data files, the bundled sets, saved models, LIBLINEAR's model files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saddlesvm.runtime.lazy import lazily

if TYPE_CHECKING:
    from saddlesvm.data.archives import load_model as load_model
    from saddlesvm.data.archives import save_model as save_model
    from saddlesvm.data.conversion import convert as convert
    from saddlesvm.data.errors import BUNDLED as BUNDLED
    from saddlesvm.data.errors import DataError as DataError
    from saddlesvm.data.errors import atomic_write as atomic_write
    from saddlesvm.data.liblinear import LiblinearModel as LiblinearModel
    from saddlesvm.data.liblinear import read_liblinear as read_liblinear
    from saddlesvm.data.liblinear import write_liblinear as write_liblinear
    from saddlesvm.data.readers import load_bundled as load_bundled
    from saddlesvm.data.readers import read as read
    from saddlesvm.data.store import Store as Store
    from saddlesvm.data.store_writer import StoreWriter as StoreWriter
    from saddlesvm.data.table import Table as Table

HOMES = {
    "BUNDLED": "saddlesvm.data.errors",
    "DataError": "saddlesvm.data.errors",
    "LiblinearModel": "saddlesvm.data.liblinear",
    "Store": "saddlesvm.data.store",
    "StoreWriter": "saddlesvm.data.store_writer",
    "Table": "saddlesvm.data.table",
    "atomic_write": "saddlesvm.data.errors",
    "convert": "saddlesvm.data.conversion",
    "load_bundled": "saddlesvm.data.readers",
    "load_model": "saddlesvm.data.archives",
    "read": "saddlesvm.data.readers",
    "read_liblinear": "saddlesvm.data.liblinear",
    "save_model": "saddlesvm.data.archives",
    "write_liblinear": "saddlesvm.data.liblinear",
}
__all__ = sorted(HOMES)

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, HOMES)
