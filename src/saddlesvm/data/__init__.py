"""Readers and writers: data files, the bundled sets, saved models, LIBLINEAR's model files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from saddlesvm.runtime.lazy import lazily

if TYPE_CHECKING:
    from saddlesvm.data.atomic import atomic_write
    from saddlesvm.data.conversion import convert
    from saddlesvm.data.errors import DataError
    from saddlesvm.data.liblinear import LiblinearModel, read_liblinear, write_liblinear
    from saddlesvm.data.models import load_model, save_model
    from saddlesvm.data.readers import load_bundled, read
    from saddlesvm.data.sources import BUNDLED
    from saddlesvm.data.store import Store
    from saddlesvm.data.store_writer import StoreWriter
    from saddlesvm.data.table import Table

__all__ = [
    "BUNDLED",
    "DataError",
    "LiblinearModel",
    "Store",
    "StoreWriter",
    "Table",
    "atomic_write",
    "convert",
    "load_bundled",
    "load_model",
    "read",
    "read_liblinear",
    "save_model",
    "write_liblinear",
]

HOMES = {
    "BUNDLED": "saddlesvm.data.sources",
    "DataError": "saddlesvm.data.errors",
    "LiblinearModel": "saddlesvm.data.liblinear",
    "Store": "saddlesvm.data.store",
    "StoreWriter": "saddlesvm.data.store_writer",
    "Table": "saddlesvm.data.table",
    "atomic_write": "saddlesvm.data.atomic",
    "convert": "saddlesvm.data.conversion",
    "load_bundled": "saddlesvm.data.readers",
    "load_model": "saddlesvm.data.models",
    "read": "saddlesvm.data.readers",
    "read_liblinear": "saddlesvm.data.liblinear",
    "save_model": "saddlesvm.data.models",
    "write_liblinear": "saddlesvm.data.liblinear",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, HOMES)
