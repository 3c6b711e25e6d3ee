"""Read LIBSVM (SVMlight) text: `label index:value index:value ...`, a row on each line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.blocks import Block, Source, rows_in
from saddlesvm.data.data_table import are_rounded, is_number, whole_numbers
from saddlesvm.data.errors import DataError
from saddlesvm.data.libsvm_kernel import PROGRESS, ParsedLines, parse_lines, powers_of_five
from saddlesvm.data.reading import LateZero, Reading
from saddlesvm.data.streams import line_blocks, reading

_LARGEST_INDEX = 2**31 - 2  # the last one whose successor fits into 32 bits
_PAIR = re.compile(r"([+-]?[0-9]{1,4000}):(\S*)")
_TEXT_BYTES = 1 << 22  # bytes of text that are parsed at a time; a guess


def libsvm_source(path: Path, how: Reading) -> Source:
    """Return LIBSVM text, plain or compressed, as a source.

    Comments, from ``#`` to the end of the line, are skipped.

    With ``zero_based="auto"`` a file in which index 0 occurs counts from 0, and any other from 1.
    Its blocks raise :class:`LateZero` if index 0 does not occur in the first block, but later.

    Raises
    ------
    DataError
        When it is read, naming the first line that is malformed, whose indices do not ascend or are
        out of range, or whose values are not finite.
    """
    return Source(
        str(path),
        "libsvm",
        sparse=True,
        width=how.n_features,
        dtype=np.dtype(np.float64),
        has_labels=how.label is not False,
        n_bytes=path.stat().st_size,
        # A value takes some eight bytes of text and 16 in memory.
        blocks=lambda n_bytes: libsvm_blocks(path, how, rows_in(n_bytes, 2)),
        piece=2 * _TEXT_BYTES,
    )


def libsvm_blocks(path: Path, how: Reading, n_bytes: int = _TEXT_BYTES) -> Iterator[Block]:
    """Yield the rows of `n_bytes` of LIBSVM text at a time; see :func:`libsvm_source`."""
    parser = _BlockParser(path, how)
    starts_at_zero = how.zero_based is True
    n_rows = 0
    widest = 0
    with reading(path), closing(line_blocks(path, n_bytes)) as texts:
        for text, share in texts:
            y, values, indices, ends, has_zero = parser.parse(text)
            if has_zero and how.zero_based == "auto" and not starts_at_zero:
                # The indices before were taken to count from 1, and so was the largest allowed.
                if n_rows or how.n_features is not None:
                    raise LateZero
                starts_at_zero = True
            if not starts_at_zero:
                indices -= 1
            width = 0
            if indices.size:
                width = int(indices.max()) + 1
            n_rows += y.size
            widest = max(widest, width)
            parts = (values, indices, np.concatenate([[0], ends]))
            X = sp.csr_matrix(parts, shape=(y.size, how.n_features or max(width, 1)))
            labels = None if how.label is False else y
            yield Block(X, labels, None, share, starts_at_zero)
    if n_rows and not widest and how.n_features is None:
        raise DataError(
            f"{path}: has {n_rows} rows but not one feature; at least one index:value is needed"
        )


class _BlockParser:
    """Parses block after block of a file, and counts the lines."""

    def __init__(self, path: Path, how: Reading) -> None:
        self.path = path
        self.how = how
        self.dtype = np.dtype(how.dtype or np.float64)
        self.first = int(how.zero_based is False)
        self.last = _LARGEST_INDEX
        if how.n_features is not None:
            self.last = how.n_features - (how.zero_based is True)
        self.n_lines = 0

    def parse(self, text: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, bool]:
        """Return labels, values, indices and ends of the rows in whole lines.

        Compiled code parses usual lines, Python the others. The last value is True if index 0
        occurs.
        """
        marks = np.frombuffer(text, dtype=np.uint8)
        # Each line has a label at most, and each value a colon.
        n_lines = text.count(b"\n")
        n_values = text.count(b":")
        y = np.empty(n_lines)
        values = np.empty(n_values)
        ends = np.empty(n_lines, dtype=np.int64)
        indices = np.empty(n_values, dtype=np.int32)
        progress = np.zeros(1, PROGRESS)
        so_far: Any = progress[0]
        parsed = ParsedLines(y.view(np.uint64), ends, indices, values.view(np.uint64))
        # Compiled code stops at a line that it cannot read: Python names its fault, or parses it.
        while not parse_lines(marks, progress, self.first, self.last, powers_of_five(), parsed):
            line = text[so_far["place"] : text.index(b"\n", so_far["place"])]
            fault = _fault_of(line, self.first, self.last, self.how.n_features, self.dtype)
            if fault is not None:
                number = self.n_lines + so_far["lines"] + 1
                raise DataError(f"{self.path}: line {number}: {fault}")
            _parse_line(line, so_far, y, ends, indices, values)

        n_rows = so_far["rows"]
        n_values = so_far["values"]
        # A value of the text may be too large for float32.
        with np.errstate(over="ignore"):
            cast = values[:n_values].astype(self.dtype, copy=False)
        if self.dtype != np.float64 and not np.isfinite(cast).all():
            value = values[int(np.argmin(np.isfinite(cast)))]
            raise DataError(
                f"{self.path}: holds {value:g}, which {self.dtype} cannot hold: read it as float64"
            )
        self.n_lines += int(so_far["lines"])
        labels = y[:n_rows]
        if are_rounded(labels):
            # Labels of 2^53 or more are read again, as whole numbers of 64 bits if they are.
            whole = whole_numbers(_labels_of(text))
            if whole is not None:
                labels = whole
        return labels, cast, indices[:n_values], ends[:n_rows], bool(so_far["zero_seen"])


def _labels_of(text: bytes) -> list[str]:
    """Return the labels of all lines that are not empty."""
    lines = (line.split(b"#", 1)[0].split(None, 1) for line in text.split(b"\n"))
    return [line[0].decode() for line in lines if line]


def _parse_line(
    line: bytes, so_far: Any, y: np.ndarray, ends: Any, indices: np.ndarray, values: np.ndarray
) -> None:
    """Parse a line without a fault, but with an unusual spelling, or very many digits."""
    label, *pairs = line.split(b"#", 1)[0].split()
    row = so_far["rows"]
    start = so_far["values"]
    y[row] = float(label)
    for k, pair in enumerate(pairs, start=start):
        index, _, value = pair.partition(b":")
        indices[k] = int(index)
        values[k] = float(value)
        so_far["zero_seen"] |= int(index) == 0
    ends[row] = start + len(pairs)
    so_far["place"] += len(line) + 1
    so_far["lines"] += 1
    so_far["rows"] += 1
    so_far["values"] += len(pairs)


def _fault_of(
    line: bytes, first: int, last: int, n_features: int | None, dtype: np.dtype
) -> str | None:
    """Say what is wrong with a line; return None if nothing is."""
    tokens = line.split(b"#", 1)[0].split()
    if not tokens:
        return None
    label, *pairs = (token.decode("utf-8", errors="replace") for token in tokens)
    fault = _fault_of_label(label)
    if fault is not None:
        return fault
    # Indices ascend within their range, and values are finite.
    previous = first - 1
    largest = float(np.finfo(dtype).max)
    for pair in pairs:
        match = _PAIR.fullmatch(pair)
        if pair.startswith("qid:"):
            return f"found {pair!r}; query ids are not read: remove them"
        if match is None or not is_number(match[2]):
            return f"found {pair!r}; index:value is needed, a whole number and a number"
        index = int(match[1])
        if not abs(float(match[2])) <= largest:
            return f"value {match[2]!r} in {pair!r}; values must be finite {dtype} numbers"
        if index < first:
            return f"index {index} in {pair!r}; indices count from {first}"
        if index <= previous:
            return (
                f"index {index} comes after index {previous}; "
                "indices must ascend, each at most once"
            )
        if index > last:
            expected = "" if n_features is None else f" ({n_features} features are expected)"
            return f"index {index}; the largest allowed is {last}{expected}"
        previous = index
    return None


def _fault_of_label(label: str) -> str | None:
    """Say what is wrong with a label; return None if nothing is."""
    if is_number(label):
        if math.isfinite(float(label)):
            return None
        return f"label {label!r}; labels must be finite"
    if ":" in label:
        return f"starts with {label!r}; a line starts with its label (0 if it is not known)"
    if "," in label:
        return f"label {label!r}; each row may have one label, not several"
    return f"label {label!r} is not a number"
