"""Data files in blocks of rows: the interface between the readers of all formats and a conversion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Block", "Blocks", "Source", "rows_in"]


class Block(NamedTuple):
    """Some rows of a source.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Of any type of number; a CSR matrix may be narrower than the whole source is.
    y : ndarray of shape (n,), Cells, or None
    weights : ndarray of shape (n,) or None
    share : float
        Share of the source read so far, 0 to 1.
    """

    X: Any
    y: Any
    weights: Any
    share: float


Blocks = Callable[[int], Iterator[Block]]


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
        Number of features; None where it is known only after the last row.
    dtype : dtype
        Of the values, as a store keeps them.
    has_labels, has_weights : bool
    n_bytes : int
        Size on the disk.
    blocks : callable
        Takes the approximate number of bytes per block; every call begins at the first row.
    feature_names : list of str, or None
    label_name : str or None
    zero_based : bool or None
        As in :class:`~saddlesvm.data.table.Raw`.
    """

    name: str
    format: str
    sparse: bool
    width: int | None
    dtype: np.dtype[Any]
    has_labels: bool
    n_bytes: int
    blocks: Blocks
    feature_names: list[str] | None = None
    label_name: str | None = None
    has_weights: bool = False
    zero_based: bool | None = None


def rows_in(n_bytes: int, a_row: float) -> int:
    """How many rows of `a_row` bytes there are in `n_bytes`; at least 1."""
    return max(1, int(n_bytes / max(a_row, 1.0)))
