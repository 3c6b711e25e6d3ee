"""Files that hold tables of any columns, some rows at a time: CSV, JSON lines, Parquet, Feather, folders of texts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, TypeVar

from saddlesvm.data.blocks import dropped_positions, label_position, located
from saddlesvm.data.column_kinds import Frame, frame_of, frame_of_rows, objects
from saddlesvm.data.delimited import Layout, layout_of
from saddlesvm.data.errors import DataError
from saddlesvm.data.parquet import arrow_file
from saddlesvm.data.streams import open_counted, reading
from saddlesvm.data.table import Label

FRAME_FORMATS = ("csv", "jsonl", "parquet", "arrow", "folder")
SAMPLE_BYTES = 1 << 18  # of JSON lines, whose first rows tell the names
FOLDER_TEXT, FOLDER_LABEL = "text", "folder"

Row = TypeVar("Row")
Frames = Generator[tuple[Frame, float], None, None]


@dataclass(frozen=True)
class FrameSource:
    """A file of columns, ready to be read in frames.

    Attributes
    ----------
    name, format : str
    n_bytes : int
        Size on the disk.
    names : list of str
        Of all its columns, but those to drop.
    named : bool
        Whether the file names its columns; else they are called by their positions.
    frames : callable
        Takes the approximate bytes of a frame; yields frames, and the share of the file that was read by then.
    """

    name: str
    format: str
    n_bytes: int
    names: list[str]
    named: bool
    frames: Callable[[int], Frames]


def frame_source(
    source: str, *, header: bool | Literal["auto"] = "auto", drop: Sequence[str | int] = (), label: Label = None
) -> FrameSource:
    """A file whose columns may be of any kind.

    Parameters
    ----------
    source : str
    header : bool or "auto"
        Whether the first line of a CSV file holds names.
    drop : sequence of str or int
        Columns that are left out, by name or position.
    label : str, int, False or None
        As in :func:`~saddlesvm.data.read`; helps to distinguish a line of names from a row.

    Raises
    ------
    DataError
        The file is in no such format, cannot be read, or has no such column.
    """
    path, found = Path(source), located(source)
    if found == "csv":
        return _csv(path, header, drop, label)
    if found not in FRAME_FORMATS:
        raise DataError(
            f"{source}: is in the format {found}, which has no columns of words: {', '.join(FRAME_FORMATS)} have"
        )
    plain = {"jsonl": _jsonl, "folder": _folder}.get(found)
    names, frames = _arrow(path, found) if plain is None else plain(path)
    gone = dropped_positions(drop, names, len(names), source)
    kept = [name for k, name in enumerate(names) if k not in gone]
    size = sum(one.stat().st_size for one in _texts_of(path)) if found == "folder" else path.stat().st_size

    def narrowed(n_bytes: int) -> Frames:
        for frame, share in frames(n_bytes):
            yield Frame({name: frame.columns[name] for name in kept}), share

    return FrameSource(source, found, size, kept, True, narrowed)


def taken_label(
    source: FrameSource, label: Label, known: Sequence[str] | None = None, column: str | None = None
) -> str | None:
    """The name of the column of labels of a file; None where it has none.

    Parameters
    ----------
    source : FrameSource
    label : str, int, False or None
        As the user gave it; None for the last column, that of the folders, or, with `known`, `column`.
    known : sequence of str, optional
        The features that a model expects.
    column : str, optional
        The name of the model's labels.

    Raises
    ------
    DataError
        There is no such column.
    """
    if label is None and known is not None:
        return column if column in source.names and column not in known else None
    if label is None and source.format == "folder":
        return FOLDER_LABEL
    position = label_position(label, source.names, len(source.names), None, source.name)
    return None if position is None else source.names[position]


def _csv(path: Path, header: bool | Literal["auto"], drop: Sequence[str | int], label: Label) -> FrameSource:
    with reading(path):
        layout = layout_of(path, label, header, None, drop)
    names = layout.names or [f"column {k + 1}" for k in range(layout.n_columns)]
    kept = [k for k in range(layout.n_columns) if k not in layout.dropped]

    def frames(n_bytes: int) -> Frames:
        with reading(path), open_counted(path) as (file, share), wrapped(file) as text:
            for cells in gathered(_rows_of_cells(text, layout, path), n_bytes):
                yield Frame({names[k]: objects(row[k] for row in cells) for k in kept}), share()

    return FrameSource(
        str(path), "csv", path.stat().st_size, [names[k] for k in kept], layout.names is not None, frames
    )


def wrapped(file: IO[bytes]) -> io.TextIOWrapper:
    """An open file as UTF-8 text, without a byte order mark."""
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def first_frame(source: FrameSource, n_bytes: int) -> Frame:
    """The first rows of a file, about `n_bytes` of them.

    Raises
    ------
    DataError
        There are none.
    """
    with closing(source.frames(n_bytes)) as frames:
        first = next(frames, None)
    if first is None:
        raise DataError(f"{source.name}: holds no rows; at least one is needed")
    return first[0]


def gathered(rows: Iterable[tuple[Row, int]], n_bytes: int) -> Generator[list[Row], None, None]:
    """Rows, which come with the length of their text, in lists of about `n_bytes` of text."""
    some: list[Row] = []
    size = 0
    for row, length in rows:
        some.append(row)
        size += length
        if size >= n_bytes:
            yield some
            some, size = [], 0
    if some:
        yield some


def _rows_of_cells(text: IO[str], layout: Layout, path: Path) -> Iterator[tuple[list[str], int]]:
    """The rows of a CSV file, and the length of each."""
    reader = csv.reader(islice(text, layout.skip, None), delimiter=layout.delimiter)
    try:
        for row in filter(None, reader):
            if len(row) != layout.n_columns:
                said = f"has {len(row)} columns; the lines before have {layout.n_columns}"
                raise DataError(f"{path}: line {layout.skip + reader.line_num}: {said}")
            yield row, sum(map(len, row)) + len(row)
    except csv.Error as error:
        raise DataError(f"{path}: line {layout.skip + reader.line_num}: {error}") from None


def _jsonl(path: Path) -> tuple[list[str], Callable[[int], Frames]]:
    def parts(n_bytes: int) -> Generator[tuple[list[dict[str, Any]], float], None, None]:
        with reading(path), open_counted(path) as (file, share), wrapped(file) as text:
            yield from ((rows, share()) for rows in gathered(_objects(text, path), n_bytes))

    with closing(parts(SAMPLE_BYTES)) as objects_:
        first, _ = next(objects_, ([], 0.0))
    if not first:
        raise DataError(f"{path}: is empty; at least one row is needed")
    names = list(dict.fromkeys(str(name) for row in first for name in row))

    def frames(n_bytes: int) -> Frames:
        for rows, share in parts(n_bytes):
            late = next((name for row in rows for name in row if name not in names), None)
            if late is not None:
                names_first = ", ".join(map(repr, names[:12]))
                raise DataError(
                    f"{path}: the field {late!r} is in none of the first rows; their fields are {names_first}"
                )
            yield frame_of_rows(rows, names), share

    return names, frames


def _objects(text: IO[str], path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """The JSON objects of a file, a line each, and the length of the line."""
    for number, line in enumerate(text, 1):
        if line.isspace():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise DataError(f"{path}: line {number}: is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise DataError(f"{path}: line {number}: holds no JSON object but a {type(row).__name__}; a row is one")
        yield row, len(line)


def _arrow(path: Path, found: str) -> tuple[list[str], Callable[[int], Frames]]:
    file = arrow_file(path, found)

    def frames(n_bytes: int) -> Frames:
        done = 0
        for table in file.tables(n_bytes):
            done += table.num_rows
            yield frame_of(table.select(file.names)), done / file.n_rows

    return file.names, frames


def _texts_of(path: Path) -> list[Path]:
    """The files in the folders of a folder, which are the classes."""
    folders = sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith("."))
    return [file for folder in folders for file in sorted(folder.iterdir()) if file.is_file()]


def _folder(path: Path) -> tuple[list[str], Callable[[int], Frames]]:
    files = _texts_of(path)
    if not files:
        raise DataError(f"{path}: its folders hold no files; a folder of texts for each class is needed")

    def texts() -> Iterator[tuple[dict[str, str], int]]:
        for file in files:
            with reading(file):
                text = file.read_text("utf-8", "replace")
            yield {FOLDER_TEXT: text, FOLDER_LABEL: file.parent.name}, len(text)

    def frames(n_bytes: int) -> Frames:
        done = 0
        for rows in gathered(texts(), n_bytes):
            done += len(rows)
            yield frame_of_rows(rows, [FOLDER_TEXT, FOLDER_LABEL]), done / len(files)

    return [FOLDER_TEXT, FOLDER_LABEL], frames
