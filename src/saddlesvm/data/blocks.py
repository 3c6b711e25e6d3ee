"""A data file as a source of rows in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.data.errors import BUNDLED, DataError, check_exists
from saddlesvm.data.streams import format_of

WHOLE = 1 << 62  # bytes of a block that holds all rows


class Block(NamedTuple):
    """Some rows of a source.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Of any type of number; a CSR matrix may be narrower than the whole source is.
    y : ndarray of shape (n,), Cells, or None
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


def label_parts(parts: Iterable[Any], y: np.ndarray | None, n: int) -> Iterator[Block]:
    """Yield consecutive parts of n rows as blocks, each with its labels out of `y`."""
    start = 0
    for X in parts:
        stop = start + X.shape[0]
        yield Block(X, None if y is None else y[start:stop].ravel(), None, stop / n)
        start = stop


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
    zero_based : bool or None
        As in :class:`Block`.
    whole : callable, optional
        Reads all rows as one block, if the format has a better way than a block of :data:`WHOLE`
        bytes. It takes a function to call with the share that was read, or None.
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
    zero_based: bool | None = None
    whole: Callable[[Callable[[float], Any] | None], Block] | None = None

    @property
    def header(self) -> dict[str, Any]:
        """What a store of the rows would say of them, as far as it is known."""
        return {
            "layout": "csr" if self.sparse else "dense",
            "shape": [None, self.width],
            "labels": {"kind": "text or numbers"} if self.has_labels else None,
            "weights": self.has_weights,
            "feature_names": self.feature_names,
        }

    def rows(self, advance: Callable[[float], object] | None = None) -> Block:
        """Read all rows into memory.

        Raises
        ------
        DataError
            There are no rows, or the format's reader raises an error.
        """
        block = next(self.blocks(WHOLE), None) if self.whole is None else self.whole(advance)
        if block is None:
            raise DataError(f"{self.name}: holds no rows; at least one is needed")
        return block


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
