"""Parse LIBSVM text in compiled code, its decimals rounded exactly; Python parses unusual lines.

Decimals need whole numbers only. The method is that of D. Lemire, "Number parsing at a gigabyte per
second" (Software: Practice and Experience 51, 2021; the Eisel-Lemire algorithm): the first 19
digits times a 128-bit power of five decide the nearest double, except for rare ties, subnormals and
overflows, which are left to Python's `float`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from saddlesvm.runtime.compiled import inlined, instruction, kernel, record_of

# Place in the text; lines, rows and values so far; 1 if index 0 occurred, else 0.
PROGRESS = record_of("place", "lines", "rows", "values", "zero_seen", kind=np.int64)
NEWLINE, HASH, COLON = (np.uint8(ord(mark)) for mark in "\n#:")
MINUS, PLUS, POINT, ZERO, SMALL_E, LARGE_E = (np.uint8(ord(mark)) for mark in "-+.0eE")
U = np.uint64
INDEX_DIGITS = 11  # decimal digits of an index that are read; more are out of range
DIGITS = 19  # decimal digits that always fit into 64 bits
SMALLEST_POWER = -342  # 19 digits times 10 to a smaller power round to 0
LARGEST_POWER = 308  # any digit times 10 to a larger power overflows
# Powers of ten, from -27 to 55, for which the product of 128 bits is always long enough (see the
# paper).
EXACT_BELOW = 27
EXACT_ABOVE = 55


class ParsedLines(NamedTuple):
    """The contents of lines.

    Attributes
    ----------
    labels, values : ndarray of uint64
        The bits of float64 numbers.
    ends : ndarray of int64
        The number of values up to the end of each row.
    indices : ndarray of int32
        As they are in the text.
    """

    labels: np.ndarray
    ends: np.ndarray
    indices: np.ndarray
    values: np.ndarray


@kernel
def parse_lines(
    text: np.ndarray,
    progress: np.ndarray,
    first: int,
    last: int,
    powers: np.ndarray,
    filled: ParsedLines,
) -> bool:
    """Parse lines from ``progress[0].place`` on, until the text ends or a line cannot be read.

    Parameters
    ----------
    text : ndarray of uint8
        Whole lines; the last line ends with a newline.
    progress : ndarray of shape (1,)
        A `PROGRESS` record, which is updated.
    first, last : int
        The smallest and largest index allowed.
    powers : ndarray
        :func:`~saddlesvm.data.libsvm_kernel.powers_of_five`.
    filled : ParsedLines
        Room for what the lines hold.

    Returns
    -------
    bool
        True if the text ended; if not, ``progress[0].place`` is at the line that cannot be read.
    """
    labels, ends, indices, values = filled
    so_far = progress[0]
    p = so_far.place
    lines = so_far.lines
    count = so_far.rows
    k = so_far.values
    zero_seen = so_far.zero_seen != 0
    fine = True
    while p < text.size:
        start = p
        p = _skip_blanks(text, p)
        if text[p] != NEWLINE and text[p] != HASH:
            # The label.
            labels[count], p = parse_decimal(text, p, text.size, powers)
            if p < 0 or not _ends_word(text[p]):
                fine = False
                p = start
                break
            # Pairs of index and value, until the line or its contents end.
            before = k
            previous = first - 1
            p = _skip_blanks(text, p)
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
            # Forget the pairs of a line that cannot be read: Python begins it anew.
            if not fine:
                p = start
                k = before
                break
            ends[count] = k
            count += 1
        # A comment may follow.
        while text[p] != NEWLINE:
            p += 1
        p += 1
        lines += 1
    so_far.place = p
    so_far.lines = lines
    so_far.rows = count
    so_far.values = k
    so_far.zero_seen = zero_seen
    return fine


@inlined
def _skip_blanks(text: Any, p: Any) -> Any:
    """Return the next place that is not blank; a newline is not."""
    while text[p] != NEWLINE and is_space(text[p]):
        p += 1
    return p


@inlined
def _ends_word(mark: int) -> Any:
    """Return True for a mark that cannot be part of a number."""
    return is_space(mark) or mark == HASH


@inlined
def _parse_index(text: np.ndarray, p: int) -> Any:
    """Return a whole number without a sign, and the place after its colon; -1 if there is none."""
    index = np.int64(0)
    start = p
    while U(text[p]) - U(ZERO) <= U(9) and p - start < INDEX_DIGITS:
        index = 10 * index + np.int64(text[p] - ZERO)
        p += 1
    if p == start or text[p] != COLON:
        return index, np.int64(-1)
    return index, np.int64(p + 1)


@lru_cache(maxsize=1)
def powers_of_five() -> np.ndarray:
    """Return the leading 128 bits of ``5 ** q`` for all q that matter, as two 64-bit words each."""
    table = np.empty((LARGEST_POWER - SMALLEST_POWER + 1, 2), dtype=np.uint64)
    for q in range(SMALLEST_POWER, LARGEST_POWER + 1):
        power = 5 ** abs(q)
        size = power.bit_length()
        # Positive powers are cut, negative ones rounded up.
        if q >= 0:
            leading = power << 128 - size if size <= 128 else power >> size - 128
        elif -q <= EXACT_BELOW:
            leading = (1 << size + 127) // power + 1
        else:
            leading = (1 << 2 * size + 128) // power + 1
            leading >>= leading.bit_length() - 128
        table[q - SMALLEST_POWER] = leading >> 64, leading & (1 << 64) - 1
    table.flags.writeable = False
    return table


# Python, if nothing is compiled, has whole numbers of any size.
high_product = instruction("high_product", lambda a, b: U(int(a) * int(b) >> 64))
leading_zeros = instruction("leading_zeros", lambda a: 64 - int(a).bit_length())


@inlined
def _nearest_double(w: np.uint64, q: int, powers: np.ndarray) -> np.uint64:
    """Return the bits of the double nearest to ``w * 10 ** q``, w > 0; 0 if that is undecided."""
    if q < SMALLEST_POWER or q > LARGEST_POWER:
        return U(0)
    # Shift w so that its first bit is set, and multiply by the leading 64 bits of 5 ** q.
    zeros: Any = leading_zeros(w)
    w <<= zeros
    high_power = powers[q - SMALLEST_POWER, 0]
    low_power = powers[q - SMALLEST_POWER, 1]
    low = w * high_power
    high = high_product(w, high_power)
    # Nine set bits after the mantissa: the next 64 bits of 5 ** q may carry into it.
    if high & U(0x1FF) == U(0x1FF):
        more = high_product(w, low_power)
        low += more
        if more > low:
            high += U(1)
        if low == U(0xFFFFFFFFFFFFFFFF) and not -EXACT_BELOW <= q <= EXACT_ABOVE:
            return U(0)
    # The mantissa with one bit more; the exponent is floor(q log2(10)) and an offset.
    upper = high >> U(63)
    shift = upper + U(9)
    mantissa = high >> shift
    exponent = ((217706 * q) >> 16) + 1086 + np.int64(upper) - np.int64(zeros)
    # Subnormal numbers and overflows.
    if exponent <= 0 or exponent >= 2046:
        return U(0)
    # A tie between two doubles goes to the even one.
    if low <= U(1) and -4 <= q <= 23 and mantissa & U(3) == U(1) and mantissa << shift == high:
        mantissa &= ~U(1)
    # Round to 53 bits, which may carry into the exponent.
    mantissa = (mantissa + (mantissa & U(1))) >> U(1)
    if mantissa >= U(1) << U(53):
        mantissa = U(1) << U(52)
        exponent += 1
    return (mantissa & ((U(1) << U(52)) - U(1))) | (U(exponent) << U(52))


@inlined
def is_space(mark: int) -> bool:
    """Return True for a blank, tab, line feed, vertical tab, form feed or carriage return."""
    return mark == 32 or (9 <= mark <= 13)


@inlined
def parse_decimal(text: Any, p: Any, stop: Any, powers: np.ndarray) -> Any:
    """Read a decimal number at place `p` of `text` (uint8), which ends at `stop`.

    Returns
    -------
    bits : uint64
        Bits of the nearest float64.
    p : int
        The place after the number; -1 if there is no number, or if it cannot be read here.
    """
    negative = p < stop and text[p] == MINUS
    if p < stop and (text[p] == MINUS or text[p] == PLUS):
        p += 1
    # Read the number as w * 10 ** q with the first 19 digits in w; `lost` if a later one is not 0.
    w = U(0)
    digits = 0
    q = 0
    seen = 0
    lost = False
    point = False
    while p < stop:
        mark = text[p]
        if mark == POINT and not point:
            point = True
        else:
            digit = U(mark) - U(ZERO)
            if digit > U(9):
                break
            seen += 1
            if digits < DIGITS:
                w = w * U(10) + digit
                digits += w != U(0)
                q -= point
            else:
                lost |= digit != U(0)
                q += not point
        p += 1
    if seen == 0:
        return U(0), np.int64(-1)
    if p < stop and (text[p] == SMALL_E or text[p] == LARGE_E):
        exponent, p = _parse_exponent(text, p + 1, stop)
        q += exponent
        if p < 0:
            return U(0), np.int64(-1)
    sign = U(negative) << U(63)
    if w == U(0):
        return sign, np.int64(p)
    # With lost digits the number lies between w and w + 1, which must have the same double.
    bits = _nearest_double(w, q, powers)
    if bits == U(0) or (lost and _nearest_double(w + U(1), q, powers) != bits):
        return U(0), np.int64(-1)
    return sign | bits, np.int64(p)


@inlined
def _parse_exponent(text: np.ndarray, p: int, stop: int) -> tuple[int, np.int64]:
    """Return the whole number after an "e", and the place after it; -1 if there is none."""
    negative = p < stop and text[p] == MINUS
    if p < stop and (text[p] == MINUS or text[p] == PLUS):
        p += 1
    exponent = 0
    first = p
    while p < stop and U(text[p]) - U(ZERO) <= U(9):
        exponent = min(10 * exponent + int(text[p] - ZERO), 100_000)
        p += 1
    return (-exponent if negative else exponent), np.int64(p if p > first else -1)
