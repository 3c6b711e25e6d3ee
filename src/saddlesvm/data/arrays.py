"""Read a NumPy ``.npy`` file of rows, mapped, and the file of their labels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from saddlesvm.data.archives import DAMAGE
from saddlesvm.data.blocks import Block, Source, rows_in
from saddlesvm.data.data_table import stored_type
from saddlesvm.data.errors import DataError
from saddlesvm.data.reading import Reading
from saddlesvm.data.streams import reading
from saddlesvm.rows.small_types import kept_type


def npy_source(path: Path, how: Reading) -> Source:
    """Return the rows of a `.npy` file, mapped, and the labels in another file, as a source.

    Images are flattened to rows.

    Raises
    ------
    DataError
        A file is damaged, holds objects, or no rows; no file of labels is named, but labels are
        needed; or there is not one label for each row.
    """
    X = map_npy(path)
    if X.ndim < 2:
        raise DataError(f"{path}: the rows have shape {X.shape}; rows and columns are needed")
    n = X.shape[0]
    # -1 cannot stand for the size of images if there are none.
    if X.ndim > 2:
        X = X.reshape(n, math.prod(X.shape[1:]))
    if X.dtype.kind not in "biuf" and kept_type(X.dtype) is None:
        raise DataError(f"{path}: the features are of type {X.dtype}; they must be real numbers")

    # Rows whose number of features is known may be there to be predicted, without labels.
    y = None
    has_labels = how.label is not False and (how.label is not None or how.n_features is None)
    if has_labels:
        if not isinstance(how.label, str):
            raise DataError(
                f"{path}: holds rows without labels; name the .npy file that holds them: "
                "label='y.npy'"
            )
        y = map_npy(Path(how.label))
        if y.shape not in ((n,), (n, 1)):
            raise DataError(
                f"{path}: has {n} rows and labels of shape {y.shape}; "
                "one label for each row is needed"
            )

    def blocks(n_bytes: int) -> Iterator[Block]:
        step = rows_in(n_bytes, X.itemsize * X.shape[1])
        for start in range(0, n, step):
            some = slice(start, start + step)
            labels = None if y is None else np.asarray(y[some]).ravel()
            yield Block(X[some], labels, share=min(start + step, n) / n)

    return Source(
        str(path),
        "npy",
        sparse=False,
        width=X.shape[1],
        dtype=stored_type(X.dtype),
        has_labels=has_labels,
        n_bytes=path.stat().st_size,
        blocks=blocks,
    )


def map_npy(path: Path) -> np.ndarray:
    """Map the array in a `.npy` file."""
    with reading(path):
        try:
            mapped: np.ndarray = np.lib.format.open_memmap(path, mode="r")
        except DAMAGE as error:
            reason = " ".join(str(error).split())
            raise DataError(
                f"{path}: is not a readable .npy of plain numbers or text: {reason}"
            ) from None
        return mapped
