"""``.npy`` files that grow while they are written."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import dtype_to_descr, write_array_header_1_0

CHUNK = 1 << 20  # values that are read back at a time: 8 MB of the widest type


class GrowingArray:
    """A ``.npy`` file that values are appended to; its header is written again when its shape is known.

    Parameters
    ----------
    folder : Path
    name : str
        The file is ``NAME.npy`` when it is finished, and ``NAME-0.growing`` before.
    dtype : dtype
    """

    def __init__(self, folder: Path, name: str, dtype: Any, version: int = 0) -> None:
        self.folder = folder
        self.name = name
        self.dtype = np.dtype(dtype)
        self.version = version
        self.path = folder / f"{name}-{version}.growing"
        self.n_items = 0
        self.file = self.path.open("x+b")
        self.file.write(npy_header(self.dtype, (0,)))

    def append(self, array: np.ndarray[Any, Any]) -> None:
        """Add the values of an array, cast to the type of the file."""
        part = np.ascontiguousarray(array, dtype=self.dtype).reshape(-1)
        if part.size:
            self.file.write(part.view(np.uint8).data)
            self.n_items += part.size

    def changed(self, dtype: Any, change: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> GrowingArray:
        """The same array with changed values and another type, written anew; this file is removed."""
        made = GrowingArray(self.folder, self.name, dtype, self.version + 1)
        self.file.seek(len(npy_header(self.dtype, (0,))))
        for start in range(0, self.n_items, CHUNK):
            count = min(CHUNK, self.n_items - start)
            made.append(change(np.frombuffer(self.file.read(count * self.dtype.itemsize), dtype=self.dtype)))
        self.file.close()
        self.path.unlink()
        return made

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


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The beginning of a ``.npy`` file, of one length for every first size: NumPy leaves room in it."""
    file = io.BytesIO()
    write_array_header_1_0(file, {"descr": dtype_to_descr(dtype), "fortran_order": False, "shape": shape})
    return file.getvalue()
