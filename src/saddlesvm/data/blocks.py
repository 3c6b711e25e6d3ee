"""A data file as a source of rows in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.data_table import join_labels
from saddlesvm.data.errors import BUNDLED, DataError, check_exists
from saddlesvm.data.streams import format_of
from saddlesvm.rows.small_types import FLOATS, precision_of, widen

WHOLE = 1 << 62  # bytes of a block that holds all rows


class Block(NamedTuple):
    """Some rows of a source.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Of any type of number; a CSR matrix may be narrower than the whole source is.
    y : ndarray of shape (n,) or None
    weights : ndarray of shape (n,) or None
    share : float
        Share of the source that was read so far, 0 to 1.
    zero_based : bool or None
        True if the indices of LIBSVM text count from 0; None if that is not known, or if there are
        no indices.
    """

    X: Any
    y: Any
    weights: Any = None
    share: float = 1.0
    zero_based: bool | None = None


Blocks = Callable[[int], Iterator[Block]]


def stack_blocks(blocks: Sequence[Block]) -> Block:
    """Put the rows of blocks below each other; a single block is returned as it is.

    Sparse blocks may differ in width. The values get a type that holds all.
    """
    if len(blocks) == 1:
        return blocks[0]
    matrices = [block.X for block in blocks]
    dtype = common_type([X.dtype for X in matrices])
    if sp.issparse(matrices[0]):
        width = max(X.shape[1] for X in matrices)
        for X in matrices:
            X.resize(X.shape[0], width)
        X = sp.vstack(matrices, format="csr", dtype=dtype)
    else:
        # Blocks of one small type stay as they are.
        if dtype in FLOATS:
            matrices = [widen(X, dtype) for X in matrices]
        X = np.concatenate(matrices)
    y = concatenate([block.y for block in blocks])
    weights = concatenate([block.weights for block in blocks])
    return Block(X, y, weights, 1.0, blocks[-1].zero_based)


def concatenate(columns: Sequence[Any]) -> np.ndarray | None:
    """Concatenate labels or weights of several blocks; None if there are none."""
    if columns[0] is None or len(columns) == 1:
        return columns[0]
    return join_labels(columns)


def common_type(dtypes: Sequence[np.dtype]) -> np.dtype:
    """Return the type of rows together: their common type, or a float type that holds all."""
    if all(dtype == dtypes[0] for dtype in dtypes):
        return dtypes[0]
    return np.result_type(*map(precision_of, dtypes))


@dataclass(frozen=True)
class Source:
    """A data file whose format is known, ready to be read in blocks.

    Attributes
    ----------
    name : str
        The name as the user gave it.
    format : str
    sparse : bool
    width : int or None
        Number of features; None if it is known only after the last row.
    dtype : dtype
        Of the values, as a store keeps them.
    has_labels, has_weights : bool
    n_bytes : int
        Size on the disk.
    blocks : callable
        Takes the approximate number of bytes of a block; every call begins at the first row.
    feature_names : list of str, or None
    label_name : str or None
    piece : int
        Bytes of a block if all rows are read.
    """

    name: str
    format: str
    sparse: bool
    width: int | None
    dtype: np.dtype
    has_labels: bool
    n_bytes: int
    blocks: Blocks
    feature_names: list[str] | None = None
    label_name: str | None = None
    has_weights: bool = False
    piece: int = WHOLE

    @property
    def header(self) -> dict[str, Any]:
        """What a store of the rows would say of them, as far as it is known."""
        return {
            "layout": "csr" if self.sparse else "dense",
            "shape": [None, self.width],
            "labels": self.has_labels,
            "weights": self.has_weights,
            "feature_names": self.feature_names,
            "label_name": self.label_name,
        }

    def rows(self, advance: Callable[[float], object] | None = None) -> Block:
        """Read all rows into memory; `advance` is called with the share that was read.

        Raises
        ------
        DataError
            There are no rows, or the format's reader raises an error.
        """
        blocks = []
        for block in self.blocks(self.piece):
            blocks.append(block)
            if advance is not None:
                advance(block.share)
        if not sum(block.X.shape[0] for block in blocks):
            raise DataError(f"{self.name}: holds no rows; at least one is needed")
        return stack_blocks(blocks)


def rows_in(n_bytes: int, row_bytes: float) -> int:
    """Return the number of rows of `row_bytes` in `n_bytes`, at least 1."""
    return max(1, int(n_bytes / max(row_bytes, 1.0)))


def find_format(name: str) -> str:
    """Return the format of a file or folder, or "bundled" for a bundled set.

    Raises
    ------
    DataError
        There is no such source, or its format is not known.
    """
    check_exists(name)
    return "bundled" if name in BUNDLED else format_of(Path(name))
