"""One function for every kind of data: `read`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from saddlesvm.data.arrays import read_npy, read_npz
from saddlesvm.data.bundled import raw_bundled
from saddlesvm.data.cache import from_cache
from saddlesvm.data.delimited import read_delimited
from saddlesvm.data.errors import DataError
from saddlesvm.data.idx import read_idx
from saddlesvm.data.libsvm import read_libsvm
from saddlesvm.data.parquet import read_ipc, read_parquet
from saddlesvm.data.reading_options import check_applicable, check_options, located
from saddlesvm.data.sources import BUNDLED
from saddlesvm.data.store import Store
from saddlesvm.data.table import Label, Missing, Raw, Table, Task, ready_labels, ready_matrix

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
    cache: bool = False,
    missing: Missing = "error",
    drop_columns: Sequence[str | int] = (),
    advance: Callable[[float], Any] | None = None,
) -> Table:
    r"""Read rows and labels from a file or a store, or a bundled set by its name.

    Formats: LIBSVM text, CSV and TSV (each plain or compressed with gzip, bzip2 or xz), Parquet, Feather and Arrow IPC,
    NumPy ``.npz`` and ``.npy``, and MNIST-style idx files; and stores, which are mapped and not read. The ending of the
    name decides (.libsvm, .svm, .svmlight, .csv, .tsv, .parquet, .pq, .feather, .arrow, .npz, .npy), the content where
    the ending is another. Columns of words, dates and texts, and JSON lines, are for :func:`saddlesvm.table.read`.

    Parameters
    ----------
    source : str or path
        A path, or "banknote", "heart" or "toy" (a file of that name in the current folder is "./toy").
    label : str, int, False or None
        The label column of CSV, TSV and Parquet: its name, or its position from 0 (negative from the end; digits in a
        string do too); by default the last column. For ``.npz`` the name of the label array, for ``.npy`` the path of
        the file of labels. False: the data have no labels (LIBSVM text has a label on each line even then; it is
        dropped).
    header : bool or "auto"
        Whether the first line of a CSV or TSV file holds names; "auto" looks at it.
    n_features : int or None
        How many features the model expects. LIBSVM text and CSR matrices that use fewer are widened to it; in other
        formats the width must be the same. Data without labels are then accepted too: a table that has only
        `n_features` columns, an ``.npz`` without a label array, images without a labels file.
    dtype : float32, float64 or None
        None keeps float32 and float64, and dense rows of float16, bfloat16, int8, uint8 and bool that are not scaled;
        it makes float32 of other integers up to 16 bits, and float64 of the rest and of text.
    task : "classification", "regression" or None
        With "regression", labels that are not numbers are refused, and `y` is float64.
    scale : float, default=1.0
        Every feature value is multiplied by it: 1 / 255 brings the bytes of an image to [0, 1].
    zero_based : bool or "auto"
        Whether indices in LIBSVM text count from 0. "auto" takes them to count from 1, as LIBSVM's do, unless index 0
        occurs in the file.
    cache : bool, default=False
        Keep what was read as a store beside the file (NAME.store), and map that the next time, while the file has the
        same size and time of change and is read with the same options.
    missing : {"error", "keep"}, default="error"
        What happens to missing values (an empty cell, "?", "NA", a null, NaN) of CSV, TSV, Parquet and dense ``.npz``:
        an error that names the first one, or NaN in `X`, for an imputer to fill.
    drop_columns : sequence of str or int, default=()
        Columns of CSV, TSV and Parquet that are no features, by name or position as `label`: names, identifiers, dates.
    advance : callable, optional
        Called now and then with the share of LIBSVM text, or of a file that goes to the cache, that was read.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        In one line: the file, the line or column, what was found and what is allowed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from saddlesvm.data import read
    >>> path = pathlib.Path(tempfile.mkdtemp(), "rows.csv")
    >>> _ = path.write_text("height,width,kind\n1.5,2,apple\n3,4,pear\n")
    >>> table = read(path)
    >>> table.X.tolist(), table.y.tolist(), table.feature_names
    ([[1.5, 2.0], [3.0, 4.0]], ['apple', 'pear'], ['height', 'width'])
    """
    started = time.perf_counter()
    check_options(n_features, dtype, scale, task, missing)
    name = os.fspath(source)
    found = located(name)
    check_applicable(name, found, label, header, drop_columns)
    options: dict[str, Any] = {"label": label, "header": header, "dtype": dtype, "task": task}
    options["drop_columns"] = list(drop_columns)
    if cache and missing == "keep":
        raise DataError(f"{name}: a cache holds no missing values; read without it, or fill them in first")
    if found == "store":
        return _table_of(_store(name, label, dtype, scale), name, found, label, n_features, task, started)
    if cache and found != "bundled":
        told = options | {"n_features": None if found == "libsvm" else n_features, "zero_based": zero_based}
        return from_cache(
            Path(name), lambda store: _table_of(store, name, found, label, n_features, task, started),
            **told, scale=scale, advance=advance,
        )  # fmt: skip
    raw, found, n_bytes = _raw(
        name, found, n_features=n_features, zero_based=zero_based, missing=missing, advance=advance, **options
    )
    X = ready_matrix(raw.X, name, dtype=dtype, scale=scale, n_features=n_features, missing=missing)
    y = None if raw.y is None else ready_labels(raw.y, X.shape[0], name, task=task)
    seconds = time.perf_counter() - started
    return Table(
        X, y, raw.feature_names, raw.label_name, name, found, raw.n_bytes + n_bytes, seconds, zero_based=raw.zero_based
    )  # fmt: skip


def _raw(
    name: str, found: str, *, label: Label, header: Any, n_features: int | None, dtype: Any, task: Task | None,
    zero_based: Any, missing: Missing, drop_columns: Sequence[str | int], advance: Callable[[float], Any] | None,
) -> tuple[Raw, str, int]:  # fmt: skip
    """What the reader of the format `found` makes of the source, its format, and its bytes on the disk."""
    if found == "bundled":
        raw, found = raw_bundled(name)
        return raw, found, 0
    path = Path(name)
    if found == "libsvm":
        raw = read_libsvm(path, n_features=n_features, dtype=dtype, zero_based=zero_based, advance=advance)
        raw = Raw(raw.X, None, zero_based=raw.zero_based) if label is False else raw
    elif found == "csv":
        raw = read_delimited(
            path, label=label, header=header, n_features=n_features, dtype=dtype, task=task, missing=missing,
            drop_columns=drop_columns,
        )  # fmt: skip
    elif found == "parquet":
        raw = read_parquet(
            path, label=label, n_features=n_features, dtype=dtype, missing=missing, drop_columns=drop_columns
        )
    elif found == "arrow":
        raw = read_ipc(
            path, label=label, n_features=n_features, dtype=dtype, missing=missing, drop_columns=drop_columns
        )
    elif found in ("npz", "npy"):
        raw = (read_npz if found == "npz" else read_npy)(path, label=label, n_features=n_features)
    else:
        raw = read_idx(path, label=label, n_features=n_features)
    return raw, found, path.stat().st_size


def _store(name: str, label: Label, dtype: Any, scale: float) -> Store:
    """A store, after refusing the options that would need a copy of it."""
    store = Store(name)
    if label is not None and label is not False:
        raise DataError(f"{name}: label={label!r} does not apply: a store has one column of labels")
    if scale != 1.0:
        raise DataError(f"{name}: scale={scale} does not apply to a store; scale when converting")
    if dtype is not None and np.dtype(dtype) != store.dtype:
        raise DataError(f"{name}: is a store of {store.dtype}; convert it to a store of {np.dtype(dtype)} first")
    return store


def _table_of(
    store: Store, name: str, found: str, label: Label, n_features: int | None, task: Task | None, started: float
) -> Table:
    """The rows of a store, mapped; no values are read here."""
    y = None if label is False else store.y
    header = store.header
    return Table(
        X=store.matrix(n_features),
        y=None if y is None else ready_labels(y, len(store), name, task=task),
        feature_names=header.get("feature_names"),
        label_name=header.get("label_name"),
        source=name,
        format=found,
        n_bytes=store.n_bytes if found == "store" else Path(name).stat().st_size,
        seconds=time.perf_counter() - started,
        known_nonzero=header.get("n_nonzero"),
        sample_weight=store.sample_weight,
        zero_based=store.zero_based,
    )


def load_bundled(name: str, *, dtype: Any = None) -> Table:
    """Load a data set that comes with the package: "banknote", "heart" or "toy".

    What they are, and their licences (CC BY 4.0 for the first two), is in `saddlesvm.data.bundled`.

    Raises
    ------
    DataError
        There is no bundled set of this name; the message lists those there are.

    Examples
    --------
    >>> from saddlesvm.data import load_bundled
    >>> load_bundled("banknote").X.shape
    (1372, 4)
    """
    if name not in BUNDLED:
        raw_bundled(name)
    return read(name, dtype=dtype)
