"""Read MNIST-style idx files: a magic number, the sizes, then the values.

Images and labels are two files, which lie beside each other.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from saddlesvm.data.arrays import EXPANSION, array_source
from saddlesvm.data.blocks import Source
from saddlesvm.data.errors import DataError
from saddlesvm.data.reading import Reading
from saddlesvm.data.streams import open_bytes, reading

# The third byte of an idx file says of which type its values are.
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_DIMENSIONS = 8  # a guess; images have three or four
_SLACK_BYTES = 1 << 26  # bytes that any file may expand to, however small it is; a guess
_ENDINGS = ("", ".gz", ".bz2", ".xz")


def idx_source(path: Path, how: Reading) -> Source:
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
    images = _read_idx(path)
    if images.ndim < 2:
        raise DataError(
            f"{path}: has one dimension, so that it holds labels; give the file of images"
        )
    labels = _find_label_file(path) if how.label is not False else None
    if labels is None:
        # Rows whose number of features is known may be there to be predicted, without labels.
        if how.label is not False and how.n_features is None:
            raise DataError(
                f"{path}: its labels are not beside it, in a file of the same name with 'labels' "
                "for 'images' and 'idx1' for 'idx3'"
            )
        return array_source(path, "idx", images, None)
    source = array_source(path, "idx", images, _read_idx(labels))
    return replace(source, n_bytes=source.n_bytes + labels.stat().st_size)


def _read_idx(path: Path) -> np.ndarray:
    """Return the array in an idx file."""
    with reading(path), open_bytes(path) as (file, _):
        # Two zero bytes, the code of the type, the number of dimensions; then a size for each.
        head = file.read(4)
        is_idx = len(head) == 4 and head[:2] == b"\0\0" and head[2] in _TYPES
        if not is_idx or not 1 <= head[3] <= _MOST_DIMENSIONS:
            raise DataError(
                f"{path}: starts with {head.hex(' ')}; an idx file starts with 00 00, the code of "
                f"a type, and the number of dimensions, 1 to {_MOST_DIMENSIONS}"
            )
        sizes = file.read(4 * head[3])
        if len(sizes) < 4 * head[3]:
            raise DataError(f"{path}: is truncated: its header ends after {4 + len(sizes)} bytes")
        shape = tuple(np.frombuffer(sizes, ">u4").tolist())
        dtype = np.dtype(_TYPES[head[2]])

        # A compressed file may claim more than it can hold. One byte more shows a file too long.
        promised = math.prod(shape) * dtype.itemsize
        words = f"its header says {' x '.join(map(str, shape))}, which is {promised} bytes"
        most = max(_SLACK_BYTES, EXPANSION * path.stat().st_size)
        if promised > most:
            raise DataError(f"{path}: {words}; a file of this size may hold at most {most}")
        data = file.read(promised + 1)
    if len(data) != promised:
        found = f"more than {promised}" if len(data) > promised else f"only {len(data)}"
        raise DataError(f"{path}: holds {found} bytes of values; {words}")
    return np.frombuffer(data, dtype=dtype).reshape(shape)


def _find_label_file(path: Path) -> Path | None:
    """Return the file of labels beside a file of images, compressed or not; None without it."""
    stem = re.sub(r"\.(gz|bz2|xz)$", "", path.name)
    # "train-images-idx3-ubyte" has its labels in "train-labels-idx1-ubyte".
    name = re.sub(r"idx\d", "idx1", stem.replace("images", "labels"))
    candidates = [path.with_name(name + ending) for ending in _ENDINGS]
    return next((file for file in candidates if name != stem and file.is_file()), None)
