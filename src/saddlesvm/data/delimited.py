"""Read CSV and TSV: a row on each line, with numbers in every column except the label's."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.blocks import WHOLE, Block, Source, rows_in
from saddlesvm.data.column_positions import (
    LABEL_NAMES,
    dropped_positions,
    label_position,
    number_columns,
)
from saddlesvm.data.data_table import (
    MISSING_WORDS,
    decode_labels,
    is_number,
    missing_labels,
)
from saddlesvm.data.errors import MISSING_ADVICE, DataError
from saddlesvm.data.reading import Header, Label, Reading
from saddlesvm.data.streams import open_text, reading

_WORDS_ADVICE = "(saddlesvm train takes words; saddlesvm.table.read does in Python)"
_HEADER_ADVICE = "say whether it is a header: header=True or header=False"
_OPEN_QUOTE = "a quote is opened and not closed in its line"
LEAST_COUNTED = 3  # columns from which a line 0, 1, 2 is taken for names; a guess
_FIRST_ROWS = 200  # rows in which a cell of the first line is searched for; a guess


@dataclass(frozen=True)
class LineLayout:
    """How the lines of a file are laid out.

    Attributes
    ----------
    delimiter : str
    names : list of str
        The names of all columns; "column 1" and so on, if the file has no header.
    skip : int
        Lines of the header; 0 without one.
    label : int or None
        Position of the label column.
    dropped : frozenset of int
        Positions of columns that are left out.
    """

    delimiter: str
    names: list[str]
    skip: int
    label: int | None
    dropped: frozenset[int] = frozenset()

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names)

    @property
    def features(self) -> list[int]:
        """Positions of the features: all columns but the label and the dropped columns."""
        return [k for k in range(self.n_columns) if k != self.label and k not in self.dropped]

    @property
    def label_name(self) -> str | None:
        """Name of the label column."""
        if self.label is None:
            return None
        return self.names[self.label]

    def converters(self, note_label: Callable[[str], float]) -> Any:
        """Return what ``np.loadtxt`` calls for cells that are not features, by column."""
        by_column: dict[int, Any] = dict.fromkeys(self.dropped, _zero)
        if self.label is not None:
            by_column[self.label] = note_label
        return by_column or None

    def column_name(self, column: int) -> str:
        """Return the name of a column for messages."""
        if not self.skip:
            return self.names[column]
        return f"column {self.names[column]!r}"


def delimited_source(path: Path, how: Reading) -> Source:
    """Return CSV or TSV, plain or compressed, as a source; it is read in a single pass.

    Only if reading fails does a second pass search for the line at fault.

    The delimiter is a tab in a file named .tsv; in any other file, of comma, semicolon and
    tab that occurs most often in the first line.

    Raises
    ------
    DataError
        Naming the line and column of the first cell that is missing, not a number or not finite,
        or the first line of a different length. Its blocks raise it for what comes after the first
        lines.
    """
    with reading(path):
        layout = find_layout(path, how.label, how.header, how.n_features, how.drop_columns)
    feature_names = None
    if layout.skip:
        feature_names = [layout.names[k] for k in layout.features]
    return Source(
        str(path),
        "csv",
        sparse=False,
        width=len(layout.features),
        dtype=np.dtype(np.float64),
        has_labels=layout.label is not None,
        n_bytes=path.stat().st_size,
        blocks=lambda n_bytes: _blocks(path, layout, how, n_bytes),
        feature_names=feature_names,
        label_name=layout.label_name,
    )


def _blocks(path: Path, layout: LineLayout, how: Reading, n_bytes: int) -> Iterator[Block]:
    """Yield the rows of a file in blocks of about `n_bytes`."""
    n_rows = None
    if n_bytes != WHOLE:
        n_rows = rows_in(n_bytes, 8 * layout.n_columns)
    with reading(path), open_text(path) as (text, share):
        lines: Iterator[str] = islice(text, layout.skip, None)
        # `loadtxt` skips empty lines, but a block must not consist of them alone.
        if n_rows is not None:
            lines = (line for line in lines if not line.isspace())
        for line in lines:
            cells, labels = _parse_cells(path, chain([line], lines), layout, how.dtype, n_rows)
            if len(layout.features) < layout.n_columns:
                cells = cells[:, layout.features]
            yield Block(cells, labels, None, share())


def _parse_cells(
    path: Path, lines: Iterator[str], layout: LineLayout, dtype: Any, max_rows: int | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the values of some lines (0 in the label's column), and their labels, if any."""
    dtype = np.dtype(dtype or np.float64)
    codes = array("q")
    texts: dict[str, int] = {}

    def note_label(cell: str) -> float:
        codes.append(texts.setdefault(cell.strip(), len(texts)))
        return 0.0

    # NumPy parses numbers fastest, but its errors do not name the cell.
    try:
        cells = np.loadtxt(
            lines,
            dtype=dtype,
            comments=None,
            delimiter=layout.delimiter,
            converters=layout.converters(note_label),
            ndmin=2,
            encoding="utf-8",
            quotechar='"',
            max_rows=max_rows,
        )
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        _find_fault(path, layout, dtype, missing_labels(texts))
        raise DataError(f"{path}: cannot be read as CSV: {error}") from None

    # All values must be finite, and of as many columns as the first line has.
    no_labels = missing_labels(texts)
    has_bad_label = any(_fault_of_label(text, no_labels) for text in texts)
    if has_bad_label or cells.shape[1] != layout.n_columns or not np.isfinite(cells).all():
        _find_fault(path, layout, dtype, no_labels)
        raise DataError(f"{path}: cannot be read as CSV with {layout.n_columns} columns")
    if layout.label is None:
        return cells, None
    where = f"{path}: {layout.label_name!r}"
    return cells, decode_labels(list(texts), np.frombuffer(codes, dtype=np.int64), where)


def _zero(cell: str) -> float:
    """Return 0 for a cell that is left out."""
    return 0.0


def find_layout(
    path: Path,
    label: Label,
    header: Header,
    n_features: int | None,
    drop: Sequence[str | int] = (),
) -> LineLayout:
    """Return the layout of a file's lines, from its first lines.

    Raises
    ------
    DataError
        The file is empty, or there is no such label or dropped column.
    """
    # The delimiter is the mark that occurs most often in the first line.
    with open_text(path) as (file, _):
        start = _first_line(file)
    delimiter = max(";\t,", key=start.count)
    if ".tsv" in path.name.lower():
        delimiter = "\t"
    with open_text(path) as (file, _):
        reader = csv.reader(file, delimiter=delimiter)
        rows = ((row, reader.line_num) for row in reader if row)
        try:
            first, n_lines = next(rows, ([], 0))
            others = [[cell.strip() for cell in row] for row, _ in islice(rows, _FIRST_ROWS)]
        except csv.Error as error:
            raise DataError(f"{path}: line {reader.line_num}: {error}") from None
    if not first:
        raise DataError(f"{path}: is empty; at least one row is needed")
    first = [cell.strip() for cell in first]

    # The first line, compared with some rows below, tells if it holds names.
    has_header = header
    if header == "auto":
        has_header = _looks_like_header(first, others, label, path, drop)
    if has_header and not others:
        raise DataError(f"{path}: holds a header line and no rows; at least one row is needed")
    names = number_columns(len(first))
    skip = 0
    if has_header:
        names = first
        skip = n_lines
    dropped = dropped_positions(drop, names, str(path))
    for column, name in enumerate(names):
        if not name and column not in dropped:
            raise DataError(
                f"{path}: line {n_lines}: column {column + 1} has no name (a saved row index?); "
                "drop or name it"
            )
    position = label_position(label, names, str(path), dropped, n_features)
    return LineLayout(delimiter, names, skip, position, dropped=dropped)


def _first_line(file: Iterator[str]) -> str:
    """Return the first line that is not empty, without quoted parts, which may hold line breaks."""
    start = ""
    for line in file:
        start += line
        if start.strip() and start.count('"') % 2 == 0:
            break
    return "".join(start.split('"')[::2]) or start


def _looks_like_header(
    first: list[str], others: list[list[str]], label: Label, path: Path, drop: Sequence[str | int]
) -> bool:
    """Return True if the first line holds names: no cell is a number, or a value of its column."""
    # A column that the user names can only be named by this line.
    for column in (label, *drop):
        if isinstance(column, str) and column in first and not is_number(column):
            return True
    # The columns that are left out may hold anything.
    dropped = dropped_positions(drop, number_columns(len(first)), str(path))
    kept = [k for k in range(len(first)) if k not in dropped]
    label_column = None
    if isinstance(label, int) and not isinstance(label, bool):
        label_column = label % len(first)
    elif label is not False and kept:
        label_column = kept[-1]
    # A word that occurs again below is a value of its column, unless other columns show names.
    columns = [[row[k] for row in others if len(row) > k] for k in range(len(first))]
    occurs_again = [_is_word(cell) and cell in columns[k] for k, cell in enumerate(first)]
    if any(occurs_again):
        # A word such as "label" is hardly a value; the letter "y" may be one.
        has_label_name = any(
            cell.lower() in LABEL_NAMES and len(cell) > 1 and not again
            for cell, again in zip(first, occurs_again, strict=True)
        )
        if not has_label_name and not any(map(_is_name, first, columns)):
            return False
        if first in others:
            raise DataError(
                f"{path}: line 1: looks like a header, and occurs again below; remove the lines "
                f"that repeat it, or {_HEADER_ADVICE}"
            )
    features = [first[k] for k in kept if k != label_column]
    words = [cell for cell in features if _is_word(cell)]
    has_numbers = any(map(is_number, features))
    if words and has_numbers:
        raise DataError(f"{path}: line 1: mixes numbers and text ({words[0]!r}); {_HEADER_ADVICE}")
    if words:
        return True
    # pandas names columns 0, 1, 2 and so on, and a saved index "". Rows may count, too.
    counted = [str(k) for k in range(len(first))]
    if first == ["", *counted[:-1]]:
        return True
    if first == counted and len(first) >= LEAST_COUNTED:
        raise DataError(
            f"{path}: line 1: counts the columns, from 0 to {first[-1]}; {_HEADER_ADVICE}"
        )
    # Names may be numbers, beside the name of the label.
    if label_column is None or not others or len(others[0]) <= label_column:
        return False
    if features == counted[:-1] and first[label_column].lower() in LABEL_NAMES:
        return True
    return _is_word(first[label_column]) and is_number(others[0][label_column])


def _is_word(cell: str) -> bool:
    """Return True if a cell is neither a number nor missing."""
    return cell.lower() not in MISSING_WORDS and not is_number(cell)


def _is_name(cell: str, column: list[str]) -> bool:
    """Return True for a word above numbers, which may be repeated among them."""
    others = [other for other in column if other != cell and other.lower() not in MISSING_WORDS]
    return _is_word(cell) and bool(others) and all(map(is_number, others))


def numbered_rows(path: Path, layout: LineLayout) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a file as lists of cells, each with the line, from 1, on which it begins.

    Raises
    ------
    DataError
        A line cannot be split into cells.
    """
    with open_text(path) as (file, _):
        reader = csv.reader(islice(file, layout.skip, None), delimiter=layout.delimiter)
        line = layout.skip + 1
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                # A quoted cell may hold line breaks, so that the next row begins further down.
                line = layout.skip + reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{path}: line {layout.skip + reader.line_num}: {error}") from None
        except EOFError:
            raise DataError(
                f"{path}: is truncated: the compressed data end too early, after line {line - 1}"
            ) from None


def refuse_ragged(path: Path, layout: LineLayout) -> None:
    """Raise a `DataError` for the first line that has more or fewer columns than the others."""
    with reading(path):
        for line, row in numbered_rows(path, layout):
            if len(row) != layout.n_columns:
                raise DataError(f"{path}: line {line}: {_fault_of_length(row, layout)}")


def _fault_of_length(row: list[str], layout: LineLayout) -> str:
    """Return the message for a line with another number of columns."""
    return f"has {len(row)} columns; the lines before have {layout.n_columns}"


def _find_fault(path: Path, layout: LineLayout, dtype: np.dtype, no_labels: frozenset[str]) -> None:
    """Read line by line, and raise a `DataError` at the first cell that breaks a rule."""
    for line, row in numbered_rows(path, layout):
        if any("\n" in cell.rstrip() for cell in row):
            raise DataError(f"{path}: line {line}: {_OPEN_QUOTE}")
        if len(row) != layout.n_columns:
            raise DataError(f"{path}: line {line}: {_fault_of_length(row, layout)}")
        for column, cell in enumerate(row):
            if column == layout.label:
                fault = _fault_of_label(cell.strip(), no_labels)
            else:
                fault = _fault_of_cell(cell.strip(), column, layout, dtype)
            if fault is not None:
                raise DataError(f"{path}: line {line}: {layout.column_name(column)}: {fault}")


def _fault_of_cell(cell: str, column: int, layout: LineLayout, dtype: np.dtype) -> str | None:
    """Say what is wrong with a cell that is no label; return None if nothing is."""
    if column in layout.dropped:
        return None
    if cell.lower() in MISSING_WORDS:
        return f"the value is missing ({cell!r}); {MISSING_ADVICE}"
    if not is_number(cell):
        fault = f"{cell!r} is not a number; features must be numbers {_WORDS_ADVICE}"
        if layout.label is not None:
            label = layout.column_name(layout.label)
            fault += f"; labels are taken from {label}, --label names another column"
        return fault
    if not math.isfinite(float(cell)) or abs(float(cell)) > float(np.finfo(dtype).max):
        return f"{cell!r} is not a finite {dtype} number"
    return None


def _fault_of_label(cell: str, no_labels: frozenset[str]) -> str | None:
    """Say what is wrong with a label; return None if nothing is."""
    # A line break within a label: a quote was never closed.
    if "\n" in cell:
        return _OPEN_QUOTE
    if cell.lower() in no_labels:
        return f"the label is missing ({cell!r}); every row needs one"
    if is_number(cell) and not math.isfinite(float(cell)):
        return f"the label is {cell!r}; labels must be finite"
    return None
