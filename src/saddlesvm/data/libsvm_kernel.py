"""Parsing of a block of LIBSVM text in compiled code, which leaves every unusual line to Python."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddlesvm.data.decimals import ZERO, U, is_space, parse_decimal
from saddlesvm.runtime.compiled import inlined, kernel, record_of

__all__ = ["PROGRESS", "Filled", "parse_lines"]

# Place in the text; lines, rows and values so far; whether index 0 occurred, 0 or 1.
PROGRESS = record_of("place", "lines", "rows", "values", "zero_seen", kind=np.int64)
NEWLINE, HASH, COLON, SMALL_Q = (np.uint8(ord(mark)) for mark in "\n#:q")


class Filled(NamedTuple):
    """The contents of the lines.

    Attributes
    ----------
    labels, values : ndarray of uint64
        The bits of float64 numbers.
    ends : ndarray of int64
        The number of values up to and with each row.
    indices : ndarray of int32
        As they are in the text.
    """

    labels: np.ndarray[Any, Any]
    ends: np.ndarray[Any, Any]
    indices: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]


@kernel
def parse_lines(
    text: np.ndarray[Any, Any],
    progress: np.ndarray[Any, Any],
    first: int,
    last: int,
    powers: np.ndarray[Any, Any],
    filled: Filled,
) -> bool:
    """Parse lines from ``progress[0].place`` on, until the text ends or a line comes that needs a closer look.

    Parameters
    ----------
    text : ndarray of uint8
        Whole lines; the last one ends with a newline.
    progress : ndarray of shape (1,)
        A `PROGRESS` record; brought up to date.
    first, last : int
        The indices allowed.
    powers : ndarray
        :func:`~saddlesvm.data.decimals.powers_of_five`.
    filled : Filled
        Room for what the lines hold.

    Returns
    -------
    bool
        Whether the text ended; if not, ``progress[0].place`` is at the line that could not be read.
    """
    labels, ends, indices, values = filled
    so_far = progress[0]
    p, lines, count, k = so_far.place, so_far.lines, so_far.rows, so_far.values
    zero_seen = so_far.zero_seen != 0
    fine = True
    while p < text.size:
        start = p
        p = _skip_blanks(text, p)
        if text[p] != NEWLINE and text[p] != HASH:
            labels[count], p = parse_decimal(text, p, text.size, powers)
            if p < 0 or not _ends_word(text[p]):
                fine, p = False, start
                break
            before = k
            previous = first - 1
            p = _skip_query(text, _skip_blanks(text, p))
            while text[p] != NEWLINE and text[p] != HASH:
                index, p = _parse_index(text, p)
                if p < 0 or index <= previous or index > last:
                    fine = False
                    break
                values[k], p = parse_decimal(text, p, text.size, powers)
                if p < 0 or not _ends_word(text[p]):
                    fine = False
                    break
                zero_seen |= index == 0
                indices[k] = index
                previous = index
                k += 1
                p = _skip_blanks(text, p)
            if not fine:
                p, k = start, before
                break
            ends[count] = k
            count += 1
        while text[p] != NEWLINE:
            p += 1
        p += 1
        lines += 1
    so_far.place, so_far.lines, so_far.rows, so_far.values, so_far.zero_seen = p, lines, count, k, zero_seen
    return fine


@inlined
def _skip_blanks(text: Any, p: Any) -> Any:
    """The next place that is not blank; a newline is not."""
    while text[p] != NEWLINE and is_space(text[p]):
        p += 1
    return p


@inlined
def _ends_word(mark: Any) -> Any:
    return is_space(mark) or mark == HASH


@inlined
def _skip_query(text: Any, p: Any) -> Any:
    """The place behind a ``qid:`` entry, if there is one here."""
    if text[p] != SMALL_Q or text[p + 1] != 105 or text[p + 2] != 100 or text[p + 3] != COLON:
        return p
    while not _ends_word(text[p]):
        p += 1
    return _skip_blanks(text, p)


@inlined
def _parse_index(text: Any, p: Any) -> Any:
    """A whole number without a sign and the place behind its colon; -1 if there is none."""
    index, start = np.int64(0), p
    while U(text[p]) - U(ZERO) <= U(9) and p - start < 11:
        index = 10 * index + np.int64(text[p] - ZERO)
        p += 1
    if p == start or text[p] != COLON:
        return index, np.int64(-1)
    return index, np.int64(p + 1)
