"""LIBSVM (SVMlight) text: `label index:value index:value ...`, one row a line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from saddlesvm.data.errors import DataError
from saddlesvm.data.streams import open_bytes, reading
from saddlesvm.data.table import Raw

__all__ = ["read_libsvm"]

_INDEX_MAX = 2**31 - 2


def read_libsvm(
    path: Path, *, n_features: int | None = None, dtype: Any = None, zero_based: bool | Literal["auto"] = "auto"
) -> Raw:
    """Read LIBSVM text with scikit-learn's fast reader; only when that fails, look for the line at fault.

    Parameters
    ----------
    path : Path
        Plain or compressed file. Comments (from ``#`` to the end of the line) and ``qid:`` entries are skipped.
    n_features : int or None
        Width of the matrix; None takes the largest index.
    dtype : float32, float64 or None
        None means float64.
    zero_based : bool or "auto"
        Whether indices count from 0 or, as LIBSVM's do, from 1; "auto" takes a file in which index 0 occurs to count
        from 0, and any other to count from 1.

    Raises
    ------
    DataError
        Naming the first line that is malformed, whose indices do not ascend or are out of range, or whose values are
        not finite.
    """
    from sklearn.datasets import load_svmlight_file

    dtype = np.dtype(dtype or np.float64)

    try:
        with reading(path), open_bytes(path) as file, np.errstate(over="ignore"):
            X, y = load_svmlight_file(file, n_features=n_features, dtype=dtype, zero_based=zero_based, multilabel=False)
    except DataError as error:
        _find_fault(path, n_features, dtype, zero_based)
        raise error from None
    except (ValueError, OverflowError) as error:
        _find_fault(path, n_features, dtype, zero_based)
        raise DataError(f"{path}: cannot be read as LIBSVM text: {error}") from None
    fine = np.isfinite(X.data).all() and np.isfinite(y).all() and (X.nnz == 0 or X.indices.min() >= 0)
    if not fine:
        _find_fault(path, n_features, dtype, zero_based)
        raise DataError(f"{path}: holds values that {dtype} cannot hold")
    if X.shape[0] == 0:
        raise DataError(f"{path}: holds no rows; at least one is needed")
    if X.nnz == 0 and n_features is None:
        raise DataError(f"{path}: has {X.shape[0]} rows but not one feature; at least one index:value is needed")
    return Raw(X, y)


def _find_fault(path: Path, n_features: int | None, dtype: np.dtype[Any], zero_based: bool | Literal["auto"]) -> None:
    """Read line by line and raise a `DataError` at the first line that breaks a rule."""
    number = 0
    try:
        with open_bytes(path) as file:
            first = 1 if zero_based is False else 0
            starts_at_zero = zero_based is True or (zero_based == "auto" and _has_index_zero(file))
            last = _INDEX_MAX if n_features is None else n_features - starts_at_zero
            file.seek(0)
            for number, line in enumerate(file, start=1):
                fault = _fault_of(line, first, last, n_features, dtype)
                if fault is not None:
                    raise DataError(f"{path}: line {number}: {fault}")
    except EOFError:
        raise DataError(f"{path}: is truncated: the compressed data end too early, after line {number}") from None
    except OSError:
        return


def _has_index_zero(file: IO[bytes]) -> bool:
    return any(b" 0:" in line or b"\t0:" in line for line in file)


def _fault_of(line: bytes, first: int, last: int, n_features: int | None, dtype: np.dtype[Any]) -> str | None:
    """Say what is wrong with a line; None when nothing is."""
    tokens = line.split(b"#", 1)[0].split()
    if not tokens:
        return None
    label, *pairs = (token.decode("utf-8", errors="replace") for token in tokens)
    fault = _fault_of_label(label)
    if pairs and pairs[0].startswith("qid:"):
        pairs = pairs[1:]
    previous = first - 1
    for pair in pairs:
        if fault is not None:
            break
        index, fault = _index_of(pair, dtype)
        if fault is not None:
            break
        if index < first:
            fault = f"index {index} in {pair!r}; indices count from {first}"
        elif index <= previous:
            fault = f"index {index} comes after index {previous}; indices must ascend, each at most once"
        elif index > last:
            fault = f"index {index}; the largest allowed is {last}"
            fault += "" if n_features is None else f" ({n_features} features are expected)"
        previous = index
    return fault


def _fault_of_label(label: str) -> str | None:
    try:
        return None if math.isfinite(float(label)) else f"label {label!r}; labels must be finite"
    except ValueError:
        pass
    if ":" in label:
        return f"starts with {label!r}; a line starts with its label (0 where it is not known)"
    if "," in label:
        return f"label {label!r}; one label a row is allowed, several are not"
    return f"label {label!r} is not a number"


def _index_of(pair: str, dtype: np.dtype[Any]) -> tuple[int, str | None]:
    index, colon, value = pair.partition(":")
    try:
        if not colon:
            raise ValueError
        if not abs(float(value)) <= float(np.finfo(dtype).max):
            return int(index), f"value {value!r} in {pair!r}; values must be finite {dtype} numbers"
        return int(index), None
    except ValueError:
        return 0, f"found {pair!r}; index:value is needed, a whole number and a number"
