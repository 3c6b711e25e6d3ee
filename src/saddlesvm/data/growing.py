"""A ``.npy`` file that grows while it is written."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import dtype_to_descr, write_array_header_1_0

CHUNK = 1 << 20  # values that are read back at a time: 8 MB of the widest type; a guess


class GrowingArray:
    """A ``.npy`` file to append values to; its header is written when its shape is known.

    Parameters
    ----------
    folder : Path
    name : str
        The file is ``NAME.npy`` when it is finished, and ``NAME-0.growing`` before.
    dtype : dtype
    version : int, default=0
        How often the array was rewritten; part of the file's name until it is finished.
    """

    def __init__(self, folder: Path, name: str, dtype: Any, version: int = 0) -> None:
        self.folder = folder
        self.name = name
        self.dtype = np.dtype(dtype)
        self.version = version
        self.path = folder / f"{name}-{version}.growing"
        self.n_items = 0
        self.file = self.path.open("x+b")
        # Keep the place of the header; NumPy leaves room in it for every size.
        self.file.write(npy_header(self.dtype, (0,)))

    def append(self, array: np.ndarray) -> None:
        """Add the values of an array, cast to the type of the file."""
        part = np.ascontiguousarray(array, dtype=self.dtype).reshape(-1)
        if part.size:
            self.file.write(part.view(np.uint8).data)
            self.n_items += part.size

    def rewrite(self, dtype: Any, change: Callable[[np.ndarray], np.ndarray]) -> GrowingArray:
        """Write the array anew with changed values and another type, and remove this file."""
        rewritten = GrowingArray(self.folder, self.name, dtype, self.version + 1)
        self.file.seek(len(npy_header(self.dtype, (0,))))
        for start in range(0, self.n_items, CHUNK):
            count = min(CHUNK, self.n_items - start)
            data = self.file.read(count * self.dtype.itemsize)
            rewritten.append(change(np.frombuffer(data, dtype=self.dtype)))
        self.file.close()
        self.path.unlink()
        return rewritten

    def finish(self, shape: tuple[int, ...]) -> None:
        """Write the header, bring the file to the disk, and give it its name."""
        with self.file:
            self.file.seek(0)
            self.file.write(npy_header(self.dtype, shape))
            self.file.flush()
            os.fsync(self.file.fileno())
        self.path.rename(self.folder / f"{self.name}.npy")

    def close(self) -> None:
        """Close the file as it is."""
        self.file.close()


def npy_header(dtype: np.dtype, shape: tuple[int, ...]) -> bytes:
    """Return the beginning of a ``.npy`` file; its length is the same for every number of rows."""
    header = {"descr": dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    file = io.BytesIO()
    write_array_header_1_0(file, header)
    return file.getvalue()
