"""Read MNIST-style idx files: a magic number, the sizes, then the values.

Images and labels are two files, which lie beside each other.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from saddlesvm.data.arrays import EXPANSION
from saddlesvm.data.blocks import WHOLE, Block, ReadOptions, Source, label_parts, rows_in
from saddlesvm.data.data_table import stored_type
from saddlesvm.data.errors import DataError
from saddlesvm.data.streams import open_bytes, reading

# The third byte of an idx file says of which type its values are.
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_DIMENSIONS = 8  # a guess; images have three or four
_SLACK_BYTES = 1 << 26  # bytes that any file may expand to, however small it is; a guess
_PIECE = 1 << 20  # bytes that are read at a time
_ENDINGS = ("", ".gz", ".bz2", ".xz")


def idx_source(path: Path, how: ReadOptions) -> Source:
    """Return the images in an idx file, each flattened to a row, and their labels, as a source.

    The labels of ``train-images-idx3-ubyte.gz`` are in ``train-labels-idx1-ubyte.gz``: "images"
    becomes "labels" and "idx3" becomes "idx1"; either file may be compressed or not. They are read
    at once. The values stay as they are (0 to 255 for bytes).

    Raises
    ------
    DataError
        The magic number is wrong, the length differs from the header's, labels
        are missing, or their number is not that of the images.
    """
    if how.label is not None and how.label is not False:
        raise DataError(
            f"{path}: label={how.label!r}; the labels of an idx file are in the file beside it"
        )
    with reading(path), open_bytes(path) as file:
        shape, dtype = _read_idx_header(file, path)
    if len(shape) < 2:
        raise DataError(
            f"{path}: has one dimension, so that it holds labels; give the file of images"
        )

    # Read the labels at once: they are one byte for each image.
    label_file = None
    y = None
    n_bytes = path.stat().st_size
    if how.label is not False:
        label_file = _find_label_file(path, required=how.n_features is None)
    if label_file is not None:
        n_bytes += label_file.stat().st_size
        y = next(_idx_values(label_file, WHOLE), np.empty(0))
        if y.shape != shape[:1]:
            raise DataError(
                f"{label_file}: has labels of shape {y.shape}; {path.name} has {shape[0]} images; "
                "one label for each image is needed"
            )
    width = math.prod(shape[1:])

    def blocks(n_bytes: int) -> Iterator[Block]:
        parts = _idx_values(path, rows_in(n_bytes, 8 * width))
        return label_parts((images.reshape(-1, width) for images in parts), y, shape[0])

    return Source(
        str(path),
        "idx",
        sparse=False,
        width=width,
        dtype=stored_type(dtype),
        has_labels=y is not None,
        n_bytes=n_bytes,
        blocks=blocks,
    )


def _idx_values(path: Path, step: int) -> Iterator[np.ndarray]:
    """Yield the values of an idx file, `step` images or labels at a time."""
    with reading(path), open_bytes(path) as file:
        shape, dtype = _read_idx_header(file, path)
        item_bytes = math.prod(shape[1:]) * dtype.itemsize
        for start in range(0, shape[0], step):
            stop = min(start + step, shape[0])
            needed = (stop - start) * item_bytes
            # Ask for one byte more at the end, to notice a file that is too long.
            is_last = stop == shape[0]
            data = _read_up_to(file, needed + is_last)
            if len(data) != needed:
                _refuse_size(path, shape, dtype, start * item_bytes + len(data))
            yield np.frombuffer(data, dtype=dtype).reshape(stop - start, *shape[1:])


def _read_idx_header(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], np.dtype]:
    """Return shape and type of the array in an idx file, from its first bytes."""
    head = file.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _TYPES or head[3] == 0:
        raise DataError(
            f"{path}: starts with {head.hex(' ')}; an idx file starts with 00 00, "
            "the code of a type and the number of dimensions"
        )
    n_dimensions = head[3]
    if n_dimensions > _MOST_DIMENSIONS:
        raise DataError(
            f"{path}: says that it has {n_dimensions} dimensions; {_MOST_DIMENSIONS} are allowed"
        )
    sizes = file.read(4 * n_dimensions)
    if len(sizes) < 4 * n_dimensions:
        raise DataError(f"{path}: is truncated: its header ends after {4 + len(sizes)} bytes")
    shape = struct.unpack(f">{n_dimensions}I", sizes)
    dtype = np.dtype(_TYPES[head[2]])

    # A compressed file may claim more than it can hold.
    promised = math.prod(shape) * dtype.itemsize
    most = max(_SLACK_BYTES, EXPANSION * path.stat().st_size)
    if promised > most:
        size = " x ".join(map(str, shape))
        raise DataError(
            f"{path}: its header says {size}, which is {promised} bytes; "
            f"a file of this size may hold at most {most}"
        )
    return shape, dtype


def _read_up_to(file: IO[bytes], count: int) -> bytes:
    """Read `count` bytes, or fewer at the end; memory grows only with the bytes that exist."""
    pieces = []
    while count:
        piece = file.read(min(count, _PIECE))
        if not piece:
            break
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _refuse_size(path: Path, shape: tuple[int, ...], dtype: np.dtype, length: int) -> None:
    """Raise a `DataError` for a file that is longer or shorter than its header says."""
    promised = math.prod(shape) * dtype.itemsize
    found = f"more than {promised}" if length > promised else f"only {length}"
    size = " x ".join(map(str, shape))
    raise DataError(
        f"{path}: holds {found} bytes of values; its header says {size}, which is {promised} bytes"
    )


def _find_label_file(path: Path, *, required: bool) -> Path | None:
    """Return the file of labels beside a file of images, None if there is none."""
    stem = path.name
    for ending in _ENDINGS[1:]:
        stem = stem.removesuffix(ending)
    name = re.sub(r"idx\d", "idx1", stem.replace("images", "labels"))
    if name == stem:
        if required:
            raise DataError(
                f"{path}: its labels are not beside it: its name does not hold the word 'images'"
            )
        return None
    candidates = [path.with_name(name + ending) for ending in _ENDINGS]
    found = next((file for file in candidates if file.is_file()), None)
    if found is None and required:
        raise DataError(f"{path}: its labels are not beside it: {name}[.gz] is not there")
    return found
