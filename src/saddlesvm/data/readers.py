"""Read any kind of data with a single function: `read`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from saddlesvm.data.blocks import find_format
from saddlesvm.data.data_table import (
    LabelledTable,
    Table,
    ready_labels,
    ready_matrix,
)
from saddlesvm.data.errors import BUNDLED, DataError
from saddlesvm.data.formats import read_rows
from saddlesvm.data.reading import COLUMN_FORMATS, Label, Reading
from saddlesvm.data.store import Store

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


def read(
    source: str | os.PathLike[str],
    *,
    label: Label = None,
    header: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    dtype: Any = None,
    zero_based: bool | Literal["auto"] = "auto",
    drop_columns: Sequence[str | int] = (),
    advance: Callable[[float], object] | None = None,
) -> Table:
    r"""Read rows and labels from a file or a store, or a bundled set by its name.

    Formats: LIBSVM text, CSV and TSV (each plain or compressed with gzip, bzip2 or xz), Parquet,
    Feather and Arrow IPC, NumPy ``.npz`` and ``.npy``, MNIST-style idx files, and stores, which are
    mapped and not read. The ending of the name decides (.libsvm, .svm, .svmlight, .csv, .tsv,
    .parquet, .pq, .feather, .arrow, .npz, .npy), or the content if the ending is another.
    Columns of words and gaps are for :func:`saddlesvm.table.read`.

    Parameters
    ----------
    source : str or path
        A path, or "banknote", "heart" or "toy" (a file of that name in the current folder is
        "./toy").
    label : str, int, False or None
        The label column of CSV, TSV and Parquet: its name, or its position from 0 (negative from
        the end; digits in a string do too); by default the last column. For ``.npz`` the name of
        the label array, for ``.npy`` the path of the file of labels. False: the data have no labels
        (LIBSVM text has a label on each line even then; it is dropped).
    header : bool or "auto"
        True if the first line of a CSV or TSV file holds names; "auto" decides by its cells.
    n_features : int or None
        Number of features that the model expects. LIBSVM text and CSR matrices with fewer features
        are widened to it; in other formats the number must be equal. Data may then have no labels:
        a table with `n_features` columns only, an ``.npz`` without a label array, images without a
        labels file.
    dtype : float32, float64 or None
        None keeps float32 and float64, and dense rows of float16, bfloat16, int8, uint8
        and bool. Other integers of up to 16 bits become float32; all other types and text become
        float64.
    zero_based : bool or "auto"
        True if indices in LIBSVM text count from 0. "auto" takes them to count from 1, as LIBSVM's
        do, unless index 0 occurs in the file.
    drop_columns : sequence of str or int, default=()
        Columns of CSV, TSV and Parquet to leave out, by name or position as `label`, such as names
        and identifiers.
    advance : callable, optional
        Called now and then with the share of LIBSVM text that was read.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        The message names the file, the line or column, what was found and what is allowed.

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
    how = Reading(label, header, n_features, dtype, zero_based, drop_columns=tuple(drop_columns))
    return read_source(os.fspath(source), how, advance)


def read_source(name: str, how: Reading, advance: Callable[[float], object] | None = None) -> Table:
    """Read a source of numbers as :func:`read`."""
    started = time.perf_counter()
    how.check()
    format = find_format(name)
    how.check_applicable(name, format)
    # The rows of a store are mapped; every other format is read and checked.
    if format == "store":
        return _read_store(name, how)
    file, rows = read_rows(name, how, advance)
    has_columns = file.format in COLUMN_FORMATS
    X = ready_matrix(rows.X, name, how, file.feature_names if has_columns else None)
    y = None
    if rows.y is not None:
        y = ready_labels(rows.y, X.shape[0], name)
    return Table(
        X,
        y,
        file.feature_names,
        file.label_name,
        name,
        file.format,
        file.n_bytes,
        seconds=time.perf_counter() - started,
        zero_based=rows.zero_based,
    )


def _read_store(name: str, how: Reading) -> Table:
    """Map a store, after refusing the options that would need a copy of it."""
    started = time.perf_counter()
    store = Store(name)
    if how.dtype is not None and np.dtype(how.dtype) != store.dtype:
        raise DataError(
            f"{name}: is a store of {store.dtype}; "
            f"convert it to a store of {np.dtype(how.dtype)} first"
        )
    X = store.matrix(how.n_features)
    y = None
    if store.y is not None and how.label is not False:
        y = ready_labels(store.y, X.shape[0], name)
    return Table(
        X=X,
        y=y,
        feature_names=store.header.get("feature_names"),
        label_name=store.header.get("label_name"),
        source=name,
        format="store",
        n_bytes=store.n_bytes,
        seconds=time.perf_counter() - started,
        known_nonzero=store.header.get("n_nonzero"),
        sample_weight=store.sample_weight,
        zero_based=store.zero_based,
    )


def load_bundled(name: str, *, dtype: DTypeLike | None = None) -> LabelledTable:
    """Load a data set that comes with the package: "banknote", "heart" or "toy".

    `saddlesvm.data.bundled` describes the sets and their licences (CC BY 4.0 for the first two).

    Raises
    ------
    DataError
        There is no bundled set of this name; the message lists the bundled sets.

    Examples
    --------
    >>> from saddlesvm.data import load_bundled
    >>> load_bundled("banknote").X.shape
    (1372, 4)
    """
    if name not in BUNDLED:
        raise DataError(f"no bundled data set is called {name!r}; there are {', '.join(BUNDLED)}")
    table = read(name, dtype=dtype)
    values = {field.name: getattr(table, field.name) for field in fields(table)}
    return LabelledTable(**values)
