"""CSV and TSV: one row per line, with numbers in every column except the label's."""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from saddlesvm.data.blocks import WHOLE, Block, Reading, Source, dropped_positions, label_position, rows_in
from saddlesvm.data.errors import WAYS_WITH_MISSING, DataError
from saddlesvm.data.kinds import MISSING_WORDS
from saddlesvm.data.streams import open_counted, open_text, reading
from saddlesvm.data.table import Cells, Header, Label, Task, bounded_classes, is_number

_MISSING_LABEL = frozenset({"", "?", "nan"})
_ENCODE = "(words are read by --columns NAME=category, or saddlesvm.table.read)"
_FIRST_ROWS = 200  # rows in which a cell of the first line is searched for
_LONG_NAME = 60  # signs; longer cells of a first line are no names of columns
_OPEN_QUOTE = "a quote is opened and not closed in its line"


@dataclass(frozen=True)
class Layout:
    """The layout of the lines of one file."""

    delimiter: str
    names: list[str] | None
    n_columns: int
    skip: int
    label: int | None
    missing_ok: bool = False  # whether values may be missing
    dropped: frozenset[int] = frozenset()

    @property
    def features(self) -> list[int]:
        """The columns but the label's and those that are left out."""
        return [k for k in range(self.n_columns) if k != self.label and k not in self.dropped]

    @property
    def feature_names(self) -> list[str] | None:
        """Their names."""
        return None if self.names is None else [self.names[k] for k in self.features]

    def of_features(self, cells: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The values of those columns, of all columns."""
        return cells if len(self.features) == self.n_columns else cells[:, self.features]

    @property
    def label_name(self) -> str | None:
        """Name of the label column; "column 3" in a file without names."""
        if self.label is None:
            return None
        return f"column {self.label + 1}" if self.names is None else self.names[self.label]

    def converters(self, note_label: Callable[[str], float]) -> Any:
        """The converters of cells that are not plain numbers, for ``np.loadtxt``."""
        made: dict[int, Any] = dict.fromkeys(range(self.n_columns), _number_or_nan) if self.missing_ok else {}
        made |= dict.fromkeys(self.dropped, _nothing)
        return made | ({} if self.label is None else {self.label: note_label}) or None

    def called(self, column: int) -> str:
        """The name of a column in messages."""
        return f"column {self.names[column]!r}" if self.names is not None else f"column {column + 1}"


def delimited_source(path: Path, how: Reading) -> Source:
    """CSV or TSV, plain or compressed, in one pass; only when that fails, search for the line at fault.

    The delimiter is a tab in a file named .tsv; in any other it is the one of comma, semicolon and tab that occurs
    most often in the first line. With ``header="auto"`` a first line without numbers is a header; one that mixes
    numbers and text in the feature columns is refused, because no guess about it would be safe.

    Raises
    ------
    DataError
        Naming the line and column of the first cell that is missing (and not kept), not a number or not finite, or the
        first line of a different length. Its blocks raise it for what comes after the first two lines.
    """
    with reading(path):
        layout = replace(
            layout_of(path, how.label, how.header, how.n_features, how.drop_columns), missing_ok=how.missing == "keep"
        )
    return Source(
        str(path),
        "csv",
        sparse=False,
        width=len(layout.features),
        dtype=np.dtype(np.float64),
        has_labels=layout.label is not None,
        n_bytes=path.stat().st_size,
        blocks=lambda n_bytes: _blocks(path, layout, how, n_bytes),
        feature_names=layout.feature_names,
        label_name=layout.label_name,
    )


def _blocks(path: Path, layout: Layout, how: Reading, n_bytes: int) -> Iterator[Block]:
    n_rows = None if n_bytes == WHOLE else rows_in(n_bytes, 8 * layout.n_columns)
    with reading(path), open_counted(path) as (file, share):
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        lines: Iterator[str] = islice(text, layout.skip, None)
        lines = lines if n_rows is None else (line for line in lines if not line.isspace())
        for line in lines:
            X, y = _cells(path, chain([line], lines), layout, how, n_rows)
            yield Block(layout.of_features(X), None if layout.label is None else y, None, share())


def _cells(
    path: Path, lines: Iterator[str], layout: Layout, how: Reading, max_rows: int | None
) -> tuple[np.ndarray[Any, Any], Cells]:
    """The values of some lines (0 in the column of the labels), and their labels."""
    codes, texts, dtype, task = array("q"), dict[str, int](), np.dtype(how.dtype or np.float64), how.task

    def note_label(cell: str) -> float:
        codes.append(texts.setdefault(cell.strip(), len(texts)))
        return 0.0

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
        _find_fault(path, layout, dtype, task)
        raise DataError(f"{path}: cannot be read as CSV: {error}") from None
    if not all(map(is_number, texts)):
        bounded_classes(list(texts), f"{path}: {layout.label_name!r}")
    bad_label = any(_fault_of_label(text, task) for text in texts)
    if bad_label or cells.shape[1] != layout.n_columns or not _allowed(cells, layout).all():
        _find_fault(path, layout, dtype, task)
        raise DataError(f"{path}: cannot be read as CSV with {layout.n_columns} columns")
    return cells, Cells(list(texts), np.frombuffer(codes, dtype=np.int64))


def _nothing(cell: str) -> float:
    """The value of a cell that is left out."""
    return 0.0


def _number_or_nan(cell: str) -> float:
    """The number in a cell, NaN where it is missing."""
    if cell.strip().lower() in MISSING_WORDS:
        return math.nan
    if not is_number(cell.strip()):
        raise ValueError(f"{cell!r} is not a number")
    return float(cell)


def _allowed(cells: np.ndarray[Any, Any], layout: Layout) -> np.ndarray[Any, Any]:
    return ~np.isinf(cells) if layout.missing_ok else np.isfinite(cells)


def layout_of(
    path: Path,
    label: Label,
    header: Header,
    n_features: int | None,
    drop: Sequence[str | int] = (),
) -> Layout:
    """The layout of a file's lines, from the first ones.

    Raises
    ------
    DataError
        The file is empty, or there is no such label or dropped column.
    """
    with open_text(path) as file:
        start = _first_line(file)
    delimiter = "\t" if ".tsv" in path.name.lower() else max(";\t,", key=start.count)
    with open_text(path) as file:
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
    has_header = header
    if header == "auto":
        has_header = _looks_like_header(first, others, label, path, drop)
    if has_header and not others:
        raise DataError(f"{path}: holds a header line and no rows; at least one row is needed")
    names = first if has_header else None
    dropped = dropped_positions(drop, names, len(first), str(path))
    nameless = next((k + 1 for k, name in enumerate(first) if has_header and not name and k not in dropped), None)
    if nameless is not None:
        raise DataError(f"{path}: line {n_lines}: column {nameless} has no name (a saved row index?); drop or name it")
    position = label_position(label, names, len(first), n_features, str(path), dropped)
    return Layout(delimiter, names, len(first), n_lines if has_header else 0, position, dropped=dropped)


def _first_line(file: Iterator[str]) -> str:
    """The first line with anything in it, without what stands between quotes, which may hold line breaks."""
    start = ""
    for line in file:
        start += line
        if start.strip() and start.count('"') % 2 == 0:
            break
    return "".join(start.split('"')[::2]) or start


def _looks_like_header(
    first: list[str], others: list[list[str]], label: Label, path: Path, drop: Sequence[str | int]
) -> bool:
    """Whether the first line holds names: none of its cells is a number (those of the label, and of columns that are
    left out, do not count), nor occurs again in its column.

    Raises
    ------
    DataError
        It mixes numbers and text, or a cell is too long for a name.
    """
    if any(isinstance(one, str) and one in first and not is_number(one) for one in (label, *drop)):
        return True
    second = others[0] if others else None
    if _is_a_row(first, others):
        return False
    if drop:
        kept = [k for k in range(len(first)) if k not in dropped_positions(drop, None, len(first), str(path))]
        if isinstance(label, int) and not isinstance(label, bool):
            label = kept.index(label % len(first)) if label % len(first) in kept else None
        second = [second[k] for k in kept] if second is not None and len(second) == len(first) else None
        first = [first[k] for k in kept]
    at = -1 if label is None or isinstance(label, str) else int(label)
    if label is not False and -len(first) <= at < len(first):
        label_cell = first[at]
        features = [cell for column, cell in enumerate(first) if column != at % len(first)]
        if second is not None and len(second) == len(first) and all(map(is_number, features)):
            return not is_number(label_cell) and label_cell not in _MISSING_LABEL and is_number(second[at])
    else:
        features = first
    features = [cell for cell in features if cell.lower() not in MISSING_WORDS]
    numbers = sum(map(is_number, features))
    if 0 < numbers < len(features):
        odd = next(cell for cell in features if not is_number(cell))
        raise DataError(
            f"{path}: line 1: mixes numbers and text ({odd!r}); say whether it is a header (--header yes or no, in "
            "Python header=True or False)"
        )
    longest = max(first, key=len)
    if numbers == 0 and len(longest) > _LONG_NAME:
        raise DataError(
            f"{path}: line 1 holds no numbers, so that its cells are names of columns; one is {longest[:40]!r} ...: "
            "say whether it is a header (--header yes or no, in Python header=True or False)"
        )
    return numbers == 0 and len(features) > 0


def _is_a_row(first: list[str], others: list[list[str]]) -> bool:
    """Whether a word of the first line occurs again in its column, as categories and labels do, and names do not."""
    for column, cell in enumerate(first):
        if cell.lower() in MISSING_WORDS or is_number(cell):
            continue
        if any(len(row) > column and row[column] == cell for row in others):
            return True
    return False


def rows_of_cells(path: Path, layout: Layout) -> Iterator[list[str]]:
    """The rows of a file as lists of cells, without the line of names.

    Raises
    ------
    DataError
        A line cannot be taken apart.
    """
    with open_text(path) as file:
        reader = csv.reader(islice(file, layout.skip, None), delimiter=layout.delimiter)
        try:
            yield from filter(None, reader)
        except csv.Error as error:
            raise DataError(f"{path}: line {layout.skip + reader.line_num}: {error}") from None


def line_of_row(path: Path, layout: Layout, row: int) -> int:
    """The line, from 1, on which a row, from 0, begins."""
    with open_text(path) as file:
        reader = csv.reader(islice(file, layout.skip, None), delimiter=layout.delimiter)
        line = layout.skip + 1
        for cells in reader:
            if cells and row == 0:
                break
            row -= bool(cells)
            line = layout.skip + reader.line_num + 1
    return line


def refuse_ragged(path: Path, layout: Layout) -> None:
    """Raise a `DataError` for the first line that has more or fewer columns than the others."""
    with reading(path):
        for row, cells in enumerate(rows_of_cells(path, layout)):
            if len(cells) != layout.n_columns:
                line = line_of_row(path, layout, row)
                raise DataError(
                    f"{path}: line {line}: has {len(cells)} columns; the lines before have {layout.n_columns}"
                )


def _find_fault(path: Path, layout: Layout, dtype: np.dtype[Any], task: Task | None) -> None:
    """Read line by line and raise a `DataError` at the first cell that breaks a rule."""
    with open_text(path) as file:
        skipped = sum(1 for _ in islice(file, layout.skip))
        reader = csv.reader(file, delimiter=layout.delimiter)
        line = skipped + 1
        try:
            for row in reader:
                fault = _fault_of(row, layout, dtype, task) if row else None
                if fault is not None:
                    raise DataError(f"{path}: line {line}: {fault}")
                line = skipped + reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{path}: line {skipped + reader.line_num}: {error}") from None
        except EOFError:
            where = f"after line {skipped + reader.line_num}"
            raise DataError(f"{path}: is truncated: the compressed data end too early, {where}") from None


def _fault_of(row: list[str], layout: Layout, dtype: np.dtype[Any], task: Task | None) -> str | None:
    """Say what is wrong with a row; None when nothing is."""
    if any("\n" in cell.rstrip() for cell in row):
        return _OPEN_QUOTE
    if len(row) != layout.n_columns:
        return f"has {len(row)} columns; the lines before have {layout.n_columns}"
    for column, cell in enumerate(row):
        if column in layout.dropped:
            fault = None
        elif column == layout.label:
            fault = _fault_of_label(cell.strip(), task)
        elif layout.missing_ok and cell.strip().lower() in MISSING_WORDS:
            fault = None
        else:
            fault = _fault_of_cell(cell.strip(), dtype)
            if fault is not None and layout.label is not None and fault.endswith(_ENCODE):
                fault += f"; labels are taken from {layout.called(layout.label)}, --label names another"
        if fault is not None:
            return f"{layout.called(column)}: {fault}"
    return None


def _fault_of_label(cell: str, task: Task | None) -> str | None:
    if "\n" in cell:
        return _OPEN_QUOTE
    if cell.lower() in _MISSING_LABEL:
        return f"the label is missing ({cell!r}); every row needs one"
    if not is_number(cell):
        return f"the label {cell!r} is not a number, as a regression needs" if task == "regression" else None
    return None if math.isfinite(float(cell)) else f"the label is {cell!r}; labels must be finite"


def _fault_of_cell(cell: str, dtype: np.dtype[Any]) -> str | None:
    if cell.lower() in MISSING_WORDS:
        return f"the value is missing ({cell!r}); {WAYS_WITH_MISSING}"
    if not is_number(cell):
        return f"{cell!r} is not a number; features must be numbers {_ENCODE}"
    if not math.isfinite(float(cell)) or abs(float(cell)) > float(np.finfo(dtype).max):
        return f"{cell!r} is not a finite {dtype} number"
    return None
