"""One door for every kind of data: `read`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np

from saddlesvm.data.arrays import read_npz
from saddlesvm.data.bundled import BUNDLED, raw_bundled
from saddlesvm.data.delimited import read_delimited
from saddlesvm.data.errors import DataError
from saddlesvm.data.idx import read_idx
from saddlesvm.data.libsvm import read_libsvm
from saddlesvm.data.parquet import read_parquet
from saddlesvm.data.streams import format_of
from saddlesvm.data.table import Label, Raw, Table, Task, ready_labels, ready_matrix

__all__ = ["load_bundled", "read"]


def read(
    source: str | os.PathLike[str],
    *,
    label: Label = None,
    header: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    dtype: Any = None,
    task: Task | None = None,
    scale: float = 1.0,
    zero_based: bool | Literal["auto"] = "auto",
) -> Table:
    """Read rows and labels from a file, or a bundled set by its name.

    Formats: LIBSVM text, CSV and TSV (each plain or compressed with gzip, bzip2 or xz), Parquet, NumPy ``.npz``, and
    MNIST-style idx files. The ending of the name decides (.libsvm, .svm, .svmlight, .csv, .tsv, .parquet, .pq, .npz),
    the content where the ending is another.

    Parameters
    ----------
    source : str or path
        A path, or "banknote", "heart" or "toy" (a file of that name in the current folder is "./toy").
    label : str, int, False or None
        The label column of CSV, TSV and Parquet: its name, or its position from 0 (negative from the end; digits in a
        string do too); by default the last column. For ``.npz`` the name of the label array. False: the data have no
        labels (LIBSVM text has a label on each line even then; it is dropped).
    header : bool or "auto"
        Whether the first line of a CSV or TSV file holds names; "auto" looks at it.
    n_features : int or None
        How many features the model expects. LIBSVM text and CSR matrices that use fewer are widened to it; in other
        formats the width must be the same. Data without labels are then accepted too: a table that has only
        `n_features` columns, an ``.npz`` without a label array, images without a labels file.
    dtype : float32, float64 or None
        None keeps float32 and float64, makes float32 of bytes and other integers up to 16 bits, and float64 of the
        rest and of text.
    task : "classification", "regression" or None
        With "regression", labels that are not numbers are refused, and `y` is float64.
    scale : float, default=1.0
        Every feature value is multiplied by it: 1 / 255 brings the bytes of an image to [0, 1].
    zero_based : bool or "auto"
        Whether indices in LIBSVM text count from 0. "auto" takes them to count from 1, as LIBSVM's do, unless index 0
        occurs in the file.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        In one line: the file, the line or column, what was found and what is allowed.
    """
    started = time.perf_counter()
    _check_options(n_features, dtype, scale, task)
    name = os.fspath(source)
    if name in BUNDLED:
        raw, found = raw_bundled(name)
        if label is not None or header != "auto":
            raise DataError(f"{name}: is a bundled set; label and header do not apply")
    else:
        path = Path(name)
        if not path.exists():
            names = ", ".join(BUNDLED)
            raise DataError(f"{name}: no such file; the bundled data sets are {names}")
        found = format_of(path)
        _check_applicable(name, found, label, header)
        if found == "libsvm":
            raw = read_libsvm(path, n_features=n_features, dtype=dtype, zero_based=zero_based)
            raw = Raw(raw.X, None) if label is False else raw
        elif found == "csv":
            raw = read_delimited(path, label=label, header=header, n_features=n_features, dtype=dtype, task=task)
        elif found == "parquet":
            raw = read_parquet(path, label=label, n_features=n_features, dtype=dtype)
        elif found == "npz":
            raw = read_npz(path, label=label, n_features=n_features)
        else:
            raw = read_idx(path, label=label, n_features=n_features)
    X = ready_matrix(raw.X, name, dtype=dtype, scale=scale, n_features=n_features)
    y = None if raw.y is None else ready_labels(raw.y, X.shape[0], name, task=task)
    n_bytes = raw.n_bytes + (0 if name in BUNDLED else path.stat().st_size)
    seconds = time.perf_counter() - started
    return Table(X, y, raw.feature_names, raw.label_name, name, found, n_bytes, seconds)


def load_bundled(name: str, *, dtype: Any = None) -> Table:
    """Load a data set that comes with the package: "banknote", "heart" or "toy".

    What they are, and their licences (CC BY 4.0 for the first two), is in `saddlesvm.data.bundled`.

    Raises
    ------
    DataError
        There is no bundled set of this name; the message lists those there are.
    """
    if name not in BUNDLED:
        raw_bundled(name)
    return read(name, dtype=dtype)


def _check_options(n_features: int | None, dtype: Any, scale: float, task: str | None) -> None:
    if n_features is not None and n_features < 1:
        raise DataError(f"n_features is {n_features}; it must be at least 1")
    if dtype is not None and np.dtype(dtype) not in (np.float32, np.float64):
        raise DataError(f"dtype is {np.dtype(dtype)}; allowed are float32 and float64")
    if not np.isfinite(scale) or scale == 0.0:
        raise DataError(f"scale is {scale}; it must be finite and not zero")
    if task not in (None, "classification", "regression"):
        raise DataError(f"task is {task!r}; allowed are 'classification', 'regression' and None")


def _check_applicable(name: str, found: str, label: Label, header: bool | str) -> None:
    if header not in (True, False, "auto"):
        raise DataError(f"header is {header!r}; allowed are True, False and 'auto'")
    if header != "auto" and found != "csv":
        raise DataError(f"{name}: header={header!r} applies to CSV and TSV only; this is {found}")
    if found == "libsvm" and label is not None and label is not False:
        raise DataError(f"{name}: label={label!r} does not apply: a line of LIBSVM text starts with its label")
