"""Tables of any columns as pandas' data frames, some rows at a time or whole.

CSV, JSON lines, Parquet, Feather, Arrow files and streams. pandas and pyarrow
come with the extra ``files``. Only if a fast reader fails is the cell searched for that is not of
the kind of its column; it is named by file, line and column.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saddlesvm.data.arrow_columns import is_list
from saddlesvm.data.arrow_files import arrow_file
from saddlesvm.data.arrow_source import choose_columns
from saddlesvm.data.blocks import WHOLE, find_format
from saddlesvm.data.cell_patterns import MISSING_WORDS
from saddlesvm.data.column_positions import dropped_positions, label_position, position_of
from saddlesvm.data.data_table import check_classes, is_number, shorten, unique_names
from saddlesvm.data.delimited import (
    LineLayout,
    find_layout,
    numbered_rows,
    refuse_ragged,
)
from saddlesvm.data.errors import DataError
from saddlesvm.data.kinds import NUMBERS, SAMPLE, ChosenKind, Kind, choose_kinds
from saddlesvm.data.reading import Header, Label, Reading
from saddlesvm.data.streams import open_bytes, open_text, reading
from saddlesvm.data.typed_columns import BadCell, typed_frame
from saddlesvm.runtime.extras import how_to_install

if TYPE_CHECKING:
    from types import ModuleType

    import pandas as pd
    import pyarrow as pa

TABLE_FORMATS = ("csv", "jsonl", "parquet", "arrow")
SAMPLE_BYTES = 1 << 24  # bytes of the rows that tell the kinds, at most; a guess
NAMES_BYTES = 1 << 18  # bytes of JSON lines whose fields are the names of all rows; a guess
PROBED_ROWS = 1_000  # rows of a CSV file that tell whether it holds words; a guess
LEAST_ROW_BYTES = 64  # bytes of a row of a CSV file in memory, at least; a guess

_MISSING_SPELLINGS = sorted(
    {spelling for word in MISSING_WORDS for spelling in (word, word.upper(), word.title())}
)
_MISSING_LABEL = frozenset({"", "?", "nan"})

Frames = Generator[tuple["pd.DataFrame", float], None, None]
# What a format knows of a file: names of the columns, frames of about some bytes, and the words for
# a row.
OpenTable = tuple[list[str], Callable[[int], Frames], Callable[[int], str]]


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
    parts : callable
        Takes approximate bytes and the kinds of the columns (empty if they are not known); yields
        frames, and the share of the file that was read by then.
    line : callable
        The words for a row of the file, from 0: "line 7" or "row 7".
    """

    name: str
    format: str
    n_bytes: int
    names: list[str]
    parts: Callable[[int, Mapping[str, Kind]], Frames]
    line: Callable[[int], str]

    def first_rows(self) -> pd.DataFrame:
        """Return the first rows, as they are; raises DataError if there are none."""
        with closing(self.parts(SAMPLE_BYTES, {})) as parts:
            first = next(parts, None)
        if first is None or not len(first[0]):
            raise DataError(f"{self.name}: holds no rows; at least one is needed")
        return first[0].iloc[:SAMPLE]

    def read_typed(
        self, n_bytes: int, kinds: Mapping[str, Kind], label: str | None = None
    ) -> Generator[tuple[pd.DataFrame, np.ndarray | None, float], None, None]:
        """Yield columns in the types of their kinds, labels, and the share that was read.

        Raises
        ------
        DataError
            A cell is not of its kind, or a label is missing; the message names file, line and
            column.
        """
        read_as = dict(kinds)
        if label is not None:
            read_as[label] = Kind("category")
        done = 0
        for frame, share in self.parts(n_bytes, read_as):
            try:
                columns = typed_frame(frame, kinds)
            except BadCell as error:
                where = f"{self.line(done + error.row)}: column {error.column!r}"
                raise DataError(f"{self.name}: {where}: {error.fault}") from None
            except DataError as error:
                raise DataError(f"{self.name}: {error}") from None
            y = None if label is None else labels_from(frame[label], label, self, done)
            done += len(frame)
            yield columns, y, share


def import_pandas(what: str) -> ModuleType:
    """Return the module pandas; raises DataError if it is not installed."""
    try:
        import pandas
    except ImportError:
        raise DataError(
            f"{what}: reading tables with words, dates or gaps needs pandas: "
            f"{how_to_install('files')}"
        ) from None
    return pandas


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
    if format not in TABLE_FORMATS:
        raise DataError(
            f"{source}: is in the format {format}, which holds numbers only; for columns of words, "
            f"dates or texts give one of {', '.join(TABLE_FORMATS)}, or read this file with "
            "saddlesvm.data.read"
        )
    # CSV leaves out columns while it reads, other formats afterwards.
    import_pandas(source)
    if format == "csv":
        return _open_csv(path, header, drop, label)
    n_bytes = path.stat().st_size
    if format == "jsonl":
        names, parts, line = _open_jsonl(path)
    else:
        names, parts, line = _open_arrow(path, format)
    dropped = dropped_positions(drop, names, len(names), source)
    kept = [name for position, name in enumerate(names) if position not in dropped]

    def kept_parts(n_bytes: int, kinds: Mapping[str, Kind]) -> Frames:
        for frame, share in parts(n_bytes):
            yield frame[kept], share

    return TableFile(source, format, n_bytes, kept, kept_parts, line)


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
    position = label_position(label, file.names, len(file.names), None, file.name)
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
        position = position_of(key, file.names, len(file.names), file.name, "column")
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
    file: TableFile,
    kinds: Mapping[str, Kind],
    label: str | None,
    advance: Callable[[float], object] | None = None,
) -> tuple[pd.DataFrame, np.ndarray | None]:
    """Read all rows of a file, in the types of their kinds, and the labels.

    Raises
    ------
    DataError
        There are no rows, or as :meth:`TableFile.read_typed`.
    """
    pd = import_pandas(file.name)
    frames = []
    labels: list[np.ndarray] = []
    for frame, y, share in file.read_typed(WHOLE, kinds, label):
        frames.append(frame)
        if y is not None:
            labels.append(y)
        if advance is not None:
            advance(share)
    if not frames or not sum(map(len, frames)):
        raise DataError(f"{file.name}: holds no rows; at least one is needed")
    whole = frames[0]
    if len(frames) > 1:
        whole = pd.concat(frames, ignore_index=True)
    if label is None:
        return whole, None
    return whole, np.concatenate(labels)


def labels_from(values: pd.Series, label: str, file: TableFile, n_before: int = 0) -> np.ndarray:
    """Return a column of labels: numbers if all of them are numbers, else text.

    Raises
    ------
    DataError
        A label is missing or a list, or there are too many or too long texts to be classes.
    """
    pd = import_pandas(file.name)
    is_bool = pd.api.types.is_bool_dtype(values.dtype)
    if values.dtype.kind in "iuf" and not is_bool and not values.isna().any():
        return values.to_numpy()
    first = values.dropna().head(1).tolist()
    if first and isinstance(first[0], (list, tuple, dict, np.ndarray)):
        raise DataError(
            f"{file.name}: the column {label!r} holds lists; labels must be numbers or text"
        )

    # Look at each different label once; a missing label has the code -1, and so the last entry.
    codes, distinct = pd.factorize(values, use_na_sentinel=True)
    texts = [str(value).strip() for value in distinct]
    is_missing = np.array([text.lower() in _MISSING_LABEL for text in texts] + [True])[codes]
    if is_missing.any():
        where = file.line(n_before + int(np.argmax(is_missing)))
        raise DataError(
            f"{file.name}: {where}: the label is missing; every row needs one in {label!r}"
        )
    if all(map(is_number, texts)):
        return np.array([float(text) for text in texts])[codes]
    return np.array(check_classes(texts, f"{file.name}: {label!r}"))[codes]


def holds_words(source: str, header: Header, drop: Sequence[str | int], label: Label) -> bool:
    """Return True if a file has columns of other things than numbers, or lists of numbers.

    The first rows tell. Tables of numbers are read as numbers, and need no pandas.
    """
    format = find_format(source)
    if format == "jsonl":
        return True
    if format in ("parquet", "arrow"):
        return _has_other_types(Path(source), format, drop, label)
    if format != "csv":
        return False
    try:
        with reading(Path(source)):
            layout = find_layout(Path(source), label, header, None, drop)
            probed = islice(numbered_rows(Path(source), layout), PROBED_ROWS)
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


def _has_other_types(path: Path, format: str, drop: Sequence[str | int], label: Label) -> bool:
    """Return True if an Arrow column, other than the label, holds neither numbers nor lists."""
    import pyarrow as pa

    file = arrow_file(path, format)
    features, _ = choose_columns(file, Reading(label=label, drop_columns=tuple(drop)))
    is_known = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_boolean,
        pa.types.is_null,
        is_list,
    )
    return any(not any(is_type(file.types[k]) for is_type in is_known) for k in features)


def _open_csv(path: Path, header: Header, drop: Sequence[str | int], label: Label) -> TableFile:
    """Open a CSV or TSV file, which ``pandas.read_csv`` reads."""
    with reading(path):
        layout = find_layout(path, label, header, None, drop)
    default_names = [f"column {k + 1}" for k in range(layout.n_columns)]
    names = unique_names(layout.names or default_names)
    kept = [name for k, name in enumerate(names) if k not in layout.dropped]

    def parts(n_bytes: int, kinds: Mapping[str, Kind]) -> Frames:
        n_rows = None
        if n_bytes != WHOLE:
            n_rows = max(1, n_bytes // (LEAST_ROW_BYTES + 8 * layout.n_columns))
            # Without kinds, the first rows are asked for.
            if not kinds:
                n_rows = min(n_rows, SAMPLE)
        is_checked = False
        for frame, share in _read_csv(path, layout, names, kinds, n_rows):
            # pandas fills short rows with gaps, so that only rows with a gap at the end may be
            # short.
            if not is_checked and frame[names[-1]].isna().any():
                refuse_ragged(path, layout)
                is_checked = True
            yield frame[kept], share

    def line(row: int) -> str:
        return f"line {next(islice(numbered_rows(path, layout), row, None))[0]}"

    return TableFile(str(path), "csv", path.stat().st_size, kept, parts, line)


def _read_csv(
    path: Path,
    layout: LineLayout,
    names: list[str],
    kinds: Mapping[str, Kind],
    n_rows: int | None,
) -> Frames:
    """Yield the rows of a CSV file as pandas reads them; columns of words are text."""
    import pandas as pd

    text_types = {}
    missing: dict[str, list[str]] = {}
    for position, name in enumerate(names):
        kind = kinds.get(name)
        # pandas parses plain numbers; other kinds are parsed later, from text.
        needs_text = kind is not None and (kind.name != "number" or kind.way)
        if position in layout.dropped or needs_text:
            text_types[name] = str
        # "none" and "na" are words in a text, and missing values elsewhere.
        missing[name] = _MISSING_SPELLINGS
        if kind is not None and kind.name in ("text", "chars"):
            missing[name] = [""]
    with (
        reading(path),
        open_bytes(path, has_lines=True) as (file, share),
        warnings.catch_warnings(),
    ):
        # pandas only warns of lines with too many cells; mixed types in a column are no fault.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        try:
            frames = pd.read_csv(
                file,
                sep=layout.delimiter,
                header=None if layout.names is None else 0,
                names=names,
                index_col=False,
                dtype=text_types,
                na_values=missing,
                keep_default_na=False,
                skipinitialspace=True,
                encoding="utf-8",
                low_memory=False,
                chunksize=n_rows,
            )
            if n_rows is None:
                yield frames, 1.0
            else:
                yield from ((frame, share()) for frame in frames)
        except pd.errors.EmptyDataError:
            return
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            refuse_ragged(path, layout)
            reason = str(error).splitlines()[0].removeprefix("Error tokenizing data. C error: ")
            raise DataError(f"{path}: cannot be read as CSV: {reason}") from None


def _open_jsonl(path: Path) -> OpenTable:
    """Open a file with a JSON object on each line."""
    import pandas as pd

    with closing(_read_objects(path, NAMES_BYTES)) as parts:
        first, _ = next(parts, ([], 0.0))
    if not first:
        raise DataError(f"{path}: is empty; at least one row is needed")
    # The fields in the order in which the first rows name them.
    names = list(dict.fromkeys(str(name) for row in first for name in row))
    known = set(names)

    def frames(n_bytes: int) -> Frames:
        for rows, share in _read_objects(path, n_bytes):
            for row in rows:
                # A set compares a whole row at once, and nearly all rows have known fields.
                if not known.issuperset(row):
                    unknown = next(name for name in row if name not in known)
                    raise DataError(
                        f"{path}: the field {unknown!r} is in none of the first rows; "
                        f"their fields are {shorten(names)}"
                    )
            yield pd.DataFrame(rows, columns=names), share

    def line(row: int) -> str:
        with reading(path), open_text(path) as (text, _):
            numbers = (number for number, line in enumerate(text, 1) if not line.isspace())
            return f"line {next(islice(numbers, row, None))}"

    return names, frames, line


def _read_objects(
    path: Path, n_bytes: int
) -> Generator[tuple[list[dict[str, object]], float], None, None]:
    """Yield lists of the JSON objects on about `n_bytes` of lines, and the share that was read."""
    rows: list[dict[str, Any]] = []
    size = 0
    with reading(path), open_text(path) as (text, share):
        for number, line in enumerate(text, 1):
            if line.isspace():
                continue
            try:
                row = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                raise DataError(f"{path}: line {number}: is not JSON: {error}") from None
            if not isinstance(row, dict):
                raise DataError(
                    f"{path}: line {number}: holds a {type(row).__name__}; "
                    'each line must be a JSON object, such as {"name": 1}'
                )
            rows.append(row)
            size += len(line)
            if size >= n_bytes:
                yield rows, share()
                rows = []
                size = 0
        if rows:
            yield rows, 1.0


def _open_arrow(path: Path, format: str) -> OpenTable:
    """Open a Parquet, Feather or Arrow file."""
    file = arrow_file(path, format)

    def frames(n_bytes: int) -> Frames:
        done = 0
        for table in file.tables(n_bytes):
            done += table.num_rows
            yield frame_of_arrow(table, file.names), done / max(1, file.n_rows)

    return file.names, frames, lambda row: f"row {row + 1}"


def frame_of_arrow(table: pa.Table, names: Sequence[str]) -> pd.DataFrame:
    """Return the columns of an Arrow table as pandas holds them, with these names."""
    import pandas as pd

    return pd.DataFrame({name: _series_of_arrow(table.column(k)) for k, name in enumerate(names)})


def _series_of_arrow(column: pa.ChunkedArray) -> pd.Series:
    """Return a column for pandas: times of the day as seconds, dates as moments."""
    import pyarrow as pa

    arrow_type = column.type
    if isinstance(arrow_type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in column.chunks]
        column = pa.chunked_array(chunks, arrow_type.storage_type)
        arrow_type = column.type
    # The values of a dictionary, not their codes.
    if pa.types.is_dictionary(arrow_type):
        column = column.cast(arrow_type.value_type)
        arrow_type = column.type
    if pa.types.is_time(arrow_type):
        units_per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[arrow_type.unit]
        integer_type = pa.int64()
        if pa.types.is_time32(arrow_type):
            integer_type = pa.int32()
        whole = column.cast(integer_type)
        return whole.cast(pa.float64(), safe=False).to_pandas() / units_per_second
    if pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type):
        zone = arrow_type.tz if pa.types.is_timestamp(arrow_type) else None
        column = column.cast(pa.timestamp("us", zone), safe=False)
    return column.to_pandas()
