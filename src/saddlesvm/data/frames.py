"""Tables of any columns as pandas' data frames.

CSV, Parquet, Feather, Arrow files and streams. pandas and pyarrow come with the extra ``files``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from saddlesvm.data.arrow_columns import is_list
from saddlesvm.data.arrow_files import ArrowFile, arrow_file
from saddlesvm.data.arrow_source import choose_columns
from saddlesvm.data.blocks import WHOLE, find_format
from saddlesvm.data.column_positions import dropped_positions, label_position, position_of
from saddlesvm.data.data_table import (
    MISSING_WORDS,
    decode_labels,
    is_number,
    missing_labels,
    unique_names,
)
from saddlesvm.data.delimited import LineLayout, find_layout, numbered_rows, refuse_ragged
from saddlesvm.data.errors import DataError, import_for_files
from saddlesvm.data.kinds import NUMBERS, SAMPLE, ChosenKind, choose_kinds, find_other_type
from saddlesvm.data.reading import COLUMN_FORMATS, Header, Label, Reading
from saddlesvm.data.streams import open_bytes, reading
from saddlesvm.data.typed_columns import typed_frame

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_BYTES = 1 << 24  # bytes of an Arrow file whose rows tell the kinds; a guess
PROBED_ROWS = 1_000  # rows of a CSV file that tell whether it holds words; a guess
MISSING_IN_CSV = ["?", "na", "none"]  # spellings of a missing value beside those of pandas


@dataclass(frozen=True)
class TableFile:
    """A file of columns, ready to be read.

    Attributes
    ----------
    name, format : str
    n_bytes : int
        Size on the disk.
    names : list of str
        Names of all columns that are not left out; the second of two equal names ends with ".1",
        and columns without names are called "column 1", "column 2" and so on.
    read_rows : callable
        Takes the kinds of the columns (empty if they are not known), and True if the first rows
        suffice; returns a frame.
    line : callable
        The words for a row of the file, from 0: "line 7" or "row 7".
    """

    name: str
    format: str
    n_bytes: int
    names: list[str]
    read_rows: Callable[[Mapping[str, str], bool], pd.DataFrame]
    line: Callable[[int], str]

    def first_rows(self) -> pd.DataFrame:
        """Return the first rows, as they are; raises DataError if there are none."""
        frame = self.read_rows({}, True)
        if not len(frame):
            raise DataError(f"{self.name}: holds no rows; at least one is needed")
        return frame.iloc[:SAMPLE]


def open_table(
    source: str, *, header: Header = "auto", drop: Sequence[str | int] = (), label: Label = None
) -> TableFile:
    """Open a file whose columns may be of any kind.

    Parameters
    ----------
    source : str
    header : bool or "auto"
        True if the first line of a CSV file holds names.
    drop : sequence of str or int
        Columns that are left out, by name or position.
    label : str, int, False or None
        As in :func:`~saddlesvm.data.read`; helps to distinguish a line of names from a row.

    Raises
    ------
    DataError
        The file is in another format, cannot be read, or has no such column; or pandas is not
        installed.
    """
    path = Path(source)
    format = find_format(source)
    if format not in COLUMN_FORMATS:
        raise DataError(
            f"{source}: is in the format {format}, which holds numbers only; for columns of words "
            f"give one of {', '.join(COLUMN_FORMATS)}, or read this file with saddlesvm.data.read"
        )
    import_for_files("pandas", f"{source}: reading tables with words or gaps")
    n_bytes = path.stat().st_size
    if format == "csv":
        with reading(path):
            layout = find_layout(path, label, header, None, drop)
        names = unique_names(layout.names)
        kept = [name for k, name in enumerate(names) if k not in layout.dropped]
        read_rows = partial(_read_csv, path, layout, names)
        line = partial(_line_of, path, layout)
        return TableFile(source, format, n_bytes, kept, read_rows, line)
    file = arrow_file(path, format)
    dropped = dropped_positions(drop, file.names, source)
    kept = [name for k, name in enumerate(file.names) if k not in dropped]
    read_rows = partial(_read_arrow, file, kept)
    return TableFile(source, format, n_bytes, kept, read_rows, lambda row: f"row {row + 1}")


def choose_label(
    file: TableFile, label: Label, features: Sequence[str] | None = None, column: str | None = None
) -> str | None:
    """Return the name of the label column of a file; None if it has none.

    Parameters
    ----------
    file : TableFile
    label : str, int, False or None
        As the user gave it. None means a column that is named as a label, else the last column; and
        with `features`, `column`.
    features : sequence of str, optional
        The columns that a model expects.
    column : str, optional
        The name of the model's labels.

    Raises
    ------
    DataError
        There is no such column.
    """
    # Rows to predict: they may have labels in the model's label column.
    if label is None and features is not None:
        if column in file.names and column not in features:
            return column
        return None
    position = label_position(label, file.names, file.name)
    if position is None:
        return None
    return file.names[position]


def find_kinds(
    file: TableFile, label: str | None, given: Mapping[str, str] | None = None
) -> dict[str, ChosenKind]:
    """Return the kinds of a file's columns but the label, from its first rows.

    Parameters
    ----------
    file : TableFile
    label : str or None
    given : mapping of str to str, optional
        Kinds of columns, by name, or by position in the file.

    Raises
    ------
    DataError
        There is no such column or kind, or no column is left.
    """
    given_by_name = {}
    for key, kind in (given or {}).items():
        position = position_of(key, file.names, file.name, "column")
        given_by_name[file.names[position]] = str(kind)
    if label in given_by_name:
        raise DataError(
            f"{file.name}: {label!r} is the label column: give kinds to the other columns only"
        )
    frame = file.first_rows()
    if label is not None:
        frame = frame.drop(columns=label)
    try:
        return choose_kinds(frame, given_by_name)
    except DataError as error:
        raise DataError(f"{file.name}: {error}") from None


def read_frame(
    file: TableFile, kinds: Mapping[str, str], label: str | None
) -> tuple[pd.DataFrame, np.ndarray | None]:
    """Read all rows of a file, in the types of their kinds, and the labels.

    Raises
    ------
    DataError
        There are no rows, a cell is not of its kind, or a label is missing; the message names file,
        line and column.
    """
    read_as = dict(kinds)
    if label is not None:
        read_as[label] = "category"
    frame = file.read_rows(read_as, False)
    if not len(frame):
        raise DataError(f"{file.name}: holds no rows; at least one is needed")

    def where(row: int) -> str:
        return f"{file.name}: {file.line(row)}"

    columns = typed_frame(frame, kinds, where)
    if label is None:
        return columns, None
    return columns, _read_labels(frame[label], label, file.name, where)


def _read_labels(
    values: pd.Series, label: str, source: str, where: Callable[[int], str]
) -> np.ndarray:
    """Return a column of labels: numbers if all of them are numbers, else text.

    Raises
    ------
    DataError
        A label is missing or a list, or there are too many or too long texts to be classes.
    """
    import pandas as pd

    if values.dtype.kind in "iuf" and not values.isna().any():
        return values.to_numpy()
    other = find_other_type(values.dropna().head(SAMPLE))
    if other is not None:
        raise DataError(
            f"{source}: the column {label!r} holds values of type {other}; labels must be numbers "
            "or text"
        )

    # Look at each different label once; a missing label has the code -1, and so the last entry.
    codes, distinct = pd.factorize(values)
    texts = [str(value).strip() for value in distinct]
    no_labels = missing_labels(texts)
    is_missing = np.array([text.lower() in no_labels for text in texts] + [True])[codes]
    if is_missing.any():
        row = int(np.argmax(is_missing))
        raise DataError(f"{where(row)}: the label is missing; every row needs one in {label!r}")
    return decode_labels(texts, codes, f"{source}: {label!r}")


def holds_words(source: str, header: Header, drop: Sequence[str | int], label: Label) -> bool:
    """Return True if a file has columns of other things than numbers, or lists of numbers.

    The first rows tell. Tables of numbers are read as numbers, and need no pandas.
    """
    format = find_format(source)
    if format not in COLUMN_FORMATS:
        return False
    path = Path(source)
    if format != "csv":
        file = arrow_file(path, format)
        features, _ = choose_columns(file, Reading(label=label, drop_columns=tuple(drop)))
        return not all(_holds_numbers(file.types[k]) for k in features)
    try:
        with reading(path):
            layout = find_layout(path, label, header, None, drop)
            probed = islice(numbered_rows(path, layout), PROBED_ROWS)
            rows = [row for _, row in probed]
    except DataError:
        # The reader of numbers says what is wrong, and where.
        return False
    for column in layout.features:
        cells = [row[column].strip() for row in rows if len(row) > column]
        known = [cell for cell in cells if cell.lower() not in MISSING_WORDS]
        if sum(map(is_number, known)) < NUMBERS * len(known):
            return True
    return False


def _holds_numbers(arrow_type: object) -> bool:
    """Return True if an Arrow column of a type is numbers, truth values, or lists of numbers."""
    import pyarrow as pa

    return bool(
        pa.types.is_integer(arrow_type)
        or pa.types.is_floating(arrow_type)
        or pa.types.is_boolean(arrow_type)
        or pa.types.is_null(arrow_type)
        or is_list(arrow_type)
    )


def _read_csv(
    path: Path, layout: LineLayout, names: list[str], kinds: Mapping[str, str], is_sample: bool
) -> pd.DataFrame:
    """Return the rows of a CSV file as pandas reads them, without the columns that are left out."""
    import pandas as pd

    kept = [name for k, name in enumerate(names) if k not in layout.dropped]
    # pandas parses numbers; the words of a column may look like numbers.
    text_types = {name: str for name in kept if kinds.get(name) in ("category", "text", "drop")}
    with (
        reading(path),
        open_bytes(path, has_lines=True) as (file, _),
        warnings.catch_warnings(),
    ):
        # pandas only warns of lines with too many cells; mixed types in a column are no fault.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        try:
            frame = pd.read_csv(
                file,
                sep=layout.delimiter,
                header=0 if layout.skip else None,
                names=names,
                index_col=False,
                dtype=text_types,
                na_values=MISSING_IN_CSV,
                skipinitialspace=True,
                encoding="utf-8",
                low_memory=False,
                nrows=SAMPLE if is_sample else None,
            )
        except pd.errors.EmptyDataError:
            return pd.DataFrame(columns=kept)
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            refuse_ragged(path, layout)
            reason = str(error).splitlines()[0].removeprefix("Error tokenizing data. C error: ")
            raise DataError(f"{path}: cannot be read as CSV: {reason}") from None
    # pandas fills short rows with gaps: only rows with a gap at the end may be short.
    if frame[names[-1]].isna().any():
        refuse_ragged(path, layout)
    return frame[kept]


def _line_of(path: Path, layout: LineLayout, row: int) -> str:
    """Return the words for the line on which a row of a CSV file begins."""
    return f"line {next(islice(numbered_rows(path, layout), row, None))[0]}"


def _read_arrow(
    file: ArrowFile, kept: list[str], kinds: Mapping[str, str], is_sample: bool
) -> pd.DataFrame:
    """Return the rows of a Parquet, Feather or Arrow file as pyarrow gives them to pandas."""
    import pandas as pd

    n_bytes = SAMPLE_BYTES if is_sample else WHOLE
    with closing(file.tables(n_bytes)) as tables:
        table = next(tables, None)
    if table is None:
        return pd.DataFrame(columns=kept)
    return table.select(kept).to_pandas()
