"""LIBSVM (SVMlight) text: `label index:value index:value ...`, one row a line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from saddlesvm.data.blocks import Block, Reading, Source, rows_in
from saddlesvm.data.errors import DataError
from saddlesvm.data.libsvm_kernel import PROGRESS, Filled, parse_lines, powers_of_five
from saddlesvm.data.streams import binary_lines, line_blocks, reading
from saddlesvm.data.table import is_number

_INDEX_MAX = 2**31 - 2
_PAIR = re.compile(r"([+-]?[0-9]{1,4000}):(\S*)")
_TEXT_BYTES = 1 << 22


class TextBlock(NamedTuple):
    """Some rows of a file, with the indices as they are in the text.

    Attributes
    ----------
    y : ndarray of shape (n,), float64
    values : ndarray, float32 or float64
    indices : ndarray, int32
    ends : ndarray of shape (n,), int64
        Number of values in the block up to and with each row.
    zero_seen : bool
        Whether index 0 occurred in the block.
    share : float
        How much of the file was read by now, 0 to 1.
    """

    y: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]
    zero_seen: bool
    share: float


class StartsAtZero(Exception):
    """Index 0 occurred in a file whose indices were assumed to count from 1."""


def libsvm_source(path: Path, how: Reading) -> Source:
    """LIBSVM text, plain or compressed. Comments (from ``#`` to the end of the line) and ``qid:`` entries are skipped.

    With ``zero_based="auto"`` a file in which index 0 occurs counts from 0, and any other from 1. Its blocks take the
    indices to count from 1, and raise :class:`StartsAtZero` when they do not: begin anew with ``zero_based=True``.

    Raises
    ------
    DataError
        When it is read, naming the first line that is malformed, whose indices do not ascend or are out of range, or
        whose values are not finite.
    """
    labelled = how.label is not False

    def blocks(n_bytes: int) -> Iterator[Block]:
        for block in libsvm_blocks(path, replace(how, dtype=None), rows_in(n_bytes, 2)):
            if block.zero_seen and how.zero_based == "auto":
                raise StartsAtZero
            indices = block.indices if how.zero_based is True else block.indices - 1
            width = int(indices.max()) + 1 if indices.size else 0
            parts = (block.values, indices, np.concatenate([[0], block.ends]))
            X = sp.csr_matrix(parts, shape=(block.y.size, max(width, 1)))
            yield Block(X, block.y if labelled else None, None, block.share)

    def whole(advance: Callable[[float], Any] | None) -> Block:
        found = _whole(path, how, advance)
        return found if labelled else found._replace(y=None)

    return Source(
        str(path),
        "libsvm",
        sparse=True,
        width=how.n_features,
        dtype=np.dtype(np.float64),
        has_labels=labelled,
        n_bytes=path.stat().st_size,
        blocks=blocks,
        zero_based=how.zero_based is True,
        whole=whole,
    )


def _whole(path: Path, how: Reading, advance: Callable[[float], Any] | None) -> Block:
    """All rows, in one pass even where the first index turns out to be 0."""
    blocks = []
    for block in libsvm_blocks(path, how):
        blocks.append(block)
        if advance is not None:
            advance(block.share)
    y = np.concatenate([block.y for block in blocks]) if blocks else np.empty(0)
    if not y.size:
        raise DataError(f"{path}: holds no rows; at least one is needed")
    starts_at_zero = how.zero_based is True or (how.zero_based == "auto" and any(block.zero_seen for block in blocks))
    before = np.cumsum([0, *(block.values.size for block in blocks)])
    indptr = np.concatenate([[0], *(block.ends + start for block, start in zip(blocks, before[:-1], strict=True))])
    values = np.concatenate([block.values for block in blocks])
    indices = np.concatenate([block.indices for block in blocks])
    indices -= not starts_at_zero
    widest = int(indices.max()) + 1 if indices.size else 0
    if how.n_features is None and not widest:
        raise DataError(f"{path}: has {y.size} rows but not one feature; at least one index:value is needed")
    if how.n_features is not None and widest > how.n_features:
        _find_fault(path, how)
    X = sp.csr_matrix((values, indices, indptr), shape=(y.size, how.n_features or widest))
    return Block(X, y, zero_based=starts_at_zero)


def libsvm_blocks(path: Path, how: Reading, n_bytes: int = _TEXT_BYTES) -> Iterator[TextBlock]:
    """LIBSVM text some rows at a time; see :func:`libsvm_source`.

    With ``zero_based="auto"`` only the end of the file tells whether the indices count from 0: the caller subtracts. An
    index equal to `n_features` is then accepted.
    """
    lines = _Lines(path, how)
    with closing(line_blocks(path, n_bytes)) as texts:
        while True:
            try:
                with reading(path):
                    found = next(texts, None)
            except DataError:
                _find_fault(path, how)
                raise
            if found is None:
                return
            yield lines.parse(*found)


class _Lines:
    """Parses block after block of one file, and counts the lines."""

    def __init__(self, path: Path, how: Reading) -> None:
        self.path, self.how, self.dtype = path, how, np.dtype(how.dtype or np.float64)
        self.first, self.last = int(how.zero_based is False), _largest(how.n_features, how.zero_based is True)
        self.before = 0

    def parse(self, text: bytes, share: float) -> TextBlock:
        marks = np.frombuffer(text, dtype=np.uint8)
        n_lines, n_values = text.count(b"\n"), text.count(b":")
        y, values, ends = np.empty(n_lines), np.empty(n_values), np.empty(n_lines, dtype=np.int64)
        indices = np.empty(n_values, dtype=np.int32)
        progress = np.zeros(1, PROGRESS)
        so_far: Any = progress[0]
        filled = Filled(y.view(np.uint64), ends, indices, values.view(np.uint64))
        while not parse_lines(marks, progress, self.first, self.last, powers_of_five(), filled):
            line = text[so_far["place"] : text.index(b"\n", so_far["place"])]
            fault = _fault_of(line, self.first, self.last, self.how.n_features, self.dtype)
            if fault is not None:
                raise DataError(f"{self.path}: line {self.before + so_far['lines'] + 1}: {fault}")
            _parse_line(line, so_far, y, ends, indices, values)
        count, k = so_far["rows"], so_far["values"]
        with np.errstate(over="ignore"):
            cast = values[:k].astype(self.dtype, copy=False)
        if self.dtype != np.float64 and not np.isfinite(cast).all():
            _find_fault(self.path, self.how)
            raise DataError(f"{self.path}: holds values that {self.dtype} cannot hold")
        self.before += int(so_far["lines"])
        return TextBlock(y[:count], cast, indices[:k], ends[:count], bool(so_far["zero_seen"]), share)


def _parse_line(line: bytes, so_far: Any, y: Any, ends: Any, indices: Any, values: Any) -> None:
    """Parse a line without a fault in which something is unusual: the spelling of a number, or very many digits."""
    label, *pairs = line.split(b"#", 1)[0].split()
    pairs = pairs[1:] if pairs and pairs[0].startswith(b"qid:") else pairs
    y[so_far["rows"]] = float(label)
    for k, pair in enumerate(pairs, start=so_far["values"]):
        index, _, value = pair.partition(b":")
        indices[k], values[k] = int(index), float(value)
        so_far["zero_seen"] |= int(index) == 0
    ends[so_far["rows"]] = so_far["values"] + len(pairs)
    for name, more in (("place", len(line) + 1), ("lines", 1), ("rows", 1), ("values", len(pairs))):
        so_far[name] += more


def _largest(n_features: int | None, starts_at_zero: bool) -> int:
    return _INDEX_MAX if n_features is None else n_features - starts_at_zero


def _find_fault(path: Path, how: Reading) -> None:
    """Read line by line and raise a `DataError` at the first line that breaks a rule."""
    number, first, dtype = 0, int(how.zero_based is False), np.dtype(how.dtype or np.float64)
    try:
        starts_at_zero = how.zero_based is True or (how.zero_based == "auto" and _has_index_zero(path))
        last = _largest(how.n_features, starts_at_zero)
        for number, line in enumerate(binary_lines(path), start=1):
            fault = _fault_of(line, first, last, how.n_features, dtype)
            if fault is not None:
                raise DataError(f"{path}: line {number}: {fault}")
    except EOFError:
        raise DataError(f"{path}: is truncated: the compressed data end too early, after line {number}") from None
    except OSError:
        return


def _has_index_zero(path: Path) -> bool:
    return any(b" 0:" in line or b"\t0:" in line for line in binary_lines(path))


def _fault_of(line: bytes, first: int, last: int, n_features: int | None, dtype: np.dtype[Any]) -> str | None:
    """Say what is wrong with a line; None when nothing is."""
    tokens = line.split(b"#", 1)[0].split()
    if not tokens:
        return None
    label, *pairs = (token.decode("utf-8", errors="replace") for token in tokens)
    fault = _fault_of_label(label)
    if pairs and pairs[0].startswith("qid:"):
        pairs = pairs[1:]
    previous, most = first - 1, float(np.finfo(dtype).max)
    for pair in pairs if fault is None else ():
        match = _PAIR.fullmatch(pair)
        if match is None or not is_number(match[2]):
            return f"found {pair!r}; index:value is needed, a whole number and a number"
        index = int(match[1])
        if not abs(float(match[2])) <= most:
            return f"value {match[2]!r} in {pair!r}; values must be finite {dtype} numbers"
        if index < first:
            return f"index {index} in {pair!r}; indices count from {first}"
        if index <= previous:
            return f"index {index} comes after index {previous}; indices must ascend, each at most once"
        if index > last:
            expected = "" if n_features is None else f" ({n_features} features are expected)"
            return f"index {index}; the largest allowed is {last}{expected}"
        previous = index
    return fault


def _fault_of_label(label: str) -> str | None:
    if is_number(label):
        return None if math.isfinite(float(label)) else f"label {label!r}; labels must be finite"
    if ":" in label:
        return f"starts with {label!r}; a line starts with its label (0 where it is not known)"
    if "," in label:
        return f"label {label!r}; one label a row is allowed, several are not"
    return f"label {label!r} is not a number"
