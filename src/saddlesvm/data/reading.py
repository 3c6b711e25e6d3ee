"""How rows are read from files: what the commands, the public functions and the readers share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from saddlesvm.data.errors import DataError

Label: TypeAlias = str | int | Literal[False] | None
Header: TypeAlias = bool | Literal["auto"]

STANDARD_INPUT = "-"  # its name as a source, on the command line
COLUMN_FORMATS = ("csv", "parquet", "arrow")  # formats whose columns have names

DTYPES = ("float32", "float64", "float")  # names of the types that values can be read as


@dataclass(frozen=True)
class Reading:
    """How the rows of a source are read.

    Attributes
    ----------
    label, header, n_features, dtype, zero_based, drop_columns
        As in :func:`saddlesvm.data.read`.
    missing : {"error", "drop", "mean", "median"}, optional
        What is done about missing values of tables; readers of numbers raise an error.
    columns : tuple of pairs of str
        Names of columns and their kinds, see :func:`saddlesvm.table.encoder`.
    """

    label: Label = None
    header: Header = "auto"
    n_features: int | None = None
    dtype: Any = None
    zero_based: Header = "auto"
    missing: str | None = None
    drop_columns: tuple[str | int, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()

    def check(self) -> None:
        """Raise a `DataError` for an option that no format allows."""
        if self.n_features is not None and self.n_features < 1:
            raise DataError(f"n_features is {self.n_features}; it must be at least 1")
        # The name of a class or of a dtype, without NumPy, which the command line loads later.
        dtype = getattr(self.dtype, "__name__", str(self.dtype))
        if self.dtype is not None and dtype not in DTYPES:
            raise DataError(f"dtype is {dtype}; allowed are float32 and float64")
        if self.header not in (True, False, "auto"):
            raise DataError(f"header is {self.header!r}; allowed are True, False and 'auto'")

    def check_applicable(self, name: str, format: str) -> None:
        """Raise a `DataError` for an option that does not apply to a format."""
        # False says that there are no labels, which every format understands.
        names_label = self.label is not None and self.label is not False
        if self.drop_columns and format not in COLUMN_FORMATS:
            raise DataError(
                f"{name}: drop_columns applies to CSV, TSV, Parquet and Feather; this is {format}"
            )
        if format == "bundled" and (self.label is not None or self.header != "auto"):
            raise DataError(
                f"{name}: is a bundled set, of which the label column is known: leave --label and "
                "--header out (in Python: label and header)"
            )
        if self.header != "auto" and format != "csv":
            raise DataError(
                f"{name}: header={self.header!r} applies to CSV and TSV only; this is {format}"
            )
        if format == "libsvm" and names_label:
            raise DataError(
                f"{name}: label={self.label!r} does not apply: "
                "a line of LIBSVM text starts with its label"
            )
        if format == "store" and names_label:
            raise DataError(
                f"{name}: label={self.label!r} does not apply: a store has one column of labels"
            )


DEFAULT_READING = Reading()


class LateZero(Exception):
    """Index 0 occurred after rows whose indices were taken to count from 1: read them again."""
