"""Rows of a kernel matrix over the active points: computed in blocks by BLAS, held in a bounded
cache.

These rows steer a solver. So they are held in float32, as in LIBSVM, and computed in float32 if
that is accurate enough. A certificate uses them only in :mod:`saddlesvm.kernel.rough_values`, with
bounds on their errors. A product of a block of 64 to 512 rows with all active points runs at the
speed of the processor's matrix multiplication; the same rows one after the other run at the speed
of its memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy import sparse

from saddlesvm.kernel.mercer import Kernel, Matrix, dense_if_quicker, in_float64, radial

BYTES = 4  # of a value in the cache
DENSE_VALUES = 2**24  # values of a block of sparse rows that is made dense, at most: 64 MB
# Largest exponent of the radial kernel that float32 resolves to 1e-4 (derived)
FLOAT32_EXPONENT = 1024.0


@dataclass(frozen=True)
class RadialRows:
    """Rows of the radial kernel, ``exp(2 gamma x.z - h_x - h_z)`` with ``h = gamma ||x||^2``.

    The points are shifted to mean zero, which leaves the kernel as it is and keeps the exponents
    small.
    """

    points: Matrix
    half: np.ndarray  # h, in the precision of the points
    gamma: float

    @property
    def count(self) -> int:
        return self.half.size

    def block(self, rows: np.ndarray, out: np.ndarray) -> None:
        values = out if out.dtype == self.half.dtype else np.empty(out.shape, self.half.dtype)
        products(self.points[rows] * self.half.dtype.type(2.0 * self.gamma), self.points, values)
        radial(values, self.half[rows], self.half)
        if values is not out:
            out[...] = values

    def restrict(self, keep: np.ndarray) -> RadialRows:
        return replace(self, points=self.points[keep], half=self.half[keep])


@dataclass(frozen=True)
class PairwiseRows:
    """Rows of any other kernel, by its function."""

    points: Matrix
    kernel: Kernel

    @property
    def count(self) -> int:
        return self.points.shape[0]

    def block(self, rows: np.ndarray, out: np.ndarray) -> None:
        out[...] = self.kernel(self.points[rows], self.points)

    def restrict(self, keep: np.ndarray) -> PairwiseRows:
        return replace(self, points=self.points[keep])


@dataclass(frozen=True)
class GivenRows:
    """Rows of a precomputed kernel matrix; `active` are the numbers of its rows that take part."""

    matrix: np.ndarray
    active: np.ndarray

    @property
    def count(self) -> int:
        return self.active.size

    def block(self, rows: np.ndarray, out: np.ndarray) -> None:
        for k, i in enumerate(self.active[rows]):
            out[k] = self.matrix[i, self.active]

    def restrict(self, keep: np.ndarray) -> GivenRows:
        return replace(self, active=self.active[keep])


@dataclass(frozen=True)
class SignedRows:
    """Signed views of points: the value of two rows is that of the points times both signs."""

    base: RowSource
    points: np.ndarray
    signs: np.ndarray  # float32

    @property
    def count(self) -> int:
        return self.points.size

    def block(self, rows: np.ndarray, out: np.ndarray) -> None:
        distinct, place = np.unique(self.points[rows], return_inverse=True)
        values = np.empty((distinct.size, self.base.count), out.dtype)
        self.base.block(distinct, values)
        np.take(values[place], self.points, axis=1, out=out)
        out *= self.signs
        out *= self.signs[rows, None]

    def restrict(self, keep: np.ndarray) -> SignedRows:
        left, points = np.unique(self.points[keep], return_inverse=True)
        base = self.base if left.size == self.base.count else self.base.restrict(left)
        return SignedRows(base, points, self.signs[keep])


# Rows of the kernel matrix over the active points. Each has `count`, the number of these points;
# `block(rows, out)` writes the kernel values of points `rows` against all of them into `out`;
# `restrict(keep)` is the same source over the points `keep` only.
RowSource: TypeAlias = RadialRows | PairwiseRows | GivenRows | SignedRows


def products(A: Matrix, B: Matrix, out: np.ndarray) -> None:
    """Write ``A B'`` into `out`; sparse rows of `A` are made dense a few at a time."""
    if not sparse.issparse(A):
        np.matmul(A, B.T, out=out)
        return
    few = max(1, DENSE_VALUES // A.shape[1])
    for start in range(0, A.shape[0], few):
        part = A[start : start + few].toarray()
        out[start : start + few] = (B @ part.T).T


def radial_rows(X: Matrix, gamma: float) -> RadialRows:
    """Return rows of the radial kernel in float32; in float64 if exponents are too large."""
    X = dense_if_quicker(X)
    if sparse.issparse(X):
        half = gamma * np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()
        points = X
    else:
        # Distances stay the same, and products become smaller, if the mean is subtracted.
        shift = X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        half = gamma * np.concatenate(
            [np.einsum("ij,ij->i", part - shift, part - shift) for part in in_float64(X)]
        )
        points = X - shift
    # float32 rounds a large exponent so much that the kernel value shows it.
    is_small = half.max(initial=0.0) <= FLOAT32_EXPONENT
    dtype = np.float32 if is_small else np.float64
    return RadialRows(points.astype(dtype, copy=False), half.astype(dtype), gamma)


def row_source(kernel: Kernel, X: Matrix) -> RowSource:
    """Return the source of `kernel`'s rows over the rows of `X`, accurate to about float32."""
    if kernel.precomputed:
        return GivenRows(X, np.arange(X.shape[0]))
    if kernel.metric == "rbf":
        return radial_rows(X, kernel.gamma)
    return PairwiseRows(dense_if_quicker(X), kernel)


class RowCache:
    """The kernel rows used last over the active points, at most `megabytes` of them.

    Parameters
    ----------
    source : RowSource
    megabytes : float
        Bound on the memory for kernel values. Two rows always fit.

    Attributes
    ----------
    table : ndarray of shape (capacity, source.count)
        The rows that are held, by slot.
    slot : ndarray of shape (source.count,)
        The place of each point's row in the table; -1 if it is not held.
    evaluations : int
        Number of kernel values computed so far.
    """

    def __init__(self, source: RowSource, megabytes: float) -> None:
        count = max(1, source.count)
        allowed = int(megabytes * 2**20 / BYTES)
        self.buffer: np.ndarray = np.empty(
            max(min(2, count) * count, min(count * count, allowed)), np.float32
        )
        self.evaluations = 0
        self._arrange(source)

    def _arrange(self, source: RowSource) -> None:
        """Divide the memory into rows of a source, none of them computed."""
        self.source = source
        count = source.count
        self.capacity = min(count, self.buffer.size // max(1, count))
        self.table = self.buffer[: self.capacity * count].reshape(self.capacity, count)
        self.slot = np.full(count, -1)
        self.owner = np.full(self.capacity, -1)
        self.last_use = np.zeros(self.capacity, np.int64)
        self.clock = 0

    def fetch(self, rows: np.ndarray) -> np.ndarray:
        """Return the slots of the kernel rows of distinct points; compute missing ones."""
        self.touch(rows)
        missing = rows[self.slot[rows] < 0]
        if missing.size:
            self._compute(missing)
        return self.slot[rows]

    def touch(self, rows: np.ndarray) -> int:
        """Mark the rows of these points as recently used if they are held; return how many are."""
        self.clock += 1
        slots = self.slot[rows]
        held = slots[slots >= 0]
        self.last_use[held] = self.clock
        return held.size

    def _compute(self, missing: np.ndarray) -> None:
        """Compute the rows of some points in place of the least recently used rows."""
        slots = np.sort(np.argsort(self.last_use, kind="stable")[: missing.size])
        evicted = self.owner[slots]
        self.slot[evicted[evicted >= 0]] = -1
        first = int(slots[0])
        last = int(slots[-1]) + 1
        # Consecutive slots are written directly; others by a copy.
        in_place = last - first == slots.size
        if in_place:
            block = self.table[first:last]
        else:
            block = np.empty((slots.size, self.source.count), self.buffer.dtype)
        self.source.block(missing, block)
        if not in_place:
            self.table[slots] = block
        self.slot[missing] = slots
        self.owner[slots] = missing
        self.last_use[slots] = self.clock
        self.evaluations += missing.size * self.source.count

    def restrict(self, keep: np.ndarray) -> None:
        """Drop all points but `keep` (ascending); their held rows stay, shortened in place."""
        held = np.flatnonzero(self.slot[keep] >= 0)
        slots = self.slot[keep[held]]
        order = np.argsort(slots)
        held = held[order]
        slots = slots[order]
        table = self.table
        last_use = self.last_use[slots]
        clock = self.clock
        self._arrange(self.source.restrict(keep))
        # Rows move to the front in the order of their slots: each ends before the next row to be
        # read begins.
        for new, old in enumerate(slots):
            self.table[new] = table[old, keep]
        self.slot[held] = np.arange(held.size)
        self.owner[: held.size] = held
        self.last_use[: held.size] = last_use
        self.clock = clock
