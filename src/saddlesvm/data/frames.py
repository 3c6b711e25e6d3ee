"""Tables of any columns as pandas' data frames, some rows at a time or whole.

CSV, JSON lines, Parquet, Feather, Arrow files and streams, and folders of texts. pandas and pyarrow come with the extra
``files``. A cell that is not of the kind of its column is searched for after the fast reader failed, and is named by
file, line and column.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np

from saddlesvm.data.blocks import dropped_positions, label_position, located, position_of
from saddlesvm.data.delimited import Layout, layout_of, line_of_row, refuse_ragged, rows_of_cells
from saddlesvm.data.errors import DataError
from saddlesvm.data.kinds import MISSING_WORDS, NUMBERS, SAMPLE, BadCell, Found, Kind, choose_kinds, typed_frame
from saddlesvm.data.parquet import arrow_file, is_list
from saddlesvm.data.streams import open_counted, reading
from saddlesvm.data.table import Header, Label, bounded_classes, is_number, shorten, unique_names
from saddlesvm.runtime.extras import how_to_install

if TYPE_CHECKING:
    import pandas as pd

TABLE_FORMATS = ("csv", "jsonl", "parquet", "arrow", "folder")
SAMPLE_BYTES = 1 << 24  # of the rows that tell the kinds, at most
NAMES_BYTES = 1 << 18  # of JSON lines, whose first rows tell the names
PROBED_ROWS = 1_000  # of a CSV file, which tell whether it holds words
A_ROW = 64  # bytes of a row of a CSV file, at least, for the size of a part
FOLDER_TEXT = "text"
FOLDER_LABEL = "folder"
ALL = 1 << 62  # bytes of a part that holds all rows

_MISSING = sorted({spelled for word in MISSING_WORDS for spelled in (word, word.upper(), word.title())})
_NO_LABEL = frozenset({"", "?", "nan"})

Row = TypeVar("Row")
Frames = Generator[tuple["pd.DataFrame", float], None, None]


@dataclass(frozen=True)
class TableFile:
    """A file of columns, ready to be read.

    Attributes
    ----------
    name, format : str
    n_bytes : int
        Size on the disk.
    names : list of str
        Of all columns that are not left out; the second of two equal names ends with ".1".
    headerless : bool
        Whether the file has no names, and columns are called "column 1", "column 2" and so on.
    parts : callable
        Takes approximate bytes and the kinds of the columns (empty if they are not known); yields frames, and the
        share of the file that was read by then.
    line : callable
        The words for a row of the file, from 0: "line 7" or "row 7".
    """

    name: str
    format: str
    n_bytes: int
    names: list[str]
    headerless: bool
    parts: Callable[[int, Mapping[str, Kind]], Frames]
    line: Callable[[int], str]

    def first(self) -> pd.DataFrame:
        """The first rows, as they are; raises DataError if there are none."""
        with closing(self.parts(SAMPLE_BYTES, {})) as parts:
            found = next(parts, None)
        if found is None or not len(found[0]):
            raise DataError(f"{self.name}: holds no rows; at least one is needed")
        return found[0].iloc[:SAMPLE]

    def typed(
        self, n_bytes: int, kinds: Mapping[str, Kind], label: str | None = None
    ) -> Generator[tuple[pd.DataFrame, np.ndarray | None, float], None, None]:
        """Columns in the types of their kinds, labels, and the share that was read; some rows at a time.

        Raises
        ------
        DataError
            A cell is not of its kind, or a label is missing; the message names file, line and column.
        """
        read_as = dict(kinds)
        if label is not None:
            read_as[label] = Kind("category")
        done = 0
        for frame, share in self.parts(n_bytes, read_as):
            try:
                columns = typed_frame(frame, kinds)
            except BadCell as error:
                where = self.line(done + error.row)
                raise DataError(f"{self.name}: {where}: column {error.column!r}: {error.said}") from None
            except DataError as error:
                raise DataError(f"{self.name}: {error}") from None
            y = None if label is None else labels_from(frame[label], label, self, done)
            done += len(frame)
            yield columns, y, share


def pandas_for(what: str) -> Any:
    """The module pandas; raises DataError if it is not installed."""
    try:
        import pandas
    except ImportError:
        raise DataError(
            f"{what}: reading tables with words, dates or gaps needs pandas: {how_to_install('files')}"
        ) from None
    return pandas


def open_table(
    source: str, *, header: Header = "auto", drop: Sequence[str | int] = (), label: Label = None
) -> TableFile:
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
        The file is in no such format, cannot be read, or has no such column; or pandas is not installed.
    """
    path = Path(source)
    found = located(source)
    if found not in TABLE_FORMATS:
        raise DataError(
            f"{source}: is in the format {found}, which has no columns of words: {', '.join(TABLE_FORMATS)} have"
        )
    pandas_for(source)
    if found == "csv":
        return _csv_table(path, header, drop, label)
    openers = {"jsonl": _jsonl_table, "folder": _folder_table}
    names, parts, line = openers[found](path) if found in openers else _arrow_table(path, found)
    gone = dropped_positions(drop, names, len(names), source)
    kept = [name for place, name in enumerate(names) if place not in gone]
    size = sum(one.stat().st_size for one in _texts_of(path)) if found == "folder" else path.stat().st_size

    def narrowed(n_bytes: int, kinds: Mapping[str, Kind]) -> Frames:
        for frame, share in parts(n_bytes):
            yield frame[kept], share

    return TableFile(source, found, size, kept, False, narrowed, line)


def taken_label(
    file: TableFile, label: Label, features: Sequence[str] | None = None, column: str | None = None
) -> str | None:
    """The name of the column of labels of a file; None if it has none.

    Parameters
    ----------
    file : TableFile
    label : str, int, False or None
        As the user gave it; None for the column of that name, the last column, that of the folders, or, with
        `features`, `column`.
    features : sequence of str, optional
        The columns that a model expects.
    column : str, optional
        The name of the model's labels.

    Raises
    ------
    DataError
        There is no such column.
    """
    if label is None and features is not None:
        return column if column in file.names and column not in features else None
    if label is None and file.format == "folder":
        return FOLDER_LABEL
    position = label_position(label, file.names, len(file.names), None, file.name)
    return None if position is None else file.names[position]


def kinds_of(file: TableFile, label: str | None, given: Mapping[str, str] | None = None) -> dict[str, Found]:
    """The kinds of a file's columns, from its first rows, without the label's.

    Parameters
    ----------
    file : TableFile
    label : str or None
    given : mapping of str to str, optional
        What columns are, by name, or by position in the file.

    Raises
    ------
    DataError
        There is no such column or kind, or no column is left.
    """
    asked = {}
    for key, kind in (given or {}).items():
        asked[file.names[position_of(key, file.names, len(file.names), file.name, "column")]] = str(kind)
    if label in asked:
        raise DataError(f"{file.name}: {label!r} is the label column: give kinds to the other columns only")
    frame = file.first()
    try:
        return choose_kinds(frame if label is None else frame.drop(columns=label), asked)
    except DataError as error:
        raise DataError(f"{file.name}: {error}") from None


def read_frame(
    file: TableFile, kinds: Mapping[str, Kind], label: str | None, advance: Callable[[float], Any] | None = None
) -> tuple[pd.DataFrame, np.ndarray | None]:
    """All rows of a file in memory, in the types of their kinds, and the labels.

    Raises
    ------
    DataError
        There are no rows, or as :meth:`TableFile.typed`.
    """
    pd = pandas_for(file.name)
    frames = []
    labels: list[np.ndarray] = []
    for frame, y, share in file.typed(ALL, kinds, label):
        frames.append(frame)
        if y is not None:
            labels.append(y)
        if advance is not None:
            advance(share)
    if not frames or not sum(map(len, frames)):
        raise DataError(f"{file.name}: holds no rows; at least one is needed")
    whole = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    if label is None:
        return whole, None
    return whole, np.concatenate(labels)


def labels_from(values: pd.Series[Any], label: str, file: TableFile, before: int = 0) -> np.ndarray:
    """A column of labels: numbers if all of them are, else text.

    Raises
    ------
    DataError
        A label is missing or a list, or there are too many or too long texts to be classes.
    """
    pd = pandas_for(file.name)
    if values.dtype.kind in "iuf" and not pd.api.types.is_bool_dtype(values.dtype) and not values.isna().any():
        return values.to_numpy()
    first = values.dropna().head(1).tolist()
    if first and isinstance(first[0], (list, tuple, dict, np.ndarray)):
        raise DataError(f"{file.name}: the column {label!r} holds lists; labels must be numbers or text")
    codes, distinct = pd.factorize(values, use_na_sentinel=True)
    texts = [str(one).strip() for one in distinct]
    gone = np.array([one.lower() in _NO_LABEL for one in texts] + [True])[codes]
    if gone.any():
        where = file.line(before + int(np.argmax(gone)))
        raise DataError(f"{file.name}: {where}: the label is missing; every row needs one in {label!r}")
    if all(map(is_number, texts)):
        return np.array([float(one) for one in texts])[codes]
    return np.array(bounded_classes(texts, f"{file.name}: {label!r}"))[codes]


def holds_words(source: str, header: Header, drop: Sequence[str | int], label: Label) -> bool:
    """Whether a file has columns that are not numbers, or lists of numbers, among its first rows.

    Tables of numbers are read as numbers, and need no pandas.
    """
    found = located(source)
    if found in ("jsonl", "folder"):
        return True
    if found in ("parquet", "arrow"):
        return _types_of_words(Path(source), found, drop, label)
    if found != "csv":
        return False
    try:
        with reading(Path(source)):
            layout = layout_of(Path(source), label, header, None, drop)
            rows = list(islice(rows_of_cells(Path(source), layout), PROBED_ROWS))
    except DataError:
        return False  # the reader of numbers says what is wrong, and where
    for column in layout.features:
        cells = [row[column].strip() for row in rows if len(row) > column]
        known = [cell for cell in cells if cell.lower() not in MISSING_WORDS]
        if sum(map(is_number, known)) < NUMBERS * len(known):
            return True
    return False


def _types_of_words(path: Path, found: str, drop: Sequence[str | int], label: Label) -> bool:
    """Whether a column of an Arrow schema, other than the label, is neither of numbers nor of lists."""
    import pyarrow as pa

    file = arrow_file(path, found)
    gone = dropped_positions(drop, file.names, len(file.names), str(path))
    kept = [place for place in range(len(file.names)) if place not in gone]
    if label is not False:
        lists = bool(kept) and is_list(file.types[kept[-1]]) and label is None
        at = None if lists else label_position(label, file.names, len(file.names), None, str(path), gone)
        kept = [place for place in kept if place != at]
    plain = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_boolean,
        pa.types.is_null,
        is_list,
    )
    return any(not any(is_kind(file.types[place]) for is_kind in plain) for place in kept)


def _csv_table(path: Path, header: Header, drop: Sequence[str | int], label: Label) -> TableFile:
    """A CSV or TSV file, by ``pandas.read_csv``."""
    with reading(path):
        layout = layout_of(path, label, header, None, drop)
    names = unique_names(layout.names or [f"column {place + 1}" for place in range(layout.n_columns)])
    kept = [name for place, name in enumerate(names) if place not in layout.dropped]

    def parts(n_bytes: int, kinds: Mapping[str, Kind]) -> Frames:
        rows = None if n_bytes == ALL else max(1, n_bytes // (A_ROW + 8 * layout.n_columns))
        if rows is not None and not kinds:
            rows = min(rows, SAMPLE)
        checked = False
        for frame, share in _csv_frames(path, layout, names, kinds, rows):
            # pandas fills short rows with gaps: only a gap in the last column can be one
            if not checked and frame[names[-1]].isna().any():
                refuse_ragged(path, layout)
                checked = True
            yield frame[kept], share

    def line(row: int) -> str:
        return f"line {line_of_row(path, layout, row)}"

    return TableFile(str(path), "csv", path.stat().st_size, kept, layout.names is None, parts, line)


def _csv_frames(path: Path, layout: Layout, names: list[str], kinds: Mapping[str, Kind], rows: int | None) -> Frames:
    """The rows of a CSV file as pandas reads them; columns of words as text."""
    import pandas as pd

    as_text = {}
    missing: dict[str, list[str]] = {}
    for place, name in enumerate(names):
        kind = kinds.get(name)
        if place in layout.dropped or (kind is not None and (kind.name != "number" or kind.way)):
            as_text[name] = str
        missing[name] = [""] if kind is not None and kind.name in ("text", "chars") else _MISSING
    with reading(path), open_counted(path) as (file, share), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        try:
            found = pd.read_csv(
                file,
                sep=layout.delimiter,
                header=None if layout.names is None else 0,
                names=names,
                index_col=False,
                dtype=as_text,
                na_values=missing,
                keep_default_na=False,
                skipinitialspace=True,
                encoding="utf-8",
                low_memory=False,
                chunksize=rows,
            )
            if rows is None:
                yield found, 1.0
            else:
                yield from ((frame, share()) for frame in found)
        except pd.errors.EmptyDataError:
            return
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            refuse_ragged(path, layout)
            said = str(error).splitlines()[0].removeprefix("Error tokenizing data. C error: ")
            raise DataError(f"{path}: cannot be read as CSV: {said}") from None


def as_utf8(file: IO[bytes]) -> io.TextIOWrapper:
    """An open file as UTF-8 text, without a byte order mark."""
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def gather(rows: Iterable[tuple[Row, int]], n_bytes: int) -> Generator[list[Row], None, None]:
    """Rows, which come with the length of their text, in lists of about `n_bytes` of text."""
    some: list[Row] = []
    size = 0
    for row, length in rows:
        some.append(row)
        size += length
        if size >= n_bytes:
            yield some
            some = []
            size = 0
    if some:
        yield some


Opened = tuple[list[str], Callable[[int], Frames], Callable[[int], str]]


def _jsonl_table(path: Path) -> Opened:
    """A file of JSON objects, a line each."""
    import pandas as pd

    def lists(n_bytes: int) -> Generator[tuple[list[dict[str, Any]], float], None, None]:
        with reading(path), open_counted(path) as (file, share), as_utf8(file) as text:
            for rows in gather(_json_objects(text, path), n_bytes):
                yield rows, share()

    with closing(lists(NAMES_BYTES)) as parts:
        first, _ = next(parts, ([], 0.0))
    if not first:
        raise DataError(f"{path}: is empty; at least one row is needed")
    names = list(dict.fromkeys(str(name) for row in first for name in row))
    known = set(names)

    def frames(n_bytes: int) -> Frames:
        for rows, share in lists(n_bytes):
            late = next((name for row in rows if not known.issuperset(row) for name in row if name not in known), None)
            if late is not None:
                raise DataError(
                    f"{path}: the field {late!r} is in none of the first rows; their fields are {shorten(names)}"
                )
            yield pd.DataFrame(rows, columns=names), share

    def line(row: int) -> str:
        with reading(path), open_counted(path) as (file, _), as_utf8(file) as text:
            filled = (number for number, one in enumerate(text, 1) if not one.isspace())
            return f"line {next(islice(filled, row, None))}"

    return names, frames, line


def _json_objects(text: IO[str], path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """The JSON objects of a file, and the length of the line of each."""
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


def _arrow_table(path: Path, found: str) -> Opened:
    """A Parquet, Feather or Arrow file."""
    file = arrow_file(path, found)

    def frames(n_bytes: int) -> Frames:
        done = 0
        for table in file.tables(n_bytes):
            done += table.num_rows
            yield frame_of_arrow(table, file.names), done / max(1, file.n_rows)

    return file.names, frames, lambda row: f"row {row + 1}"


def frame_of_arrow(table: Any, names: Sequence[str]) -> pd.DataFrame:
    """The columns of an Arrow table as pandas holds them; `names` are theirs."""
    import pandas as pd

    return pd.DataFrame({name: _series_of_arrow(table.column(place)) for place, name in enumerate(names)})


def _series_of_arrow(column: Any) -> Any:
    """One column: times of the day as seconds, dates as moments, dictionaries as their values."""
    import pyarrow as pa

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type)
        kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_time(kind):
        unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        whole = column.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
        return whole.cast(pa.float64(), safe=False).to_pandas() / unit
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        column = column.cast(pa.timestamp("us", zone), safe=False)
    return column.to_pandas()


def _texts_of(path: Path) -> list[Path]:
    """The files in the folders of a folder, which are the classes."""
    folders = sorted(one for one in path.iterdir() if one.is_dir() and not one.name.startswith("."))
    return [file for folder in folders for file in sorted(folder.iterdir()) if file.is_file()]


def _folder_table(path: Path) -> Opened:
    """A folder with a folder of text files for each class."""
    import pandas as pd

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
        for rows in gather(texts(), n_bytes):
            done += len(rows)
            yield pd.DataFrame(rows), done / len(files)

    return [FOLDER_TEXT, FOLDER_LABEL], frames, lambda row: f"file {files[row].name!r}"
