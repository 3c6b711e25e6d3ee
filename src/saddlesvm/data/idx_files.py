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
    # If the number of features is known, the rows may be there to be predicted: labels may be
    # missing.
    label_file = None
    if how.label is not False:
        label_file = _find_label_file(path, required=how.n_features is None)
    y = None
    n_bytes = path.stat().st_size
    if label_file is not None:
        n_bytes += label_file.stat().st_size
        y = _read_idx(label_file)
        if y.shape != images.shape[:1]:
            raise DataError(
                f"{label_file}: has labels of shape {y.shape}; {path.name} has {len(images)} "
                "images; one label for each image is needed"
            )
    return replace(array_source(path, "idx", images, y), n_bytes=n_bytes)


def _read_idx(path: Path) -> np.ndarray:
    """Return the array in an idx file."""
    with reading(path), open_bytes(path) as (file, _):
        # Two zero bytes, the code of the type, the number of dimensions; then four bytes for each
        # size.
        head = file.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _TYPES or head[3] == 0:
            raise DataError(
                f"{path}: starts with {head.hex(' ')}; an idx file starts with 00 00, "
                "the code of a type and the number of dimensions"
            )
        if head[3] > _MOST_DIMENSIONS:
            raise DataError(
                f"{path}: says that it has {head[3]} dimensions; {_MOST_DIMENSIONS} are allowed"
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


def _find_label_file(path: Path, *, required: bool) -> Path | None:
    """Return the file of labels beside a file of images, None if there is none."""
    stem = path.name
    for ending in _ENDINGS[1:]:
        stem = stem.removesuffix(ending)
    # "train-images-idx3-ubyte" has its labels in "train-labels-idx1-ubyte".
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
