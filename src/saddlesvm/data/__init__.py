"""Readers and writers: data files, the bundled sets, saved models, LIBLINEAR's model files."""

from saddlesvm.data.atomic import atomic_write
from saddlesvm.data.bundled import BUNDLED
from saddlesvm.data.convert import convert
from saddlesvm.data.errors import DataError
from saddlesvm.data.liblinear import LiblinearModel, read_liblinear, write_liblinear
from saddlesvm.data.models import load_model, save_model
from saddlesvm.data.readers import load_bundled, read
from saddlesvm.data.store import Store, write_store
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
    "write_store",
]
