"""The options of reading, checked before any work: the one place for `read` and `convert`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.errors import DataError
from saddlesvm.data.sources import BUNDLED, check_there
from saddlesvm.data.streams import format_of
from saddlesvm.data.table import Label

__all__ = ["check_applicable", "check_options", "located"]


def check_options(n_features: int | None, dtype: Any, scale: float, task: str | None, missing: str = "error") -> None:
    """Raise a `DataError` for an option that no format allows."""
    if n_features is not None and n_features < 1:
        raise DataError(f"n_features is {n_features}; it must be at least 1")
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise DataError(f"dtype is {np.dtype(dtype)}; allowed are float32 and float64")
    if not np.isfinite(scale) or scale == 0.0:
        raise DataError(f"scale is {scale}; it must be finite and not zero")
    if missing not in ("error", "keep"):
        raise DataError(f"missing is {missing!r}; allowed are 'error' and 'keep'")
    if task not in (None, "classification", "regression"):
        raise DataError(f"task is {task!r}; allowed are 'classification', 'regression' and None")


def check_applicable(
    name: str, found: str, label: Label, header: bool | str, drop_columns: Sequence[str | int] = ()
) -> None:
    """Raise a `DataError` for an option that the format `found` does not have."""
    if header not in (True, False, "auto"):
        raise DataError(f"header is {header!r}; allowed are True, False and 'auto'")
    if found in ("jsonl", "folder"):
        raise DataError(f"{name}: is {found}: read it with saddlesvm.table.read, and encode its columns")
    if drop_columns and found not in ("csv", "parquet", "arrow"):
        raise DataError(f"{name}: drop_columns applies to CSV, TSV, Parquet and Feather; this is {found}")
    if found == "bundled":
        if label is not None or header != "auto":
            raise DataError(f"{name}: is a bundled set; label and header do not apply")
        return
    if header != "auto" and found != "csv":
        raise DataError(f"{name}: header={header!r} applies to CSV and TSV only; this is {found}")
    if found == "libsvm" and label is not None and label is not False:
        raise DataError(f"{name}: label={label!r} does not apply: a line of LIBSVM text starts with its label")


def located(name: str) -> str:
    """The format of the file, folder or bundled set of a name ("bundled" for one of those).

    Raises
    ------
    DataError
        There is no such source, or its format is not known.
    """
    check_there(name)
    return "bundled" if name in BUNDLED else format_of(Path(name))
