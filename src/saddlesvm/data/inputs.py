"""The one place where data are converted and checked: bad input raises its error here, before any work.

Several stores are parts of one data set, put together into a store or for one fit.

float32 and float64, dense C-contiguous and CSR (with int32 or int64 indices), read-only or mapped, pass without a copy,
and so do dense float16, bfloat16, int8, uint8 and bool, and mapped whole numbers of any size that ``memory`` is for.
Everything else that scikit-learn accepts is converted once: to float32 where that holds every number of the type.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from saddlesvm.data.blocks import Block, Reading, Source, check_names
from saddlesvm.data.door import are_dicts, by_rows, names_of_frame, naming_columns, opened, rows_of_dicts
from saddlesvm.data.errors import DataError
from saddlesvm.data.store import Store, is_store
from saddlesvm.data.store_writer import StoreWriter
from saddlesvm.rows import layouts as rows
from saddlesvm.rows.csr_checks import all_in_order, first_repeat, first_repeat_of_few
from saddlesvm.rows.files import is_mapped, release_pages
from saddlesvm.rows.layouts import Rows
from saddlesvm.rows.memory_plan import FITS, available_memory, does_not_fit, memory_bytes
from saddlesvm.rows.passes import Passes, squared_norms
from saddlesvm.rows.small_types import FLOATS, SMALL, kept_type, precision_of, widened
from saddlesvm.runtime.small import is_little

BLOCK_BYTES = 1 << 24  # of rows that are copied at a time


def store_source(path: Path, how: Reading) -> Source:
    """The rows of a store some at a time."""
    store = Store(path)
    weights, has_labels = store.sample_weight, store.header["labels"] is not None and how.label is not False

    def blocks(n_bytes: int) -> Iterator[Block]:
        for start, stop in store.blocks(n_bytes):
            part = slice(start, stop)
            labels = store.labels(start, stop) if has_labels else None
            yield Block(store.X[part], labels, None if weights is None else weights[part], stop / len(store))

    return Source(
        str(path),
        "store",
        sparse=store.layout == "csr",
        width=store.shape[1],
        dtype=store.dtype,
        has_labels=has_labels,
        n_bytes=store.n_bytes,
        blocks=blocks,
        feature_names=store.header.get("feature_names"),
        label_name=store.header.get("label_name"),
        has_weights=weights is not None,
        zero_based=store.zero_based,
    )


def check_together(sources: Sequence[Source]) -> None:
    """Raise a `DataError` for sources whose rows cannot stand in one matrix."""
    first = sources[0]
    for source in sources[1:]:
        if source.sparse != first.sparse:
            kinds = "sparse rows" if source.sparse else "dense rows"
            raise DataError(f"{source.name}: holds {kinds}, {first.name} does not; a store holds one of the two")
        if not source.sparse and source.width != first.width:
            raise DataError(f"{source.name}: has {source.width} features; {first.name} has {first.width}")
        if source.has_labels != first.has_labels or source.has_weights != first.has_weights:
            what = "labels" if source.has_labels != first.has_labels else "weights"
            raise DataError(f"{source.name} and {first.name}: one has {what} and the other has none")
        check_names(source.name, source.feature_names, first.name, first.feature_names)


def common_type(dtypes: Sequence[np.dtype[Any]], unchanged: bool = True) -> np.dtype[Any]:
    """The type of a store of sources: theirs, if it is one and no value is changed; else a float that holds all."""
    if unchanged and all(one == dtypes[0] for one in dtypes):
        return dtypes[0]
    return np.result_type(*map(precision_of, dtypes))


def are_stores(X: Any) -> bool:
    """Whether X is a list of stores, opened or by their paths."""
    if not isinstance(X, (list, tuple)) or not X:
        return False
    return all(isinstance(one, Store) or (isinstance(one, (str, os.PathLike)) and is_store(one)) for one in X)


def joined(stores: Sequence[Any], memory: Any = None, n_features: int | None = None) -> tuple[Any, Any, Any]:
    """The rows of several stores one below the other, with their labels and weights (None where they have none).

    They are read into memory, or, where they take more than half of it, copied into a file of the folder for temporary
    files, which goes when the rows are no longer used.

    Parameters
    ----------
    stores : sequence of Store, str or path
    memory : int, str or None
        What a fit may take; by default the memory that is available.
    n_features : int, optional
        Sparse rows with fewer are widened to it.

    Raises
    ------
    DataError
        They do not go together: dense and sparse rows, other features, labels or weights in some of them only.
    """
    opened = [one if isinstance(one, Store) else Store(one) for one in stores]
    sources = [store_source(one.path, Reading()) for one in opened]
    check_together(sources)
    kinds = {one.header["labels"] and one.header["labels"]["kind"] for one in opened}
    if len(kinds) > 1:
        raise DataError(f"{opened[-1].path}: the labels are numbers in some of the stores, and text in others")
    width, dtype = max(one.shape[1] for one in opened), common_type([one.dtype for one in opened])
    width = max(width, n_features or 0) if opened[0].layout == "csr" else width
    most = FITS * (available_memory() if memory is None else memory_bytes(memory))
    if sum(one.n_bytes for one in opened) > most:
        return _in_file(sources, width, dtype)
    if opened[0].layout == "csr":
        X: Any = sparse.vstack([one.matrix(width) for one in opened], format="csr", dtype=dtype)
    else:
        X = np.concatenate([widened(one.X, dtype) if dtype in FLOATS else one.X for one in opened])
    y = None if opened[0].y is None else np.concatenate([one.y for one in opened if one.y is not None])
    weights = [one.sample_weight for one in opened if one.sample_weight is not None]
    return X, y, np.concatenate(weights) if weights else None


def _in_file(sources: Sequence[Source], width: int, dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    folder = tempfile.mkdtemp(prefix="saddlesvm-")
    try:
        with StoreWriter(Path(folder, "rows.store"), dtype=dtype, n_features=width) as writer:
            for source in sources:
                for block in source.blocks(BLOCK_BYTES):
                    writer.append(block.X, block.y, block.weights)
        store = Store(Path(folder, "rows.store"))
        values = store.X.data if store.layout == "csr" else store.X
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(values.base, shutil.rmtree, folder, ignore_errors=True)
    return store.X, store.y, store.sample_weight


OPTIONS_IN_MEMORY = ("canonical", "probability", "warm_start", "checkpoint")  # that rows in a place of their own lack


class BadRowError(ValueError):
    """A row holds a value that cannot be used.

    Parameters
    ----------
    message : str
    row : int
        Its number, from 0.
    place : int, optional
        The number of its partition, of rows on a cluster.
    """

    def __init__(self, message: str, row: int = 0, place: int = 0) -> None:
        super().__init__(message, row, place)
        self.message, self.row, self.place = message, row, place

    def __str__(self) -> str:
        return self.message


def parts_of(X: Any, y: Any, sample_weight: Any, memory: Any = None) -> tuple[Any, Any, Any]:
    """Rows, labels and weights; without `y`, a store as X supplies its labels, and its weights if none are given.

    Several stores in a list are one below the other, in the `memory` that a fit may take or in a file.
    """
    if isinstance(X, np.ndarray):
        return X, y, sample_weight
    if are_stores(X):
        X, labels, weights = joined(X, memory)
        if y is not None:
            return X, y, sample_weight
        return X, labels, weights if sample_weight is None else sample_weight
    if isinstance(X, Store) and y is None:
        return X.X, X.y, X.sample_weight if sample_weight is None else sample_weight
    return X, y, sample_weight


def check_design(estimator: Any, X: Any, *, reset: bool, repeats: bool = False) -> Any:
    """X as a C-contiguous array or CSR matrix of a type that kernels take; its features are noted, or compared.

    With `repeats` a row may name a column twice, as it may for products.

    Raises
    ------
    ValueError
        No rows or features, a wrong number of features, indices out of range.
    """
    if not isinstance(X, (np.ndarray, Passes)):
        memory = getattr(estimator, "memory", None)
        X = joined(X, memory)[0] if are_stores(X) else X
        X, names = opened(X.X if isinstance(X, Store) else X, memory)
        if names is not None:
            return check_named(estimator, X, names, reset=reset)
        if are_dicts(X):
            return check_dicts(estimator, X, reset=reset)
        if (columns := names_of_frame(X)) is not None:
            return check_named(estimator, as_design(X), columns, reset=reset)
    if isinstance(X, Passes):
        return check_place(estimator, X, reset=reset)
    kept = usable(X, getattr(estimator, "memory", None))
    if kept is not None and reset and isinstance(X, np.ndarray):
        # What validate_data does for rows whose columns have no names.
        estimator.n_features_in_ = kept.shape[1]
        vars(estimator).pop("feature_names_in_", None)
        return kept
    if kept is not None:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return kept
    with naming_columns(X):
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype=_preferred(X),
            order="C",
            ensure_all_finite=False,
        )
    if not sparse.issparse(checked) or (repeats and in_range(checked)):
        return checked
    return canonical(checked)


def refuse_place(X: Passes, what: str) -> NoReturn:
    """Raise ValueError: `what` needs rows in memory or mapped files."""
    raise ValueError(
        f"{what} needs rows in memory or mapped files; these are in a place of their own ({type(X).__name__}), over "
        "which LinearSVC and LinearSVR with a given C train by passes"
    )


def check_place(estimator: Any, X: Passes, *, reset: bool) -> Passes:
    """Rows in a place of their own, as they are; their number of features is noted, or compared.

    Raises
    ------
    ValueError
        The estimator, or one of its options, needs rows in memory; or the rows have a virtual feature already.
    """
    kind, asked = type(estimator).__name__, [name for name in OPTIONS_IN_MEMORY if getattr(estimator, name, None)]
    if asked or not getattr(estimator, "takes_places", False):
        refuse_place(X, f"{kind} with {asked[0]}" if asked else kind)
    if X.X.bias != 0.0:
        raise ValueError(f"rows for {kind} have no virtual feature: fit_intercept adds one; got bias={X.X.bias!r}")
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X


def check_named(estimator: Any, X: Any, names: list[str], *, reset: bool) -> Any:
    """Rows of columns whose names are noted, or compared with those that were noted.

    Raises
    ------
    ValueError
        A name is missing, or has another place.
    """
    if reset:
        checked = check_design(estimator, X, reset=True)
        estimator.feature_names_in_ = np.array(names, dtype=object)
        return checked
    check_names("X", names, "the fit", getattr(estimator, "feature_names_in_", None))
    if X.shape[1] != estimator.n_features_in_:
        kind = type(estimator).__name__
        raise ValueError(
            f"X has {X.shape[1]} features, but {kind} is expecting {estimator.n_features_in_} features as input"
        )
    return as_design(X)


def check_dicts(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Rows that are dicts as a CSR array, their feature names noted, or its columns those that were noted.

    Raises
    ------
    ValueError
        The rows of the fit had no names.
    """
    if not reset and not hasattr(estimator, "feature_names_in_"):
        raise ValueError("rows that are dicts need a model that was trained on dicts or on columns with names")
    made, names = rows_of_dicts(X, None if reset else estimator.feature_names_in_)
    if not reset:
        return made
    checked = check_design(estimator, made, reset=True)
    estimator.feature_names_in_ = names
    return checked


def in_range(X: Any) -> bool:
    """Whether a CSR matrix names none but its own columns, and its parts fit together."""
    fine = X.data.size == X.indices.size and X.indptr.size == X.shape[0] + 1 and X.indptr[0] == 0
    if not fine or X.indptr[-1] > X.indices.size or (X.indptr[1:] < X.indptr[:-1]).any():
        return False
    return not X.indices.size or bool(X.indices.min() >= 0 and X.indices.max() < X.shape[1])


def usable(X: Any, memory: Any = None) -> np.ndarray | None:
    """X as kernels take it, where that needs none of scikit-learn's checks of shape and type; None where it does.

    Few values of a small type become float32, so that they need no kernels of their own.

    Parameters
    ----------
    X : object
    memory : int, str or None
        What a fit may take. With it, and where X does not fit into the memory there is, mapped whole numbers are read
        in place.
    """
    if type(X) is np.ndarray and X.dtype in FLOATS:
        return X if X.ndim == 2 and X.size > 0 and X.flags.c_contiguous else None
    if _is_frame(X) and len(set(X.dtypes)) == 1 and X.dtypes.iloc[0] in SMALL:
        X = X.to_numpy()
    if type(X) not in (np.ndarray, np.memmap) or X.ndim != 2 or X.size == 0:
        return None
    given, X = X, by_rows(X, memory)
    if X is not given and X.dtype in FLOATS:
        return np.asarray(X)
    if kept_type(X.dtype) in SMALL:
        return widened(X) if is_little(X.size, *X.shape) else np.ascontiguousarray(X)
    mapped = (
        X.dtype.kind in "iu" and X.dtype.isnative and is_mapped(X) and (memory is not None or does_not_fit(X, None))
    )
    return X if X.flags.c_contiguous and mapped else None


def _is_frame(X: Any) -> bool:
    """Whether X is a table of columns, each with its type, as pandas has them."""
    return hasattr(X, "to_numpy") and hasattr(getattr(X, "dtypes", None), "iloc")


def _preferred(X: Any) -> list[type]:
    """The types that X may keep, the first one for conversions: float32, if it holds every number of the type."""
    try:
        if _is_frame(X):
            found = np.result_type(*X.dtypes)
        else:
            found = np.dtype(X.dtype if hasattr(X, "dtype") else X.head(0).to_numpy().dtype)  # polars' frames have none
    except (AttributeError, TypeError):
        found = np.dtype(np.float64)
    single = found.kind in "biuf" and precision_of(found) == np.float32
    return [np.float32, np.float64] if single else [np.float64, np.float32]


def as_floats(X: Any) -> Any:
    """A matrix of :func:`check_design` for what takes no other types than float32 and float64."""
    return X if sparse.issparse(X) else widened(X)


def as_design(X: Any) -> Any:
    """Like :func:`check_design` for functions, which have no estimator to note the features on."""
    if isinstance(X, Passes):
        refuse_place(X, "this function")
    X, _ = opened(X.X if isinstance(X, Store) else X)
    if are_dicts(X):
        raise ValueError(
            "rows that are dicts are for fits and predictions; here, make a matrix by DictVectorizer first"
        )
    kept = usable(X)
    if kept is not None:
        return kept
    with naming_columns(X):
        checked = check_array(
            X, accept_sparse="csr", accept_large_sparse=True, dtype=_preferred(X), order="C",
            ensure_all_finite=False,
        )  # fmt: skip
    return canonical(checked) if sparse.issparse(checked) else checked


def canonical(X: Any) -> Any:
    """A CSR matrix whose indices are in range and unique in their row: X itself, or a copy with duplicates summed.

    In which order they come in a row does not matter.

    Raises
    ------
    ValueError
        An index is out of range, or the row pointers are not ascending.
    """
    if X.data.size != X.indices.size or X.indptr.size != X.shape[0] + 1:
        raise ValueError("the sparse matrix is malformed: data, indices and indptr have lengths that do not fit")
    fine = all_in_order(X.indices, X.indptr, X.shape[1])
    release_pages(X)
    if fine:
        return X
    if X.indices.size < X.shape[1]:  # NumPy sorts the indices, and needs no mark for each column
        bad = first_repeat_of_few(X.indices, X.indptr, np.broadcast_to(-1, X.shape[1]))
    else:
        bad = int(first_repeat(X.indices, X.indptr, np.full(X.shape[1], -1, dtype=X.indptr.dtype)))
    if bad == -1:
        return X
    if bad <= -2:
        raise ValueError(
            f"the sparse matrix is malformed in row {-2 - bad}: column indices must be from 0 to {X.shape[1] - 1}, "
            "and row pointers ascending"
        )
    repaired = X.copy()
    repaired.has_canonical_format = False
    repaired.sum_duplicates()
    return repaired


def in_order(X: Any) -> Any:
    """X itself, or a copy of a sparse matrix with the indices of each row in order: for what sorts them in place."""
    return X.sorted_indices() if sparse.issparse(X) and not X.has_sorted_indices else X


def finite_norms(X: Rows | Passes, threads: int = 1) -> np.ndarray:
    """Squared row norms, shape (n,), float64; computing them is the check that all values are finite.

    Parameters
    ----------
    X : Dense, CSR or Passes
    threads : int, default=1
        Most threads of the pass over the rows.

    Raises
    ------
    BadRowError
        X holds NaN, infinity, or values whose square overflows; the message names row and column.
    """
    norms = X.norms() if isinstance(X, Passes) else squared_norms(X, threads)
    finite = np.isfinite(norms)
    if not finite.all():
        i = int(np.argmin(finite))
        kind = "NaN" if np.isnan(norms[i]) else "infinity or a value too large for its square"
        column = "" if isinstance(X, Passes) else f", column {_worst_column(X, i)}"
        where = f"row {i}{column} (from 0)"
        advice = " Leave such rows out, or fill them in, with SimpleImputer." if kind == "NaN" else ""
        raise BadRowError(f"Input X contains {kind} in {where}: all values must be finite.{advice}", i)
    return norms


def _worst_column(X: Rows, i: int) -> int:
    """The column of row i with NaN, or else with the largest value."""
    return int(np.argmax(np.abs(X.dense_row(i)[:-1])))


def finite_scores(scores: np.ndarray, X: Any, coef: Any) -> np.ndarray:
    """The scores of rows X, shape (n, k), checked: a value that is not finite makes none of its row's scores finite.

    Raises
    ------
    ValueError
        X holds NaN or infinity; the message names the row.
    """
    if sparse.issparse(coef) or not np.isfinite(scores).all():
        finite_norms(rows.as_rows(X))
    return scores
