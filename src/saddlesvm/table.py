"""Tables and text: read files with columns of any kind, and choose transformers for them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from saddlesvm.data.data_table import ready_labels
from saddlesvm.data.frames import choose_label, find_kinds, open_table, read_frame
from saddlesvm.data.reading import Header, Label
from saddlesvm.estimators.columns import encoder, feature_names

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["encoder", "feature_names", "read"]


def read(
    source: str | os.PathLike[str],
    *,
    label: Label = None,
    header: Header = "auto",
    drop_columns: Sequence[str | int] = (),
    columns: Mapping[str, str] | None = None,
) -> tuple[pd.DataFrame, np.ndarray | None]:
    r"""Read a table whose columns may be of any kind.

    Parameters
    ----------
    source : str or path
        CSV, TSV (plain or compressed), Parquet, Feather or Arrow. Other files are for pandas.
    label, header, drop_columns
        As in :func:`saddlesvm.data.read`.
    columns : mapping of str to str, optional
        Kinds of columns if the guess is wrong, as in :func:`encoder`. Columns of the kind "drop"
        are left out.

    Returns
    -------
    frame : DataFrame
        The columns for :func:`encoder` and its pipelines: numbers as float64, texts and categories
        as text, "" if missing.
    y : ndarray of shape (n,) or None
        The labels.

    Raises
    ------
    DataError
        The file cannot be read, or has no such label.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from saddlesvm import table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("city,paid,bought\nUlm,1.50,yes\nBonn,,no\nUlm,2.00,no\n")
    >>> frame, y = table.read(path)
    >>> frame["paid"].tolist(), y.tolist()
    ([1.5, nan, 2.0], ['yes', 'no', 'no'])
    """
    file = open_table(os.fspath(source), header=header, drop=drop_columns, label=label)
    column = choose_label(file, label)
    kinds = {name: found.kind for name, found in find_kinds(file, column, columns).items()}
    frame, y = read_frame(file, kinds, column)
    if y is not None:
        y = ready_labels(y, len(frame), file.name)
    return frame, y
