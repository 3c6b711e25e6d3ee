"""Encode tables larger than memory into a store, in two passes.

scikit-learn's transformers of categories and texts have no ``partial_fit``. So the first pass fits
them to parts of the table, spread evenly, as many as the memory holds; the second pass encodes all
rows.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.compose import ColumnTransformer

from saddlesvm.data.errors import DataError
from saddlesvm.data.frames import TableFile, import_pandas
from saddlesvm.data.kinds import ChosenKind
from saddlesvm.data.store import Store
from saddlesvm.data.store_writer import StoreWriter
from saddlesvm.data.typed_columns import rows_without_gaps
from saddlesvm.estimators.columns import columns_from_bytes, columns_to_bytes, transformers_for

LEAST_PART_BYTES = 1 << 14  # bytes of text that are read at a time in any memory; a guess
PARTS = 64  # parts of a table whose text would fill the memory; a guess
# Parts that the memory holds at once with their cells and encoding, a twelfth of it as text; a
# guess.
LEARNT_PARTS = 5
NOTE = "missing values"  # the field of a store's header, and of a model's notes, about gaps
COLUMNS = "columns"  # the field of a store's header with what encoded its rows

Advance = Callable[[float], Any]


def learn_columns(
    file: TableFile,
    kinds: Mapping[str, str],
    n_bytes: int,
    missing: str | None,
    advance: Advance,
) -> ColumnTransformer:
    """Return the encoding that is learnt from parts of a table, each of `n_bytes` of text.

    Raises
    ------
    DataError
        The parts hold no rows, or a text holds no words.
    """
    pandas = import_pandas(file.name)
    stride = max(1, -(-file.n_text_bytes // (n_bytes * LEARNT_PARTS)))
    frames = []
    n_before = 0
    for number, (frame, _, share) in enumerate(file.read_typed(n_bytes, kinds)):
        if number % stride == 0:
            kept = rows_without_gaps(frame, kinds, missing, file.name, n_before)
            frames.append(frame if kept is None else frame[kept])
        n_before += len(frame)
        advance(share / 2.0)
    if not any(map(len, frames)):
        raise DataError(f"{file.name}: holds no rows to learn from; at least one is needed")
    # Numbers are filled with the mean, unless the median is asked for.
    filling = "median" if missing == "median" else "mean"
    try:
        return transformers_for(kinds, filling).fit(pandas.concat(frames, ignore_index=True))
    except ValueError as error:
        raise DataError(f"{file.name}: its columns cannot be encoded: {error}") from None


def convert_table(
    file: TableFile,
    target: str | os.PathLike[str],
    label: str | None,
    chosen: Mapping[str, ChosenKind],
    *,
    memory: int,
    missing: str | None = None,
    overwrite: bool = False,
    dtype: object = None,
    advance: Advance | None = None,
) -> Store:
    """Encode a file of any size into a store: a pass learns the encoding, a second writes the rows.

    The header of the store keeps what encoded the rows, for models that are trained on them.

    Parameters
    ----------
    file : TableFile
    target : str or path
        The folder to make.
    label : str or None
        The column of the labels.
    chosen : mapping of str to ChosenKind
        Kinds of the columns.
    memory : int
        Approximate bytes for the rows under way.
    missing : {"error", "drop", "mean", "median"}, optional
        What happens to gaps; numbers are filled with the mean by default.
    overwrite : bool, default=False
    dtype : float32 or float64, optional
        Type of the values; float64 by default.
    advance : callable, optional
        Called with the share that is done.

    Raises
    ------
    DataError
        The file cannot be read, or the store cannot be written.
    """
    report = advance or (lambda share: None)
    n_bytes = max(LEAST_PART_BYTES, memory // PARTS)
    kinds = {name: choice.kind for name, choice in chosen.items()}

    # The first pass learns the encoding.
    columns = learn_columns(file, kinds, n_bytes, missing, report)

    # The second pass writes encoded rows.
    with StoreWriter(
        target, dtype=dtype or np.float64, overwrite=overwrite, label_name=label
    ) as writer:
        n_before = 0
        for frame, y, share in file.read_typed(n_bytes, kinds, label):
            kept = rows_without_gaps(frame, kinds, missing, file.name, n_before)
            n_before += len(frame)
            if kept is not None:
                frame = frame[kept]
                y = None if y is None else y[kept]
            if len(frame):
                encoded = columns.transform(frame)
                writer.append(encoded.tocsr() if sparse.issparse(encoded) else encoded, y)
            report((1.0 + share) / 2.0)
        writer.sources.append(
            {
                "path": file.name,
                "format": file.format,
                "rows": writer.n_rows,
                "bytes": file.n_bytes,
            }
        )
        if missing is not None:
            writer.further[NOTE] = missing
        writer.further[COLUMNS] = base64.b64encode(columns_to_bytes(columns)).decode("ascii")
    return Store(target)


def stored_columns(store: Store) -> ColumnTransformer | None:
    """Return what encoded the rows of a store; None if they were not rows of a table.

    Raises
    ------
    DataError
        The header's entry cannot be read.
    """
    text = store.header.get(COLUMNS)
    if text is None:
        return None
    try:
        return columns_from_bytes(base64.b64decode(text, validate=True))
    except DataError:
        raise
    except (ValueError, TypeError) as error:
        raise DataError(f"{store.path}: {error}") from None
