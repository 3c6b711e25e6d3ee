"""Write a store: append blocks of rows in bounded memory; the folder appears when it is whole."""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.lib.format import dtype_to_descr, write_array_header_1_0
from numpy.typing import ArrayLike

from saddlesvm.data.data_table import stored_type
from saddlesvm.data.errors import DataError, sync_folder, write_fault
from saddlesvm.data.label_column import LabelColumn
from saddlesvm.data.store_format import FORMAT_NAME, FORMAT_VERSION, HEADER, PARTIAL, is_size
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.csr_checks import all_in_order, canonical, without_spare_end
from saddlesvm.rows.passes import squared_norms
from saddlesvm.rows.small_types import (
    FLOATS,
    SMALL,
    bfloat16,
    kept_type,
    type_name,
    widen,
)
from saddlesvm.runtime.data_types import Matrix

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

INT32_MOST = 2**31 - 1  # the largest number that an index of 32 bits can be


class StoreWriter:
    """Writes a store block by block. A context manager: the complete store appears at its end.

    Until then, the files are in a folder ``NAME.<random>.partial`` beside it. An exception removes
    this folder. A killed process leaves it; it can be removed by hand.

    Parameters
    ----------
    path : str or path
        The folder to make.
    dtype : dtype, optional
        float32, float64, and for dense rows float16, bfloat16, int8, uint8 or bool. None takes the
        type of the first block if it is among these, else float32 if that holds every number of the
        type, else float64.
    n_features : int, optional
        Number of features of a sparse store; by default the width of the widest block.
    feature_names : sequence of str, optional
    label_name : str, optional

    Attributes
    ----------
    sources : list of dict
        For the header: the source of the rows.
    n_rows : int
        Rows so far.

    Raises
    ------
    DataError
        The path exists or cannot be written.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from saddlesvm.data import Store, StoreWriter
    >>> path = tempfile.mkdtemp() + "/two-blocks.store"
    >>> with StoreWriter(path) as writer:
    ...     writer.append(np.eye(2), ["yes", "no"])
    ...     writer.append(np.ones((1, 2)), ["no"])
    >>> Store(path).y.tolist()
    ['yes', 'no', 'no']
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        dtype: Any = None,
        n_features: int | None = None,
        feature_names: Sequence[str] | None = None,
        label_name: str | None = None,
    ) -> None:
        if dtype is not None and kept_type(dtype) is None:
            allowed = ", ".join(map(type_name, (*FLOATS, *SMALL)))
            raise DataError(f"dtype is {np.dtype(dtype)}; allowed are {allowed}")
        self.name = os.fspath(path)
        self.dtype = None if dtype is None else kept_type(dtype)
        self.n_features = n_features
        self.feature_names = feature_names
        self.label_name = label_name
        self.sources: list[dict[str, Any]] = []
        self.n_rows = 0
        self.width = 0
        self.n_nonzero = 0
        self.sparse: bool | None = None
        # Values and indices grow on the disk. Pointers, labels and weights, a number for each row,
        # are collected in memory, as a fit holds them, too.
        self._files: dict[str, GrowingArray] = {}
        self._ends: list[np.ndarray] = []
        self._labels: LabelColumn | None = None
        self._weights: list[np.ndarray] | None = None
        # All files are written into a folder beside the target, which takes its name at the end.
        self.target = Path(os.path.realpath(path))
        self.folder = self.target.with_name(f"{self.target.name}.{secrets.token_hex(4)}{PARTIAL}")
        if self.target.name.endswith(PARTIAL):
            raise DataError(
                f"{self.name}: names that end in {PARTIAL!r} are for unfinished conversions; "
                "give another name"
            )
        self._refuse_target()
        with write_errors(self.name):
            self.folder.mkdir()

    def _refuse_target(self) -> None:
        """Raise a `DataError` if the target exists, or is in a store."""
        if (self.target.parent / HEADER).is_file():
            raise DataError(f"{self.name}: is within a store; give a name beside it")
        if self.target.exists():
            raise DataError(f"{self.name}: exists already; remove it, or give another name")

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                with write_errors(self.name):
                    self._finish()
        finally:
            self.discard()

    def append(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        """Add rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            All blocks are dense and of the same width, or all are sparse. It is not changed.
        y : array-like of shape (n,), optional
            Numbers or text; with every block or with none.
        sample_weight : array-like of shape (n,), optional
            Finite, not negative; with every block or with none.

        Raises
        ------
        DataError
            Values that are not finite numbers, lengths or layouts that do not fit, or a full disk.
        """
        if not sp.issparse(X):
            X = np.asarray(X)
            # Other packages' bfloat16 has the same bits as the type of a store.
            if kept_type(X.dtype) == bfloat16:
                X = X.view(bfloat16)
        if X.ndim != 2 or (X.dtype.kind not in "biuf" and X.dtype != bfloat16):
            raise DataError(
                f"{self.name}: rows of numbers are needed; got type {X.dtype} and shape {X.shape}"
            )
        with write_errors(self.name):
            if self.sparse is None:
                self._begin(X, y is not None, sample_weight is not None)
            self._append_rows(X)
            self._append_labels(y, X.shape[0])
            self._append_weights(sample_weight, X.shape[0])
        self.n_rows += X.shape[0]

    def _begin(self, X: Matrix, has_labels: bool, has_weights: bool) -> None:
        """Open the files that rows of the first block's kind need."""
        self.sparse = sp.issparse(X)
        if self.dtype is None:
            self.dtype = stored_type(X)
        if self.sparse and self.dtype not in FLOATS:
            raise DataError(
                f"{self.name}: sparse rows are stored as float32 or float64; got dtype={self.dtype}"
            )
        self.width = X.shape[1]
        self._files["values"] = GrowingArray(self.folder / "values.npy", self.dtype)
        if self.sparse:
            index_type: type = np.int64
            if (self.n_features or X.shape[1]) <= INT32_MOST:
                index_type = np.int32
            self._files["indices"] = GrowingArray(self.folder / "indices.npy", index_type)
            self._ends.append(np.zeros(1, dtype=np.int64))
        if has_labels:
            self._labels = LabelColumn(self.name)
        if has_weights:
            self._weights = []

    def _append_rows(self, X: Any) -> None:
        """Check a block of rows, and append its values, indices and pointers."""
        if sp.issparse(X) != self.sparse:
            raise DataError(f"{self.name}: dense and sparse rows do not go into one store")
        # Sparse rows may differ in width: columns without a value take no room.
        width = X.shape[1]
        expected = self.n_features
        if expected is None:
            expected = width if self.sparse else self.width
        if width > expected or (not self.sparse and width < expected):
            raise DataError(f"{self.name}: got rows of {width} features; {expected} are expected")
        if not X.shape[0]:
            return
        if self.sparse:
            X = self._canonical_csr(X)
            values = X.data
        else:
            X = self._dense(X)
            values = X
        # A row whose squared norm is finite has finite values, which solvers need.
        norms = squared_norms(rows.as_rows(X))
        if not np.isfinite(norms).all():
            row = int(np.argmin(np.isfinite(norms)))
            raise DataError(
                f"{self.name}: row {self.n_rows + row + 1} holds a value that is not finite, "
                "or whose square is not"
            )
        self._files["values"].append(values)
        self.n_nonzero += int(np.count_nonzero(widen(values)))
        if self.sparse:
            self.width = max(self.width, X.shape[1])
            # Row pointers count the entries of all blocks.
            self._ends.append(X.indptr[1:].astype(np.int64) + self._files["indices"].n_items)
            self._files["indices"].append(X.indices)

    def _dense(self, X: Matrix) -> np.ndarray:
        """Return the block as a contiguous array of the store's type."""
        # A small type does not hold the numbers of other types.
        if self.dtype in SMALL and X.dtype != self.dtype:
            raise DataError(
                f"{self.name}: rows of {type_name(X.dtype)} do not go into a store of "
                f"{type_name(self.dtype)}: open the writer with dtype=float32, "
                "or convert the rows first"
            )
        if self.dtype in FLOATS:
            X = widen(X, self.dtype)
        return np.ascontiguousarray(X)

    def _canonical_csr(self, X: Any) -> Any:
        """Return the block as CSR with sorted and unique indices, copied only if it changes."""
        # SciPy allows entries behind the last row.
        X = without_spare_end(X.tocsr().astype(self.dtype, copy=False))
        if all_in_order(X.indices, X.indptr, X.shape[1]):
            return X
        try:
            X = canonical(X).copy()
        except ValueError as error:
            raise DataError(f"{self.name}: after {self.n_rows} rows, {error}") from None
        X.has_sorted_indices = False
        X.sort_indices()
        return X

    def _append_labels(self, y: ArrayLike, n: int) -> None:
        """Append the labels of a block."""
        self._check_column("labels", y, self._labels is not None, n)
        if self._labels is not None:
            self._labels.append(y)

    def _append_weights(self, weights: ArrayLike, n: int) -> None:
        """Append the weights of the rows of a block."""
        self._check_column("weights", weights, self._weights is not None, n)
        if self._weights is not None:
            numbers = np.asarray(weights, dtype=np.float64)
            if not np.isfinite(numbers).all() or (numbers < 0.0).any():
                raise DataError(f"{self.name}: weights must be finite numbers of 0 or more")
            self._weights.append(numbers)

    def _check_column(self, what: str, given: Any, is_needed: bool, n: int) -> None:
        """Raise a `DataError` unless a block has a needed column, of its length, or no other."""
        if (given is not None) != is_needed:
            raise DataError(
                f"{self.name}: {what} must be given with every block of rows, or with none"
            )
        if is_needed and np.shape(given) != (n,):
            raise DataError(
                f"{self.name}: got {n} rows with {what} of shape {np.shape(given)}; "
                "one for each row is needed"
            )

    def _finish(self) -> None:
        """Complete the files, write the header, and give the folder its name."""
        width = max(self.width, self.n_features or 0)
        if not self.n_rows or not width:
            raise DataError(
                f"{self.name}: got {self.n_rows} rows of {width} features; "
                "at least one of each is needed"
            )
        if not is_size(width):
            raise DataError(f"{self.name}: {width} features are too many for a store")
        n_values = self._files["values"].n_items
        columns: dict[str, np.ndarray] = {}
        labels = None
        if self._labels is not None:
            columns["labels"], labels = self._labels.finish()
        if self._weights is not None:
            columns["weights"] = np.concatenate(self._weights)
        shape: tuple[int, ...] = (self.n_rows, width)
        if self.sparse:
            shape = (n_values,)
            # SciPy copies row pointers and indices whose types differ.
            index_type = self._files["indices"].dtype
            if n_values > INT32_MOST:
                index_type = np.dtype(np.int64)
            columns["indptr"] = np.concatenate(self._ends).astype(index_type)
            self._files["indices"].finish((n_values,))
        self._files["values"].finish(shape)
        for name, column in columns.items():
            with (self.folder / f"{name}.npy").open("xb") as file:
                np.save(file, column)
                flush(file)
        header = {
            "format": FORMAT_NAME,
            "version": FORMAT_VERSION,
            "written by": f"saddlesvm {version('saddlesvm')}",
            "layout": "csr" if self.sparse else "dense",
            "shape": [self.n_rows, width],
            "n_values": n_values,
            "n_nonzero": self.n_nonzero,
            "labels": labels,
            "weights": self._weights is not None,
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "label_name": self.label_name,
            "sources": self.sources,
        }
        # The header comes last, after all that it describes.
        with (self.folder / HEADER).open("xb") as file:
            file.write(json.dumps(header, indent=1).encode())
            flush(file)
        self._publish()

    def _publish(self) -> None:
        """Give the folder its name, with which it is a store."""
        sync_folder(self.folder)
        # Another process may have made the target meanwhile.
        self._refuse_target()
        self.folder.rename(self.target)
        sync_folder(self.target.parent)

    def discard(self) -> None:
        """Close all files, and remove the folder if it was not finished."""
        with suppress(OSError):
            for file in self._files.values():
                file.file.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class GrowingArray:
    """A ``.npy`` file to append values to; its header is written when its shape is known.

    Parameters
    ----------
    path : Path
    dtype : dtype
    """

    def __init__(self, path: Path, dtype: DTypeLike) -> None:
        self.dtype = np.dtype(dtype)
        self.n_items = 0
        self.file = path.open("xb")
        # Keep the place of the header; NumPy leaves room in it for every size.
        self.file.write(npy_header(self.dtype, (0,)))

    def append(self, array: np.ndarray) -> None:
        """Add the values of an array, cast to the type of the file."""
        part = np.ascontiguousarray(array, dtype=self.dtype).reshape(-1)
        if part.size:
            self.file.write(part.view(np.uint8).data)
            self.n_items += part.size

    def finish(self, shape: tuple[int, ...]) -> None:
        """Write the header, and bring the file to the disk."""
        with self.file:
            self.file.seek(0)
            self.file.write(npy_header(self.dtype, shape))
            flush(self.file)


def npy_header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Return the beginning of a ``.npy`` file; its length is the same for every number of rows."""
    header = {"descr": dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    file = io.BytesIO()
    write_array_header_1_0(file, header)
    return file.getvalue()


def flush(file: IO[bytes]) -> None:
    """Bring what was written to a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def write_errors(name: str) -> Iterator[None]:
    """Turn errors of the system (no space, no access) into a `DataError` that names the store."""
    try:
        yield
    except OSError as error:
        raise DataError(write_fault(name, error)) from None
