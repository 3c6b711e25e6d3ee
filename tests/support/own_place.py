"""A place where rows may live, from outside the package: blocks of dense rows, kept compressed and unpacked in turn."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from saddlesvm.rows.layouts import Dense
from saddlesvm.rows.passes import Part, Passes

Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class Packed(Passes):
    """Passes over compressed blocks of `size` rows each.

    Attributes
    ----------
    X : Dense
        Shape, precision and virtual feature of the rows; its values are those of none.
    members : ndarray of shape (n,)
        The rows of the pass, ascending.
    blocks : list of bytes
    """

    X: Dense
    members: np.ndarray
    blocks: list[bytes]
    size: int

    def select(self, members: np.ndarray) -> Packed:
        """Passes over other rows of the same blocks."""
        return replace(self, members=members)

    def each(self, work: Callable[[Part], Answer]) -> Iterator[Answer]:
        """What `work` returns for each block, one after the other."""
        n, d = self.X.values.shape
        for k, block in enumerate(self.blocks):
            first, last = k * self.size, min((k + 1) * self.size, n)
            values = np.frombuffer(zlib.decompress(block), self.X.values.dtype).reshape(last - first, d)
            place = slice(*np.searchsorted(self.members, [first, last]).tolist())
            yield work(Part(Dense(values, self.X.bias), self.members[place] - first, place, first, last))


def packed(X: Dense, members: np.ndarray, size: int = 16) -> Packed:
    """Dense rows, compressed."""
    blocks = [zlib.compress(X.values[k : k + size].tobytes()) for k in range(0, len(X.values), size)]
    shape = np.broadcast_to(X.values.dtype.type(0), X.values.shape)  # takes no memory
    return Packed(Dense(shape, X.bias), members, blocks, size)
