"""MNIST-style idx files: a magic number, the sizes, then the values; images and labels in two files."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from saddlesvm.data.blocks import Block, Reading, Source, rows_in
from saddlesvm.data.errors import DataError
from saddlesvm.data.streams import open_bytes, reading
from saddlesvm.data.table import stored_type

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_DIMENSIONS = 8
_SLACK_BYTES = 1 << 26  # bytes that any file may expand to
_EXPANSION = 200  # bytes per byte of a compressed file, at most, beyond these
_PIECE = 1 << 20
_ENDINGS = ("", ".gz", ".bz2", ".xz")


def idx_source(path: Path, how: Reading) -> Source:
    """The images in an idx file, each flattened to a row, and the labels from the file beside it, read at once.

    ``train-images-idx3-ubyte.gz`` goes with ``train-labels-idx1-ubyte.gz``: "images" becomes "labels" and "idx3"
    becomes "idx1"; either may be compressed or not. The values stay as they are (0 to 255 for bytes).

    Raises
    ------
    DataError
        A magic number that is not idx, a length that is not the one in the header, labels that are missing or not as
        many as the images.
    """
    if how.label is not None and how.label is not False:
        raise DataError(f"{path}: label={how.label!r}; the labels of an idx file are in the file beside it")
    with reading(path), open_bytes(path) as file:
        shape, dtype = _head(file, path)
    if len(shape) < 2:
        raise DataError(f"{path}: has {len(shape)} dimension, as labels have; give the images file")
    beside = None if how.label is False else _labels_beside(path, required=how.n_features is None)
    y = None if beside is None else _read_array(beside)
    if y is not None and y.shape != shape[:1]:
        raise DataError(f"{beside}: has labels of shape {y.shape}; {path.name} has {shape[0]} images, one label each")
    width = math.prod(shape[1:])

    def blocks(n_bytes: int) -> Iterator[Block]:
        step = rows_in(n_bytes, width * 8)
        with reading(path), open_bytes(path) as file:
            _head(file, path)
            for start in range(0, shape[0], step):
                stop = min(start + step, shape[0])
                promised = (stop - start) * width * dtype.itemsize
                data = _read_up_to(file, promised + (stop == shape[0]))
                if len(data) != promised:
                    _refuse_size(path, shape, dtype, start * width * dtype.itemsize + len(data))
                images = np.frombuffer(data, dtype=dtype).reshape(stop - start, width)
                yield Block(images, None if y is None else y[start:stop], None, stop / shape[0])

    n_bytes = path.stat().st_size + (0 if beside is None else beside.stat().st_size)
    return Source(str(path), "idx", False, width, stored_type(dtype), y is not None, n_bytes, blocks)


def _read_array(path: Path) -> np.ndarray[Any, Any]:
    with reading(path), open_bytes(path) as file:
        shape, dtype = _head(file, path)
        promised = math.prod(shape) * dtype.itemsize
        data = _read_up_to(file, promised + 1)
    if len(data) != promised:
        _refuse_size(path, shape, dtype, len(data))
    return np.frombuffer(data, dtype=dtype).reshape(shape)


def _head(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array in an idx file, from its first bytes."""
    head = file.read(4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _TYPES or head[3] == 0:
        raise DataError(f"{path}: starts with {head.hex(' ')}; an idx file starts with 00 00, a type and a dimension")
    if head[3] > _MOST_DIMENSIONS:
        raise DataError(f"{path}: says that it has {head[3]} dimensions; {_MOST_DIMENSIONS} are allowed")
    sizes = file.read(4 * head[3])
    if len(sizes) < 4 * head[3]:
        raise DataError(f"{path}: is truncated: its header ends after {4 + len(sizes)} bytes")
    shape, dtype = struct.unpack(f">{head[3]}I", sizes), np.dtype(_TYPES[head[2]])
    promised, most = math.prod(shape) * dtype.itemsize, max(_SLACK_BYTES, _EXPANSION * path.stat().st_size)
    if promised > most:
        size = " x ".join(map(str, shape))
        raise DataError(f"{path}: its header says {size}, which is {promised} bytes; a file of its size has {most}")
    return shape, dtype


def _read_up_to(file: IO[bytes], count: int) -> bytes:
    """The next `count` bytes, or fewer at the end; memory grows only with the bytes that exist."""
    pieces = []
    while count and (piece := file.read(min(count, _PIECE))):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _refuse_size(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], length: int) -> None:
    promised = math.prod(shape) * dtype.itemsize
    found = f"more than {promised}" if length > promised else f"only {length}"
    size = " x ".join(map(str, shape))
    raise DataError(f"{path}: holds {found} bytes of values; its header says {size}, which is {promised} bytes")


def _labels_beside(path: Path, *, required: bool) -> Path | None:
    stem = path.name
    for ending in _ENDINGS[1:]:
        stem = stem.removesuffix(ending)
    name = re.sub(r"idx\d", "idx1", stem.replace("images", "labels"))
    tried = [path.with_name(name + ending) for ending in _ENDINGS]
    found = next((file for file in tried if name != stem and file.is_file()), None)
    if found is None and required:
        hint = f"{name}[.gz] is not there" if name != stem else "its name does not hold the word 'images'"
        raise DataError(f"{path}: its labels are not beside it: {hint}")
    return found
