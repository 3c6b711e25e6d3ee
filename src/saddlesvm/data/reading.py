"""How rows are read from files: the options that the commands and the readers share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saddlesvm.data.data_table import Header


@dataclass(frozen=True)
class Reading:
    """How the rows of a source are read.

    Attributes
    ----------
    label : str, optional
        Name or position of the label column.
    columns : tuple of pairs of str
        Names of columns and their kinds, see :func:`saddlesvm.table.encoder`.
    drop_columns : tuple of str
        Names or positions of columns to leave out.
    header : bool or "auto"
        Whether the first line of a table has names.
    index_base : bool or "auto"
        Whether the indices of LIBSVM text count from 0.
    missing : {"error", "drop", "mean", "median"}, optional
        What is done about missing values.
    memory : int or str, optional
        Bytes that the rows may take.
    scale : float, default=1.0
        The factor of every value.
    """

    label: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    drop_columns: tuple[str, ...] = ()
    header: Header = "auto"
    index_base: Header = "auto"
    missing: str | None = None
    memory: int | str | None = None
    scale: float = 1.0


DEFAULT_READING = Reading()
