"""Rows on a device: tensors of torch, arrays of CuPy, and all that follow the array API standard.

The three products of a pass run on the device: scores, pull and gram. Scores of a block stay there
as a :class:`~saddlesvm.rows.device_array.DeviceArray`, of which losses are computed where the rows
are; an array of NumPy that takes them in brings them over. Blocks are float32 at first and float64
for what a certificate rests on, whatever the type of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn

import numpy as np

from saddlesvm.rows.array_libraries import (
    check_library,
    copy_to_device,
    copy_to_numpy,
    is_on_device,
    is_torch,
    library_name,
    namespace_of,
)
from saddlesvm.rows.device_array import DeviceArray
from saddlesvm.rows.matrix import IN_CACHE, LEAST_ROWS, Dense
from saddlesvm.rows.passes import Part, Passes
from saddlesvm.rows.places import FLOAT64, Memory

BLOCK_VALUES = 2**26  # of a block on a device: half a gigabyte in double precision; guessed
FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True, eq=False)
class Device(Passes):
    """Passes over rows on a device.

    Attributes
    ----------
    X : Dense
        Shape, precision and virtual feature of the rows; it has no values.
    members : ndarray of shape (n,)
        The rows of the pass, ascending.
    array : object
        The rows, shape (n_all, d).
    """

    in_arrays: ClassVar[bool] = True
    X: Dense
    members: np.ndarray
    array: Any

    @classmethod
    def of(cls, array: Any) -> Device:
        """Return the place of an array's rows."""
        if len(array.shape) != 2:
            raise ValueError(
                "X must have two axes, rows and features; got an array of shape "
                f"{tuple(array.shape)}"
            )
        check_library(array)
        # Blocks are float64 if the rows are, and float32 at first for all other types.
        kind = np.float64 if str(array.dtype).endswith("float64") else np.float32
        shape = tuple(int(size) for size in array.shape)
        # An array of NumPy that has the shape and the precision, and takes no memory.
        nowhere = np.broadcast_to(np.zeros(1, kind), shape)
        return cls(Dense(nowhere, 0.0), np.arange(shape[0]), array)

    def select(self, members: np.ndarray) -> Device:
        """Return passes over other rows of the same array."""
        return replace(self, members=members)

    def blocks_of(self) -> DeviceBlocks:
        """Return the rows as blocks."""
        return DeviceBlocks(self)

    def wide_blocks(self) -> DeviceBlocks:
        """Return the rows as blocks in double precision."""
        place = self.blocks_of()
        place.widen()
        return place

    def norms(self) -> np.ndarray:
        """Return ``||x_i||^2`` of the rows; not finite if a value is not, or overflows."""
        found = np.empty(self.members.size)
        place = self.wide_blocks()
        xp = namespace_of(self.array)
        for rows, block in place.blocks():
            found[rows] = copy_to_numpy(xp.sum(block * block, axis=1))
        # The virtual feature, which the array does not hold.
        found += self.X.bias**2
        return found

    def margins(self, w: np.ndarray) -> np.ndarray:
        """Return ``x_i . w`` of the rows, in float64."""
        found = np.empty(self.members.size)
        place = self.wide_blocks()
        for rows, block in place.blocks():
            found[rows] = place.scores(block, w)
        return found

    def pull(self, alpha: np.ndarray) -> np.ndarray:
        """Return ``sum_i alpha_i x_i`` in float64; `alpha` is over all rows of the array."""
        place = self.wide_blocks()
        own = alpha[self.members]
        pulled = np.zeros(self.X.n_features + 1)
        for rows, block in place.blocks():
            pulled += place.pull(block, own[rows])
        return pulled

    def each(self, work: Callable[[Part], object]) -> NoReturn:
        """Refuse: compiled code does not reach the rows."""
        refuse_device(self)


def refuse_device(place: Any) -> NoReturn:
    """Raise ValueError: what is asked for needs rows in the memory of the CPU."""
    array = place.array
    device = getattr(array, "device", "")
    raise ValueError(
        f"rows on a device ({library_name(array)}, {device}) are trained by Newton's method: with "
        "solver='auto', penalty='l2' and the losses of LinearSVC or LinearSVR; bring them to the "
        "CPU for all else"
    )


class DeviceBlocks(Memory):
    """The rows of a device as blocks, with their products.

    Attributes
    ----------
    keeps_scores : bool
        True if scores stay on the device; else they come to NumPy.
    """

    def __init__(self, device: Device) -> None:
        super().__init__(device.X, device.members)
        self.array = device.array
        self.xp = namespace_of(device.array)
        # Tensors on the CPU are read as other rows there: in blocks that stay in the cache.
        values = IN_CACHE
        if is_on_device(device.array):
            values = BLOCK_VALUES
        self.piece = max(LEAST_ROWS, values // max(1, self.d))
        self.block = self.piece
        self.keeps_scores = False

    def cast(self, values: Any, kind: object) -> Any:
        """Return values on the device in a precision."""
        wanted = self.xp.float32
        if kind == FLOAT64:
            wanted = self.xp.float64
        if is_torch(values):
            return values.to(wanted)
        if values.dtype == wanted:
            return values
        # CuPy has a method; the standard has a function.
        if hasattr(values, "astype"):
            return values.astype(wanted)
        return self.xp.astype(values, wanted)

    def read(self, rows: Any, kind: object = None) -> Any:
        """Return some rows, a slice or numbers, in a precision (of the place if none is given)."""
        wanted = kind or self.kind
        if isinstance(rows, slice) and self.whole:
            return self.cast(self.array[rows, :], wanted)
        # Rows by their numbers: torch has a function of its own for them.
        chosen = copy_to_device(self.numbers_in_X(rows), self.array)
        if is_torch(self.array):
            return self.cast(self.array.index_select(0, chosen), wanted)
        return self.cast(self.xp.take(self.array, chosen, axis=0), wanted)

    def scores(self, block: Any, W: np.ndarray) -> Any:
        """Return ``x_i . W`` of the rows of a block, the intercept included."""
        products = block @ self.cast(copy_to_device(W[:-1], self.array), self.kind)
        if W.ndim > 1:
            last = copy_to_device(self.constant * W[-1], self.array)
        else:
            last = float(self.constant * W[-1])
        found = DeviceArray(self.cast(products, FLOAT64) + last)
        if self.keeps_scores:
            return found
        return np.asarray(found)

    def pull(self, block: Any, A: Any) -> np.ndarray:
        """Return ``sum_i a_i x_i`` over the rows of a block, of dual variables in either memory."""
        if isinstance(A, DeviceArray):
            duals = A.values
        else:
            duals = copy_to_device(A, self.array)
        found = np.empty((self.d + 1, *A.shape[1:]))
        found[:-1] = copy_to_numpy(block.T @ self.cast(duals, self.kind))
        # The virtual feature is the same in every row.
        found[-1] = self.constant * copy_to_numpy(self.xp.sum(duals, axis=0))
        return found

    def outer_products(self, bends_of: Callable[[slice, Any], DeviceArray]) -> np.ndarray:
        """Return ``sum_i bend_i x_i x_i'`` over all rows, by a pass in single precision."""
        # The parts of the matrix: features by features, features by intercept, and the intercept's
        # own. Products of a block are float32, sums of blocks float64.
        features = self.cast(copy_to_device(np.zeros((self.d, self.d)), self.array), FLOAT64)
        last = self.cast(copy_to_device(np.zeros(self.d), self.array), FLOAT64)
        corner = 0.0
        for rows, block in self.blocks():
            bends = bends_of(rows, block).values
            narrow_bends = self.cast(bends, FLOAT32)
            narrow = self.cast(block, FLOAT32)
            features = features + self.cast(narrow.T @ (narrow * narrow_bends[:, None]), FLOAT64)
            last = last + self.cast(narrow.T @ narrow_bends, FLOAT64)
            corner += float(self.xp.sum(bends))

        # Put together on the CPU, with the constant of the virtual feature.
        found = np.empty((self.d + 1, self.d + 1))
        found[:-1, :-1] = copy_to_numpy(features)
        found[-1, :-1] = self.constant * copy_to_numpy(last)
        found[:-1, -1] = found[-1, :-1]
        found[-1, -1] = self.constant**2 * corner
        return found

    def weigh(self, block: Any, roots: np.ndarray, kind: object) -> tuple[Any, Any]:
        """Return a block times a number for each row, and these numbers, in a precision."""
        root = self.cast(copy_to_device(roots, self.array), kind)
        return self.cast(block, kind) * root[:, None], root

    def add_squares(self, total: np.ndarray, block: Any) -> np.ndarray:
        """Add ``block' block`` to a total."""
        total += copy_to_numpy(block.T @ block)
        return total

    def bring(self, values: Any) -> np.ndarray:
        """Bring products to NumPy."""
        return copy_to_numpy(values)

    def take(self, rows: np.ndarray) -> DeviceBlocks:
        """Copy some rows, on the device."""
        nowhere = np.broadcast_to(np.zeros(1, self.X.dtype), (rows.size, self.d))
        taken = DeviceBlocks(
            Device(Dense(nowhere, self.constant), np.arange(rows.size), self.read(rows))
        )
        taken.kind = self.kind
        taken.keeps_scores = self.keeps_scores
        return taken
